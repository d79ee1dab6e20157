"""`inf review`: approve, reject or edit one group; `many` and `verdicts` are in many.py."""

import click

from app.cli.kit.one_by_default import OneByDefault
from app.cli.kit.report import (
    Result,
    counts,
    detach_option,
    lines,
    me,
    ready_store,
    reporting,
    work,
)
from app.cli.review import many as review_many
from curation.judging.revalidation import check_edit
from db.review.reviews import approve_group, edit_group, reject_group
from db.review.texts import FIELDS
from db.tables import Review


def as_json(review: Review) -> Result:
    """A review as JSON."""
    return {
        "review_id": review.id,
        "group_id": review.group_id,
        "action": review.action,
        "reason": review.reason,
        "before": review.before,
        "after": review.after,
        "reviewed_by": review.reviewed_by,
        "created_at": review.created_at.isoformat(),
    }


def _human(result: Result) -> str:
    if "holds" in result:
        return lines(
            ("run", result["run_id"]),
            ("judge", result["judge"]),
            ("edited items", result["items"]),
            ("hold", result["holds"]),
            ("fail", result["fails"]),
            ("no usable answer", counts(result["unusable"])),
        )
    actions = {"approve": "approved", "reject": "rejected", "edit": "edited"}[result["action"]]
    summary = f"group {result['group_id']} {actions} by {result['reviewed_by']}"
    reason = f": {result['reason']}" if result["reason"] else ""
    changed = [
        f"  {name}\n    - {result['before'][name]}\n    + {text}"
        for name, text in result["after"].items()
    ]
    return "\n".join([summary + reason, *changed])


def _changes(edits: tuple[str, ...]) -> dict[str, str]:
    changes: dict[str, str] = {}
    for edit in edits:
        name, sign, text = edit.partition("=")
        if not sign:
            raise click.UsageError(f"--edit {edit!r}: write it as FIELD=TEXT")
        changes[name.strip()] = text
    return changes


@click.group(cls=OneByDefault)
def review() -> None:
    """Approve, reject or edit groups. Without a subcommand, `one` is used."""


for command_of_many in (review_many.many, review_many.verdicts):
    review.add_command(command_of_many)


@review.command()
@click.option("--group", "group_id", type=int, help="The group's id.")
@click.option("--approve", is_flag=True, help="Approve the group.")
@click.option("--reject", is_flag=True, help="Reject the group; requires --reason.")
@click.option(
    "--edit",
    "edits",
    multiple=True,
    metavar="FIELD=TEXT",
    help=f"Replace a text; repeatable. Fields: {', '.join(FIELDS)}.",
)
@click.option("--reason", default="", help="Reason of the rejection or edit.")
@click.option(
    "--revalidate",
    "run_id",
    type=int,
    metavar="RUN",
    help="Validate the edited groups of this run again.",
)
@detach_option
@reporting(_human)
def one(
    group_id: int | None,
    approve: bool,
    reject: bool,
    edits: tuple[str, ...],
    reason: str,
    run_id: int | None,
    detach: bool,
) -> Result:
    """Approve, reject or edit a group. Nothing is overwritten: the newest review applies.

    An edit must pass the rules of the group's run; --revalidate also runs its validator.
    """
    if run_id is not None:
        if group_id is not None or approve or reject or edits:
            raise click.UsageError("--revalidate RUN cannot be combined with other options")
        config = {"run_id": run_id}
        return work(ready_store(), "judge", config, detach=detach, title="revalidating edits")
    if group_id is None:
        raise click.UsageError("give --group ID")
    if approve + reject + bool(edits) != 1:
        raise click.UsageError("give one of --approve, --reject and --edit")
    if approve and reason:
        raise click.UsageError("--reason requires --reject or --edit")
    if reject and not reason.strip():
        raise click.UsageError("--reject requires --reason TEXT")
    changes = _changes(edits)
    store = ready_store()
    with store.write() as session:
        if approve:
            done = approve_group(session, group_id, reviewed_by=me())
        elif reject:
            done = reject_group(session, group_id, reason=reason, reviewed_by=me())
        else:
            check_edit(session, group_id, changes)
            done = edit_group(session, group_id, changes, reviewed_by=me(), reason=reason)
        session.commit()
        return as_json(done)
