"""The Adjudicate page: items on which people disagree, decided by keys on the judging card.

Items come blind: passages without roles, people's choices as counts, models' not at all. What is
revealed on request is recorded. An adjudicator is no longer given items seen here; the decision is
stored as a separate judge.
"""

import streamlit as st

from app.access.language import language_now
from app.access.session_user import failures_shown, signed_in_user
from app.kit.choice import choose
from app.kit.frame.dataset import chosen_dataset
from app.kit.outbox_card import draw_lifeline
from app.kit.page import draw_empty, draw_hand_off, draw_heading
from app.operations.judging import adjudication, studies
from app.studies.adjudication import draw_card
from app.studies.disagreements import draw_disagreements
from db.study.studies import StudySummary

CHOICES = {"disputed": False, "all": True}


@st.fragment(key="adjudicate-desk")
def draw_desk(study: StudySummary, first: int | None, include_agreed: bool) -> None:
    """The card: a decision redraws it alone."""
    key = f"adjudicate.card_{study.id}"
    with failures_shown(language_now()):
        draw_card(study.id, key=key, first=first, include_agreed=include_agreed)


def draw_nothing(study: StudySummary) -> None:
    """Why there is no item to decide, and what comes first."""
    what = f"No person has judged in study {study.id} yet."
    then = "An item is decided here once two people chose differently."
    if study.overlap < 2:
        then = "Each item is judged by one person here: two are needed to disagree."
    if study.status == "open":
        draw_empty(what, then)
        draw_hand_off("judge", "Judge its items", study=study.id)
    else:
        draw_empty(what, then, view="studies", link="Studies")


draw_heading(
    "Adjudicate",
    "Decide items on which people disagree, by key. The decision is kept next to their answers, "
    "which do not change.",
)
dataset = chosen_dataset()
user = signed_in_user()
right = adjudication.RIGHT
found = () if dataset is None else studies.list_all(user, dataset.name, right=right).data
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
item = st.query_params.get("item", "")
if not chosen.done and not item:
    draw_nothing(chosen)
    st.stop()
draw_desk(chosen, int(item) if item.isdecimal() else None, CHOICES[shown or "disputed"])
draw_lifeline()
draw_disagreements(chosen)
