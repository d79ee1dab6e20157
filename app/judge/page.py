"""The Judge page: read an instruction and a query, pick the most relevant passage.

The browser never receives a passage's origin, a model's verdict or another judge's answer; each
judge sees the passages in an order of their own.
"""

import streamlit as st

from app.access.language import language_now, say
from app.access.permissions import NEEDS
from app.access.session_user import failures_shown, require_permission
from app.judge.card import draw_card
from app.kit.choice import choose
from app.kit.language import draw_language_choice, draw_page_language
from app.kit.outbox_card import draw_lifeline
from app.kit.page import draw_empty
from db.store.store import open_store
from db.study.studies import StudySummary, current_guideline, list_studies


def draw_guidelines(study_id: int) -> None:
    with open_store().read() as session:
        guideline = current_guideline(session, study_id)
    label = say("judge.guidelines", version=guideline.version)
    with st.popover(label, icon=":material/menu_book:"):
        st.markdown(guideline.body)


@st.fragment(key="judge-desk")
def draw_desk(study: StudySummary) -> None:
    with failures_shown(language_now()):
        draw_card(study.id, key=f"judge.card_{study.id}")


def draw_studies(studies: list[StudySummary]) -> None:
    """Title, study and guidelines in one row: the height belongs to the passages."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="judge-head"):
        st.title(say("judge.title"), anchor=False, width="content", help=say("judge.lead"))
        chosen = choose(
            say("judge.study"),
            studies,
            key="judge.study",
            parameter="study",
            ident=lambda study: study.id,
            name=lambda study: study.name,
        )
        draw_guidelines(chosen.id)
        draw_language_choice("/judge")
    with failures_shown(language_now()):
        draw_desk(chosen)
        draw_lifeline()


draw_page_language()
with open_store().read() as session:
    open_studies = list_studies(session, statuses=("open",))
if open_studies:
    draw_studies(open_studies)
else:
    st.title(say("judge.title"), anchor=False)
    with failures_shown(language_now()):
        is_curator = NEEDS["studies"].is_met(require_permission("judge"))
        draw_empty(
            say("judge.no_study"),
            say("judge.no_study_then"),
            view="studies" if is_curator else "",
            link="Studies",
            command="inf study create --dataset NAME --items 50 --overlap 3" if is_curator else "",
        )
    draw_language_choice("/judge")
