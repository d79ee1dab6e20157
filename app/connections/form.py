"""The form that adds a connection, on its own page and on Curate."""

import streamlit as st

from app.connections import actions
from app.kit.fields import draw_wrong
from app.operations import connections
from db.requests import choices_of

KINDS = {
    "openai": "OpenAI",
    "azure": "Azure OpenAI",
    "compatible": "Compatible server",
    "offline": "Offline rules",
    "recorded": "Recorded answers",
}


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
            draw_wrong("connections.name")
        second.selectbox(
            "Kind",
            choices_of(connections.ConnectionAdd, "kind"),
            index=2,
            format_func=KINDS.__getitem__,
            key="connections.kind",
        )
        with third:
            st.text_input("URL", key="connections.url", placeholder="https://models.example.org/v1")
            draw_wrong("connections.url")
        first, second = st.columns(2)
        with first:
            draw_key_fields("key", "secret")
            draw_wrong("connections.key")
            draw_wrong("connections.secret")
        with second:
            st.text_area(
                "Prices (optional)",
                key="connections.prices",
                placeholder="model=0.15/0.6",
                help="USD per million tokens in and out, one model per line.",
            )
            draw_wrong("connections.prices")
            st.text_input("API version (Azure only)", key="connections.api_version")
        st.form_submit_button(
            "Add and test", type="primary", on_click=actions.add, key="connections.submit"
        )
