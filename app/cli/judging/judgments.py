"""`inf judgments`: the answers of people and models, one by one."""

import click

from app.cli.kit.doors import Noun
from app.cli.kit.formerly import id_argument
from app.cli.kit.report import Result, command_actor, reporting
from app.cli.kit.table import Column, drawn
from app.operations.judging import judgments as operations

judgments = Noun("judgments")


def _kind(row: Result) -> str:
    return "simulated" if row["simulated"] else "offline" if row["offline"] else str(row["kind"])


JUDGMENTS: tuple[Column, ...] = (
    *(("judgment", "id"), ("item", "item_id"), "judge", ("kind", _kind), "choice"),
    *(("decided (UTC)", lambda row: row["decided_at"][:16].replace("T", " ")), "note"),
)


def _listed(result: Result) -> str:
    rows = result["data"]
    shown = drawn(JUDGMENTS, rows, empty="no judgments: people judge on the Judge page")
    if result["next"] is None:
        return shown
    more = f"inf judgments list {result['study_id']} --after {result['next']}"
    return f"{shown}\n{len(rows)} of {result['total']:,}; the next: {more}"


@judgments.command("list")
@id_argument("study_id", "--study", "judgments list STUDY_ID")
@click.option("--after", type=int, default=0, help="Only those behind this judgment.")
@click.option("--limit", type=click.IntRange(min=1), default=operations.PAGE, show_default=True)
@reporting(_listed)
def list_(study_id: int, after: int, limit: int) -> operations.StudyJudgments:
    """List the judgments that count in a study, in the order in which they came."""
    found = operations.list_some(command_actor(), study_id, after=after, limit=limit)
    return operations.StudyJudgments(study_id=study_id, **dict(found))


judgments.door(
    operations.show,
    text=(
        *(("judgment", "id"), ("item", lambda row: f"{row['item_id']} ({row['scenario']})")),
        *(("study", "study_id"), ("run", "run_id")),
        ("judge", lambda row: f"{row['judge']} ({_kind(row)})"),
        *("choice", ("shown as", lambda row: ", ".join(row["order_shown"]))),
        *(("decided", "decided_at"), "note"),
        ("flagged", lambda row: row["reason"] if row["flagged"] else ""),
        ("replaces", "replaces_id"),
        ("current", lambda row: "yes" if row["is_current"] else "no: it was changed"),
    ),
)
