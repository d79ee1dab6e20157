"""A group in full: triplets side by side with changes marked, verdict, choices and calls."""

import streamlit as st

from app.groups.actions import prompts_of
from app.kit.page import draw_labels, draw_status, draw_table
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from curation.recipe.drop_reasons import reason_text
from db.run.group_detail import GroupDetail, ValidatorJudgment
from db.shape import INF_IR, Role


def draw_group(group: GroupDetail, *, show_verdict: bool = True) -> None:
    """Draw a group: verdict, review, triplets, and for those who may see it, choices and calls."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Group {group.id}** · {plain(group.query_id)}", width="content")
        if show_verdict and group.verdict:
            draw_status(group.verdict)
        if show_verdict and group.drop_reason:
            st.caption(plain(reason_text(group.drop_reason)), width="content")
        if group.review is not None:
            draw_status(group.review.action)
            st.caption(
                plain(f"by {group.review.reviewed_by}, {group.review.created_at:%Y-%m-%d %H:%M}"),
                width="content",
            )
        draw_labels(offline=group.offline)
    if show_verdict and group.drop_detail:
        draw_text(group.drop_detail, label="Drop reason")
    if group.review is not None and group.review.reason:
        draw_text(group.review.reason, label="Reviewer's reason")
    draw_triplets(group)
    if show_verdict:
        draw_judgments(group)
        draw_calls(group)


def draw_triplets(group: GroupDetail) -> None:
    """Draw the triplets side by side; differences from the positive one are marked."""
    if not group.triplets:
        draw_text(group.query_positive, label=INF_IR.texts["Q+"].label)
        draw_text(group.document_positive, label=INF_IR.texts["P+"].label)
        st.caption("The pair was dropped before any text was generated.")
        return
    positive = group.triplets.get("positive")
    for role, column in zip(INF_IR.roles, st.columns(len(INF_IR.roles)), strict=True):
        with column.container(border=True):
            st.markdown(f"**{INF_IR.scenarios[role].title}**  \n:small[{INF_IR.labels[role]}]")
            texts = group.triplets.get(role)
            if texts is None:
                st.caption("Not generated.")
                continue
            other = None if role == "positive" else positive
            for label, field in zip(labels(role), texts._fields, strict=True):
                draw_text(
                    getattr(texts, field),
                    label=label,
                    unlike=getattr(other, field) if other is not None else None,
                )


def labels(role: Role) -> tuple[str, str, str]:
    """The labels of a triplet's texts."""
    instruction, query, passage = INF_IR.scenarios[role].texts
    return instruction.label, query.label, passage.label


def title_of(scenario: str) -> str:
    """The scenario's title; any other value unchanged."""
    return next(
        (each.title for each in INF_IR.scenarios.values() if each.role == scenario), scenario
    )


def draw_judgments(group: GroupDetail) -> None:
    """Draw the validator's choice in each scenario, and the candidates."""
    if not group.judgments:
        return
    st.markdown("**The validator's choices**")
    draw_table([_row(judgment) for judgment in group.judgments])
    with st.expander("Candidates in the order shown"):
        for judgment in group.judgments:
            st.markdown(f"**{title_of(judgment.scenario)}**")
            draw_text(f"{judgment.instruction}\n{judgment.query}", label="Instruction and query")
            for number, label in enumerate(judgment.order_shown, start=1):
                chosen = " · chosen" if label == judgment.choice else ""
                name = f"{number} · {label.replace('_', ' ')}{chosen}"
                draw_text(judgment.candidates.get(label, ""), label=name)


def _row(judgment: ValidatorJudgment) -> dict[str, object]:
    return {
        "Scenario": title_of(judgment.scenario),
        "Chose": judgment.choice.replace("_", " "),
        "Agrees": judgment.agrees,
        "Judge": judgment.judge,
        "Offline": judgment.offline,
    }


def draw_calls(group: GroupDetail) -> None:
    """Draw the calls made for the group, with prompts and raw answers."""
    if not group.calls:
        return
    label = f"{counted(len(group.calls), 'call')}: prompts and raw answers"
    if not st.toggle(label, key=f"group.calls-{group.id}"):
        return
    prompts = prompts_of(group)
    with st.container(border=True):
        for call in group.calls:
            st.caption(plain(call.title))
            for message in prompts.get(call.id, ()):
                draw_text(message["content"], label=f"Prompt ({message['role']})", whole=True)
            draw_text(call.answer, label="Raw answer", whole=True)
