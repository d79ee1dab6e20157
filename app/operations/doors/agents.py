"""Agents at a command: a token of a session, with rights, datasets and a budget of its own."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from app.access.identity import Actor, TokenHolder
from app.access.permissions import require
from app.operations.doors import tokens
from app.operations.doors.tokens import Held, TokenCreate, TokenCreated
from db.requests import Request, option

NAME = "inf mcp"


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

    Raises as `tokens.create`.
    """
    require(actor, tokens.RIGHT)
    made = tokens.create(actor, TokenCreate(name=NAME, days=1, **wanted.model_dump()))
    return _holding(actor, made)


@contextmanager
def _holding(actor: Actor, made: TokenCreated) -> Iterator[TokenHolder]:
    try:
        yield tokens.presented(made.token)
    finally:
        tokens.revoke(actor, made.id)
