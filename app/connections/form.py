"""The form that adds a connection, on its own page and on Curate."""

import streamlit as st

from app.connections import actions
from app.operations import connections
from app.text.plain import plain, sentence
from db.requests import choices_of

KINDS = {
    "openai": "OpenAI",
    "azure": "Azure OpenAI",
    "compatible": "Compatible server",
    "offline": "Offline rules",
    "recorded": "Recorded answers",
}


def _draw_wrong(field: str) -> None:
    """What is wrong with a field of the form, under it, after the press that found it."""
    wrong = st.session_state.pop(f"{actions.WRONG}-{field}", None)
    if wrong:
        st.error(plain(sentence(wrong)), icon=":material/error:")


def draw_key_fields(key: str, secret: str) -> None:
    """The two ways to give a key: typed, or by the name of a secret."""
    st.text_input(
        "Key",
        type="password",
        key=f"connections.{key}",
        autocomplete="new-password",
        help="Stored encrypted and not shown again.",
    )
    st.text_input(
        "Or the name of a secret",
        key=f"connections.{secret}",
        placeholder="LAB_API_KEY",
        help="An environment variable of the processes that work, or an entry of secrets.toml.",
    )


def draw_form() -> None:
    """Add a connection."""
    with st.form("connections.add"):
        st.markdown("**Add a connection**")
        first, second, third = st.columns([2, 2, 4])
        with first:
            st.text_input("Name", key="connections.name", placeholder="lab")
            _draw_wrong("name")
        second.selectbox(
            "Kind",
            choices_of(connections.ConnectionAdd, "kind"),
            index=2,
            format_func=KINDS.__getitem__,
            key="connections.kind",
        )
        with third:
            st.text_input("URL", key="connections.url", placeholder="https://models.example.org/v1")
            _draw_wrong("url")
        first, second = st.columns(2)
        with first:
            draw_key_fields("key", "secret")
            _draw_wrong("key")
            _draw_wrong("secret")
        with second:
            st.text_area(
                "Prices (optional)",
                key="connections.prices",
                placeholder="model=0.15/0.6",
                help="USD per million tokens in and out, one model per line.",
            )
            _draw_wrong("prices")
            st.text_input("API version (Azure only)", key="connections.api_version")
        st.form_submit_button(
            "Add and test", type="primary", on_click=actions.add, key="connections.submit"
        )
