"""The Adjudicate page: items on which people disagree, decided by keys on the judging card.

Items come blind: passages without roles, people's choices as counts, models' not at all. What is
revealed on request is recorded. An adjudicator is no longer given items seen here; the decision is
stored as a separate judge.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from analysis.figures.numbers import Cells
from app.access.language import language_now
from app.access.session_user import cookie_holder, failures_shown, signed_in_user
from app.judge.actions import DWELL_MS
from app.judge.card import BEFORE
from app.kit.choice import choose
from app.kit.frame.dataset import chosen_dataset
from app.kit.outbox_card import (
    before_in,
    card_component,
    draw_lifeline,
    draw_outbox_card,
    list_in,
    outbox_scope,
)
from app.kit.page import draw_empty, draw_hand_off, draw_heading, draw_table
from app.operations.judging import adjudication, studies
from app.operations.judging.disagreements import DisagreementRow, disagreements
from app.text.languages import error_text
from app.text.numbers import counted
from curation.judging.request import DisagreementList
from db.study.studies import StudySummary

CARD = card_component(
    "adjudication",
    "studies/adjudication",
    shared=("kit/sign_in.js", "judge/card.js"),
    styles=("kit/sign_in.css", "judge/card.css"),
    before=BEFORE,
    runs="AdjudicationCard",
)
CHOICES = {"disputed": False, "all": True}
EVERY = "all"
ROWS = 50
HEIGHT = 400


@st.fragment(key="adjudicate-desk")
def draw_desk(study: StudySummary, first: int | None, include_agreed: bool) -> None:
    """The card: a decision redraws it alone."""

    def data(outbox: Mapping[str, Any]) -> dict[str, Any]:
        card = adjudication.decide_and_show(
            cookie_holder(),
            study.id,
            list_in(outbox, "events"),
            before=before_in(outbox),
            aside=list_in(outbox, "aside"),
            first=first,
            include_agreed=include_agreed,
            reword=partial(error_text, language_now()),
        )
        scope = outbox_scope("adjudication", card.judge.id, card.judge.created_at)
        more = {"language": language_now(), "dwell_ms": DWELL_MS}
        return card.as_json() | more | {"scope": scope, "formerly": scope}

    with failures_shown(language_now()):
        draw_outbox_card(CARD, data, key=f"adjudicate.card_{study.id}")


@st.fragment(key="adjudicate-list")
def draw_disagreements(study: StudySummary) -> None:
    """The first items of a question, a kind and at least N people; a link opens the card."""
    st.header("Items by disagreement", anchor=False)

    def key(name: str) -> str:
        return f"disagreements.{name}_{study.id}"

    given = {name: st.session_state.get(key(name)) for name in ("question", "kind", "judges")}
    chosen = {name: value for name, value in given.items() if value not in (None, EVERY)}
    wanted = DisagreementList.read({"study_id": study.id, "limit": ROWS, **chosen})
    found = disagreements(signed_in_user(), wanted)
    if not found.total and not chosen:
        st.caption("No item to list: nobody disagrees, or you may still judge these items.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for label, options in (("Question", found.questions), ("Kind", found.kinds)):
            if len(options) > 1:
                st.selectbox(label, [EVERY, *options], key=key(label.lower()), width=220)
        st.number_input("People, at least", 1, key=key("judges"), width=160)
    shown = f"The first {ROWS} of {counted(found.total, 'item')}." if found.next else ""
    hidden = any(not row.is_shown for row in found.data)
    st.caption(
        f"{shown} Answers and comments of an item come here once the card has shown it to you."
        if hidden
        else shown or counted(found.total, "item")
    )
    draw_table(
        [listed(study, each, with_kind=bool(found.kinds)) for each in found.data],
        key="disagreements.items",
        height=min(HEIGHT, 36 * (len(found.data) + 1)),
        column_config={
            "Open": st.column_config.LinkColumn(
                display_text=r"item=(\d+)", width="small", help="Decide it on the card"
            ),
            "Disagreement": st.column_config.NumberColumn(format="percent"),
            "Comments": st.column_config.TextColumn(width="medium"),
        },
    )


def listed(study: StudySummary, each: DisagreementRow, *, with_kind: bool) -> Cells:
    return {
        "Open": f"adjudicate?study={study.id}&item={each.item_id}",
        "Disagreement": each.disagreement,
        "People": each.judges,
        "Answers": ", ".join(
            f"{count} × {answer.replace('_', ' ')}" for answer, count in each.answers.items()
        ),
        "Decided": each.is_decided,
        "Question": each.question,
        **({"Kind": each.kind} if with_kind else {}),
        "Comments": " / ".join(each.comments) or (f"{each.n_comments}" if each.n_comments else ""),
        "Query": each.query,
    }


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
by_id = {study.id: study for study in found}
with st.container(horizontal=True, vertical_alignment="bottom"):
    chosen = choose(
        "Study",
        found,
        key="adjudicate.study",
        parameter="study",
        ident=lambda study: study.id,
        name=lambda study: f"study {study.id} · {study.name}",
        default=lambda: by_id[adjudication.study_to_show(user, list(by_id))],
    )
    shown = st.selectbox("Show", list(CHOICES), key="adjudicate.show", width=180)
item = st.query_params.get("item", "")
if not item and not adjudication.is_judged(user, chosen.id):
    draw_nothing(chosen)
    st.stop()
draw_desk(chosen, int(item) if item.isdecimal() else None, CHOICES[shown or "disputed"])
draw_lifeline()
draw_disagreements(chosen)
