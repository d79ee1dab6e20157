"""The frame of every page: style, logo, and who is signed in."""

from html import escape
from pathlib import Path

import streamlit as st

from app.access.identity import SessionUser

STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
LOGO = Path(__file__).parent / "logo.svg"
ICON = Path(__file__).parent / "icon.svg"


def draw_style() -> None:
    """The few CSS rules that the theme's settings cannot express."""
    st.html(f"<style>{STYLE}</style>")


def draw_sidebar(user: SessionUser) -> None:
    """The logo above the menu, the user below it."""
    st.logo(str(LOGO), size="large")
    name = escape(user.name)
    if user.account_id is None:
        line = f"{name} · no accounts yet"
    else:
        line = (
            f'{name} · {user.role} · <a href="/account" target="_self">account</a> · '
            '<a href="/sign-out" target="_self">sign out</a>'
        )
    with st.sidebar:
        st.html(f'<p class="inf-user">{line}</p>')


def draw_signed_out() -> None:
    """The page without a valid cookie."""
    st.html('<p>You are signed out. <a href="/sign-in" target="_self">Sign in</a></p>')
