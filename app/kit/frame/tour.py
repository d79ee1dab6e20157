"""The tour: a small card at the foot of the menu that explains a page and leads to the next.

A step belongs to a menu entry, so that nothing but its end is stored: a reload or the browser's
Back shows the step of that page. It is drawn on no page on which people judge, and not for who may
only judge and review: their Home is one sentence, and the card explains itself.
"""

from typing import Final, NamedTuple

import streamlit as st

from app.access.identity import SessionUser
from app.access.permissions import NEEDS
from app.access.session_user import action, signed_in_user
from app.kit.frame.links import page_link
from app.kit.menu import DATA, GROUPS, MODELS, PEOPLE, View, views_for
from app.operations.overview import frame

ENDED_ON: Final = "tour.ended_on"  # the page on which it ended, until another one is opened
JUDGED_ON: Final = ("judge", "answers", "adjudicate")
ENDED: Final = "The tour is over. Home has a button under the menu that shows it again."


class Step(NamedTuple):
    """A section of the menu and what a person does there."""

    section: str
    text: str


STEPS: Final = (
    Step(
        "Home",
        "How good your data and your model are, what runs, what waits for you, and one button for "
        "the next step.",
    ),
    Step(
        DATA,
        "Import pairs of a query and the passage that answers it, curate them into groups, and "
        "release those that were kept.",
    ),
    Step(
        GROUPS,
        "Read what a run kept and dropped, and why. A group that you approve is released, also "
        "where it had been dropped.",
    ),
    Step(
        PEOPLE,
        "Let people judge a sample in a study. How far they and the validator agree stands under "
        "Insight.",
    ),
    Step(
        MODELS,
        "Train a model on a release, compare it with its base, and try it on your own passages.",
    ),
)


def steps_for(user: SessionUser) -> list[tuple[Step, View]]:
    """The steps of the user with the first page of each that they may open."""
    if not NEEDS["jobs"].is_met(user):
        return []
    views = [view for view in views_for(user) if view.name not in JUDGED_ON]
    found = [(step, [view for view in views if view.section == step.section]) for step in STEPS]
    return [(step, of_step[0]) for step, of_step in found if of_step]


@action
def end_tour(page: str) -> None:
    """Finish or skip the tour on this page."""
    frame.end_tour(signed_in_user())
    st.session_state[ENDED_ON] = page


@action
def restart_tour() -> None:
    """Take the tour again."""
    frame.restart_tour(signed_in_user())


def draw_tour(user: SessionUser, page: str) -> None:
    """The card of this page's step, for who is on the tour; its place is there on every page."""
    if st.session_state.get(ENDED_ON) != page:
        st.session_state[ENDED_ON] = None
    steps = [] if page in JUDGED_ON else steps_for(user)
    section = next((view.section for view in views_for(user) if view.name == page), "")
    number = next((n for n, (step, _) in enumerate(steps, 1) if step.section == section), 0)
    is_shown = number > 0 and frame.is_on_tour(user)
    with st.container(key="frame-tour", gap="small"):
        if is_shown:
            _draw_step(steps, number, page)
        elif st.session_state[ENDED_ON] is not None:  # nothing moves up under the person's hands
            st.markdown(ENDED)
    if page == "home" and steps and not is_shown:
        with st.sidebar:
            st.button(
                "Take the tour again",
                key="tour.again",
                icon=":material/tour:",
                type="tertiary",
                on_click=restart_tour,
            )


def _draw_step(steps: list[tuple[Step, View]], number: int, page: str) -> None:
    step, _ = steps[number - 1]
    st.header(f"Tour {number} of {len(steps)} · {step.section}", anchor=False)
    st.markdown(step.text)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if number < len(steps):
            following, view = steps[number]
            label = f"Go on to {following.section}"
            page_link(view.name, label, icon=":material/arrow_forward:", width="content")
            skip = "Skip the tour"
            st.button(skip, key="tour.skip", type="tertiary", on_click=end_tour, args=(page,))
        else:
            st.button("Finish the tour", key="tour.finish", on_click=end_tour, args=(page,))
