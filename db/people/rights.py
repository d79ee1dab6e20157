"""Rights: what a person may do, everywhere or on a dataset or study; who gave them.

A right is a row of `member`. An admin has all rights everywhere without rows. The roles annotator
and curator are presets: names for the rights that a new account gets.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from db.errors import BadInput, Refused
from db.events import record_event
from db.tables import Account, Dataset, Member, Study
from db.values import RIGHTS, STUDY_RIGHTS

PRESETS: Mapping[str, tuple[str, ...]] = {
    "annotator": ("judge", "review"),
    "curator": RIGHTS,
    "admin": (),
}


@dataclass(frozen=True)
class Rights:
    """A person's rights: everywhere, by dataset id, by study id.

    `dataset_of` names the dataset of each of these studies.
    """

    is_admin: bool = False
    everywhere: frozenset[str] = frozenset()
    on_datasets: Mapping[int, frozenset[str]] = field(default_factory=dict)
    on_studies: Mapping[int, frozenset[str]] = field(default_factory=dict)
    dataset_of: Mapping[int, int] = field(default_factory=dict)

    def anywhere(self, right: str) -> bool:
        """Whether the person has the right on anything."""
        scoped = (*self.on_datasets.values(), *self.on_studies.values())
        return self.is_everywhere(right) or any(right in rights for rights in scoped)

    def is_everywhere(self, right: str) -> bool:
        """Whether the person has the right on every dataset."""
        return self.is_admin or right in self.everywhere

    def on_dataset(self, right: str, dataset_id: int) -> bool:
        """Whether the person has the right on all of a dataset."""
        return self.is_everywhere(right) or right in self.on_datasets.get(dataset_id, ())

    def datasets(self, right: str) -> frozenset[int] | None:
        """The datasets on all of which the person has the right; None for every dataset."""
        if self.is_everywhere(right):
            return None
        return frozenset(one for one, rights in self.on_datasets.items() if right in rights)

    def studies(self, right: str) -> frozenset[int]:
        """The studies on which the person has the right by a row of its own."""
        return frozenset(one for one, rights in self.on_studies.items() if right in rights)


ALL_RIGHTS = Rights(is_admin=True)
RIGHT_COLUMNS = (Member.right_held, Member.dataset_id, Member.study_id, Study.dataset_id)


def rights_of(session: Session, account: Account) -> Rights:
    """The rights of an account."""
    if account.role == "admin":
        return ALL_RIGHTS
    query = (
        select(*RIGHT_COLUMNS)
        .outerjoin(Study, Study.id == Member.study_id)
        .where(Member.account_id == account.id)
    )
    return rights_in(session.execute(query))


def rights_in(rows: Iterable[Sequence[Any]]) -> Rights:
    """The rights in rows of RIGHT_COLUMNS of one account, which is not an admin's."""
    everywhere: set[str] = set()
    datasets: dict[int, set[str]] = {}
    studies: dict[int, set[str]] = {}
    dataset_of: dict[int, int] = {}
    for right, dataset_id, study_id, of_study in rows:
        if study_id is not None:
            studies.setdefault(study_id, set()).add(right)
            if of_study is not None:
                dataset_of[study_id] = of_study
        elif dataset_id is not None:
            datasets.setdefault(dataset_id, set()).add(right)
        elif right is not None:  # an account without any has one empty row in an outer join
            everywhere.add(right)
    return Rights(
        everywhere=frozenset(everywhere),
        on_datasets={one: frozenset(rights) for one, rights in datasets.items()},
        on_studies={one: frozenset(rights) for one, rights in studies.items()},
        dataset_of=dataset_of,
    )


def may_judge(session: Session, account: Account, study: Study) -> bool:
    """Whether an account may judge in a study."""
    found = rights_of(session, account)
    return found.on_dataset("judge", study.dataset_id) or study.id in found.studies("judge")


def list_members(session: Session) -> list[tuple[Account, Member]]:
    """Every right of every account, by name, place and right."""
    query = (
        select(Account, Member)
        .join(Member, Member.account_id == Account.id)
        .order_by(Account.name, Member.dataset_id, Member.study_id, Member.right_held)
    )
    return [(account, member) for account, member in session.execute(query)]


