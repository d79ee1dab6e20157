"""The curator's view of a study: each judge's pace and quality, and actions on judges."""

from collections.abc import Sequence

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.page import draw_labels, draw_table
from app.operations.judging import judgments, studies
from app.studies import actions
from app.text.numbers import counted
from app.text.plain import plain
from db.study.quality import JudgeRow
from db.study.rules import StudyRules, fails_gold
from db.study.studies import StudySummary


def draw_quality(study: StudySummary) -> None:
    """Progress, pace and quality per judge, and the actions on them."""
    user = signed_in_user()
    judges = studies.judges(user, study.id).data
    rules = studies.rules(user, study.id)
    if not judges:
        st.caption("No judgments in this study yet.")
        return
    draw_table(
        [_row(each, study) for each in judges],
        column_config={
            "Share": st.column_config.ProgressColumn(
                format="%.0f%%", max_value=100, color="primary", width=110
            ),
            "Seconds": st.column_config.NumberColumn(
                format="%.1f",
                help="Median time from display to decision, last 200 answers.",
            ),
            "Too fast": st.column_config.NumberColumn(
                format="percent",
                help=f"Share of the last 200 answers in less than {rules.too_fast_seconds:g} s.",
            ),
            "Gold": st.column_config.TextColumn(help="Correct answers to hidden gold items."),
            "Last": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
        },
    )
    people = [each for each in judges if each.kind == "person" and not each.simulated]
    with st.container():  # rendered even if empty, so that expanders below keep their state
        draw_labels(
            offline=any(each.offline for each in judges),
            simulated=any(each.simulated for each in judges),
        )
        for each in people:
            _draw_warning(each, rules)
    if people:
        _draw_actions(study.id, people)
    _draw_fast(study.id, rules.too_fast_seconds)


def _draw_warning(each: JudgeRow, rules: StudyRules) -> None:
    """Warn of a paused judge, or of one below the required gold accuracy."""
    right, seen = each.gold_right, each.gold_seen
    if each.state == "paused":
        st.warning(plain(f"{each.name} is paused: {each.reason}"), icon=":material/pause:")
    elif fails_gold(right, seen, rules):
        text = f"{each.name} answered {right} of {counted(seen, 'gold item')} correctly"
        st.warning(
            plain(f"{text}, below the required {rules.gold_threshold:.0%}"),
            icon=":material/target:",
        )


def _row(each: JudgeRow, study: StudySummary) -> dict[str, object]:
    kind = "simulated" if each.simulated else "offline model" if each.offline else each.kind
    return {
        "Judge": each.name,
        "Kind": kind,
        "State": each.state,
        "Judged": each.judged,
        "Share": 100 * each.judged / study.items if study.items else 0.0,
        "Seconds": each.median_seconds,
        "Too fast": each.too_fast,
        "Gold": f"{each.gold_right} of {each.gold_seen}" if each.gold_seen else "",
        "Last": each.last_at,
        "Flagged": each.flagged,
        "Notes": each.notes,
        "Skipped": each.skipped,
        "Leased": each.leased,
        "Qualification": each.qualification,
    }


def _draw_actions(study_id: int, people: Sequence[JudgeRow]) -> None:
    by_id = {each.id: each.name for each in people}
    with st.expander("Pause a judge or reassign their items", icon=":material/person_off:"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                "Judge",
                list(by_id),
                format_func=lambda judge_id: by_id.get(judge_id, str(judge_id)),
                key="studies.quality_judge",
            )
            st.text_input("Reason", key="studies.reason", placeholder="shown to the paused judge")
        with st.container(horizontal=True):
            for label, key, what in (
                ("Pause", "pause_judge", "pause"),
                ("Resume", "let_in", "let_in"),
                ("Return their items to the queue", "take_back", "take_back"),
            ):
                st.button(
                    label,
                    key=f"studies.{key}",
                    on_click=actions.change_judge,
                    args=(study_id, what),
                )
        if len(by_id) > 1:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                st.selectbox(
                    "Reassign their items to",
                    list(by_id),
                    index=1,
                    format_func=lambda judge_id: by_id.get(judge_id, str(judge_id)),
                    key="studies.receiver",
                    help="Items this person may not judge go back to the queue.",
                )
                st.button(
                    "Reassign",
                    key="studies.reassign",
                    on_click=actions.change_judge,
                    args=(study_id, "give"),
                )


def _draw_fast(study_id: int, fastest: float) -> None:
    found = judgments.fast_answers(signed_in_user(), study_id)
    if not found:
        return
    with st.expander(
        f"{counted(len(found), 'answer')} in less than {fastest:g} s", icon=":material/bolt:"
    ):
        draw_table(
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
            column_config={
                "Seconds": st.column_config.NumberColumn(format="%.2f"),
                "When": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss"),
            },
        )


def draw_changes(study: StudySummary) -> None:
    """Edit the guidelines and the number of judges per item."""
    guideline = studies.guideline(signed_in_user(), study.id)
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
            "Save as new version",
            key="studies.write_guideline",
            on_click=actions.write_guideline,
            args=(study.id,),
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.number_input(
                "Judges per item", study.overlap, 50, study.overlap, key="studies.more_overlap"
            )
            st.button(
                "Increase",
                key="studies.extend",
                on_click=actions.extend_overlap,
                args=(study.id,),
            )
