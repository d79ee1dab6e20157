"""A group in full: triplets side by side with changes marked, verdict, choices and calls."""

import streamlit as st

from analysis.figures.numbers import Cells
from app.access.session_user import signed_in_user
from app.kit.page import draw_labels, draw_status, draw_table
from app.operations import groups
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from curation.recipe.drop_reasons import reason_text
from db.run.group_detail import GroupJudgment, GroupShown, ListedTextRow
from db.shape import Shape


def draw_group(group: GroupShown) -> None:
    """Draw a group: verdict, review, triplets, and for those who may see it, choices and calls."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Group {group.id}** · {plain(group.name)}", width="content")
        if group.verdict:
            draw_status(group.verdict)
        if group.drop_reason:
            st.caption(plain(reason_text(group.drop_reason)), width="content")
        if group.review is not None:
            draw_status(group.review.action)
            st.caption(
                plain(f"by {group.review.reviewed_by}, {group.review.created_at:%Y-%m-%d %H:%M}"),
                width="content",
            )
        draw_labels(offline=group.offline)
    if group.drop_detail:
        draw_text(group.drop_detail, label="Drop reason")
    if group.review is not None and group.review.reason:
        draw_text(group.review.reason, label="Reviewer's reason")
    draw_triplets(group)
    draw_listed(group)
    draw_judgments(group)
    draw_calls(group)


def draw_triplets(group: GroupShown) -> None:
    """Draw the triplets side by side; differences from the first one are marked."""
    if not group.triplets:
        for text, found in zip(
            group.shape.first.texts[1:], (group.query, group.passage), strict=True
        ):
            draw_text(found, label=text.label, meaning=text.meaning)
        st.caption("The pair was dropped before any text was generated.")
        return
    shape = group.shape
    first = group.triplets.get(shape.first.role)
    for (role, scenario), column in zip(
        shape.scenarios.items(), st.columns(len(shape.roles)), strict=True
    ):
        with column.container(border=True):
            st.markdown(f"**{plain(scenario.title)}**  \n:small[{plain(scenario.label)}]")
            texts = group.triplets.get(role)
            if texts is None:
                st.caption("Not generated.")
                continue
            other = None if scenario is shape.first else first
            for text in scenario.texts:
                draw_text(
                    getattr(texts, text.field),
                    label=text.label,
                    meaning=text.meaning,
                    unlike=getattr(other, text.field) if other is not None else None,
                )


def draw_listed(group: GroupShown) -> None:
    """Draw the texts of slots that take several."""
    for text in group.lists:
        of = group.shape.slots[text.name.partition("[")[0]]
        draw_text(text.text, label=listed_label(text), meaning=of.meaning)


def listed_label(text: ListedTextRow) -> str:
    """A text of a slot that takes several, and why it is none of the group's."""
    reason = text.dropped_reason
    return f"Passage {text.name}" + (f" · {reason_text(reason)}" if reason else "")


def title_of(shape: Shape, scenario: str) -> str:
    """The scenario's title; any other label of a candidate in words."""
    found = shape.scenarios.get(scenario)
    return found.title if found else scenario.replace("_", " ")


def draw_judgments(group: GroupShown) -> None:
    """Draw the validator's choice in each scenario, and the candidates."""
    if not group.judgments:
        return
    st.markdown("**The validator's choices**")
    draw_table([_row(group.shape, judgment) for judgment in group.judgments])
    with st.expander("Candidates in the order shown"):
        for judgment in group.judgments:
            st.markdown(f"**{plain(title_of(group.shape, judgment.scenario))}**")
            draw_text(f"{judgment.instruction}\n{judgment.query}", label="Instruction and query")
            for number, label in enumerate(judgment.order_shown, start=1):
                chosen = " · chosen" if label == judgment.choice else ""
                name = f"{number} · {label.replace('_', ' ')}{chosen}"
                draw_text(judgment.candidates.get(label, ""), label=name)


def _row(shape: Shape, judgment: GroupJudgment) -> Cells:
    return {
        "Scenario": title_of(shape, judgment.scenario),
        "Chose": judgment.choice.replace("_", " "),
        "Agrees": judgment.agrees,
        "Judge": judgment.judge,
        "Offline": judgment.offline,
    }


def draw_calls(group: GroupShown) -> None:
    """Draw the calls made for the group, with prompts and raw answers."""
    if not group.calls:
        return
    label = f"{counted(len(group.calls), 'call')}: prompts and raw answers"
    if not st.toggle(label, key=f"group.calls-{group.id}"):
        return
    prompts = groups.prompts(signed_in_user(), group)
    with st.container(border=True):
        for call in group.calls:
            st.caption(plain(call.title))
            for message in prompts[call.call_id]:
                draw_text(message["content"], label=f"Prompt ({message['role']})", whole=True)
            draw_text(call.answer, label="Raw answer", whole=True)
