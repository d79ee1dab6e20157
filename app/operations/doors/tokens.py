"""Tokens of programs: create, list, revoke. A person manages their own, and an admin sees all."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.access.identity import (
    Actor,
    SessionUser,
    TokenHolder,
    holder_of_token,
    still_holds,
)
from app.access.permissions import NEEDS, require
from app.operations.acting import reading, writing
from db.corpus.datasets import get_dataset
from db.errors import BadInput, NotFound, Refused
from db.people import tokens
from db.people.accounts import get_account, has_accounts
from db.people.budgets import committed_usd
from db.requests import Request, option
from db.rows import Listed, Row
from db.store.store import open_store
from db.tables import Account, ApiToken, utc_now
from db.values import LOCAL_ADMIN

RIGHT, ALL = "tokens", "accounts"
MAX_NAME = 60
Held = Literal["judge", "review", "adjudicate", "curate", "train", "release", "audit", "watch"]


def _is_name(given: str) -> str:
    name = given.strip()
    if not (0 < len(name) <= MAX_NAME and name.isprintable()):
        raise BadInput(
            f"the name of a token has 1 to {MAX_NAME} visible characters",
            "name it after its program",
            code="token_name",
        )
    return name


class TokenCreate(Request):
    """A token of a person: some of their rights, on all or some of their datasets, for a time."""

    name: Annotated[str, AfterValidator(_is_name)] = option(
        ..., "What it is for.", names=(), metavar="NAME"
    )
    rights: tuple[Held, ...] = option(
        ..., "A right that it has, of those of its person; repeatable.", names=("--right",)
    )
    datasets: tuple[str, ...] = option(
        (),
        "Limit it to this dataset; repeatable. Default: all of its person's.",
        names=("--dataset",),
        metavar="NAME",
    )
    days: int = option(90, "Days until it expires.", ge=1, le=tokens.MAX_DAYS)
    budget_usd: float | None = option(
        None,
        "What the runs and judges that it starts may cost together, USD. Default: it starts none "
        "that costs money.",
        gt=0,
    )
    person: str | None = option(
        None, "Whose it is; only the store's owner may name another.", metavar="NAME"
    )


class TokenRow(Row):
    """A token, without itself: `hint` is how it ends. `datasets`: None for all of its person's.

    `left_usd`: of its budget, without what its work may still cost; None without a budget.
    """

    id: int
    name: str
    hint: str
    person: str
    rights: tuple[str, ...]
    datasets: tuple[str, ...] | None
    budget_usd: float | None
    left_usd: float | None
    status: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None
    revoked_at: datetime | None


class TokenCreated(TokenRow):
    """A new token: `token` is shown this once and not stored."""

    token: str


def create(actor: Actor, wanted: TokenCreate) -> TokenCreated:
    """Create a token and print it, this once.

    Raises Refused for more than the person has, and by a token.
    """
    if not wanted.rights:
        raise BadInput(
            "a token without a right is of no use",
            "give one",
            code="request_invalid",
            field="rights",
        )
    with writing(actor, RIGHT) as session:
        if isinstance(actor, TokenHolder):
            raise Refused(
                "a token cannot make another, which could outlive it",
                "create it when signed in",
                code="token_by_token",
            )
        account = _account(session, actor, wanted.person)
        ids = [get_dataset(session, name).id for name in wanted.datasets]
        row, text = tokens.create_token(
            session,
            account,
            name=wanted.name,
            rights=wanted.rights,
            dataset_ids=ids or None,
            days=wanted.days,
            actor=actor.name,
            budget_usd=wanted.budget_usd,
        )
        return TokenCreated.of(row, **_more(session, row, account), token=text)


def list_all(actor: Actor, *, everybody: bool = False) -> Listed[TokenRow]:
    """The actor's tokens, newest first; those of `everybody` for admins and the store's owner."""
    with reading(actor, ALL if everybody else RIGHT) as session:
        of_all = select(ApiToken, Account).outerjoin(Account, ApiToken.account_id == Account.id)
        query = of_all.order_by(ApiToken.id.desc())
        if not everybody:
            own = _own_id(actor)
            is_own = ApiToken.account_id.is_(None) if own is None else ApiToken.account_id == own
            query = query.where(is_own)
        found = session.execute(query)
        return Listed[TokenRow].all(
            [TokenRow.of(row, **_more(session, row, of)) for row, of in found]
        )


def show(actor: Actor, token_id: int) -> TokenRow:
    """Show one token, of the actor's own or, to admins, of anybody. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        return _shown(session, _theirs(session, actor, token_id))


