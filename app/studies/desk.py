"""A study for its curator: how each judge works, and what can be done about it."""

from collections.abc import Sequence

import streamlit as st

from app.kit.page import draw_labels
from app.studies import actions
from app.text.plain import plain
from db.study import studies
from db.study.assignments import GOLD_SEEN
from db.study.quality import JudgeQuality
from db.study.rules import StudyRules


def draw_quality(study: studies.StudySummary) -> None:
    """Progress, pace and quality per judge; pausing, letting in, taking items back."""
    judges, rules = actions.read_quality(study.id)
    if not judges:
        st.caption("Nobody has judged anything in this study yet.")
        return
    st.dataframe(
        [_row(each, study) for each in judges],
        hide_index=True,
        column_config={
            "Share": st.column_config.ProgressColumn(format="percent", color="primary"),
            "Seconds": st.column_config.NumberColumn(
                format="%.1f", help="From shown to decided: the median of the last 200."
            ),
            "Too fast": st.column_config.NumberColumn(
                format="percent",
                help=f"Answers in less than {rules.too_fast_seconds:g} s, of the last 200.",
            ),
            "Gold": st.column_config.TextColumn(help="Hidden control items right, of those seen."),
            "Last": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
        },
    )
    people = [each for each in judges if each.kind == "person" and not each.simulated]
    with st.container():  # there without a warning too: what is open below must not fold
        draw_labels(
            offline=any(each.offline for each in judges),
            simulated=any(each.simulated for each in judges),
        )
        for each in people:
            _draw_warning(each, rules)
    if people:
        _draw_actions(study.id, people)
    _draw_fast(study.id, rules.too_fast_seconds)


def _draw_warning(each: JudgeQuality, rules: StudyRules) -> None:
    """Who is paused and why, or misses too much of the hidden gold."""
    right, seen = each.gold_right, each.gold_seen
    if each.state == "paused":
        st.warning(plain(f"{each.judge} is paused: {each.reason}"), icon=":material/pause:")
    elif seen >= GOLD_SEEN and right < rules.gold_threshold * seen:
        words = f"{each.judge} has {right} of {seen} gold items right"
        st.warning(plain(f"{words}: below {rules.gold_threshold:.0%}"), icon=":material/target:")


def _row(each: JudgeQuality, study: studies.StudySummary) -> dict[str, object]:
    kind = "simulated" if each.simulated else "offline model" if each.offline else each.kind
    return {
        "Judge": each.judge,
        "Kind": kind,
        "Judged": each.judged,
        "Share": each.judged / study.items if study.items else 0.0,
        "Seconds": each.median_seconds,
        "Too fast": each.too_fast,
        "Gold": f"{each.gold_right} of {each.gold_seen}" if each.gold_seen else "",
        "Flagged": each.flagged,
        "Notes": each.notes,
        "Skipped": each.skipped,
        "Holds": each.leased,
        "Training": each.training,
        "State": each.state,
        "Last": each.last_at,
    }


def _draw_actions(study_id: int, people: Sequence[JudgeQuality]) -> None:
    by_id = {each.judge_id: each.judge for each in people}
    with st.expander("Pause somebody, give their items to others", icon=":material/person_off:"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                "Judge",
                list(by_id),
                format_func=lambda judge_id: by_id.get(judge_id, str(judge_id)),
                key="studies.quality_judge",
            )
            st.text_input(
                "Reason", key="studies.reason", placeholder="the judge reads it when paused"
            )
        with st.container(horizontal=True):
            for label, key, act in (
                ("Pause", "pause_judge", actions.pause_judge),
                ("Let in again", "let_in", actions.let_judge_in),
                ("Take back what they hold", "take_back", actions.take_back),
            ):
                st.button(label, key=f"studies.{key}", on_click=act, args=(study_id,))
        if len(by_id) > 1:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                st.selectbox(
                    "Give what they hold to",
                    list(by_id),
                    index=1,
                    format_func=lambda judge_id: by_id.get(judge_id, str(judge_id)),
                    key="studies.receiver",
                    help="What that person may not be given goes back to the queue.",
                )
                st.button(
                    "Give",
                    key="studies.reassign",
                    on_click=actions.reassign,
                    args=(study_id,),
                )


def _draw_fast(study_id: int, fastest: float) -> None:
    found = actions.read_fast_answers(study_id)
    if not found:
        return
    with st.expander(f"{len(found)} answers in less than {fastest:g} s", icon=":material/bolt:"):
        st.dataframe(
            [
                {
                    "Judge": one.judge,
                    "Item": one.item_id,
                    "Answer": one.choice.replace("_", " "),
                    "Seconds": one.seconds,
                    "When": one.decided_at,
                }
                for one in found
            ],
            hide_index=True,
            column_config={
                "Seconds": st.column_config.NumberColumn(format="%.2f"),
                "When": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss"),
            },
        )


def draw_changes(study: studies.StudySummary) -> None:
    """Guidelines and overlap."""
    guideline = actions.read_guideline(study.id)
    with st.expander(
        f"Guidelines (version {guideline.version}) and overlap",
        icon=":material/tune:",
    ):
        st.text_area(
            "Guidelines (Markdown)",
            guideline.body,
            key=f"studies.guideline_{study.id}",
            height=220,
        )
        st.button(
            "Save as the next version",
            key="studies.write_guideline",
            on_click=actions.write_guideline,
            args=(study.id,),
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.number_input(
                "Judges per item", study.overlap, 50, study.overlap, key="studies.more_overlap"
            )
            st.button(
                "Ask for more",
                key="studies.extend",
                on_click=actions.extend_overlap,
                args=(study.id,),
            )
