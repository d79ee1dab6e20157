"""`inf groups`: list and show the groups of a run."""

from typing import Any

import click

from app.cli.kit.listing import listing
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, lines, reporting
from app.cli.kit.table import table
from app.operations import groups as operations
from app.operations.groups import GroupShown
from db.review.queue import QueueFilter

FORMER_KEYS = {"group_id": "id", "query_id": "name"}


@click.group()
def groups() -> None:
    """List and show the groups of a run."""


@groups.command("list")
@click.option("--run", "run_id", type=int, required=True, help="Id of the run.")
@request_options(QueueFilter)
@listing(
    *(("group", "id"), ("verdict", lambda row: row["verdict"] or row["state"]), "drop_reason"),
    *("review", ("query id", "name"), "query"),
    empty="no such groups",
    then="inf groups show {id}",
    limit=operations.PAGE,
    former=("groups", FORMER_KEYS),
)
def list_(request: QueueFilter, **page: Any) -> Result:
    """List groups of a run in the order of its pairs."""
    found = operations.list_some(command_actor(), request, **page)
    return {**found.as_json(), "run_id": request.run_id}


def _shown(result: Result) -> str:
    verdict = result["verdict"] or result["state"]
    if result["drop_reason"]:
        verdict += f": {result['drop_reason']}"
    review = result["review"]
    parts = [
        lines(
            ("group", f"{result['id']} of run {result['run_id']} ({result['dataset']})"),
            ("verdict", f"{verdict} (version {result['verdict_version']})"),
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
@reporting(_shown, former=FORMER_KEYS)
def show(group_id: int) -> GroupShown:
    """Show one group: texts, verdict, review, the validator's judgments and the calls."""
    return operations.show(command_actor(), group_id)
