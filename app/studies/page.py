"""The Studies page: create studies, follow their progress, start model judges."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.access.session_user import signed_in_user
from app.groups.run_label import run_name
from app.jobs_page.card import draw_last_failure, follow_job
from app.kit.choice import choose, draw_pages, take_from_url
from app.kit.fields import draw_fields
from app.kit.frame.dataset import chosen_dataset
from app.kit.menu import may_open
from app.kit.page import draw_drawer, draw_empty, draw_heading, draw_status
from app.operations import connections
from app.operations.judging import judgments, studies
from app.studies import actions
from app.studies.desk import draw_changes, draw_messages, draw_people
from app.studies.file_form import draw_file_form
from app.studies.sampled import sampled_sentence
from app.studies.settings_form import (
    draw_invite,
    draw_rules,
    draw_way_to_judge,
    sample_gold_items,
)
from app.studies.work_report import draw_report, draw_work
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from curation.judges.registry import describe_judges
from curation.judging.request import StudyPlan
from curation.rules.language import name_of
from db.assignment.threads import MAX_MESSAGE_CHARACTERS, Thread
from db.run.runs import RunSummary
from db.study.studies import GUIDELINES, StudySummary

FIRST = StudyPlan(dataset="", items=30, overlap=3)  # what the form begins with
NARROW = {"width": 140}
WIDTHS: dict[str, dict[str, Any]] = {
    "name": {"placeholder": "shown to judges", "width": "stretch"},
    "items": NARROW,
    "overlap": NARROW,
    "seed": NARROW,
}
NARROWER: dict[str, dict[str, Any]] = {
    "only": {"placeholder": "kept or dropped"},
    "language": {"placeholder": "any language", "format_func": name_of},
}
JUDGES = ("offline:embedding", "simulated:1", "simulated:2", "simulated:3")
THREADS = 10  # on a page
METHODS = {
    "stratified": "evenly across strata",
    "random": "at random",
    "disagreement": "highest disagreement",
    "list": "from a list",
}
CAPTIONS = {
    "stratified": "The same number of items from every stratum, as long as it has groups.",
    "random": "Any group that reached validation, in any of its scenarios.",
    "disagreement": "Items on which judges differ. Agreement on them does not describe the run "
    "as a whole.",
    "list": "One entry per line: a group (`12`), a group and a scenario (`12 query_negative`), or "
    "an item (`item 40`). `#` starts a comment.",
}


def draw_create(runs: Sequence[RunSummary], found: Sequence[StudySummary]) -> None:
    by_id = {run.id: run for run in runs}
    take_from_url("studies.run", "run", {str(number): number for number in by_id})
    run_id = st.selectbox(
        "Run", list(by_id), format_func=lambda n: run_name(by_id[n]), key="studies.run"
    )
    sample = draw_sampling(by_id[run_id], found)
    with st.form("studies.create", border=False):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            counts = ("overlap", "seed") if sample == "list" else ("items", "overlap", "seed")
            draw_fields(StudyPlan, ("name", *counts), key="studies", now=FIRST, more=WIDTHS)
        st.text_area("Guidelines (Markdown)", GUIDELINES, key="studies.guidelines", height=190)
        with st.expander("More options"), st.container(horizontal=True):
            draw_fields(StudyPlan, actions.MORE, key="studies", more=NARROWER)
        st.form_submit_button(
            "Create study",
            type="primary",
            on_click=actions.create,
            args=(by_id[run_id].dataset,),
            key="studies.create_button",
        )


def draw_sampling(run: RunSummary, found: Sequence[StudySummary]) -> str:
    """The sampling method, one of SAMPLES, after rendering it with its options: outside of
    `st.form`, because they depend on it."""
    method = {"format_func": lambda name: METHODS.get(name, name), "width": 240}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _draw_plan("sample", **method)
        sample = str(st.session_state["studies.sample"])
        if sample == "stratified":
            _draw_plan("strata")
        if sample == "disagreement":
            _draw_disagreeing(run, found)
    if sample == "list":
        _draw_plan("lines", height=110, placeholder="12\n15 query_negative\nitem 40")
    st.caption(
        f"{CAPTIONS[sample]} Kept and dropped groups are eligible, so that agreement is not "
        "circular; each group gives at most one item."
    )
    return sample


def _draw_disagreeing(run: RunSummary, found: Sequence[StudySummary]) -> None:
    """Choose whose disagreement counts: models on the run, or judges of an earlier study."""
    earlier: dict[int | None, str] = {None: "model judges, including the validator"}
    earlier |= {
        study.id: f"judges of study {study.id} · {study.name}"
        for study in found
        if study.run_id == run.id
    }
    _draw_plan("of_study", options=list(earlier), format_func=earlier.__getitem__)
    of_study = st.session_state["studies.of_study"]
    judges = studies.sampled_judges(signed_in_user(), run.id, of_study)
    _draw_plan("judges", options=judges, placeholder="all")


def _draw_plan(name: str, **more: Any) -> None:
    draw_fields(StudyPlan, [name], key="studies", more={name: more})


def draw_study(study: StudySummary) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_status(study.status)
        st.caption(
            plain(
                f"{counted(study.items, 'item')} × {counted(study.overlap, 'judge')} · "
                f"dataset {study.dataset} · run {study.run_id}"
                + (f" · by {study.created_by}" if study.created_by else "")
            ),
            width="stretch",
        )
        for status, label in (("open", "Open"), ("paused", "Pause"), ("closed", "Close study")):
            if study.status not in (status, "closed"):
                st.button(
                    label,
                    key=f"studies.{status}",
                    on_click=actions.set_status,
                    args=(study.id, status),
                    help="Its groups become visible to everyone, so it cannot be opened again."
                    if status == "closed"
                    else None,
                )
    share = study.done / study.places if study.places else 0.0
    st.progress(min(1.0, share), text=f"{study.done:,} of {study.places:,} judgments by people")
    if study.status == "open":
        draw_way_to_judge(study)
    shown = studies.show(signed_in_user(), study.id)
    with st.container():  # one container, so that the forms below keep their position and state
        draw_people(study)
    parts = shown.scenarios, shown.verdicts
    st.caption(plain(sampled_sentence(shown.settings, study.seed, *parts)))
    draw_threads(study.id)
    draw_messages(study)
    draw_work(study)
    draw_report(study)
    draw_changes(study)
    sample_gold_items(study)
    draw_rules(study)
    draw_invite(study)


def draw_threads(study_id: int) -> None:
    """The list of threads and the one that is open; nothing is drawn without any."""
    found = judgments.threads(signed_in_user(), study_id)
    if not found:
        return
    unread = sum(one.unread > 0 for one in found)
    label = counted(len(found), "thread") + (f", {unread} unread" if unread else "")
    with st.expander(label, icon=":material/forum:", expanded=unread > 0):
        st.caption(
            "Messages of judges about an item; other judges never see them. Who opens a thread "
            "is no longer given its item to judge."
        )
        start = draw_pages(len(found), key="studies.threads", rows=THREADS)
        opened = st.session_state.get(actions.OPEN)
        for one in found[start : start + THREADS]:
            text = f"{one.judge} · item {one.item_id}" + (f" · {one.unread} new" * (one.unread > 0))
            st.button(
                plain(text),
                key=f"studies.thread_{one.item_id}_{one.judge_id}",
                on_click=actions.open_thread,
                args=(study_id, one.item_id, one.judge_id),
            )
            if opened == (study_id, one.item_id, one.judge_id):
                _draw_thread(study_id, one)


def _draw_thread(study_id: int, thread: Thread) -> None:
    shown, messages = judgments.thread(signed_in_user(), study_id, thread.item_id, thread.judge_id)
    with st.container(border=True):
        draw_text(shown.instruction, label="Instruction")
        draw_text(shown.query, label="Query")
        for place, text in enumerate(shown.candidates, start=1):
            draw_text(text, label=f"Passage {place} on {thread.judge}'s screen")
        for message in messages:
            draw_text(message.body, label=message.written_by or thread.judge)
        form = f"{thread.item_id}_{thread.judge_id}_{len(messages)}"
        st.text_area(
            "Answer", key=f"studies.answer_{form}", max_chars=MAX_MESSAGE_CHARACTERS, height=80
        )
        st.button(
            "Send",
            key=f"studies.send_{form}",
            on_click=actions.answer_thread,
            args=(study_id, thread.item_id, thread.judge_id, len(messages)),
        )


def draw_judges(study: StudySummary) -> None:
    st.header("Model judges", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Judge",
            [*JUDGES, *_of_connections()],
            key="studies.judge",
            accept_new_options=True,
            help=plain(f"Choose or type a name. {describe_judges()}."),
        )
        st.number_input(
            "Budget, USD",
            min_value=0.01,
            value=None,
            key="studies.judge_budget",
            width=140,
            placeholder="no limit",
            help="What its answers may cost at most. It needs prices of the model.",
        )
        st.button(
            "Start judging", key="studies.start", on_click=actions.start_judge, args=(study.id,)
        )
    if "studies.job" in st.session_state:
        follow_job(st.session_state["studies.job"], key="studies.follow")
    draw_last_failure("judge", "studies.job", {"study_id": study.id})


def _of_connections() -> list[str]:
    """A judge for each model that a tested server has."""
    if not may_open(signed_in_user(), "curate"):
        return []
    return [
        f"openai:{model}" if row.id is None else f"connection:{row.name}:{model}"
        for row in connections.list_all(signed_in_user()).data
        for model in (row.tested.models if row.tested else ())
    ]


draw_heading(
    "Studies", "Items that people and models judge, seeing only instruction, query and passages."
)
dataset = chosen_dataset()
user = signed_in_user()
found = () if dataset is None else studies.list_all(user, dataset.name).data
runs = [] if dataset is None else studies.runs_to_sample(user, dataset.id)
if runs:
    is_new = not found or "run" in st.query_params
    with st.expander("New study", icon=":material/add:", expanded=is_new):
        draw_create(runs, found)
elif not found:
    draw_empty(
        "No run with finished groups yet.",
        "A study samples its items from the groups of a curation run, or takes texts from a file, "
        "with questions of its own.",
        view="curate",
        link="Curate",
        command="inf runs create NAME --provider offline\n"
        "inf studies create --items-file FILE --questions FILE --overlap 2",
    )
draw_drawer(
    "Study from a file",
    draw_file_form,
    key="studies.from_file",
    field="studies.file.name",
    icon=":material/upload_file:",
    is_open=not (runs or found),
)
if found:
    chosen = choose(
        "Study",
        found,
        key="studies.chosen",
        parameter="study",
        ident=lambda study: study.id,
        name=lambda study: f"study {study.id} · {study.name} · {study.dataset} · {study.status}",
    )
    draw_study(chosen)
    draw_judges(chosen)
