"""People: accounts, their rights by place, invitations and links, and the audit log."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import ConfigDict, Field, model_validator
from sqlalchemy.orm import Session

from app.access.identity import Actor, SessionUser
from app.access.permissions import require
from app.operations.acting import reading, writing
from db.corpus.datasets import get_dataset, list_datasets
from db.errors import BadInput, NotFound, Refused
from db.events import event_names, list_events
from db.people import accounts, invitations
from db.people import rights as held_rights
from db.people.fields import FIELDS, account_field, field_values, set_field, set_fields
from db.people.passwords import LINK_HOURS, create_password_link, hash_password
from db.people.renaming import delete_account, rename_account
from db.requests import Request, option
from db.rows import Json, Listed, Row
from db.study.studies import list_studies
from db.tables import Account, Member
from db.values import ACCOUNT_ROLES, AccountRole

RIGHT, READ = "accounts", "audit"
Place = tuple[int | None, int | None]  # a dataset's id, or a study's; neither: everywhere
EVERYWHERE: Place = (None, None)


class PersonRow(Row):
    """An account, with a key for each of its optional fields (`db.people.fields`).

    `name_problem`: why a name given by an earlier version is refused today; `before`: the former
    name, where it is renamed.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str | None] = Field(init=False)
    id: int
    name: str
    role: str
    disabled: bool
    name_problem: str | None
    created_at: datetime


class PersonAdd(Request):
    """An account with its role's rights; its optional fields are those of `db.people.fields`."""

    name: str = option(..., "The account's name.", names=(), metavar="NAME")
    role: str = option("annotator", "Role of the account.", choices=ACCOUNT_ROLES)
    email: str = option("", account_field("email").help)
    datasets: tuple[str, ...] = option(
        (),
        "Give the role's rights on this dataset only; repeatable. Default: everywhere.",
        names=("--dataset",),
    )
    no_password: bool = option(False, "Sign in through the provider only.")

    @model_validator(mode="after")
    def _can_sign_in(self) -> Self:
        if self.no_password and not self.email:
            raise BadInput(
                "an account without a password and without an email address could not sign in",
                "give an address with `email=`",
                code="request_invalid",
            )
        return self


class Invitation(Request):
    """Links with which people create an account, or join a study with theirs."""

    role: str = option("annotator", "Role of the new account.", choices=ACCOUNT_ROLES)
    days: int = option(
        7, "Days until the link expires.", title="Valid for, days", ge=1, le=invitations.MAX_DAYS
    )
    study_id: int | None = option(None, "Add the new account to this study.", names=("--study",))
    count: int = option(
        1,
        "One link each; the recipient creates an account or signs in.",
        names=(),
        title="People",
        ge=1,
        le=50,
    )


class InvitationLink(Row):
    """The path of an invitation link, of which role, how long it holds, and into which study."""

    path: str
    role: str
    days: int
    study_id: int | None


class RightsSet(Row):
    """The rights of an account on a dataset or study, or everywhere."""

    name: str
    rights: list[str]
    dataset: str | None
    study_id: int | None


class PersonDeleted(Row):
    """A deleted account; `pseudonym`: the name under which what the person did stays."""

    id: int
    name: str
    pseudonym: str


class MemberRow(Row):
    """A right of an account: on a dataset, on a study, or (without either) everywhere."""

    id: int
    account_id: int
    name: str
    right: str
    dataset_id: int | None
    study_id: int | None
    granted_by: str

    @property
    def place(self) -> Place:
        """Where the right is held."""
        return self.dataset_id, self.study_id


class AuditRow(Row):
    """An entry of the audit log."""

    id: int
    at: datetime
    actor: str
    name: str
    subject: str
    data: Json | None


def list_all(actor: Actor) -> Listed[PersonRow]:
    """List accounts."""
    with reading(actor, READ) as session:
        return Listed[PersonRow].all([_row(each) for each in accounts.list_accounts(session)])


