"""Actions of the page Studies: what forms hold, to the operations on studies."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
from app.kit.acting import acting, keep
from app.kit.fields import at_field, values_of_form
from app.operations import people
from app.operations.judging import judgments, report, studies
from app.text.numbers import counted
from app.text.reviews import judges_changed
from curation.judging.request import GoldChange, RulesChange, StudyPlan, StudyReport
from db.errors import BadInput
from db.study.rules import StudyRules

LINKS, REPORT = "studies.links", "studies.written_report"
OPEN = "studies.thread"
PART_LABELS = {"training": "qualification", "gold": "gold"}
# Of the form; whether a study closes when all is answered is decided when it is made.
SETTINGS = ("sample", "name", "overlap", "seed", "guidelines")
MORE = ("only", "language", "qualification", "gold", "close_when_done")
FOR_SAMPLE = {
    "stratified": ("strata", "items"),
    "random": ("items",),
    "disagreement": ("of_study", "judges", "items"),
    "list": ("lines",),
}
RULES = tuple(name for name in StudyRules.model_fields if name != "closes_when_done")


def _held(name: str) -> Any:
    return st.session_state[f"studies.{name}"]


@action
@at_field("studies.{}")
def create(dataset: str) -> None:
    """Create the study that the form describes."""
    made = studies.create(signed_in_user(), plan_of_form(dataset))
    st.query_params["study"] = str(made.id)
    st.query_params.pop("run", None)  # it opens the form, above the study that was made
    st.session_state.pop("studies.chosen", None)
    notify(f"{made.name} has {made.items} items. Judges find it on the Judge page.")


def plan_of_form(dataset: str) -> StudyPlan:
    """The study that the form describes. Raises BadInput."""
    given = values_of_form(StudyPlan, key="studies")
    drawn = (*SETTINGS, *MORE, *FOR_SAMPLE[given["sample"]])  # others are left of another sample
    given = {name: value for name, value in given.items() if name in drawn}
    if given.get("strata") == []:
        given["sample"] = "random"
    return StudyPlan.read(given | {"dataset": dataset, "run_id": int(_held("run"))})


set_status = acting(
    studies.change,
    lambda done: f"Study {done.id} is {done.status}.",
    takes=("study_id", "status"),
)


start_judge = acting(
    studies.judge,
    lambda job_id: keep("studies.job", job_id, f"The judge's work is queued as job {job_id}."),
    takes=("study_id",),
    held={"judge": "studies.judge", "budget_usd": "studies.judge_budget"},
)


HELD: Mapping[str, Mapping[str, str]] = {  # what the form has for an action on judges
    "pause": {"reason": "studies.reason"},
    "let_in": {},
    "take_back": {},
    "give": {"to": "studies.receiver"},
    "set": {"quota": "studies.quota", "due_on": "studies.due"},
    "unset": {},
}
ROUND = "studies.people_round"


def _done(text: str) -> str:
    """Nobody is selected once it is done: the table is drawn as a new one."""
    return keep(ROUND, st.session_state.get(ROUND, 0) + 1, text)


CHANGES = {
    action: acting(
        studies.change_judges,
        lambda done: _done(judges_changed(done.action, done.judges, done.moved, done.returned)),
        takes=("study_id", "action", "judges"),
        held=held,
    )
    for action, held in HELD.items()
}
write, announce = (
    acting(
        studies.write,
        lambda sent: _done(
            f"Sent to {counted(len(sent.to), 'person', 'people') if sent.to else 'everyone'}."
        ),
        takes=takes,
        held={"body": f"studies.{key}"},
    )
    for takes, key in ((("study_id", "to"), "message"), (("study_id",), "announcement"))
)
extend_overlap = acting(
    studies.change,
    lambda done: f"Every item now gets {counted(done.overlap, 'judgment')} by people.",
    takes=("study_id",),
    held={"overlap": "studies.more_overlap"},
)
write_guideline = acting(
    studies.change,
    lambda done: (
        f"Guidelines saved as version {done.guideline_version}. Judgments from now on refer to it."
    ),
    takes=("study_id",),
    held={"guidelines": "studies.guideline_{0}"},
)
add_example = acting(
    studies.add_example,
    lambda done: f"Added to the guidelines, which are version {done.guideline_version} now.",
    takes=("study_id",),
    form="studies.example",
)
invite = acting(
    people.invite,
    lambda paths: keep(LINKS, paths),
    takes=("study_id",),
    form="studies.invite",
)


recruit = acting(
    studies.recruit,
    lambda made: keep(LINKS, [made.path]),
    takes=("study_id",),
    form="studies.recruit",
)


sample_known = acting(
    studies.change_gold,
    lambda done: f"{counted(len(done.added), 'item')} added.",
    takes=("study_id", "part"),
    held={"sample": "studies.known_count_{1}"},
)


@action
def add_known(study_id: int) -> None:
    """Add the rows of the uploaded file as qualification or gold items."""
    user, part, upload = signed_in_user(), _held("known_part"), _held("known_file")
    if upload is None:
        raise BadInput("no file", "choose one with a row per item", code="file_not_given")
    given = (upload.name, upload.getvalue())
    done = studies.change_gold(user, GoldChange(study_id=study_id, part=part), upload=given)
    notify(f"{counted(len(done.added), f'{PART_LABELS[part]} item')} added from {upload.name}.")


@action
def save_rules(study_id: int) -> None:
    """Save the rules of the form."""
    changes = values_of_form(StudyRules, key=f"studies.rules_{study_id}")
    studies.change_rules(signed_in_user(), RulesChange(study_id=study_id, rules=changes))
    notify("Rules saved. They apply from now on.")


@action
def open_thread(study_id: int, item_id: int, judge_id: int) -> None:
    """Open a thread, which is recorded as a view of its item."""
    judgments.open_thread(signed_in_user(), study_id, item_id, judge_id)
    st.session_state[OPEN] = (study_id, item_id, judge_id)


@action
def write_report(study_id: int) -> None:
    """Keep the report of now for the page."""
    found = report.report(signed_in_user(), StudyReport(study_id=study_id))
    st.session_state[REPORT] = (study_id, found)


# `written`: how many messages there were, so that sent twice is one
answer_thread = acting(
    judgments.answer_thread,
    takes=("study_id", "item_id", "judge_id", "written"),
    held={"body": "studies.answer_{1}_{2}_{3}"},
)
