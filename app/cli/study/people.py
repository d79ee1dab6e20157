"""`inf study people|adjudicate`: the curator actions of the pages Studies and Adjudicate."""

import click

from app.cli.kit.report import Result, me, ready_store, reporting
from app.text.numbers import counted
from db.assignment import members, places, reassigning
from db.events import record_event
from db.store.store import Store
from db.study import adjudication, quality
from db.study.adjudication import Disputed
from db.study.quality import JudgeQuality

study_option = click.option("--study", "study_id", type=int, required=True, help="Id of the study.")


def _person(each: JudgeQuality) -> Result:
    return {
        "judge": each.judge,
        "kind": each.kind,
        "simulated": each.simulated,
        "offline": each.offline,
        "judged": each.judged,
        "holds": each.leased,
        "skipped": each.skipped,
        "flagged": each.flagged,
        "notes": each.notes,
        "median_seconds": each.median_seconds,
        "too_fast": each.too_fast,
        "gold_right": each.gold_right,
        "gold_seen": each.gold_seen,
        "qualification": each.qualification,
        "state": each.state,
        "reason": each.reason,
    }


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
@study_option
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
    actions = {"pause": pause, "let_in": let_in, "take_back": take_back, "give": give}
    chosen = [(action, name) for action, name in actions.items() if name]
    if len(chosen) > 1:
        raise click.UsageError("give only one of --pause, --let-in, --take-back and --give")
    if bool(give) != bool(to):
        raise click.UsageError("--give NAME and --to NAME must be given together")
    if reason and not pause:
        raise click.UsageError("--reason requires --pause")
    store = ready_store()
    message = _do(store, study_id, *chosen[0], reason=reason, to=to or "") if chosen else ""
    with store.read() as session:
        found = quality.judge_quality(session, study_id)
    return {"study_id": study_id, "message": message, "people": [_person(each) for each in found]}


def _do(store: Store, study_id: int, action: str, name: str, *, reason: str, to: str) -> str:
    """Perform one action with its audit entry; returns the message."""
    with store.write() as session:
        judge_id = quality.judge_of_study(session, study_id, name)
        detail: dict[str, int] = {"judge": judge_id}
        if action == "pause":
            members.pause_judge(session, study_id, judge_id, reason)
            message, noted = f"{name} is paused; the items they held go to others", "pause_judge"
        elif action == "let_in":
            members.readmit_judge(session, study_id, judge_id)
            message, noted = f"{name} may continue", "let_in_judge"
        elif action == "take_back":
            number = places.return_leases(session, study_id, judge_id)
            message, noted = (
                f"{counted(number, 'item')} of {name} returned to the queue",
                "take_back",
            )
        else:
            detail["to"] = quality.judge_of_study(session, study_id, to)
            done = reassigning.reassign(session, study_id, judge_id, detail["to"])
            message, noted = (
                f"{counted(done.moved, 'item')} reassigned to {to}, {done.returned} returned",
                "reassign",
            )
        record_event(session, me(), f"study.{noted}", study_id, **detail)
        session.commit()
    return message


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
@study_option
@click.option("--item", "item_id", type=int, help="Decide this item; without it, list items.")
@click.option("--choice", help="The right answer: a candidate's label, or none.")
@click.option("--note", default="", help="Reason for the decision.")
@click.option(
    "--all", "include_agreed", is_flag=True, help="Also list items on which people agree."
)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@reporting(_disputed)
def adjudicate(
    study_id: int,
    item_id: int | None,
    choice: str | None,
    note: str,
    include_agreed: bool,
    limit: int,
) -> Result:
    """List the items on which people disagree, with all answers; decide one."""
    if (item_id is None) != (choice is None):
        raise click.UsageError("--item ITEM and --choice LABEL must be given together")
    if item_id is None or choice is None:
        with ready_store().read() as session:
            ids = adjudication.disputed_ids(session, study_id, include_agreed=include_agreed)
            items = [adjudication.get_disputed(session, study_id, one) for one in ids[:limit]]
        rows = [_item(item) for item in items]
        return {"study_id": study_id, "disputed": len(ids), "items": rows}
    with ready_store().write() as session:
        adjudication.adjudicate(session, study_id, item_id, choice, by=me(), note=note)
        record_event(session, me(), "study.adjudicate", study_id, item=item_id, choice=choice)
        session.commit()
    return {"study_id": study_id, "item_id": item_id, "choice": choice, "decided_by": me()}
