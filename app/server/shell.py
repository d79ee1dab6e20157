"""What is around every page: style, the name, who is signed in."""

from html import escape
from pathlib import Path

import streamlit as st

from app.access.identity import Visitor

STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
LOGO = Path(__file__).parent / "logo.svg"
ICON = Path(__file__).parent / "icon.svg"


def draw_style() -> None:
    """The few rules the theme's settings have no words for."""
    st.html(f"<style>{STYLE}</style>")


def draw_sidebar(visitor: Visitor) -> None:
    """The name of the app above the menu, the visitor below it."""
    st.logo(str(LOGO), size="large")
    name = escape(visitor.name)
    if visitor.account_id is None:
        line = f"{name} · no accounts yet"
    else:
        line = f'{name} · {visitor.role} · <a href="/sign-out" target="_self">sign out</a>'
    with st.sidebar:
        st.html(f'<p class="inf-visitor">{line}</p>')


def draw_signed_out() -> None:
    """All that somebody without a valid cookie sees."""
    st.html('<p>You are signed out. <a href="/sign-in" target="_self">Sign in</a></p>')