def set_rights(
    session: Session,
    account: Account,
    rights: Collection[str],
    *,
    actor: str,
    dataset_id: int | None = None,
    study_id: int | None = None,
) -> None:
    """Give an account exactly these rights on a dataset, a study, or (without either) everywhere.

    Rights elsewhere stay. Raises BadInput for an unknown right, for one that a study has not, and
    for both places or an unknown one. Does not commit.
    """
    _check(rights, dataset_id, study_id)
    _require_place(session, dataset_id, study_id)
    before = session.scalars(
        select(Member.right_held).where(*_at(account.id, dataset_id, study_id))
    ).all()
    session.execute(
        delete(Member).where(
            *_at(account.id, dataset_id, study_id), Member.right_held.not_in(list(rights))
        )
    )
    for right in sorted(set(rights) - set(before)):
        session.add(
            Member(
                account_id=account.id,
                right_held=right,
                dataset_id=dataset_id,
                study_id=study_id,
                granted_by=actor,
            )
        )
    session.flush()
    if set(before) != set(rights):
        place = {"dataset": dataset_id} if dataset_id is not None else {"study": study_id}
        record_event(
            session,
            actor,
            "member.rights",
            account.name,
            before=sorted(before),
            after=sorted(set(rights)),
            **{name: ident for name, ident in place.items() if ident is not None},
        )


def replace_rights(
    session: Session, account: Account, rights: Collection[str], *, actor: str
) -> None:
    """Give an account exactly these rights in each place where it has any, and in no other.

    On a study these are the ones that a study has. Does not commit.
    """
    found = session.execute(
        select(Member.dataset_id, Member.study_id)
        .where(Member.account_id == account.id)
        .distinct()
        .order_by(Member.dataset_id, Member.study_id)
    ).all()
    for dataset_id, study_id in found:
        here = [one for one in rights if study_id is None or one in STUDY_RIGHTS]
        set_rights(session, account, here, actor=actor, dataset_id=dataset_id, study_id=study_id)


def add_rights(
    session: Session,
    account: Account,
    rights: Collection[str],
    *,
    actor: str,
    dataset_id: int | None = None,
    study_id: int | None = None,
) -> None:
    """Give an account these rights besides those it has there. Raises as `set_rights` does.

    Does not commit.
    """
    held = session.scalars(
        select(Member.right_held).where(*_at(account.id, dataset_id, study_id))
    ).all()
    set_rights(
        session,
        account,
        {*held, *rights},
        actor=actor,
        dataset_id=dataset_id,
        study_id=study_id,
    )


def require_not_admin(account: Account) -> None:
    """Raise Refused for an admin, who has every right without being a member."""
    if account.role == "admin":
        raise Refused(
            f"{account.name!r} is an admin and has every right",
            "change the role first",
            code="admin_has_all_rights",
        )


def _at(
    account_id: int, dataset_id: int | None, study_id: int | None
) -> Sequence[ColumnElement[bool]]:
    return (
        Member.account_id == account_id,
        Member.dataset_id.is_(None) if dataset_id is None else Member.dataset_id == dataset_id,
        Member.study_id.is_(None) if study_id is None else Member.study_id == study_id,
    )


def _check(rights: Collection[str], dataset_id: int | None, study_id: int | None) -> None:
    if dataset_id is not None and study_id is not None:
        raise BadInput(
            "rights are on a dataset or on a study, not on both",
            "name one of them",
            code="rights_place_ambiguous",
        )
    allowed = RIGHTS if study_id is None else STUDY_RIGHTS
    for right in rights:
        if right not in allowed:
            raise BadInput(
                f"no right {right!r} here: {', '.join(allowed)}",
                "name one of these",
                code="right_unknown",
            )


def _require_place(session: Session, dataset_id: int | None, study_id: int | None) -> None:
    if dataset_id is not None and session.get(Dataset, dataset_id) is None:
        raise BadInput(
            f"no dataset {dataset_id}", "`datasets list` has all", code="dataset_unknown"
        )
    if study_id is not None and session.get(Study, study_id) is None:
        raise BadInput(
            f"no study {study_id}", "`studies list` has all", code="study_unknown", number=study_id
        )
