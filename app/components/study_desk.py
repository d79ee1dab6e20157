"""A study for its curator: how each judge works, and what can be done about it."""

from collections.abc import Sequence

import streamlit as st

from app import studying
from app.components.page import draw_labels
from app.components.plain import plain
from db import quality, studies
from db.known_items import PARTS
from db.quality import JudgeQuality
from db.store import open_store


def draw_quality(study: studies.StudySummary) -> None:
    """Progress, pace and quality per judge; pausing, letting in, taking items back."""
    with open_store().read() as session:
        judges = quality.judge_quality(session, study.id)
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
                help=f"Answers in less than {quality.TOO_FAST_SECONDS} s, of the last 200.",
            ),
            "Gold": st.column_config.TextColumn(help="Hidden control items right, of those seen."),
            "Last": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
        },
    )
    draw_labels(
        offline=any(each.offline for each in judges),
        simulated=any(each.simulated for each in judges),
    )
    people = [each for each in judges if each.kind == "person" and not each.simulated]
    for each in people:
        if each.state == "paused":
            st.warning(plain(f"{each.judge} is paused: {each.reason}"), icon=":material/pause:")
    if people:
        _draw_actions(study.id, people)


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
    with st.expander("Pause somebody, or take items back", icon=":material/person_off:"):
        st.selectbox(
            "Judge",
            list(by_id),
            format_func=lambda judge_id: by_id.get(judge_id, str(judge_id)),
            key="studies.quality_judge",
        )
        st.text_input("Reason", key="studies.reason", placeholder="the judge reads it when paused")
        with st.container(horizontal=True):
            st.button(
                "Pause", key="studies.pause_judge", on_click=studying.pause_judge, args=(study_id,)
            )
            st.button(
                "Let in again",
                key="studies.let_in",
                on_click=studying.let_judge_in,
                args=(study_id,),
            )
            st.button(
                "Take back what they hold",
                key="studies.take_back",
                on_click=studying.take_back,
                args=(study_id,),
            )


def draw_changes(study: studies.StudySummary) -> None:
    """Guidelines, overlap, training and gold."""
    with open_store().read() as session:
        guideline = studies.current_guideline(session, study.id)
        parts = studies.count_parts(session, study.id)
    with st.expander(
        f"Guidelines (version {guideline.version}), overlap, training and gold",
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
            on_click=studying.write_guideline,
            args=(study.id,),
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.number_input(
                "Judges per item", study.overlap, 50, study.overlap, key="studies.more_overlap"
            )
            st.button(
                "Ask for more",
                key="studies.extend",
                on_click=studying.extend_overlap,
                args=(study.id,),
            )
        st.caption(
            f"{parts.get('training', 0)} training items come before the study, with feedback; "
            f"{parts.get('gold', 0)} gold items are hidden in it. They are drawn from groups "
            "that were approved in a review."
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox("Add", PARTS, key="studies.known_part", width=160)
            st.number_input("Items", 1, 500, 5, key="studies.known_count", width=160)
            st.button(
                "Draw", key="studies.draw_known", on_click=studying.draw_known, args=(study.id,)
            )
