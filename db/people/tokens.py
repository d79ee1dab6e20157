"""Tokens: a program acts for a person, with some of their rights, on some of their datasets.

A token is `inf_` and 256 random bits, shown once. Its holder has, at each request, what the token
names *and* the person has then (`narrowed`): a right that the person loses is lost to their tokens.
No token has an admin's permissions, an admin's neither; one of an admin that is not limited to
datasets may have TOKEN_RIGHTS, which read. The sha256 of a random text of that length
leads nowhere, and still no backup holds it: a token of a store that is put back is revoked.
"""

import secrets
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.errors import BadInput, NotFound, Refused
from db.events import record_event
from db.people.accounts import has_accounts
from db.people.rights import ALL_RIGHTS, Rights, rights_of
from db.people.sign_ins import token_sha256
from db.tables import Account, ApiToken, ApiTokenDataset, Dataset, utc_now
from db.values import LOCAL_ADMIN, RIGHTS, TOKEN_RIGHTS

PREFIX = "inf_"
HINT_CHARACTERS = 4
MAX_DAYS = 365
MAX_TOKENS = 50  # valid ones of a person
USED_EVERY = timedelta(minutes=1)  # not at every request: it is a write


class Held(NamedTuple):
    """A valid token, its account (None: the local admin), what its holder may do now, and the
    datasets that it is limited to (None: to none)."""

    row: ApiToken
    account: Account | None
    rights: Rights
    datasets: frozenset[int] | None

    @property
    def person(self) -> str:
        """For whom its holder acts."""
        return LOCAL_ADMIN if self.account is None else self.account.name


def narrowed(
    rights: Rights,
    names: Collection[str],
    datasets: Collection[int] | None,
) -> Rights:
    """These rights of a person, and no other, on these datasets (None: on all that they have them
    on); never an admin's."""
    named = frozenset(names) & frozenset(RIGHTS)
    everywhere = named if rights.is_admin else named & rights.everywhere
    reads = frozenset(names) & frozenset(TOKEN_RIGHTS) if rights.is_admin else frozenset()
    on_datasets = {one: named & held for one, held in rights.on_datasets.items()}
    on_studies = {one: named & held for one, held in rights.on_studies.items()}
    if datasets is not None:
        on_datasets = {
            one: everywhere | on_datasets.get(one, frozenset()) for one in sorted(datasets)
        }
        on_studies = {
            one: held for one, held in on_studies.items() if rights.dataset_of.get(one) in datasets
        }
        everywhere = reads = frozenset()
    return Rights(
        everywhere=everywhere | reads,
        on_datasets={one: held for one, held in on_datasets.items() if held},
        on_studies={one: held for one, held in on_studies.items() if held},
        dataset_of={one: of for one, of in rights.dataset_of.items() if on_studies.get(one)},
    )


