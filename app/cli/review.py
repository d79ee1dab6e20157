"""`inf review`: approve, reject or edit one group."""

import click

from app.cli.report import Result, me, ready_store, reporting
from db.reviews import FIELDS, approve_group, edit_group, reject_group
from db.tables import Review


def as_json(review: Review) -> Result:
    """A review as the command prints it."""
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
    words = {"approve": "approved", "reject": "rejected", "edit": "edited"}[result["action"]]
    said = f"group {result['group_id']} {words} by {result['reviewed_by']}"
    reason = f": {result['reason']}" if result["reason"] else ""
    changed = [
        f"  {name}\n    - {result['before'][name]}\n    + {text}"
        for name, text in result["after"].items()
    ]
    return "\n".join([said + reason, *changed])


def _changes(edits: tuple[str, ...]) -> dict[str, str]:
    changes: dict[str, str] = {}
    for edit in edits:
        name, sign, text = edit.partition("=")
        if not sign:
            raise click.UsageError(f"--edit {edit!r}: write it as FIELD=TEXT")
        changes[name.strip()] = text
    return changes


@click.command()
@click.option("--group", "group_id", type=int, required=True, help="The group's id.")
@click.option("--approve", is_flag=True, help="The group is good.")
@click.option("--reject", is_flag=True, help="The group is not to be released; needs --reason.")
@click.option(
    "--edit",
    "edits",
    multiple=True,
    metavar="FIELD=TEXT",
    help=f"Write another text; repeats. Fields: {', '.join(FIELDS)}.",
)
@click.option("--reason", default="", help="Why.")
@reporting(_human)
def review(
    group_id: int, approve: bool, reject: bool, edits: tuple[str, ...], reason: str
) -> Result:
    """Approve, reject or edit a group. Nothing is overwritten: the newest review holds."""
    if approve + reject + bool(edits) != 1:
        raise click.UsageError("say one of --approve, --reject and --edit")
    if approve and reason:
        raise click.UsageError("--reason goes with --reject or --edit")
    if reject and not reason.strip():
        raise click.UsageError("--reject needs --reason TEXT: say what is wrong with the group")
    changes = _changes(edits)
    store = ready_store()
    with store.write() as session:
        if approve:
            done = approve_group(session, group_id, reviewed_by=me())
        elif reject:
            done = reject_group(session, group_id, reason=reason, reviewed_by=me())
        else:
            done = edit_group(session, group_id, changes, reviewed_by=me(), reason=reason)
        session.commit()
        return as_json(done)
