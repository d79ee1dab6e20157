"""`inf tokens`: tokens by which programs act for a person."""

import click

from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, lines, reporting
from app.cli.kit.table import paged, table
from app.operations.doors import tokens as operations
from app.operations.doors.tokens import TokenCreate


@click.group()
def tokens() -> None:
    """Create, list and revoke tokens, by which programs act for a person."""


def _on(row: Result) -> str:
    return "all of theirs" if row["datasets"] is None else ", ".join(row["datasets"]) or "none left"


def _created(result: Result) -> str:
    facts = lines(
        ("token", result["token"]),
        ("person", result["person"]),
        ("rights", ", ".join(result["rights"])),
        ("datasets", _on(result)),
        ("until", result["expires_at"]),
    )
    return f"{facts}\nIt is not shown again."


@tokens.command()
@click.argument("name")
@request_options(TokenCreate)
@reporting(_created)
def create(request: TokenCreate) -> Result:
    """Create a token and print it, this once."""
    return operations.create(command_actor(), request).as_json()


def _listed(result: Result) -> str:
    rows = [
        [
            *(row["id"], row["name"], f"…{row['hint']}", row["person"], ", ".join(row["rights"])),
            *(_on(row), row["status"], row["expires_at"][:10], row["used_at"]),
        ]
        for row in result["data"]
    ]
    head = ("id", "token", "ends in", "person", "rights", "datasets", "state", "until", "last used")
    return table(head, rows, empty="no tokens yet: inf tokens create NAME --right curate")


@tokens.command("list")
@paged()
@reporting(_listed)
def list_(limit: int | None, offset: int) -> Result:
    """List the tokens of everybody, without the tokens themselves."""
    found = operations.list_all(command_actor(), everybody=True)
    return found.part(limit, offset).as_json()


@tokens.command()
@click.argument("token_id", type=int)
@reporting(lambda result: f"token {result['id']} ({result['name']}) is revoked")
def revoke(token_id: int) -> Result:
    """End a token immediately."""
    return operations.revoke(command_actor(), token_id).as_json()
