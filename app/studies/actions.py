"""Actions of the pages Studies and Adjudicate: what forms hold, to the operations on studies."""

from typing import Any, Literal

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
from app.kit.fields import values_of_form
from app.operations import people
from app.operations.acting import queued
from app.operations.judging import judgments, studies
from app.text.numbers import counted
from curation.judging.request import (
    BlindDecision,
    CuratorMessage,
    GoldChange,
    JudgeChange,
    JudgeStart,
    RulesChange,
    StudyChange,
    StudyPlan,
)
from db.errors import BadInput
from db.question import Shown
from db.study.rules import StudyRules

LINKS = "studies.links"
OPEN = "studies.thread"
PART_LABELS = {"training": "qualification", "gold": "gold"}
# Of the form; whether a study closes when all is answered is decided when it is made.
RULES = tuple(name for name in StudyRules.model_fields if name != "closes_when_done")


def _held(name: str) -> Any:
    return st.session_state[f"studies.{name}"]


@action
def create(dataset: str) -> None:
    """Create the study that the form describes."""
    made = studies.create(signed_in_user(), plan_of_form(dataset))
    st.query_params["study"] = str(made["study_id"])
    st.query_params.pop("run", None)  # it opens the form, above the study that was made
    st.session_state.pop("studies.chosen", None)
    notify(f"{made['name']} has {made['items']} items. Judges find it on the Judge page.")


def plan_of_form(dataset: str) -> StudyPlan:
    """The study that the form describes. Raises BadInput."""
    sample = str(_held("sample"))
    given: dict[str, Any] = {"sample": sample, "items": None}
    if sample != "list":
        given["items"] = int(_held("items"))
    if sample == "stratified":
        strata = tuple(_held("strata"))
        given |= {"strata": strata} if strata else {"sample": "random"}
    elif sample == "disagreement":
        given |= {"of_study": _held("of_study"), "judges": tuple(_held("judges"))}
    elif sample == "list":
        given["lines"] = tuple((_held("list") or "").splitlines())
    return StudyPlan.read(
        {
            "dataset": dataset,
            "run_id": int(_held("run")),
            "overlap": int(_held("overlap")),
            "seed": int(_held("seed")),
            "name": (_held("name") or "").strip(),
            "guidelines": _held("guidelines"),
            **given,
        }
    )


@action
def set_status(study_id: int, status: str) -> None:
    """Open, pause or close a study."""
    studies.change(signed_in_user(), StudyChange(study_id=study_id, status=status))
    notify(f"Study {study_id} is {status}.")


@action
def start_judge(study_id: int) -> None:
    """Queue a job in which a model or a simulated judge answers the study's items."""
    judge = (_held("judge") or "").strip()
    if not judge:
        raise BadInput("no judge", "choose one or type its name", code="judge_missing")
    wanted = JudgeStart(study_id=study_id, judge=judge)
    job_id = studies.judge(signed_in_user(), wanted, queued)
    notify(f"Judging as {judge} is queued as job {job_id}.")
    st.session_state["studies.job"] = job_id


@action
def change_judge(study_id: int, what: Literal["pause", "let_in", "take_back", "give"]) -> None:
    """Pause the chosen judge or let them in again; return their items or give them to another."""
    wanted = JudgeChange(
        study_id=study_id,
        action=what,
        judge=int(_held("quality_judge")),
        reason=_held("reason") or "",
        to=int(_held("receiver")) if what == "give" else None,
    )
    done = studies.change_judge(signed_in_user(), wanted)
    rest = f"; {done.returned} went back to the queue" if done.returned else ""
    notify(
        {
            "pause": "The judge is paused in this study; their items went back to the queue.",
            "let_in": "The judge may continue.",
            "take_back": f"{counted(done.returned, 'item')} went back to the queue.",
            "give": f"{counted(done.moved, 'item')} moved to the other judge{rest}.",
        }[what]
    )


@action
def extend_overlap(study_id: int) -> None:
    """Increase the number of judgments per item."""
    overlap = int(_held("more_overlap"))
    studies.change(signed_in_user(), StudyChange(study_id=study_id, overlap=overlap))
    notify(f"Every item now gets {counted(overlap, 'judgment')} by people.")


@action
def write_guideline(study_id: int) -> None:
    """Save the edited text as the next version of the guidelines."""
    body = _held(f"guideline_{study_id}") or ""
    wanted = StudyChange(study_id=study_id, guidelines=body)
    version = studies.change(signed_in_user(), wanted).guideline_version
    notify(f"Guidelines saved as version {version}. Judgments from now on refer to it.")


@action
def invite(study_id: int) -> None:
    """Create invitation links, one per person; they are shown once."""
    days, count = int(_held("invite_days")), int(_held("invite_people"))
    st.session_state[LINKS] = people.invite(
        signed_in_user(), days=days, study_id=study_id, count=count
    )


@action
def sample_known(study_id: int) -> None:
    """Add qualification or gold items sampled from approved groups."""
    part = _held("known_part")
    count = int(_held(f"known_count_{part}"))
    wanted = GoldChange(study_id=study_id, part=part, sample=count)
    done = studies.change_gold(signed_in_user(), wanted)
    notify(f"{counted(len(done.added), f'{PART_LABELS[part]} item')} added.")


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
def answer_thread(study_id: int, item_id: int, judge_id: int, written: int) -> None:
    """Send the curator's message; `written`: how many there were, so that twice is once."""
    body = str(st.session_state.get(f"studies.answer_{item_id}_{judge_id}_{written}") or "")
    wanted = CuratorMessage(
        study_id=study_id, item_id=item_id, judge_id=judge_id, body=body, written=written
    )
    judgments.answer_thread(signed_in_user(), wanted)


@action
def adjudicate(study_id: int, token: str, position: Shown) -> None:
    """Store the adjudicator's decision on a disputed item, as it was chosen on the screen."""
    note = str(st.session_state.get(f"adjudicate.note_{token}") or "")
    wanted = BlindDecision(study_id=study_id, token=token, position=position, note=note)
    judgments.decide(signed_in_user(), wanted)


@action
def reveal(study_id: int, token: str) -> None:
    """Reveal an item's roles, names and models' choices to the adjudicator."""
    judgments.reveal(signed_in_user(), study_id, token)
