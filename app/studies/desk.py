"""The desk of a study: one table of its people, with actions on those selected, and messages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.page import draw_labels, draw_table
from app.operations.judging import judgments, studies
from app.studies import actions
from app.text.numbers import counted
from app.text.plain import plain
from db.assignment.threads import MAX_MESSAGE_CHARACTERS
from db.study.quality import JudgeRow
from db.study.rules import StudyRules
from db.study.studies import StudySummary
from db.tables import utc_now

COLUMNS = (
    *("name", "state", "done", "quota", "due_on", "median_seconds", "gold_right", "gold_seen"),
    *(
        "agreement",
        "flagged",
        "unread",
        "last_at",
        "guidelines",
        "doubt",
        "reason",
        "too_fast",
        "notes",
    ),
    *("judged", "skipped", "leased", "qualification", "kind", "simulated", "offline"),
)
MINUTES = "YYYY-MM-DD HH:mm"
ROW_PIXELS, MAX_PIXELS = 35, 460  # a longer table scrolls in itself
SHOWN: Mapping[str, Callable[[JudgeRow], bool]] = {
    "everyone": lambda each: True,
    "people": lambda each: each.kind == "person",
    "models": lambda each: each.kind == "model",
    "paused": lambda each: each.state == "paused",
    "in doubt": lambda each: bool(each.doubt),
    "late": lambda each: is_late(each),
    "with new messages": lambda each: each.unread > 0,
}
DOABLE: Mapping[str, str] = {  # `JudgeChange.action` by what the page calls it
    "Pause": "pause",
    "Let continue": "let_in",
    "Return items": "take_back",
    "Reassign items": "give",
    "Quota and due date": "set",
    "No quota": "unset",
}
WRITE = "Write"


def is_late(each: JudgeRow) -> bool:
    """Whether a person's due date is over and their quota, if they have one, is not answered."""
    is_over = each.due_on is not None and each.due_on < utc_now().date()
    return is_over and (each.quota is None or each.done < each.quota)


def draw_people(study: StudySummary) -> None:
    """One table of the judges, to sort and filter, and what is done with those selected."""
    user = signed_in_user()
    judges = studies.judges(user, study.id).data
    rules = studies.rules(user, study.id)
    if not judges:
        st.caption("No judgments in this study yet.")
        return
    with st.container():  # rendered even if empty, so that expanders below keep their state
        draw_labels(
            offline=any(each.offline for each in judges),
            simulated=any(each.simulated for each in judges),
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        part = st.text_input("Name", key="studies.people_name", placeholder="any", width=200)
        which = st.selectbox("Show", list(SHOWN), key="studies.people_shown", width=200)
        st.caption(plain(_in_short(judges)))
    found = [one for one in judges if part.lower() in one.name.lower() and SHOWN[which](one)]
    # a selection is of row numbers: it ends where the rows are others
    drawn = hash((st.session_state.get(actions.ROUND, 0), *(one.id for one in found)))
    selected = draw_table(
        [each.as_json() for each in found],
        key=f"studies.people_{study.id}_{drawn}",
        on_select="rerun",
        selection_mode="multi-row",
        height=min(MAX_PIXELS, ROW_PIXELS * (len(found) + 1) + 3),
        column_order=_order(judges),
        column_config=_columns(rules),
    )
    chosen = [found[row] for row in selected.selection.rows if row < len(found)]
    people = [each for each in chosen if each.kind == "person"]
    if people:
        _draw_actions(study.id, people, judges)
    elif any(each.kind == "person" for each in judges):
        st.caption(
            "Select people in the table to pause them, return their items, set their quota "
            "or write to them."
        )
    _draw_fast(study.id, rules.too_fast_seconds)


def _order(judges: Sequence[JudgeRow]) -> list[str]:
    """The columns; why people are in doubt is next to their names, if any are."""
    first = ["name", "doubt"] if any(each.doubt for each in judges) else ["name"]
    return [*first, *(each for each in COLUMNS if each not in first)]


def _columns(rules: StudyRules) -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        "name": st.column_config.TextColumn("Judge", pinned=True),
        "kind": "Kind",
        "state": "State",
        "done": number("Done", help="Answered items; hidden gold counts, too."),
        "quota": number("Quota", help="How many items they are given; empty: no limit."),
        "due_on": st.column_config.DateColumn("Due", format="YYYY-MM-DD", width=95),
        "judged": number("Judged", help="Answered items without gold and qualification."),
        "median_seconds": number(
            "Seconds", format="%.1f", help="Median time from display to decision, last 200."
        ),
        "too_fast": number(
            "Too fast",
            format="percent",
            help=f"Share of the last 200 answers in less than {rules.too_fast_seconds:g} s.",
        ),
        "gold_right": number("Gold right", help="Correct answers to hidden gold items."),
        "gold_seen": number("of gold", help="Hidden gold items seen."),
        "agreement": number(
            "Agreement",
            format="percent",
            help="How often another person's answer to the same item is theirs, too; with no "
            "allowance for chance, which the page Agreement makes.",
        ),
        "doubt": st.column_config.TextColumn(
            "In doubt",
            width="medium",
            help="Gold below the required share, or too many fast answers.",
        ),
        "last_at": st.column_config.DatetimeColumn("Last seen", format=MINUTES),
        "flagged": number("Flagged", help="Items that they flagged."),
        "unread": number("Messages", help="Their messages that no curator has read."),
        "guidelines": number("Guidelines", help="The newest version that they have read."),
        "reason": st.column_config.TextColumn("Paused because", width="medium"),
        "notes": "Notes",
        "skipped": "Skipped",
        "leased": "Leased",
        "qualification": "Qualification",
        "simulated": "Simulated",
        "offline": "Offline",
    }


