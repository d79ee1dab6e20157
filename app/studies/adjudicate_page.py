"""The Adjudicate page: items on which people disagree, every answer to them, and the decision.

Items come blind first: passages without roles, people's choices without names, models' not at all.
What is revealed on request is recorded. An adjudicator is no longer given items seen here; the
decision is stored as a separate judge.
"""

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.choice import choose, draw_pages, page_offset
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_hand_off, draw_heading, draw_labels
from app.operations.judging import judgments, studies
from app.studies import actions
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from db.question import Shown
from db.study.blind_adjudication import BlindItem
from db.study.studies import StudySummary
from db.values import SEVERAL

ROWS = 5
CHOICES = {"disputed": (False, False), "undecided": (True, False), "all": (False, True)}


def draw_votes(item: BlindItem, option: Shown) -> None:
    """How many people chose this; after a reveal, who did."""
    if item.revealed is None:
        if votes := item.votes[item.options.index(option)]:
            st.caption(f"chosen by {counted(votes, 'person', 'people')}")
        return
    label = item.question.chosen(item.labels, option)
    answers = [
        f"{one.judge}{' (simulated)' if one.simulated else ''}"
        + (f", {one.seconds:.1f} s" if one.seconds is not None else "")
        + (" (faster than the minimum time)" if one.too_fast else "")
        for one in item.revealed.answers
        if one.choice == label
    ]
    if answers:
        st.caption(plain(f"chosen by {'; '.join(answers)}"))


def draw_choice(study_id: int, item: BlindItem, option: Shown, text: str) -> None:
    place = item.options.index(option)
    is_decision = item.decided == place
    st.button(
        text,
        key=f"adjudicate.{item.token}_{place}",
        type="primary" if is_decision else "secondary",
        icon=":material/check:" if is_decision else None,
        on_click=actions.adjudicate,
        args=(study_id, item.token, option),
        width="stretch",
    )


def option_text(item: BlindItem, option: Shown) -> str:
    """What the button of an answer that is no passage says."""
    if option is None:
        return "None of them"
    text = {SEVERAL: "Several fit"}.get(str(option), str(option).capitalize())
    meaning = item.question.labels.get(str(option))
    return plain(f"{text}: {meaning}") if meaning else text


def question_text(item: BlindItem) -> str:
    """The question, and about which text."""
    about = f"passage {item.about + 1}" if isinstance(item.about, int) else f"the {item.about}"
    return item.question.text if item.about is None else f"{item.question.text} ({about})"


def draw_remarks(item: BlindItem) -> None:
    """Notes and flags of people; after a reveal, with their names."""
    if item.revealed is None:
        for note, flagged, reason in item.remarks:
            draw_text(note or "(no note)", label=remark_label(flagged, reason))
        return
    for one in (*item.revealed.answers, *item.revealed.skips):
        if one.note or one.flagged or one.reason:
            label = remark_label(one.flagged, one.reason, skipped=one.choice == "skipped")
            draw_text(one.note or "(no note)", label=f"{one.judge} · {label}")


def draw_threads(item: BlindItem) -> None:
    """Threads of a closed study, with the places here of the passages on the judge's screen."""
    for thread in item.threads:
        with st.expander(
            f"Thread of a judge: {counted(len(thread.messages), 'message')}",
            icon=":material/forum:",
        ):
            here = ", ".join(f"{n} is {place + 1}" for n, place in enumerate(thread.places, 1))
            st.caption(f"Passages on the judge's screen, and their numbers here: {here}.")
            for who, body in thread.messages:
                draw_text(body, label=who)


def remark_label(flagged: bool, reason: str, *, skipped: bool = False) -> str:
    """`flag: bad text`, `skipped: unclear`, `note`."""
    kind = "skipped" if skipped else "flag" if flagged else "note"
    return f"{kind}: {reason.replace('_', ' ')}" if reason else kind


def draw_reveal(study_id: int, item: BlindItem) -> None:
    """The reveal button; after it, the decision with its adjudicator."""
    if item.revealed is None:
        if item.decided_by_another:
            st.caption("Another adjudicator has decided this item.")
        st.button(
            "Reveal roles and names",
            key=f"adjudicate.reveal_{item.token}",
            type="tertiary",
            icon=":material/visibility:",
            help="Also what models chose. It is recorded, with your decision too, and you are not "
            "given items of this group to judge.",
            on_click=actions.reveal,
            args=(study_id, item.token),
        )
        return
    if item.revealed.decision is not None:
        decision = item.revealed.decision.replace("_", " ")
        st.caption(plain(f"Decision by {item.revealed.decided_by}: {decision}"))
    draw_labels(simulated=any(one.simulated for one in item.revealed.answers))


def draw_item(study_id: int, item: BlindItem) -> None:
    with st.container(border=True):
        draw_text(item.instruction, label="Instruction")
        draw_text(item.query, label="Query")
        for position, text in enumerate(item.candidates):
            role = item.labels[position].replace("_", " ") if item.labels else ""
            if position not in item.options:
                draw_text(text, label=f"Passage {position + 1}{f' · {role}' if role else ''}")
                continue
            left, right = st.columns([2, 9], vertical_alignment="top")
            with left:
                draw_choice(study_id, item, position, f"{position + 1}")
            with right:
                draw_text(text, label=role)
                draw_votes(item, position)
        if item.question.text:
            draw_text(question_text(item), label="Question")
        for option in item.options:
            if isinstance(option, int):
                continue
            left, right = st.columns([2, 9], vertical_alignment="center")
            with left:
                draw_choice(study_id, item, option, option_text(item, option))
            with right:
                draw_votes(item, option)
        draw_remarks(item)
        draw_threads(item)
        st.text_input("Note on the decision", item.note, key=f"adjudicate.note_{item.token}")
        draw_reveal(study_id, item)


def draw_nothing(study: StudySummary) -> None:
    """Why there is no item to decide, and what comes first."""
    if study.done:
        draw_empty("No items to decide.", "So far, no two people chose differently for an item.")
        return
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
    "Decide items on which people disagree. The decision is kept next to their answers, which do "
    "not change.",
)
dataset = chosen_dataset()
user = signed_in_user()
right = judgments.ADJUDICATE
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
open_only, include_agreed = CHOICES[shown or "disputed"]
items, total = judgments.to_adjudicate(
    user,
    chosen.id,
    open_only=open_only,
    include_agreed=include_agreed,
    start=page_offset("adjudicate.page", ROWS),
    count=ROWS,
)
if total:
    st.caption(f"{counted(total, 'item')}, most disputed first")
else:
    draw_nothing(chosen)
for item in items:
    draw_item(chosen.id, item)
draw_pages(total, key="adjudicate.page", rows=ROWS)