def show(actor: Actor, name: str) -> PersonRow:
    """Show one account. Raises NotFound."""
    with reading(actor, READ) as session:
        return _row(accounts.get_account(session, name))


def add(actor: Actor, wanted: PersonAdd, password: str | None) -> PersonRow:
    """Add an account; the password is prompted for or read from standard input.

    Raises as `db.people.accounts.add_account`, and BadInput where the page's first one is no admin.
    """
    require(actor, RIGHT)
    # before the session that writes: it takes a quarter of a second, and others wait for that
    hashed = None if password is None else hash_password(password, known=[wanted.name])
    with writing(actor, RIGHT) as session:
        if wanted.role != "admin" and not actor.owns_store and not accounts.has_accounts(session):
            raise BadInput(
                "the first account must be an admin, or no one could add others",
                "choose the role admin",
                code="first_account_needs_admin",
            )
        account = accounts.add_account(
            session,
            wanted.name,
            hashed,
            role=wanted.role,
            actor=actor.name,
            dataset_ids=[get_dataset(session, one).id for one in wanted.datasets] or None,
        )
        texts = {field.column: getattr(wanted, field.column) for field in FIELDS}
        set_fields(session, account.name, texts, actor=actor.name)
        return _row(account)


def change_field(actor: Actor, name: str, column: str, text: str) -> PersonRow:
    """Set an optional field of an account, "" to remove it. Raises as `set_field`."""
    with writing(actor, RIGHT) as session:
        return _row(set_field(session, name, column, text, actor=actor.name))


def change_role(actor: Actor, name: str, role: AccountRole) -> PersonRow:
    """Change the role of an account. Raises Refused for the last admin."""
    with writing(actor, RIGHT) as session:
        return _row(accounts.set_role(session, name, role, actor=actor.name))


def disable(actor: Actor, name: str, *, disabled: bool = True) -> PersonRow:
    """Disable or enable an account at once. Raises Refused for the last admin."""
    with writing(actor, RIGHT) as session:
        return _row(accounts.set_disabled(session, name, disabled, actor=actor.name))


def sign_out(actor: Actor, name: str) -> PersonRow:
    """End all sessions of an account."""
    with writing(actor, RIGHT) as session:
        return _row(accounts.sign_out_everywhere(session, name, actor=actor.name))


def rename(actor: Actor, name: str, new_name: str) -> PersonRow:
    """Give an account another name, on everything that the person did; sessions go on."""
    with writing(actor, RIGHT) as session:
        renamed = rename_account(session, name, new_name, actor=actor.name)
        return PersonRow.of(renamed, **field_values(renamed), before=name)


def delete(actor: Actor, who: int | str) -> PersonDeleted:
    """Delete the account of this id or name; what the person did stays under a pseudonym.

    Raises NotFound, and Refused for the actor's own and for the last admin's.
    """
    with writing(actor, RIGHT) as session:
        found = _account(session, who)
        if isinstance(actor, SessionUser) and actor.account_id == found.id:
            raise Refused(
                "this is your own account", "another admin can delete it", code="own_account"
            )
        name = found.name
        pseudonym = delete_account(session, name, actor=actor.name)
        return PersonDeleted(id=found.id, name=name, pseudonym=pseudonym)


def reset_password(actor: Actor, name: str, password: str) -> PersonRow:
    """Set another password and end the account's sessions."""
    with writing(actor, RIGHT) as session:
        return _row(accounts.reset_password(session, name, password, actor=actor.name))


class PasswordLink(Row):
    """The path of a link with which a person sets a password once, and how long it holds."""

    name: str
    path: str
    hours: float


def password_link(actor: Actor, name: str) -> PasswordLink:
    """A link with which the person sets a password once; it is not stored."""
    with writing(actor, RIGHT) as session:
        account = accounts.get_account(session, name)
        path = f"/password/{create_password_link(session, account, actor=actor.name)}"
        return PasswordLink(name=account.name, path=path, hours=LINK_HOURS)