def revoke(actor: Actor, token_id: int) -> TokenRow:
    """End a token immediately. Raises NotFound."""
    with writing(actor, RIGHT) as session:
        row = _theirs(session, actor, token_id)
        return _shown(session, tokens.revoke_token(session, row, actor=actor.name))


def presented(text: str) -> TokenHolder:
    """Who presents a token. Raises Refused for one that is not valid."""
    return holder_of_token(open_store(), text)


def still_presented(holder: TokenHolder) -> TokenHolder | None:
    """The holder with the rights of now; None where the token ended."""
    return still_holds(open_store(), holder)


def _own_id(actor: Actor) -> int | None:
    """The account of the actor, whose tokens are theirs."""
    return actor.account_id if isinstance(actor, SessionUser) else None


def _account(session: Session, actor: Actor, person: str | None) -> Account | None:
    """Whose the token is: None for the local admin. Raises Refused, BadInput, NotFound."""
    if isinstance(actor, SessionUser):
        if person not in (None, actor.name):
            raise Refused(
                "a token acts for a person, who creates it",
                "have that person sign in and create it",
                code="token_of_another",
            )
        return None if actor.account_id is None else session.get_one(Account, actor.account_id)
    if person is None and has_accounts(session):
        raise BadInput("whose token is it?", "give `person=`", code="token_person_missing")
    return None if person is None else get_account(session, person)


def _theirs(session: Session, actor: Actor, token_id: int) -> ApiToken:
    """A token that the actor may see and end. Raises NotFound."""
    row = tokens.get_token(session, token_id)
    if not (row.account_id == _own_id(actor) or NEEDS[ALL].is_met(actor)):
        raise NotFound(f"no token {token_id}", "`tokens list` has all", code="token_not_found")
    return row


def _shown(session: Session, row: ApiToken) -> TokenRow:
    account = None if row.account_id is None else session.get(Account, row.account_id)
    return TokenRow.of(row, **_more(session, row, account))


def _more(session: Session, row: ApiToken, account: Account | None) -> dict[str, Any]:
    """What a token's row has besides its columns."""
    is_over, budget = row.expires_at <= utc_now(), row.budget_usd
    left = None if budget is None else max(0.0, budget - committed_usd(session, row.id))
    return {
        "person": LOCAL_ADMIN if account is None else account.name,
        "datasets": tokens.names_of_datasets(session, row),
        "budget_usd": budget,
        "left_usd": left,
        "status": "revoked" if row.revoked_at else "expired" if is_over else "valid",
    }


# Agents at a command: a token of a session, with rights, datasets and a budget of its own.
AGENT_NAME = "inf mcp"


class AgentStart(Request):
    """What an agent may do in one session, for whom, and what its runs may cost."""

    rights: tuple[Held, ...] = option(
        ("curate", "review"), "A right that it has; repeatable.", names=("--right",)
    )
    datasets: tuple[str, ...] = option(
        (), "Limit it to this dataset; repeatable.", names=("--dataset",), metavar="NAME"
    )
    budget_usd: float | None = option(
        None, "What its runs may cost together, USD. Default: none may cost anything.", gt=0
    )
    person: str | None = option(None, "For whom it acts, where there are accounts.", metavar="NAME")


def session_of(actor: Actor, wanted: AgentStart) -> AbstractContextManager[TokenHolder]:
    """An agent until the block ends: it holds a token of a day, which is revoked then.

    Raises as `create`.
    """
    require(actor, RIGHT)
    made = create(actor, TokenCreate(name=AGENT_NAME, days=1, **wanted.model_dump()))
    return _holding(actor, made)


@contextmanager
def _holding(actor: Actor, made: TokenCreated) -> Iterator[TokenHolder]:
    try:
        yield presented(made.token)
    finally:
        revoke(actor, made.id)
