"""`inf tokens`: tokens by which programs act for a person."""

from typing import Any

import click

from app.cli.kit.listing import listing
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, facts, reporting
from app.operations.doors import tokens as operations
from app.operations.doors.tokens import TokenCreate
from db.rows import Listed, Row


@click.group()
def tokens() -> None:
    """Create, list and revoke tokens, by which programs act for a person."""


def _on(row: Result) -> str:
    return "all of theirs" if row["datasets"] is None else ", ".join(row["datasets"]) or "none left"


def _budget(row: Result) -> str:
    if row["budget_usd"] is None:
        return "none: it starts no run that costs money"
    return f"{row['left_usd']:.2f} of {row['budget_usd']:.2f} USD left"


def _rights(row: Result) -> str:
    return ", ".join(row["rights"])


_token = facts(
    *("token", "person", ("rights", _rights), ("datasets", _on), ("budget", _budget)),
    ("until", "expires_at"),
)


@tokens.command()
@click.argument("name")
@request_options(TokenCreate)
@reporting(lambda result: f"{_token(result)}\nIt is not shown again.")
def create(request: TokenCreate) -> Row:
    """Create a token and print it, this once."""
    return operations.create(command_actor(), request)


@tokens.command("list")
@listing(
    *("id", ("token", "name"), ("ends in", lambda row: f"…{row['hint']}"), "person"),
    *(("rights", _rights), ("datasets", _on), ("left, USD", "left_usd"), ("state", "status")),
    *(("until", lambda row: row["expires_at"][:10]), ("last used", "used_at")),
    empty="no tokens yet: inf tokens create NAME --right curate",
    then="inf tokens revoke {id} ends one",
)
def list_(**page: Any) -> Listed[Any]:
    """List the tokens of everybody, without the tokens themselves."""
    return operations.list_all(command_actor(), everybody=True).part(**page)


@tokens.command()
@click.argument("token_id", type=int)
@reporting(lambda result: f"token {result['id']} ({result['name']}) is revoked")
def revoke(token_id: int) -> Row:
    """End a token immediately."""
    return operations.revoke(command_actor(), token_id)
