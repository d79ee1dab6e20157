"""What the sessions of a page see: the user's datasets, runs and studies, by the page's permission.

The page and every action set the permission they work under. A fragment is drawn again without its
page's script: it works under the permission of the page that drew it, by the user's rights of now.
For who is signed out, and before any page, sessions see nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.access.identity import SessionUser, user_of_cookies
from app.access.permissions import NEEDS
from db.store.scope import (
    Scope,
    scope_pages_by,
)
from db.store.store import open_store

NOTHING = Scope("", frozenset())
PAGE_PERMISSION = "session.page_permission"
_current: ContextVar[tuple[Scope | None] | None] = ContextVar("page_scope", default=None)
_drawn_for: ContextVar[SessionUser | None] = ContextVar("drawn_for", default=None)


def read_user() -> SessionUser | None:
    """The signed-in user of this page; None when signed out.

    Read once while a page is drawn; anew in each action and in a fragment that is drawn alone.
    """
    return _drawn_for.get() or user_of_cookies(open_store(), st.context.cookies)


def work_under(user: SessionUser | None, permission: str) -> None:
    """Limit the sessions opened from now on to what the permission lets the user see."""
    _current.set((NOTHING if user is None else NEEDS[permission].scope(user),))


@contextmanager
def drawn_for(user: SessionUser) -> Iterator[None]:
    """What is read within is read for this user, whose rights were read a moment ago."""
    token = _drawn_for.set(user)
    try:
        yield
    finally:
        _drawn_for.reset(token)


def begin_page(user: SessionUser, permission: str) -> None:
    """Draw a page, and later its fragments, under this permission."""
    st.session_state[PAGE_PERMISSION] = permission
    work_under(user, permission)


@contextmanager
def scope_kept() -> Iterator[None]:
    """What is drawn after an action has the page's scope again, not the action's."""
    token = _current.set(_current.get())
    try:
        yield
    finally:
        _current.reset(token)


def _scope_of_page() -> tuple[Scope | None] | None:
    if get_script_run_ctx(suppress_warning=True) is None:
        return None
    found = _current.get()
    if found is None:
        permission = st.session_state.get(PAGE_PERMISSION)
        work_under(None if permission is None else read_user(), permission or "any")
        found = _current.get()
        assert found is not None
    return found


scope_pages_by(_scope_of_page)
