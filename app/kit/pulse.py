"""A page that follows the store: drawn again when what it shows has changed, and only then."""

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

T = TypeVar("T")
EVERY_SECONDS = 5.0


def follow(read: Callable[[], T], drawn: T, *, words: Callable[[T], str]) -> None:
    """Ask `read` every few seconds; once it differs from what was `drawn`, draw the page again."""

    def look() -> None:
        now = read()
        if now != drawn:
            st.rerun()
        st.caption(words(now))

    st.fragment(look, run_every=EVERY_SECONDS)()
