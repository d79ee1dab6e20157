"""The Studies page: create studies, follow their progress, start model judges."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.access.session_user import signed_in_user
from app.groups.run_label import run_name
from app.jobs_page.card import draw_last_failure, follow_job
from app.kit.choice import choose, take_from_url
from app.kit.fields import draw_fields
from app.kit.frame.dataset import chosen_dataset
from app.kit.menu import may_open
from app.kit.page import draw_drawer, draw_empty, draw_heading, draw_status
from app.operations import connections
from app.operations.judging import studies
from app.studies import actions
from app.studies.desk import draw_changes, draw_messages, draw_people
from app.studies.file_form import draw_file_form
from app.studies.sampled import sampled_sentence
from app.studies.sampling_form import draw_sampling
from app.studies.settings_form import (
    draw_invite,
    draw_rules,
    draw_way_to_judge,
    sample_gold_items,
)
from app.studies.threads import draw_threads
from app.studies.work_report import draw_report, draw_work
from app.text.numbers import counted
from app.text.plain import plain
from curation.judges.registry import describe_judges
from curation.judging.request import StudyPlan
from curation.rules.language import name_of
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