def invite(actor: Actor, wanted: Invitation) -> list[str]:
    """The paths of invitation links, one per person; they are not stored.

    Into a study, and as an annotator, whoever manages studies may invite. Raises as
    `db.people.invitations.invite`.
    """
    role, days, study_id = wanted.role, wanted.days, wanted.study_id
    is_judge = study_id is not None and role == "annotator"
    with writing(actor, "studies" if is_judge else RIGHT) as session:
        tokens = [
            invitations.invite(session, role=role, days=days, actor=actor.name, study_id=study_id)
            for _ in range(wanted.count)
        ]
    return [f"/invitation/{token}" for token in tokens]


def members(actor: Actor) -> Listed[MemberRow]:
    """List the rights of every account; an admin has all of them and is not listed."""
    with reading(actor, RIGHT) as session:
        return Listed[MemberRow].all([_member(*e) for e in held_rights.list_members(session)])


def places(actor: Actor) -> dict[Place, str]:
    """What rights may be held on: everywhere, each dataset and each study, with their names."""
    with reading(actor, RIGHT) as session:
        datasets, studies = list_datasets(session, archived=True), list_studies(session)
    return (
        {EVERYWHERE: "everywhere"}
        | {(one.id, None): f"dataset {one.name}" for one in datasets}
        | {(None, one.id): f"study {one.name}" for one in studies}
    )


def set_rights(
    actor: Actor,
    who: int | str,
    rights: Sequence[str],
    place: Place = EVERYWHERE,
    *,
    dataset: str | None = None,
    study_id: int | None = None,
) -> RightsSet:
    """Set exactly these rights of the account of this id or name: at a place, on the dataset or
    study, or everywhere."""
    with writing(actor, RIGHT) as session:
        account = _account(session, who)
        held_rights.require_not_admin(account)
        dataset_id, place_study = place
        held_rights.set_rights(
            session,
            account,
            rights,
            actor=actor.name,
            dataset_id=dataset_id if dataset is None else get_dataset(session, dataset).id,
            study_id=place_study if study_id is None else study_id,
        )
        name, held = account.name, sorted(rights)
        return RightsSet(name=name, rights=held, dataset=dataset, study_id=study_id)


def add_rights(actor: Actor, name: str, rights: Sequence[str], place: Place) -> PersonRow:
    """Give an account rights at a place besides those that it has there."""
    with writing(actor, RIGHT) as session:
        account = accounts.get_account(session, name)
        held_rights.require_not_admin(account)
        if not rights:
            raise BadInput("no right chosen", "choose at least one", code="right_not_chosen")
        dataset_id, study_id = place
        held_rights.add_rights(
            session, account, rights, actor=actor.name, dataset_id=dataset_id, study_id=study_id
        )
        return _row(account)


def audit(
    actor: Actor, *, names: Sequence[str] = (), offset: int = 0, limit: int = 50
) -> Listed[AuditRow]:
    """A page of the audit log, newest first."""
    with reading(actor, READ) as session:
        found, total = list_events(session, names=names, offset=offset, limit=limit)
    rows = [AuditRow.model_validate(each) for each in found]
    return Listed[AuditRow].page(rows, offset=offset, total=total)


def audit_names(actor: Actor) -> list[str]:
    """The names of events that occur in the audit log."""
    with reading(actor, READ) as session:
        return event_names(session)


def _row(account: Account) -> PersonRow:
    return PersonRow.of(account, **field_values(account))


def _account(session: Session, who: int | str) -> Account:
    """The account of this id or name. Raises NotFound."""
    if isinstance(who, str):
        return accounts.get_account(session, who)
    found = session.get(Account, who)
    if found is None:
        raise NotFound("this account is gone already", "reload the page", code="account_unknown")
    return found


def _member(account: Account, member: Member) -> MemberRow:
    return MemberRow.of(member, name=account.name, right=member.right_held)
