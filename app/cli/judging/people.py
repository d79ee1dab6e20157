"""`inf studies people|adjudicate|work`: a study's judges, its disputed items, and who worked."""

from typing import Any

import click

from analysis.files.csv_writer import csv_text
from app.access.identity import Actor
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import with_former_keys
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, reporting
from app.operations.judging import studies as operations
from app.text.numbers import counted
from curation.judging.request import Adjudication, DisputedList, JudgeChange, WorkReport
from db.requests import choices_of
from db.study.adjudication import Disputed
from db.study.work import WorkRow


def _people(result: Result) -> str:
    rows = [
        f"{each['judge']:<28} {each['judged']:>6} judged, holds {each['holds']}"
        + (f", {each['median_seconds']:.1f} s each" if each["median_seconds"] else "")
        + (f", gold {each['gold_right']} of {each['gold_seen']}" if each["gold_seen"] else "")
        + (" [simulated]" if each["simulated"] else " [offline]" if each["offline"] else "")
        + (f", paused: {each['reason']}" if each["state"] == "paused" else "")
        for each in result["people"]
    ]
    return "\n".join(
        [*([result["message"]] if result["message"] else []), *(rows or ["no judges yet"])]
    )


@click.command()
@click.argument("study_id", type=int)
@click.option("--pause", metavar="NAME", help="Pause a judge; requires --reason.")
@click.option("--reason", default="", help="The reason, shown to the judge.")
@click.option("--let-in", metavar="NAME", help="Let a paused judge continue.")
@click.option("--take-back", metavar="NAME", help="Return the items a judge holds to the queue.")
@click.option("--give", metavar="NAME", help="Reassign the items a judge holds; requires --to.")
@click.option("--to", metavar="NAME", help="The judge who gets the items.")
@reporting(_people)
def people(
    study_id: int,
    pause: str | None,
    reason: str,
    let_in: str | None,
    take_back: str | None,
    give: str | None,
    to: str | None,
) -> Result:
    """Show progress, pace and quality of a study's judges; pause them or reassign their items."""
    actions: dict[Any, str | None] = dict(
        zip(choices_of(JudgeChange, "action"), (pause, let_in, take_back, give), strict=True)
    )
    chosen = [(action, name) for action, name in actions.items() if name]
    if len(chosen) > 1:
        raise click.UsageError("give only one of --pause, --let-in, --take-back and --give")
    if bool(give) != bool(to):
        raise click.UsageError("--give NAME and --to NAME must be given together")
    if reason and not pause:
        raise click.UsageError("--reason requires --pause")
    actor, message = command_actor(), ""
    for action, name in chosen:
        wanted = JudgeChange(study_id=study_id, action=action, judge=name, reason=reason, to=to)
        done = operations.change_judge(actor, wanted)
        message = {
            "pause": f"{name} is paused; the items they held go to others",
            "let_in": f"{name} may continue",
            "take_back": f"{counted(done.returned, 'item')} of {name} returned to the queue",
            "give": f"{counted(done.moved, 'item')} reassigned to {to}, {done.returned} returned",
        }[action]
    rows = operations.judges(actor, study_id).as_json()
    former = [row | {"judge": row["name"], "holds": row["leased"]} for row in rows["data"]]
    return {"study_id": study_id, "message": message, **rows, "people": former}


def _item(item: Disputed) -> Result:
    return {
        "item_id": item.item_id,
        "instruction": item.instruction,
        "query": item.query,
        "candidates": [{"label": label, "text": text} for label, text in item.candidates],
        "answers": [
            {"judge": one.judge, "choice": one.choice, "note": one.note, "flagged": one.flagged}
            for one in (*item.answers, *item.skips)
        ],
        "decision": item.decision,
        "decided_by": item.decided_by,
    }


def _disputed(result: Result) -> str:
    if "choice" in result:
        return f"item {result['item_id']} is decided: {result['choice'].replace('_', ' ')}"
    lines = [
        f"item {each['item_id']}: "
        + ", ".join(f"{one['judge']} {one['choice']}" for one in each["answers"])
        + (f" (decided: {each['decision']})" if each["decision"] else "")
        for each in result["items"]
    ]
    return "\n".join([f"{counted(result['disputed'], 'item')}, most disputed first", *lines])


@click.command()
@click.option("--item", "item_id", type=int, help="Decide this item; without it, list items.")
@click.option("--choice", help="The right answer: a candidate's label, or none.")
@click.option("--note", default="", help="Reason for the decision.")
@request_options(DisputedList)
@reporting(_disputed)
def adjudicate(request: DisputedList, item_id: int | None, choice: str | None, note: str) -> Result:
    """List the items on which people disagree, with all answers; decide one."""
    if (item_id is None) != (choice is None):
        raise click.UsageError("--item ITEM and --choice LABEL must be given together")
    actor, study_id = command_actor(), request.study_id
    if item_id is not None and choice is not None:
        wanted = Adjudication(study_id=study_id, item_id=item_id, choice=choice, note=note)
        operations.adjudicate(actor, wanted)
        done = {"study_id": study_id, "item_id": item_id, "choice": choice}
        return done | {"decided_by": actor.name}
    total, found = operations.disputed(actor, request)
    return {"study_id": study_id, "disputed": total, "items": [_item(item) for item in found]}


def _table(result: Result) -> str:
    """CSV, as a spreadsheet reads it."""
    return csv_text(result["data"], list(WorkRow.model_fields)).rstrip("\n")


def _work(actor: Actor, wanted: WorkReport) -> Result:
    return with_former_keys(operations.work(actor, wanted).as_json(), "work", {})


def add_to(studies: Noun) -> None:
    """Add the commands to those of studies."""
    studies.add_command(people)
    studies.add_command(adjudicate)
    studies.door(
        _work,
        name="work",
        text=_table,
        about="Report minutes, items, gold and qualification per person as CSV, of one study or "
        "all.",
    )
