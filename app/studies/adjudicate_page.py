"""The Adjudicate page: items on which people disagree, every answer to them, and the decision.

Only this page shows the passages together with all answers. An adjudicator can no longer judge in
the study; the decision is stored as a separate judge.
"""

import streamlit as st

from app.kit.choice import choose, draw_pages, page_offset
from app.kit.page import draw_empty, draw_heading, draw_labels
from app.studies import actions
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from db.store.store import open_store
from db.study.adjudication import Disputed, disputed_ids, get_disputed
from db.study.studies import list_studies
from db.values import NONE

ROWS = 5
CHOICES = {"disputed": (False, False), "undecided": (True, False), "all": (False, True)}


def draw_answers(item: Disputed, label: str) -> None:
    """Who chose this candidate."""
    voices = [one for one in item.answers if one.choice == label]
    if voices:
        answers = [
            f"{one.judge}{' (simulated)' if one.simulated else ''}"
            + (f", {one.seconds:.1f} s" if one.seconds is not None else "")
            + (" (faster than the minimum time)" if one.too_fast else "")
            for one in voices
        ]
        st.caption(plain(f"chosen by {'; '.join(answers)}"))


def draw_choice(study_id: int, item: Disputed, label: str, text: str) -> None:
    is_decision = item.decision == label
    st.button(
        text,
        key=f"adjudicate.{item.item_id}_{label}",
        type="primary" if is_decision else "secondary",
        icon=":material/check:" if is_decision else None,
        on_click=actions.adjudicate,
        args=(study_id, item.item_id, label),
        width="stretch",
    )


def draw_item(study_id: int, item: Disputed) -> None:
    with st.container(border=True):
        draw_text(item.instruction, label="Instruction")
        draw_text(item.query, label="Query")
        for number, (label, text) in enumerate(item.candidates, 1):
            left, right = st.columns([2, 9], vertical_alignment="top")
            with left:
                draw_choice(study_id, item, label, f"{number}")
            with right:
                draw_text(text, label=label.replace("_", " "))
                draw_answers(item, label)
        left, right = st.columns([2, 9], vertical_alignment="center")
        with left:
            draw_choice(study_id, item, NONE, "None of them")
        with right:
            draw_answers(item, NONE)
        for one in (*item.answers, *item.skips):
            if one.note or one.flagged:
                kind = "flag" if one.flagged else "note"
                draw_text(one.note or "(no note)", label=f"{one.judge} · {kind}")
        st.text_input(
            "Note on the decision", item.decision_note, key=f"adjudicate.note_{item.item_id}"
        )
        if item.decision is not None:
            st.caption(plain(f"Decision by {item.decided_by}: {item.decision.replace('_', ' ')}"))
        draw_labels(simulated=any(one.simulated for one in item.answers))


draw_heading(
    "Adjudicate",
    "Decide items on which people disagree. The decision is stored as a separate judge.",
)
with open_store().read() as session:
    found = list_studies(session)
if not found:
    draw_empty(
        "No study yet.",
        "Disagreements between the judges of a study are decided here.",
        view="studies",
        link="Studies",
    )
    st.stop()
with st.container(horizontal=True, vertical_alignment="bottom"):
    chosen = choose(
        "Study",
        found,
        key="adjudicate.study",
        parameter="study",
        ident=lambda study: study.id,
        name=lambda study: f"study {study.id} · {study.name}",
    )
    shown = st.selectbox("Show", list(CHOICES), key="adjudicate.show", width=180)
open_only, include_agreed = CHOICES[shown or "disputed"]
with open_store().read() as session:
    ids = disputed_ids(session, chosen.id, open_only=open_only, include_agreed=include_agreed)
    start = page_offset("adjudicate.page", ROWS)
    items = [get_disputed(session, chosen.id, item_id) for item_id in ids[start : start + ROWS]]
st.caption(f"{counted(len(ids), 'item')}, most disputed first")
if not ids:
    draw_empty("No items to decide.", "People agree on every item judged so far.")
for item in items:
    draw_item(chosen.id, item)
draw_pages(len(ids), key="adjudicate.page", rows=ROWS)
