"""`inf groups`: list and show the groups of a run."""

import click

from app.cli.kit.report import Result, lines, ready_store, reporting
from app.cli.kit.table import table
from app.text.numbers import counted
from db.errors import NotFound
from db.run.group_detail import GroupDetail, get_group
from db.run.groups import GroupRow, list_groups
from db.run.runs import STAGES, funnel, get_run
from db.tables import Group
from db.values import VERDICTS

REVIEWS = ("none", "approve", "reject", "edit")


@click.group()
def groups() -> None:
    """List and show the groups of a run."""


def as_row(found: GroupRow) -> Result:
    """A group of a list as JSON."""
    return {
        "group_id": found.id,
        "query_id": found.query_id,
        "query": found.query_positive,
        "instruction": found.instruction_positive,
        "stage": found.stage,
        "state": found.state,
        "verdict": found.verdict,
        "drop_reason": found.drop_reason,
        "review": found.review,
    }


def _listed(result: Result) -> str:
    rows = [
        (
            row["group_id"],
            row["verdict"] or row["state"],
            row["drop_reason"],
            row["review"],
            row["query_id"],
            row["query"],
        )
        for row in result["groups"]
    ]
    head = ("group", "verdict", "drop reason", "review", "query id", "query")
    listed = table(head, rows, empty="no such groups")
    shown = f"{counted(len(rows), 'group')} of {result['total']:,}"
    return f"{listed}\n{shown}" if rows else listed


@groups.command("list")
@click.option("--run", "run_id", type=int, required=True, help="Id of the run.")
@click.option("--verdict", type=click.Choice(VERDICTS), help="Only kept or only dropped groups.")
@click.option("--drop-reason", help="Only groups dropped for this reason.")
@click.option("--stage", type=click.Choice(STAGES), help="Only groups that ended at this stage.")
@click.option("--source", help="Only groups whose pair is of this source.")
@click.option("--review", type=click.Choice(REVIEWS), help="Only groups of this review status.")
@click.option("--search", help="Only groups with this text in the query or an instruction.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--offset", type=click.IntRange(min=0), default=0, show_default=True)
@reporting(_listed)
def list_(
    run_id: int,
    verdict: str | None,
    drop_reason: str | None,
    stage: str | None,
    source: str | None,
    review: str | None,
    search: str | None,
    limit: int,
    offset: int,
) -> Result:
    """List groups of a run in the order of its pairs."""
    with ready_store().read() as session:
        get_run(session, run_id)
        if drop_reason is not None and drop_reason not in (
            dropped := funnel(session, run_id).dropped
        ):
            there = ", ".join(dropped) or "no groups were dropped"
            raise NotFound(
                f"run {run_id} has no drop reason {drop_reason!r}: {there}",
                code="drop_reason_unknown",
            )
        found = list_groups(
            session,
            run_id,
            verdict=verdict,
            reason=drop_reason,
            stage=stage,
            source=source,
            review=review,
            search=search,
            limit=limit,
            offset=offset,
        )
    return {"run_id": run_id, "total": found.total, "groups": [as_row(row) for row in found.rows]}


def as_json(found: GroupDetail) -> Result:
    """A group in full as JSON, its calls without request and answer."""
    return {
        "group_id": found.id,
        "run_id": found.run_id,
        "dataset": found.dataset,
        "offline": found.offline,
        "query_id": found.query_id,
        "query": found.query_positive,
        "passage_id": found.passage_id,
        "passage": found.document_positive,
        "stage": found.stage,
        "state": found.state,
        "verdict": found.verdict,
        "drop_reason": found.drop_reason,
        "drop_detail": found.drop_detail,
        "triplets": {role: texts._asdict() for role, texts in found.triplets.items()},
        "review": None
        if found.review is None
        else {
            "action": found.review.action,
            "reason": found.review.reason,
            "reviewed_by": found.review.reviewed_by,
            "created_at": found.review.created_at.isoformat(),
        },
        "judgments": [
            {
                "scenario": each.scenario,
                "question": each.question,
                "expected": each.expected,
                "judge": each.judge,
                "choice": each.choice,
                "agrees": each.agrees,
            }
            for each in found.judgments
        ],
        "calls": [
            {
                "call_id": call.id,
                "task": call.task,
                "model": call.model,
                "server": call.server,
                "outcome": call.outcome,
                "input_tokens": call.input_tokens,
                "output_tokens": call.output_tokens,
                "cost_usd": call.cost_usd,
            }
            for call in found.calls
        ],
    }


def _shown(result: Result) -> str:
    verdict = result["verdict"] or result["state"]
    if result["drop_reason"]:
        verdict += f": {result['drop_reason']}"
    review = result["review"]
    parts = [
        lines(
            ("group", f"{result['group_id']} of run {result['run_id']} ({result['dataset']})"),
            ("verdict", verdict),
            ("detail", result["drop_detail"] or "–"),
            ("review", f"{review['action']} by {review['reviewed_by']}" if review else "–"),
            ("query", f"{result['query']} ({result['query_id']})"),
            ("passage", f"{result['passage']} ({result['passage_id']})"),
        )
    ]
    for role, texts in result["triplets"].items():
        facts = lines(*((name, texts[name]) for name in ("instruction", "query", "passage")))
        parts += ["", role, facts]
    if result["judgments"]:
        judged = [
            (each["scenario"], each["judge"], each["choice"], each["agrees"])
            for each in result["judgments"]
        ]
        parts += ["", table(("scenario", "judge", "choice", "agrees"), judged, empty="")]
    return "\n".join(parts)


@groups.command()
@click.argument("group_id", type=int)
@reporting(_shown)
def show(group_id: int) -> Result:
    """Show one group: texts, verdict, review, the validator's judgments and the calls."""
    with ready_store().read() as session:
        if session.get(Group, group_id) is None:
            raise NotFound(
                f"no group {group_id}",
                "`inf groups list --run RUN` shows those of a run",
                code="group_unknown",
            )
        return as_json(get_group(session, group_id))
