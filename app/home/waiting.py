"""What waits for the user: items to judge, messages, failed jobs, and a few reserved items."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import streamlit as st

from analysis.figures.means import share_interval
from app.access.identity import SessionUser
from app.access.language import language_now, say
from app.kit.frame.links import page_link
from app.kit.menu import may_open
from app.kit.page import draw_link, draw_table
from app.operations.overview.home import OwnItems, SeenStudies, Waiting, waiting
from app.text.languages import DEFAULT, text
from app.text.numbers import counted
from app.text.plain import plain
from db.outcome.overview import Overview
from db.shape import Shape
from db.values import NONE

WAITING: Final = "Waiting for you"


class Other(NamedTuple):
    """A link to work that waits: what it is, and the page where it is done."""

    label: str
    view: str
    icon: str
    parameters: Mapping[str, object] = {}


def others_of(
    user: SessionUser,
    seen: SeenStudies,
    own: OwnItems | None,
    found: Overview,
) -> list[Other]:
    """A link per kind of work and study.

    own: items reserved for the user, where these are to be among them; found: for failed jobs.
    """
    listed = []
    if own is not None and own.left:
        label = f"{counted(own.left, 'item')} reserved for you in {own.name}"
        listed.append(Other(label, "judge", "gavel", {"study": own.study_id}))
    listed += _in_studies(
        user,
        seen,
        lambda each: f"{counted(each.number, each.one, each.many)} in {each.study}",
    )
    if found.jobs_failed:
        listed.append(Other(f"Failed or lost jobs: {found.jobs_failed:,}", "jobs", "error"))
    return listed


def others_of_annotator(user: SessionUser, seen: SeenStudies) -> list[Other]:
    """A link per kind of work and study, in the user's language."""
    words = {"judge": "home.to_judge", "adjudicate": "home.disputed", "studies": "home.unread"}
    return _in_studies(
        user,
        seen,
        lambda each: say(words[each.view], count=f"{each.number:,}", study=each.study),
    )


def _in_studies(
    user: SessionUser, seen: SeenStudies, label: Callable[[Waiting], str]
) -> list[Other]:
    return [
        Other(label(each), each.view, "inbox", {"study": each.study_id})
        for each in waiting(user, seen)
        if may_open(user, each.view)
    ]


def draw_others(others: Sequence[Other]) -> None:
    """The links, side by side where there is room."""
    with st.container(horizontal=True, gap="small", key="home-others"):
        for each in others:
            page_link(
                each.view,
                plain(each.label),
                icon=f":material/{each.icon}:",
                parameters=each.parameters,
                width="content",
            )


def draw_own_items(found: OwnItems | None) -> None:
    """The invitation while items are left; the agreement once the study is closed; in the user's
    language."""
    language = language_now()
    draw_agreement(found, language)
    if found is None or not found.left:
        return
    with st.container(border=True):
        draw_invitation(found, language)
        page_link(
            "judge",
            button_of(found, language),
            icon=":material/gavel:",
            parameters={"study": found.study_id},
        )


def draw_invitation(found: OwnItems, language: str = DEFAULT) -> None:
    """What the items are and what comes after the last one, without the way to them."""
    invitation = text(language, "home.own_items", count=found.left)
    st.markdown(f"**{plain(found.name)}** — {invitation}")
    if found.done:
        st.caption(text(language, "home.own_answered", count=found.done))


def button_of(found: OwnItems, language: str = DEFAULT) -> str:
    """The label of the way to the items."""
    return text(language, "home.own_go_on" if found.done else "home.own_begin")


def draw_agreement(found: OwnItems | None, language: str = DEFAULT) -> None:
    """How the user's answers agree with the validator, once all are given."""
    if found is None or found.left:
        return
    with st.container(border=True):
        same = sum(each.is_same for each in found.choices)
        count = len(found.choices)
        low, high = share_interval(same / count, count)
        interval = {"low": f"{low:.0%}", "high": f"{high:.0%}"}
        agreement = text(language, "home.own_agreement", same=same, count=count, **interval)
        st.markdown(f"**{plain(found.name)}** — {agreement}")
        differ = [each for each in found.choices if not each.is_same]
        if differ:
            draw_table(
                [
                    {
                        text(language, f"home.own_{column}"): value
                        for column, value in (
                            ("choice", choice_text(each.own, found.shape, language)),
                            ("validator", choice_text(each.validator, found.shape, language)),
                            ("instruction", each.instruction),
                            ("query", each.query),
                        )
                    }
                    for each in differ
                ],
                key="home.own_items",
            )
        draw_link("agreement", label="See the agreement of all judges", icon=":material/handshake:")


def choice_text(choice: str, shape: Shape | None, language: str = DEFAULT) -> str:
    """A choice in words: the passage's part in its group, another passage, or none of them."""
    if choice == NONE:
        return text(language, "home.own_none")
    right = shape and shape.scenarios.get(choice)
    return right.passage.meaning if right else text(language, "home.own_other")
