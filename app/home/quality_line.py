"""The quality line: a card per figure with its light, its word and the rule behind it."""

from collections.abc import Sequence

import streamlit as st

from app.access.session_user import current_user
from app.home.quality import Level, Light
from app.kit.frame.links import page_link
from app.kit.menu import may_open
from app.text.plain import plain

LIGHTS: dict[Level, tuple[str, str, str]] = {
    "good": ("good", ":material/check_circle:", "green"),
    "look": ("look", ":material/visibility:", "orange"),
    "problem": ("problem", ":material/error:", "red"),
    "unknown": ("not known", ":material/radio_button_unchecked:", "gray"),
}


STEP_WORDS: dict[Level, str] = {"good": "done", "unknown": "to do"}


def draw_light(level: Level, *, of_step: bool = False) -> None:
    """The light as a label: an icon and a word, not a colour alone."""
    word, icon, colour = LIGHTS[level]
    if of_step:
        word = STEP_WORDS.get(level, word)
    st.badge(word, icon=icon, color=colour)  # type: ignore[arg-type]


def draw_lights(lights: Sequence[Light]) -> None:
    """A card per figure, three in a row where the page is wide enough."""
    user = current_user()
    with st.container(horizontal=True, gap="small", key="home-lights"):
        for light in lights:
            with st.container(border=True, key=f"home-light-{lights.index(light)}"):
                with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                    if user is not None and may_open(user, light.view):
                        page_link(
                            light.view,
                            plain(light.label),
                            parameters=light.parameters,
                            width="content",
                        )
                    else:
                        st.markdown(plain(light.label), width="content")
                    draw_light(light.level)
                st.markdown(f"#### {plain(light.value)}")
                st.caption(plain(light.why))