def create_token(
    session: Session,
    account: Account | None,
    *,
    name: str,
    rights: Collection[str],
    dataset_ids: Sequence[int] | None,
    days: int,
    actor: str,
    budget_usd: float | None = None,
) -> tuple[ApiToken, str]:
    """Add a token of an account (None: of the local admin); returns its row and the token itself.

    Raises Refused for rights that the person has nowhere there, BadInput. Does not commit.
    """
    own = ALL_RIGHTS if account is None else rights_of(session, account)
    limited = narrowed(own, rights, dataset_ids)
    if missing := [right for right in rights if not limited.anywhere(right)]:
        person = LOCAL_ADMIN if account is None else account.name
        raise Refused(
            f"{person} lacks the right {missing[0]} there, and a token has no more than its person",
            "leave it out",
            code="token_beyond_person",
        )
    if not 1 <= days <= MAX_DAYS:
        raise BadInput(
            f"a token is valid for 1 to {MAX_DAYS} days",
            "choose fewer days, or at least one",
            code="token_days",
        )
    owner = None if account is None else account.id
    now = utc_now()
    valid = [one for one in list_tokens(session, owner) if _is_valid(one)]
    if len(valid) >= MAX_TOKENS:
        raise Refused(
            f"{len(valid)} tokens are valid", "revoke one that is not used", code="tokens_too_many"
        )
    text = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken(
        account_id=owner,
        name=name,
        hint=text[-HINT_CHARACTERS:],
        token_sha256=token_sha256(text),
        rights=sorted(set(rights)),
        everywhere=dataset_ids is None,
        budget_usd=budget_usd,
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    session.add(row)
    session.flush()
    session.add_all(
        ApiTokenDataset(token_id=row.id, dataset_id=one) for one in sorted(set(dataset_ids or ()))
    )
    session.flush()
    about = {"token": name, "rights": row.rights, "days": days}
    about |= {} if dataset_ids is None else {"datasets": sorted(dataset_ids)}
    about |= {} if budget_usd is None else {"budget_usd": budget_usd}
    about |= {"person": LOCAL_ADMIN if account is None else account.name}
    record_event(session, actor, "token.create", row.id, **about)
    return row, text


def held_token(session: Session, text: str) -> Held:
    """Who holds a valid token. Raises Refused: unknown, revoked, expired, its person disabled."""
    row = None
    if text.startswith(PREFIX):
        row = session.scalar(select(ApiToken).where(ApiToken.token_sha256 == token_sha256(text)))
    return _held(session, row)


def held_token_by_id(session: Session, token_id: int) -> Held:
    """As `held_token`, of a token that was presented a moment ago."""
    return _held(session, session.get(ApiToken, token_id, populate_existing=True))


def _held(session: Session, row: ApiToken | None) -> Held:
    if row is None:
        raise Refused("this token is not known here", "create another one", code="token_unknown")
    if row.revoked_at is not None:
        raise Refused("this token was revoked", "create another", code="token_revoked")
    if row.expires_at <= utc_now():
        raise Refused("this token has expired", "create another", code="token_expired")
    if row.account_id is None:  # until there is an account
        if has_accounts(session):
            raise Refused(
                "this token is of a time without accounts",
                "create one of an account",
                code="token_without_account",
            )
        account, own = None, ALL_RIGHTS
    else:
        account = session.get_one(Account, row.account_id, populate_existing=True)
        if account.disabled:
            raise Refused(
                "the account of this token is disabled",
                "have an admin enable it",
                code="token_account_disabled",
            )
        own = rights_of(session, account)
    datasets = datasets_of(session, row)
    return Held(row, account, narrowed(own, row.rights, datasets), datasets)


def datasets_of(session: Session, row: ApiToken) -> frozenset[int] | None:
    """The datasets that a token is limited to; None for all of its person's."""
    if row.everywhere:
        return None
    query = select(ApiTokenDataset.dataset_id).where(ApiTokenDataset.token_id == row.id)
    return frozenset(session.scalars(query))


def names_of_datasets(session: Session, row: ApiToken) -> tuple[str, ...] | None:
    """As `datasets_of`, their names."""
    ids = datasets_of(session, row)
    if ids is None:
        return None
    query = select(Dataset.name).where(Dataset.id.in_(ids)).order_by(Dataset.name)
    return tuple(session.scalars(query))


def list_tokens(session: Session, account_id: int | None) -> list[ApiToken]:
    """The tokens of an account (None: of the local admin), newest first, ended ones too."""
    own = ApiToken.account_id.is_(None) if account_id is None else ApiToken.account_id == account_id
    return list(session.scalars(select(ApiToken).where(own).order_by(ApiToken.id.desc())))


def get_token(session: Session, token_id: int) -> ApiToken:
    """A token by its id. Raises NotFound."""
    found = session.get(ApiToken, token_id)
    if found is None:
        raise NotFound(f"no token {token_id}", "`tokens list` has all", code="token_not_found")
    return found


def revoke_token(session: Session, row: ApiToken, *, actor: str) -> ApiToken:
    """End a token at once; a second time changes nothing. Does not commit."""
    if row.revoked_at is None:
        row.revoked_at = utc_now()
        record_event(session, actor, "token.revoke", row.id, token=row.name)
        session.flush()
    return row


def note_used(session: Session, token_id: int) -> None:
    """Record that a token is in use, unless it was a moment ago. Does not commit."""
    now = utc_now()
    is_old = ApiToken.used_at.is_(None) | (ApiToken.used_at < now - USED_EVERY)
    session.execute(update(ApiToken).where(ApiToken.id == token_id, is_old).values(used_at=now))


def _is_valid(row: ApiToken) -> bool:
    return row.revoked_at is None and row.expires_at > utc_now()
