"""The Judge page: read an instruction and a query, pick the most relevant passage.

The browser never receives a passage's origin, a model's verdict or another judge's answer; each
judge sees the passages in an order of their own.
"""

import math
import time
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
from app.operations.judging import answers, studies
from app.operations.judging.answers import OwnDesk
from app.operations.judging.card import acknowledge
from app.text.languages import error_text
from app.text.texts import changed_lines, draw_text
from db.errors import InfError
from db.study.examples import examples_in
from db.study.studies import StudySummary
from db.tables import Guideline

CONFIRMED = "judge.confirmed_guidelines"
DESK = "judge.own_desk"
DESK_SECONDS = 30.0
MAX_UNREAD, MAX_MESSAGES = 3, 20  # drawn above the card, and in its popover


def draw_guidelines(study_id: int) -> Guideline:
    """Draw the guidelines of now, and return them: a newer version may come any moment."""
    guideline = studies.guideline(signed_in_user(), study_id, right="judge")
    label = say("judge.guidelines", version=guideline.version)
    with st.popover(label, icon=":material/menu_book:"):
        st.markdown(guideline.body)
    return guideline


def draw_new_guidelines(study_id: int) -> None:
    """The guidelines of now in full, to be acknowledged before the next item."""
    guideline = studies.guideline(signed_in_user(), study_id, right="judge")
    before = answers.guidelines_read(signed_in_user(), study_id)
    which = "first" if before is None else "new"
    with st.container(border=True, key="judge-new-guidelines"):
        st.header(say(f"judge.{which}_guidelines", version=guideline.version), anchor=False)
        st.caption(say(f"judge.{which}_guidelines_lead"))
        if before is not None and before.version < guideline.version:
            st.caption(say("judge.changed_since", version=before.version))
            lines = changed_lines(before.body, guideline.body)
            st.code("\n".join(lines), language="diff", wrap_lines=True)
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


def own_desk(study_id: int) -> OwnDesk:
    """What the curators set and wrote: read again after half a minute, not after every answer."""
    found: OwnDesk
    read_at, found = st.session_state.get(f"{DESK}_{study_id}", (-math.inf, OwnDesk()))
    if time.monotonic() - read_at > DESK_SECONDS:
        found = answers.desk(signed_in_user(), study_id)
        st.session_state[f"{DESK}_{study_id}"] = (time.monotonic(), found)
    return found


def draw_messages(study_id: int) -> None:
    """New messages of the curators, above the card, which goes on meanwhile."""
    unread = own_desk(study_id).unread
    if not unread:
        return
    with st.container(border=True, key="judge-messages"):
        for one in unread[:MAX_UNREAD]:
            draw_text(one.body, label=one.written_by)
        st.button(
            say("judge.message_read"),
            key=f"judge.message_read_{study_id}",
            on_click=read_messages,
            args=(study_id, unread[:MAX_UNREAD][-1].id),
        )


def read_messages(study_id: int, up_to: int) -> None:
    st.session_state.pop(f"{DESK}_{study_id}", None)
    try:
        answers.read_messages(cookie_holder(), study_id, up_to)
    except InfError as error:
        notify(error_text(language_now(), error), kind="error")


def draw_own_desk(study_id: int) -> None:
    """The judge's share and due date, and all messages to them, where there are any."""
    found = own_desk(study_id)
    if found.quota is not None:
        st.badge(say("judge.quota", quota=found.quota), color="blue")
    if found.due_on is not None:
        st.badge(say("judge.due", date=found.due_on.isoformat()), color="blue")
    if found.messages:
        label = say("judge.messages", count=len(found.messages))
        with st.popover(label, icon=":material/campaign:"):
            for one in found.messages[:MAX_MESSAGES]:
                draw_text(one.body, label=f"{one.written_by}, {one.created_at:%Y-%m-%d}")


def draw_way_out() -> None:
    """Back to the platform that sent the person, if one did, with the code that they earned."""
    study_id = answers.recruited_into(signed_in_user())
    if study_id is not None:
        st.link_button(say("judge.way_out"), f"/recruited/{study_id}/end", type="primary")


@st.fragment(key="judge-desk")
def draw_desk(study: StudySummary, guidelines: int) -> None:
    """The card; `guidelines`: the version in the page's head, which a fragment leaves as it is."""
    if st.session_state.pop(CONFIRMED, False):
        st.rerun()  # the page, whose head names the version
    above = st.container()
    with failures_shown(language_now()):
        with above:
            draw_messages(study.id)
        shown = draw_card(study.id, key=f"judge.card_{study.id}", guidelines=guidelines)
        with above:
            if shown.get("unread"):
                draw_new_guidelines(study.id)
            elif shown.get("finished"):
                draw_way_out()


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
            language=language_now(),
        )
        guidelines = draw_guidelines(chosen.id)
        draw_own_desk(chosen.id)
        draw_language_choice("/judge")
    with failures_shown(language_now()):
        draw_desk(chosen, guidelines.version)
        draw_lifeline()
        if examples := examples_in(guidelines.body):
            with st.expander(say("judge.examples"), icon=":material/lightbulb:"):
                st.markdown(examples)


draw_page_language()
user = signed_in_user()
open_studies = studies.list_all(user, statuses=("open",), right="judge").data
if open_studies:
    draw_studies(open_studies)
else:
    st.title(say("judge.title"), anchor=False)
    with failures_shown(language_now()):
        draw_way_out()  # the last answer may have closed their study
        is_curator = NEEDS["studies"].is_met(user)
        draw_empty(
            say("judge.no_study"),
            say("judge.no_study_then"),
            view="studies" if is_curator else "",
            link="Studies",
            command="inf studies create NAME --items 50 --overlap 3" if is_curator else "",
        )
    draw_language_choice("/judge")
