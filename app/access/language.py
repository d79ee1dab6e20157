"""The language of the annotators' pages: of the cookie, else of the browser."""

import streamlit as st

from app.text.languages import COOKIE, DEFAULT, best_language, text


def language_now() -> str:
    """The code of the language that this user's browser chose or accepts."""
    return best_language(st.context.cookies.get(COOKIE, ""), st.context.locale or "")


def language_of_items() -> str:
    """The code of the language in which this user is shown examples, of any that texts may have."""
    wanted: str = st.context.cookies.get(COOKIE, "") or st.context.locale or DEFAULT
    return wanted.lower().replace("_", "-").split("-")[0]


def say(key: str, **values: object) -> str:
    """The text of a key in the user's language."""
    return text(language_now(), key, **values)
