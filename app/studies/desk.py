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

COLUMNS = (
    *("name", "kind", "state", "judged", "median_seconds", "too_fast", "gold_right", "gold_seen"),
    *("last_at", "flagged", "notes", "skipped", "leased", "qualification", "simulated", "offline"),
)


def draw_quality(study: StudySummary) -> None:
    """Progress, pace and quality per judge, and the actions on them."""
    user = signed_in_user()
    judges = studies.judges(user, study.id).data
    rules = studies.rules(user, study.id)
    if not judges:
        st.caption("No judgments in this study yet.")
        return
    share = st.column_config.ProgressColumn(
        "Judged", format="%d", max_value=max(study.items, 1), color="primary", width=110
    )
    draw_table(
        [each.as_json() for each in judges],
        column_order=COLUMNS,
        column_config={
            "name": "Judge",
            "kind": "Kind",
            "state": "State",
            "judged": share,
            "median_seconds": st.column_config.NumberColumn(
                "Seconds", format="%.1f", help="Median time from display to decision, last 200."
            ),
            "too_fast": st.column_config.NumberColumn(
                "Too fast",
                format="percent",
                help=f"Share of the last 200 answers in less than {rules.too_fast_seconds:g} s.",
            ),
            "gold_right": st.column_config.NumberColumn(
                "Gold right", help="Correct answers to hidden gold items."
            ),
            "gold_seen": st.column_config.NumberColumn("of gold", help="Hidden gold items seen."),
            "last_at": st.column_config.DatetimeColumn("Last", format="YYYY-MM-DD HH:mm"),
            "flagged": "Flagged",
            "notes": "Notes",
            "skipped": "Skipped",
            "leased": "Leased",
            "qualification": "Qualification",
            "simulated": "Simulated",
            "offline": "Offline",
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
                    on_click=actions.give_items,
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
            [one.as_json() for one in found],
            column_config={
                "judge": "Judge",
                "item_id": st.column_config.NumberColumn("Item", format="%d"),
                "choice": "Answer",
                "seconds": st.column_config.NumberColumn("Seconds", format="%.2f"),
                "decided_at": st.column_config.DatetimeColumn("When", format="YYYY-MM-DD HH:mm:ss"),
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
