"""Items by disagreement of people, as a table under the adjudicator's card."""

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.page import draw_table
from app.operations.judging.disagreements import DisagreementRow, disagreements
from app.text.numbers import counted
from curation.judging.request import DisagreementList
from db.study.studies import StudySummary

EVERY = "all"
ROWS = 50
HEIGHT = 400


def draw_disagreements(study: StudySummary) -> None:
    """The first items of a question, a kind and at least N people; a link opens the card."""
    st.header("Items by disagreement", anchor=False)
    user = signed_in_user()
    found = disagreements(user, DisagreementList(study_id=study.id, limit=ROWS))
    if not found.total:
        st.caption("No item to list: nobody disagrees, or you may still judge these items.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        question = _choice("Question", found.questions, "disagreements.question")
        kind = _choice("Kind", found.kinds, "disagreements.kind")
        people = st.number_input("People, at least", 1, key="disagreements.judges", width=160)
    wanted = {"study_id": study.id, "question": question, "kind": kind, "judges": people}
    if question or kind or people > 1:
        found = disagreements(user, DisagreementList.read({**wanted, "limit": ROWS}))
    shown = f"The first {ROWS} of {counted(found.total, 'item')}." if found.next else ""
    hidden = any(not row.is_shown for row in found.data)
    st.caption(
        f"{shown} Answers and comments of an item come here once the card has shown it to you."
        if hidden
        else shown or counted(found.total, "item")
    )
    draw_table(
        [_row(study, each) for each in found.data],
        key="disagreements.items",
        height=min(HEIGHT, 36 * (len(found.data) + 1)),
        column_config={
            "Open": st.column_config.LinkColumn(
                display_text=r"item=(\d+)", width="small", help="Decide it on the card"
            ),
            "Disagreement": st.column_config.NumberColumn(format="percent"),
        },
    )


def _choice(label: str, options: tuple[str, ...], key: str) -> str:
    """The chosen one of several, or "" for all: drawn only where there is a choice."""
    if len(options) < 2:
        return ""
    chosen = st.selectbox(label, [EVERY, *options], key=key, width=220)
    return "" if chosen in (None, EVERY) else chosen


def _row(study: StudySummary, each: DisagreementRow) -> dict[str, object]:
    return {
        "Open": f"adjudicate?study={study.id}&item={each.item_id}",
        "Disagreement": each.disagreement,
        "People": each.judges,
        "Answers": ", ".join(f"{count} × {answer}" for answer, count in each.answers.items()),
        "Decided": each.is_decided,
        "Question": each.question,
        "Kind": each.kind,
        "Comments": " / ".join(each.comments) or (f"{each.n_comments}" if each.n_comments else ""),
        "Query": each.query,
    }
