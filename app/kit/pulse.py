"""Rerun a page when the stored data it shows has changed, and only then."""

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

T = TypeVar("T")
EVERY_SECONDS = 5.0


def follow(read: Callable[[], T], drawn: T, *, label: Callable[[T], str]) -> None:
    """Call `read` every few seconds; rerun the page once the result differs from `drawn`."""

    def poll() -> None:
        now = read()
        if now != drawn:
            st.rerun()
        st.caption(label(now))

    st.fragment(poll, run_every=EVERY_SECONDS)()
