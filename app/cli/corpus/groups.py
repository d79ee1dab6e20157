"""`inf groups`: list and show the groups of a run."""

from typing import Any

import click

from app.cli.kit.formerly import with_former_keys
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, lines, reporting
from app.cli.kit.table import paged, table
from app.operations import groups as operations
from app.text.numbers import counted
from db.review.queue import QueueFilter

FORMER_KEYS = {"group_id": "id", "query_id": "name"}


@click.group()
def groups() -> None:
    """List and show the groups of a run."""


def _listed(result: Result) -> str:
    head = ("group", "verdict", "drop reason", "review", "query id", "query")
    rows = [
        (
            row["id"],
            row["verdict"] or row["state"],
            *(row[key] for key in ("drop_reason", "review", "name", "query")),
        )
        for row in result["data"]
    ]
    listed = table(head, rows, empty="no such groups")
    whole = rows and result["next"] is None
    return f"{listed}\n{counted(result['total'], 'group')}" if whole else listed


@groups.command("list")
@click.option("--run", "run_id", type=int, required=True, help="Id of the run.")
@request_options(QueueFilter)
@paged(operations.PAGE)
@reporting(_listed)
def list_(request: QueueFilter, limit: int, offset: int) -> Result:
    """List groups of a run in the order of its pairs."""
    found = operations.list_some(command_actor(), request, limit=limit, offset=offset)
    listed = with_former_keys(found.as_json(), "groups", FORMER_KEYS)
    return listed | {"run_id": request.run_id}


def _shown(result: Result) -> str:
    verdict = result["verdict"] or result["state"]
    if result["drop_reason"]:
        verdict += f": {result['drop_reason']}"
    review = result["review"]
    parts = [
        lines(
            ("group", f"{result['id']} of run {result['run_id']} ({result['dataset']})"),
            ("verdict", verdict),
            ("detail", result["drop_detail"] or "–"),
            ("review", f"{review['action']} by {review['reviewed_by']}" if review else "–"),
            ("query", f"{result['query']} ({result['name']})"),
            ("passage", f"{result['passage']} ({result['passage_id']})"),
        )
    ]
    for role, texts in result["triplets"].items():
        parts += ["", role, lines(*texts.items())]
    if result["judgments"]:
        head = ("scenario", "judge", "choice", "agrees")
        judged: list[Any] = [[each[key] for key in head] for each in result["judgments"]]
        parts += ["", table(head, judged, empty="")]
    return "\n".join(parts)


@groups.command()
@click.argument("group_id", type=int)
@reporting(_shown)
def show(group_id: int) -> Result:
    """Show one group: texts, verdict, review, the validator's judgments and the calls."""
    found = operations.show(command_actor(), group_id).as_json()
    return found | {former: found[key] for former, key in FORMER_KEYS.items()}
