"""The Judge page: read an instruction and a query, pick the most relevant passage.

The browser never receives a passage's origin, a model's verdict or another judge's answer; each
judge sees the passages in an order of their own.
"""

from collections.abc import Sequence

import streamlit as st

from app.access.language import language_now, say
from app.access.permissions import NEEDS
from app.access.session_user import cookie_holder, failures_shown, notify, signed_in_user
from app.judge.card import draw_card
from app.kit.choice import choose
from app.kit.language import draw_language_choice, draw_page_language
from app.kit.outbox_card import draw_lifeline
from app.kit.page import draw_empty
from app.operations.judging import studies
from app.operations.judging.card import acknowledge
from app.text.languages import error_text
from db.errors import InfError
from db.study.studies import StudySummary

CONFIRMED = "judge.confirmed_guidelines"


def draw_guidelines(study_id: int) -> int:
    """Draw the guidelines of now, and return their version: a newer one may come any moment."""
    guideline = studies.guideline(signed_in_user(), study_id, right="judge")
    label = say("judge.guidelines", version=guideline.version)
    with st.popover(label, icon=":material/menu_book:"):
        st.markdown(guideline.body)
    return guideline.version


def draw_new_guidelines(study_id: int) -> None:
    """The guidelines of now in full, to be acknowledged before the next item."""
    guideline = studies.guideline(signed_in_user(), study_id, right="judge")
    with st.container(border=True, key="judge-new-guidelines"):
        st.subheader(say("judge.new_guidelines", version=guideline.version), anchor=False)
        st.caption(say("judge.new_guidelines_lead"))
        st.markdown(guideline.body)
        st.button(
            say("judge.have_read"),
            key=f"judge.have_read_{study_id}_{guideline.version}",
            type="primary",
            on_click=confirm_guidelines,
            args=(study_id, guideline.version),
        )


def confirm_guidelines(study_id: int, version: int) -> None:
    try:
        acknowledge(cookie_holder(), study_id, version)
        st.session_state[CONFIRMED] = True
    except InfError as error:
        notify(error_text(language_now(), error), kind="error")


@st.fragment(key="judge-desk")
def draw_desk(study: StudySummary, guidelines: int) -> None:
    """The card; `guidelines`: the version in the page's head, which a fragment leaves as it is."""
    if st.session_state.pop(CONFIRMED, False):
        st.rerun()  # the page, whose head names the version
    above = st.container()
    with failures_shown(language_now()):
        if draw_card(study.id, key=f"judge.card_{study.id}", guidelines=guidelines):
            with above:
                draw_new_guidelines(study.id)


def draw_studies(found: Sequence[StudySummary]) -> None:
    """Title, study and guidelines in one row: the height belongs to the passages."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="judge-head"):
        st.title(say("judge.title"), anchor=False, width="content", help=say("judge.lead"))
        chosen = choose(
            say("judge.study"),
            found,
            key="judge.study",
            parameter="study",
            ident=lambda study: study.id,
            name=lambda study: study.name,
        )
        guidelines = draw_guidelines(chosen.id)
        draw_language_choice("/judge")
    with failures_shown(language_now()):
        draw_desk(chosen, guidelines)
        draw_lifeline()


draw_page_language()
user = signed_in_user()
open_studies = studies.list_all(user, statuses=("open",), right="judge").data
if open_studies:
    draw_studies(open_studies)
else:
    st.title(say("judge.title"), anchor=False)
    with failures_shown(language_now()):
        is_curator = NEEDS["studies"].is_met(user)
        draw_empty(
            say("judge.no_study"),
            say("judge.no_study_then"),
            view="studies" if is_curator else "",
            link="Studies",
            command="inf studies create NAME --items 50 --overlap 3" if is_curator else "",
        )
    draw_language_choice("/judge")
