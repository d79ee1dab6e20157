"""Agreement: how far the judges of a study agree, people with people and people with models."""

import json

import streamlit as st

from analysis.agreement import Decision, agreement_report
from app.components.agreement import draw_report
from app.components.choice import choose
from app.components.disagreement import draw_disagreement
from app.components.page import draw_empty, draw_heading
from db.items import places_of, study_item_places
from db.judgments import judgment_frame
from db.store import open_store
from db.studies import list_studies
from db.words import SCENARIOS

LEAD = (
    "Cohen's kappa of every pair of judges, over the items both judged: 0 is chance, 1 is perfect."
)
with open_store().read() as session:
    found = list_studies(session)
if not found:
    draw_heading("Agreement", LEAD)
    draw_empty(
        "No study yet.",
        "Agreement is computed over the items that several judges answered in a study.",
        view="studies",
        link="Make a study",
        command="inf study create --dataset NAME --items 50 --overlap 3",
    )
    st.stop()
place = st.container()
study = choose(
    "Study",
    found,
    key="agreement.study",
    parameter="study",
    ident=lambda study: study.id,
    name=lambda study: f"study {study.id} · {study.name} · {study.dataset}",
)
with open_store().read() as session:
    rows = judgment_frame(session, study.id)
    places = study_item_places(session, study.id)
scenarios = st.pills(
    "Scenarios",
    SCENARIOS,
    selection_mode="multi",
    default=list(SCENARIOS),
    format_func=SCENARIOS.__getitem__,
    key="agreement.scenarios",
)
items = places_of(places, scenarios)
decisions = [
    Decision(row.item_id, row.judge, row.label, row.kind, row.simulated, row.offline)
    for row in rows
    if row.item_id in items
]
report = agreement_report(decisions)
with place:
    draw_heading(
        "Agreement",
        LEAD,
        offline=any(judge["offline"] for judge in report["judges"]),
        simulated=report["simulated"],
    )
if not rows:
    draw_empty(
        "Nobody has judged in this study yet.",
        "People judge on the page Judge; models are started on the page Studies.",
        view="judge",
        link="Judge",
        command=f"inf study judge --study {study.id} --judge offline:embedding",
    )
else:
    draw_report(report)
    draw_disagreement(decisions, places)
    st.download_button(
        "Numbers as JSON",
        json.dumps({"study_id": study.id, **report}, ensure_ascii=False),
        file_name=f"agreement-study-{study.id}.json",
        key="agreement.download",
    )
    st.code(f"inf analyze agreement --study {study.id} --json", language="bash")
