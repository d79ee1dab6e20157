"""Forms of a study: invitations, qualification and gold items, rules."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.fields import draw_fields
from app.kit.page import draw_hand_off, draw_table
from app.operations.judging import judgments, studies
from app.operations.people import Invitation
from app.studies import actions
from curation.judging.request import StudyExample, StudyRecruiting
from db.study.gold_items import PARTS
from db.study.rules import StudyRules
from db.study.studies import StudySummary

GOLD_ITEMS = 5
EXAMPLE = ("item_id", "is_right", "answer", "why")
MAX_SAMPLED = 500


def draw_way_to_judge(study: StudySummary) -> None:
    """To the items for the user if they may judge, and the link to send to who has an account."""
    with st.container(key="studies-next"):
        draw_hand_off("judge", "Judge its items", study=study.id)
        if _has_accounts():
            st.caption("Link to send to people who have an account and the right to judge:")
            st.code(f"{_base()}/judge?study={study.id}", language=None, wrap_lines=True)


def _has_accounts() -> bool:
    """Whether people sign in; without accounts everyone is the local admin."""
    return signed_in_user().account_id is not None


def _default_count(study_id: int, part: str) -> int:
    """How many items to sample: examples for all rounds of a qualification, or a few gold items."""
    if part != "training":
        return GOLD_ITEMS
    rules = studies.rules(signed_in_user(), study_id)
    return min(rules.training_items * rules.training_rounds, MAX_SAMPLED)


def _base() -> str:
    """The address of the app, without a page."""
    return (st.context.url or "").split("/studies")[0].rstrip("/")


def draw_invite(study: StudySummary) -> None:
    """Invitation links, one per person, shown once.

    Without accounts only the way to the first one: everyone who opened a link would be admin.
    """
    links = st.session_state.pop(actions.LINKS, [])
    is_new = study.status == "open" and not study.done
    with st.expander("Invite people", icon=":material/person_add:", expanded=bool(links) or is_new):
        if not _has_accounts():
            st.caption(
                "To invite people, first create your own admin account: without accounts this app "
                "listens on this machine only, and everyone who opens it is admin. Then sign in, "
                "and the links are created here."
            )
            draw_hand_off("accounts", "Create the admin account", study=study.id)
            return
        st.caption("Invitation links, one per person, who creates an account or signs in:")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            first = Invitation(count=3)
            draw_fields(Invitation, ("count", "days"), key="studies.invite", now=first)
            st.button(
                "Create links",
                key="studies.invite",
                on_click=actions.invite,
                args=(study.id,),
            )
        st.caption(
            "Or one link for all whom Prolific or MTurk sends: they need no account, judge in this "
            "study alone, and end at the code that they earned."
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            names = [name for name in StudyRecruiting.model_fields if name != "study_id"]
            draw_fields(StudyRecruiting, names, key="studies.recruit")
            st.button(
                "Create platform link",
                key="studies.recruit",
                on_click=actions.recruit,
                args=(study.id,),
            )
        if links:
            st.caption("Copy the link: it is not shown again. A person's own works once.")
            st.code("\n".join(_base() + path for path in links), language=None, wrap_lines=True)


def sample_gold_items(study: StudySummary) -> None:
    """List the qualification and gold items; add some by sampling or from a file."""
    found = judgments.gold(signed_in_user(), study.id)
    counts = [
        f"{sum(one.part == part for one in found)} {actions.PART_LABELS[part]}" for part in PARTS
    ]
    with st.expander("Qualification and gold items", icon=":material/school:"):
        st.caption(
            f"{' and '.join(counts)} items so far. "
            "Qualification items precede the study and give feedback; gold items are hidden in it, "
            "each at a random place and for as many judges as any other item. "
            "Sample them from groups approved in a review, or fill in the file."
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                "Add",
                PARTS,
                format_func=actions.PART_LABELS.__getitem__,
                key="studies.known_part",
                width=160,
            )
            part = st.session_state["studies.known_part"]
            st.number_input(
                "Items",
                1,
                MAX_SAMPLED,
                _default_count(study.id, part),
                key=f"studies.known_count_{part}",
                width=160,
            )
            st.button(
                "Sample",
                key="studies.sample_known",
                on_click=actions.sample_known,
                args=(study.id, part),
            )
        st.file_uploader(
            "Or upload a file with one row per item",
            type=["jsonl", "csv", "parquet"],
            key="studies.known_file",
            help="`item` (or `pair` and `scenario`), `right`, `explanation`.",
        )
        with st.container(horizontal=True):
            st.button(
                "Add items from file",
                key="studies.add_known",
                on_click=actions.add_known,
                args=(study.id,),
            )
            st.download_button(
                "Download template",
                partial(studies.template, signed_in_user(), study.id),
                file_name=f"study-{study.id}-items.jsonl",
                key="studies.known_template",
                on_click="ignore",
            )
        if found:
            draw_table(
                [
                    {
                        "Part": actions.PART_LABELS[one.part],
                        "Item": one.item_id,
                        "Instruction": one.instruction,
                        "Correct answer": one.right.replace("_", " "),
                        "Explanation": one.explanation,
                    }
                    for one in found
                ],
            )
            draw_example(study, [one.item_id for one in found if one.part == "training"])


def draw_example(study: StudySummary, items: Sequence[int]) -> None:
    """Add an item of the qualification to the guidelines, with its answer or a wrong one."""
    if not items:
        return
    st.caption(
        "An item of the qualification as an example in the guidelines, which judges read and "
        "confirm as a new version; without an answer with the right one."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = {"options": (True, False), "format_func": ("wrong", "right").__getitem__}
        more = {"item_id": {"options": items, "width": 120}, "is_right": shown | {"width": 120}}
        draw_fields(StudyExample, EXAMPLE, key="studies.example", more=more)
        st.button(
            "Add example",
            key="studies.add_example",
            on_click=actions.add_example,
            args=(study.id,),
        )


def draw_rules(study: StudySummary) -> None:
    """Pass mark, gold accuracy, pace and membership."""
    rules, key = studies.rules(signed_in_user(), study.id), f"studies.rules_{study.id}"
    with (
        st.expander("Rules: pass mark, gold, pace, members", icon=":material/rule:"),
        st.form(key, border=False),
    ):
        for names in (actions.RULES[:5], actions.RULES[5:]):
            with st.container(horizontal=True, vertical_alignment="bottom"):
                draw_fields(StudyRules, names, key=key, now=rules)
        st.form_submit_button(
            "Save rules",
            on_click=actions.save_rules,
            args=(study.id,),
            key=f"studies.save_rules_{study.id}",
        )
