"""`inf tokens`: tokens by which programs act for a person."""

from functools import partial

from app.cli.kit.doors import Noun
from app.cli.kit.report import Result, facts
from app.operations.doors import tokens as operations

tokens = Noun("tokens")


def _on(row: Result) -> str:
    return "all of theirs" if row["datasets"] is None else ", ".join(row["datasets"]) or "none left"


RIGHTS = ("rights", lambda row: ", ".join(row["rights"]))


def _budget(row: Result) -> str:
    if row["budget_usd"] is None:
        return "none: it starts no run that costs money"
    return f"{row['left_usd']:.2f} of {row['budget_usd']:.2f} USD left"


_token = facts(
    ("token", lambda row: row.get("token") or f"{row['name']} (…{row['hint']})"),
    "person",
    RIGHTS,
    ("datasets", _on),
    ("budget", _budget),
    ("until", "expires_at"),
)

tokens.door(operations.create, text=lambda made: f"{_token(made)}\nIt is not shown again.")
tokens.listed(
    partial(operations.list_all, everybody=True),
    about="List the tokens of everybody, without the tokens themselves.",
    columns=(
        *("id", ("token", "name"), ("ends in", lambda row: f"…{row['hint']}"), "person"),
        *(RIGHTS, ("datasets", _on), ("left, USD", "left_usd"), ("state", "status")),
        *(("until", lambda row: row["expires_at"][:10]), ("last used", "used_at")),
    ),
    empty="no tokens yet",
)
tokens.door(operations.show, text=_token)
tokens.door(operations.revoke, text=lambda row: f"token {row['id']} ({row['name']}) is revoked")
