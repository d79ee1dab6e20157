"""`inf studies people|write|messages|adjudicate|disagreements|work`: a study's judges, what is
written to them, its disputed items, and who worked."""

from typing import Any

import click
from click.core import ParameterSource

from analysis.files.csv_writer import csv_text
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import NOW, with_former_keys
from app.cli.kit.options import field_options, request_of, request_options
from app.cli.kit.report import Result, command_actor, reporting
from app.cli.kit.table import Column, drawn
from app.operations.judging import studies as operations
from app.operations.judging.disagreements import StudyDisagreements, disagreements
from app.text.reviews import judges_changed
from curation.judging.request import Adjudication, DisagreementList, JudgeChange
from db.rows import Row
from db.study.work import WorkRow

CHANGES = {
    "pause": "Pause a judge; requires --reason. This option and the next are repeatable.",
    "let_in": "Let a paused judge continue.",
    "take_back": "Return the items a judge holds to the queue.",
    "give": "Reassign the items a judge holds; requires --to.",
    "set": "Set a judge's --quota, --due date, or both.",
    "unset": "Give a judge neither quota nor due date.",
}
PEOPLE: tuple[Column, ...] = (
    *("judge", "state", "done", "quota", ("due", "due_on"), ("s each", "median_seconds")),
    ("gold", lambda row: f"{row['gold_right']} of {row['gold_seen']}" if row["gold_seen"] else ""),
    ("agree", lambda row: f"{row['agreement']:.0%}" if row["agreement"] is not None else ""),
    *("flagged", ("last seen", lambda row: (row["last_at"] or "")[:16].replace("T", " "))),
    *(("messages", lambda row: row["unread"] or ""), ("in doubt", "doubt")),
    ("made", lambda row: "simulated" if row["simulated"] else "offline" if row["offline"] else ""),
    ("paused", lambda row: row["reason"] if row["state"] == "paused" else ""),
)
DISAGREEMENTS: tuple[Column, ...] = (
    *(("item", "item_id"), "question", "kind", ("people", "judges"), "disagreement"),
    ("answers", lambda row: ", ".join(f"{n} {a}" for a, n in row["answers"].items())),
    ("by", lambda row: ", ".join(f"{a['judge']} {a['choice']}" for a in row["judgments"])),
    ("decided", lambda row: "yes" if row["is_decided"] else ""),
    ("comments", lambda row: " / ".join(row["comments"])),
)
SENT: tuple[Column, ...] = (
    ("sent", lambda row: row["created_at"][:16].replace("T", " ")),
    *(("by", "written_by"), ("to", lambda row: ", ".join(row["to"]) or "everyone"), "read"),
    ("message", "body"),
)


WORK: tuple[Column, ...] = (
    *("study", "person", "items", "late", "skipped", "changed", ("minutes", "active_minutes")),
    ("gold", lambda row: f"{row['gold_right']} of {row['gold_seen']}" if row["gold_seen"] else ""),
    *(("qualified", lambda row: (row["qualified_at"] or "")[:10]), "worker", "submission", "code"),
)


def _worked(result: Result) -> str:
    context = click.get_current_context()
    is_given = context.get_parameter_source("csv") is ParameterSource.COMMANDLINE
    if not is_given and NOW not in context.meta:  # `inf study work` goes on as it was
        return drawn(WORK, result["data"], empty="nobody has worked yet")
    return csv_text(result["data"], [*WorkRow.model_fields]).rstrip("\n")


def _people(result: Result) -> str:
    shown = drawn(PEOPLE, result["people"], empty="no judges yet")
    return f"{result['message']}\n{shown}" if result["message"] else shown


def _changes(command: Any) -> Any:
    """An option for each change of judges, whose values are the judges."""
    for action, about in reversed(CHANGES.items()):
        option = f"--{action.replace('_', '-')}"
        command = click.option(option, action, metavar="NAME", multiple=True, help=about)(command)
    return command


@click.command()
@field_options(JudgeChange)
@_changes
@reporting(_people)
def people(study_id: int, **given: Any) -> Result:
    """Show progress, pace, gold and agreement of a study's judges; pause them, return or reassign
    their items, set how many they are given."""
    chosen = {action: names for action in CHANGES if (names := given.pop(action))}
    if len(chosen) > 1 or (any(given.values()) and not chosen):
        options = ", ".join(f"--{action.replace('_', '-')}" for action in CHANGES)
        raise click.UsageError(f"give one of {options}, and what belongs to it alone")
    actor, message = command_actor(), ""
    for action, names in chosen.items():
        wanted = given | {"study_id": study_id, "action": action, "judges": names}
        done = operations.change_judges(actor, request_of(JudgeChange, wanted))
        what = judges_changed(action, done.judges, done.moved, done.returned)
        message = f"{', '.join(names)}: {what}"
    found = dict(operations.judges(actor, study_id))
    listed = operations.StudyJudges(**found, study_id=study_id, message=message)
    return with_former_keys(listed.as_json(), "people", {"judge": "name", "holds": "leased"})


def _disagreements(result: Result) -> str:
    if "choice" in result:
        return f"item {result['item_id']} is decided: {result['choice'].replace('_', ' ')}"
    return drawn(DISAGREEMENTS, result["data"], empty="nobody disagrees yet", max_columns=110)


@click.command()
@click.option("--item", "item_id", type=int, help="Decide this item; without it, list items.")
@click.option("--choice", help="The right answer: a candidate's label, or none.")
@click.option("--note", default="", help="Reason for the decision.")
@request_options(DisagreementList)
@reporting(_disagreements)
def adjudicate(
    request: DisagreementList, item_id: int | None, choice: str | None, note: str
) -> Result | Row:
    """Decide an item on which people disagree; list them."""
    if (item_id is None) != (choice is None):
        raise click.UsageError("--item ITEM and --choice LABEL must be given together")
    actor, study_id = command_actor(), request.study_id
    if item_id is not None and choice is not None:
        wanted = Adjudication(study_id=study_id, item_id=item_id, choice=choice, note=note)
        return operations.adjudicate(actor, wanted)
    found = disagreements(actor, request)
    listed = StudyDisagreements(**dict(found), study_id=study_id, disputed=found.total)
    return with_former_keys(listed.as_json(), "items", {"answers": "judgments"})


def add_to(studies: Noun) -> None:
    """Add the commands to those of studies."""
    studies.add_command(people)
    studies.add_command(adjudicate)
    studies.door(
        operations.write, text=lambda sent: f"sent to {', '.join(sent['to']) or 'everyone'}"
    )
    studies.listed(operations.messages, name="messages", columns=SENT, empty="no messages yet")
    studies.door(disagreements, name="disagreements", text=_disagreements)
    studies.listed(
        operations.work,
        click.option("--csv", is_flag=True, expose_value=False, help="Print all columns as CSV."),
        name="work",
        former=("work", {}),
        text=_worked,
        about="Report minutes, items, gold and qualification per person, of one study or all.",
    )
