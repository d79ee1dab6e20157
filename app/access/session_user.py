"""The user of this Streamlit session, their permissions, and the notices of their last action.

`st.session_state` holds only the notices to show next. The user is read from cookie and store at
every rerun and again in every action, so that a revoked role takes effect at once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec

import streamlit as st
from sqlalchemy.exc import NoResultFound

from app.access.identity import CookieHolder, SessionUser
from app.access.permissions import require, signed_in
from app.access.scope import read_user, scope_kept, work_under
from app.text.languages import DEFAULT, error_text, text
from app.text.plain import plain, sentence
from db.assignment import hidden
from db.errors import InfError
from db.store.store import open_store

P = ParamSpec("P")
NOTICES = "session.notices"


def current_user() -> SessionUser | None:
    """The signed-in user; None when signed out."""
    return read_user()


def signed_in_user() -> SessionUser:
    """The signed-in user, as the actor of an operation. Raises Refused when signed out."""
    return signed_in(current_user())


def cookie_holder() -> CookieHolder:
    """Whoever the cookies of this page name, for an operation that reads it while it works."""
    return CookieHolder("", cookies=st.context.cookies)


def require_permission(permission: str) -> SessionUser:
    """The current user if they have the permission on anything. Raises Refused.

    Sessions of the store opened afterwards see only that on which they have it.
    """
    user = require(read_user(), permission)
    work_under(user, permission)
    return user


def hidden_from_user() -> set[int]:
    """The groups that are hidden from the user: see `db.assignment.hidden`.

    Raises Refused for who is signed out.
    """
    name = signed_in_user().name
    with open_store().read() as session:
        return set(session.scalars(hidden.hidden_groups(session, name)))


def hidden_pairs_from_user() -> set[int]:
    """The pairs whose groups are hidden from the user. Raises Refused for who is signed out."""
    name = signed_in_user().name
    with open_store().read() as session:
        return set(session.scalars(hidden.hidden_pairs(session, name)))


@contextmanager
def failures_shown(language: str = DEFAULT) -> Iterator[None]:
    """Show an InfError of the page as a message instead of breaking it.

    Pages that the catalogue has pass their language; the others are English.
    """
    try:
        yield
    except InfError as error:
        st.error(plain(sentence(error_text(language, error))), icon=":material/error:")
    except NoResultFound:  # of a row that this user may not see, or that is gone
        st.error(text(language, "refused.not_there"), icon=":material/error:")


def action(function: Callable[P, None]) -> Callable[P, None]:
    """Decorate a callback: its InfError becomes a notice instead of breaking the page."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with scope_kept():
                function(*args, **kwargs)
        except InfError as error:
            notify(sentence(error_text(DEFAULT, error)), kind="error")
        except NoResultFound:
            notify(text(DEFAULT, "refused.not_there"), kind="error")

    return wrapper


def notify(message: str, *, kind: str = "success") -> None:
    """Show a message at the top of the page on its next rerun."""
    st.session_state.setdefault(NOTICES, []).append((kind, message))


def show_notices() -> None:
    """Draw the notices and clear them.

    The container is drawn even without notices: otherwise every element below it would move up by
    one when they disappear, and an open expander would fold.
    """
    with st.container(key="frame-notices"):
        for kind, message in st.session_state.pop(NOTICES, []):
            if kind == "error":
                st.error(plain(message), icon=":material/error:")
            else:
                st.success(plain(message), icon=":material/check_circle:")
