"""The Judge page: read an instruction and a query, pick the most relevant passage.

The browser never receives a passage's origin, a model's verdict or another judge's answer; each
judge sees the passages in an order of their own.
"""

import streamlit as st

from app.access.permissions import NEEDS
from app.access.session_user import failures_shown, require_permission, show_notices
from app.judge import actions
from app.judge.card import draw_card
from app.judge.qualification_desk import draw_qualification, needs_qualification
from app.kit.choice import choose
from app.kit.outbox_card import draw_lifeline
from app.kit.page import draw_empty, draw_heading
from app.text.texts import draw_text
from db.assignment.progress import OwnProgress
from db.assignment.shown_items import ShownItem
from db.store.store import open_store
from db.study.studies import StudySummary, current_guideline, list_studies


def draw_guidelines(study_id: int) -> None:
    with open_store().read() as session:
        guideline = current_guideline(session, study_id)
    with st.popover(f"Guidelines (version {guideline.version})", icon=":material/menu_book:"):
        st.markdown(guideline.body)


def draw_progress(progress: OwnProgress) -> None:
    total = progress.done + progress.left
    text = f"{progress.done:,} answered, {progress.left:,} left for you"
    if progress.seconds_per_item is not None:
        text += f" · {progress.seconds_per_item:.0f} s per item"
    st.progress(progress.done / total if total else 1.0, text=text)


def draw_candidate(item: ShownItem, position: int, text: str) -> None:
    with st.container(border=True):
        left, right = st.columns([1, 11], vertical_alignment="center")
        left.button(
            f"{position + 1}",
            key=f"judge.pick_{item.token}_{position}",
            help=f"Passage {position + 1} is the most relevant",
            on_click=actions.pick,
            args=(item.study_id, item.token, position),
            width="stretch",
        )
        with right:
            draw_text(text)


def draw_question(item: ShownItem) -> None:
    with st.container(border=True, key="judge-question"):
        draw_text(item.instruction, label="Instruction")
        draw_text(item.query, label="Query")


def draw_item(item: ShownItem) -> None:
    draw_question(item)
    st.caption("Which passage answers the query as the instruction requires?")
    for position, text in enumerate(item.candidates):
        draw_candidate(item, position, text)
    with st.container(horizontal=True):
        st.button(
            "None of them",
            key=f"judge.none_{item.token}",
            on_click=actions.pick,
            args=(item.study_id, item.token, None),
        )
        st.button(
            "Skip",
            key=f"judge.skip_{item.token}",
            type="tertiary",
            help="Another judge gets the item; you will not see it again.",
            on_click=actions.skip,
            args=(item.study_id, item.token),
        )


@st.fragment(key="judge-desk")
def draw_card_desk(study: StudySummary) -> None:
    with failures_shown():
        draw_card(study.id, key=f"judge.card_{study.id}")


@st.fragment(key="judge-plain-desk")
def draw_plain_desk(study: StudySummary) -> None:
    with failures_shown():
        show_notices()
        item, progress = actions.take_next(study.id)
        draw_progress(progress)
        if item is not None:
            draw_item(item)
        elif progress.done:
            st.success(
                "Thank you. No items are left for you in this study.", icon=":material/done:"
            )
        else:
            draw_empty(
                "No items for you to judge.",
                "Every item has enough judges, or you have already seen its group.",
            )


def draw_study(study: StudySummary) -> None:
    if st.session_state.get("judge.plain"):
        if needs_qualification(study.id):
            draw_qualification(study.id, draw_question)
        else:
            draw_plain_desk(study)
    else:
        draw_card_desk(study)
        draw_lifeline()
    st.toggle(
        "Plain page",
        key="judge.plain",
        help="The same items without the card, for browsers in which the card does not work.",
    )


draw_heading("Judge", "Read the instruction and the query, then pick the most relevant passage.")
with open_store().read() as session:
    open_studies = list_studies(session, statuses=("open",))
if not open_studies:
    with failures_shown():
        is_curator = NEEDS["studies"].is_met(require_permission("judge"))
        draw_empty(
            "No study is open.",
            "When a curator creates a study from a run, its items appear here.",
            view="studies" if is_curator else "",
            link="Studies",
            command="inf study create --dataset NAME --items 50 --overlap 3" if is_curator else "",
        )
else:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = choose(
            "Study",
            open_studies,
            key="judge.study",
            parameter="study",
            ident=lambda study: study.id,
            name=lambda study: study.name,
        )
        draw_guidelines(chosen.id)
    with failures_shown():
        draw_study(chosen)
