"""The Agreement page: how much the judges of a study agree, people and models."""

import json
from collections.abc import Sequence
from typing import Any

import streamlit as st

from analysis.agreement.agreement import agreement_report
from analysis.agreement.judgment_filter import JudgmentFilter, chosen_rows, decisions_of
from analysis.agreement.over_time import agreement_over_time
from app.agreement.actions import read_hidden, study_to_show
from app.agreement.filters import draw_filters
from app.agreement.report import draw_report
from app.agreement.tabs import Results, draw_result_tabs
from app.agreement.verdict import draw_verdict
from app.kit.analysis_command import agreement_command
from app.kit.choice import choose
from app.kit.figure import Origin
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_heading, draw_labels
from app.kit.pulse import follow
from app.text.numbers import counted
from curation.judging.about_run import about_run
from curation.judging.independence import validator_sentence
from curation.judging.scope import of_filtered, study_scope
from db.store.store import open_store
from db.study.items import study_item_places
from db.study.judgments import JudgmentRow, JudgmentState, judgment_frame, judgment_state
from db.study.run_items import estimate_state
from db.study.studies import list_studies

LEAD = (
    "Cohen's kappa of every pair of judges, over the items both judged: 0 is chance, 1 is perfect."
)


def read_state(study_id: int) -> JudgmentState:
    with open_store().read() as session:
        return judgment_state(session, study_id)


def state_text(state: JudgmentState) -> str:
    last = f", latest at {state.last_at:%Y-%m-%d %H:%M:%S} UTC" if state.last_at else ""
    return f"{counted(state.judgments, 'judgment')}{last} · updates while people judge"


@st.cache_data(max_entries=8, show_spinner="Computing posterior draws …")
def computed(_rows: Sequence[JudgmentRow], version: tuple[object, ...]) -> dict[str, Any]:
    """The report and its windows; `version` identifies store, study, judgments and filter."""
    return {"report": agreement_report(decisions_of(_rows)), "windows": agreement_over_time(_rows)}


@st.cache_data(max_entries=8, show_spinner="Reading the run …")
def estimates(study_id: int, version: tuple[object, ...]) -> dict[str, Any]:
    """What the study says about its run, of all judgments whatever the filters."""
    with open_store().read() as session:
        return about_run(session, study_id)


dataset = chosen_dataset()
heading = draw_heading("Agreement", LEAD)
with open_store().read() as session:
    found = [] if dataset is None else list_studies(session, dataset_id=dataset.id)
if not found:
    draw_empty(
        "No study yet.",
        "Agreement is computed over the items of a study that several judges answered.",
        view="studies",
        link="Create a study",
        command="inf study create --dataset NAME --items 50 --overlap 3",
    )
    st.stop()
study = choose(
    "Study",
    found,
    key="agreement.study",
    parameter="study",
    ident=lambda study: study.id,
    name=lambda study: f"study {study.id} · {study.name} · {study.dataset}",
    default=lambda: study_to_show(found),
)
state = read_state(study.id)
with open_store().read() as session:
    every = judgment_frame(session, study.id)
    places = study_item_places(session, study.id)
    scope = study_scope(session, study.id)
    circular = validator_sentence(session, study.id, {row.judge for row in every})
hidden, from_figures = read_hidden(study.id)
judged_and_hidden = hidden & {row.item_id for row in every}
left_out = frozenset(judged_and_hidden if from_figures else ())
top = st.container()
with st.expander("Filters", icon=":material/filter_alt:"):
    chosen = draw_filters(every, places)
scope = scope if chosen == JudgmentFilter() else of_filtered(scope)
rows = [row for row in chosen_rows(every, places, chosen) if row.item_id not in left_out]
version = (str(open_store().engine.url), study.id, state, left_out, chosen)
made = computed(rows, version)
report = made["report"]
with heading:
    draw_labels(
        offline=any(judge["offline"] for judge in report["judges"]),
        simulated=report["simulated"],
    )
with top:
    follow(lambda: read_state(study.id), state, label=state_text)
    if judged_and_hidden:
        number = len(judged_and_hidden)
        st.caption(
            f"You may still judge {counted(number, 'item')} of this study: until it is closed, "
            + (
                "the figures leave them out."
                if from_figures
                else "the figures count them, and the lists do not show them."
            )
        )
if not rows and left_out:
    with top:
        draw_empty(
            "Every judged item is hidden from you.",
            "You judge in this study: figures over its items would show whether your answers are "
            "right. Close the study, or remove a filter.",
            view="studies",
            link="Studies",
        )
elif not rows:
    is_empty = not every
    with top:
        draw_empty(
            "No judgments in this study yet." if is_empty else "No judgment matches these filters.",
            "People judge on the Judge page; model judges are started on the Studies page."
            if is_empty
            else "Remove a filter.",
            view="judge",
            link="Judge",
            command=f"inf study judge --study {study.id} --judge offline:embedding",
        )
else:
    command = agreement_command(study.id, chosen.options())
    origin = Origin(
        f"{len(rows):,} judgments of study {study.id}, latest no. {state.last_id}",
        state.last_at,
        command,
    )
    with open_store().read() as session:
        estimated = estimate_state(session, study.id)
    has_estimates = study.run_id is not None and not left_out
    about = estimates(study.id, (*version[:4], estimated)) if has_estimates else None
    compared = any(pair["items"] for pair in report["pairs"])
    with top:
        draw_verdict(report, about, scope, circular, compared=compared)
        if compared:
            draw_report(report, origin)
        else:
            draw_empty(
                "No item has judgments of two judges yet.",
                "Agreement compares judges on the same items: have another person judge them, or "
                "start a model judge on the Studies page.",
                view="judge",
                link="Judge",
                command=f"inf study judge --study {study.id} --judge offline:embedding",
            )
    draw_result_tabs(
        Results(
            study.id,
            rows,
            report,
            made["windows"],
            about,
            places,
            hidden,
            left_out,
            command,
            origin,
            (*version[:4], estimated),
        )
    )
    st.download_button(
        "Download as JSON",
        json.dumps({"study_id": study.id, **report}, ensure_ascii=False),
        file_name=f"agreement-study-{study.id}.json",
        key="agreement.download",
    )
    st.code(command, language=None, wrap_lines=True)