def _in_short(judges: Sequence[JudgeRow]) -> str:
    """Those who need something, in a line."""
    counts = {name: sum(map(SHOWN[name], judges)) for name in list(SHOWN)[3:]}
    return " · ".join(f"{number} {name}" for name, number in counts.items() if number)


def _draw_actions(study_id: int, people: Sequence[JudgeRow], judges: Sequence[JudgeRow]) -> None:
    """What is done with the selected people, whose ids the button has: those that were drawn."""
    ids = tuple(each.id for each in people)
    with st.container(border=True, key="studies-selected"):
        names = ", ".join(each.name for each in people[:5]) + (", …" if len(people) > 5 else "")
        st.markdown(plain(f"{counted(len(people), 'person', 'people')} selected: {names}"))
        doing = st.segmented_control(
            "Do", [*DOABLE, WRITE], default="Pause", key="studies.doing", required=True
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if doing == WRITE:
                st.text_area(
                    "Message", key="studies.message", max_chars=MAX_MESSAGE_CHARACTERS, height=80
                )
            elif doing == "Pause":
                st.text_input("Reason", key="studies.reason", placeholder="shown to the judge")
            elif doing == "Reassign items":
                others = {
                    each.id: each.name
                    for each in judges
                    if each.kind == "person" and not each.simulated and each.id not in ids
                }
                st.selectbox(
                    "Reassign their items to",
                    list(others),
                    format_func=lambda judge_id: others.get(judge_id, str(judge_id)),
                    key="studies.receiver",
                    help="Items this person may not judge go back to the queue.",
                )
            elif doing == "Quota and due date":
                st.number_input(
                    "Items each is given",
                    0,
                    value=None,
                    key="studies.quota",
                    placeholder="as it is",
                )
                st.date_input("Due", None, key="studies.due", help="Left empty: as it is.")
            st.button(
                "Send" if doing == WRITE else str(doing),
                key="studies.do",
                type="primary",
                on_click=actions.write if doing == WRITE else actions.CHANGES[DOABLE[str(doing)]],
                args=(study_id, ids) if doing == WRITE else (study_id, DOABLE[str(doing)], ids),
            )


def draw_messages(study: StudySummary) -> None:
    """Write to everyone in the study; what was written, and how many have read it."""
    sent = studies.messages(signed_in_user(), study.id).data
    with st.expander(f"Messages to people ({len(sent)})", icon=":material/campaign:"):
        if study.status != "closed":
            st.text_area(
                "To everyone in this study, also who joins later",
                key="studies.announcement",
                max_chars=MAX_MESSAGE_CHARACTERS,
                height=80,
            )
            st.button(
                "Send to everyone",
                key="studies.announce",
                on_click=actions.announce,
                args=(study.id,),
            )
        if sent:
            draw_table(
                [one.as_json() for one in sent],
                height=min(MAX_PIXELS, ROW_PIXELS * (len(sent) + 1) + 3),
                column_order=("created_at", "written_by", "to", "read", "body"),
                column_config={
                    "created_at": st.column_config.DatetimeColumn(
                        "Sent", format="YYYY-MM-DD HH:mm"
                    ),
                    "written_by": "By",
                    "to": st.column_config.ListColumn("To", help="Empty: everyone."),
                    "read": st.column_config.NumberColumn("Read by"),
                    "body": st.column_config.TextColumn("Message", width="large"),
                },
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
