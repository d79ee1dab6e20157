"""`inf review`: approve, reject or edit one group; `many` and `verdicts` are in review_many.py."""

import click

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
from db.review.reviews import FIELDS, approve_group, edit_group, reject_group
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
    if "holds" in result:
        return lines(
            ("run", result["run_id"]),
            ("judge", result["judge"]),
            ("edited items", result["items"]),
            ("hold", result["holds"]),
            ("fail", result["fails"]),
            ("no usable answer", counts(result["unusable"])),
        )
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


class OneByDefault(click.Group):
    """`inf review --group …` is `inf review one --group …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["one", *args]
        return super().parse_args(ctx, args)


@click.group(cls=OneByDefault)
def review() -> None:
    """Approve, reject or edit groups. Without a command: one group, as `one` does."""


for command_of_many in (review_many.many, review_many.verdicts):
    review.add_command(command_of_many)


@review.command()
@click.option("--group", "group_id", type=int, help="The group's id.")
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
@click.option(
    "--revalidate",
    "run_id",
    type=int,
    metavar="RUN",
    help="Let the run's validator judge what was edited in it.",
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
    """Approve, reject or edit a group. Nothing is overwritten: the newest review holds.

    An edit has to pass the rules of the group's run; --revalidate asks its validator too.
    """
    if run_id is not None:
        if group_id is not None or approve or reject or edits:
            raise click.UsageError("--revalidate RUN stands alone")
        config = {"run_id": run_id}
        return work(ready_store(), "judge", config, detach=detach, title="revalidating edits")
    if group_id is None:
        raise click.UsageError("--group says which group")
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
            check_edit(session, group_id, changes)
            done = edit_group(session, group_id, changes, reviewed_by=me(), reason=reason)
        session.commit()
        return as_json(done)
