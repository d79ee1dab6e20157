"""The visit: who is at this page, and what the last action had to say.

`st.session_state` holds nothing but the words to show next. The visitor is read from cookie and
store at every rerun and again in every action, so that a lost role counts at once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec

import streamlit as st

from app.access.identity import Visitor, visitor_of
from app.access.permissions import require
from app.text.plain import plain
from db.errors import InfError
from db.store.store import open_store

P = ParamSpec("P")
SAID = "visit.said"


def current_visitor() -> Visitor | None:
    """Who looks at this page now; None when signed out."""
    return visitor_of(open_store(), st.context.cookies)


def acting(deed: str) -> Visitor:
    """The visitor, when they may do this now. Raises Refused."""
    return require(current_visitor(), deed)


@contextmanager
def failures_shown() -> Iterator[None]:
    """The one place where a page's InfError becomes words on the page."""
    try:
        yield
    except InfError as error:
        st.error(plain(str(error)), icon=":material/error:")


def action(function: Callable[P, None]) -> Callable[P, None]:
    """Decorate a callback: its InfError is said on the page instead of breaking it."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except InfError as error:
            say(str(error), kind="error")

    return wrapper


def say(words: str, *, kind: str = "success") -> None:
    """Words for the top of the page at its next drawing."""
    st.session_state.setdefault(SAID, []).append((kind, words))


def show_what_was_said() -> None:
    """Draw and forget them, in a place that is there without words too: an expander below it that
    somebody opened would fold when the words go and everything moves up by one."""
    with st.container():
        for kind, words in st.session_state.pop(SAID, []):
            if kind == "error":
                st.error(plain(words), icon=":material/error:")
            else:
                st.success(plain(words), icon=":material/check_circle:")
