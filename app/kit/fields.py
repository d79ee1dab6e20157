"""Widgets of a form from the fields of a request."""

from collections.abc import Collection, Sequence
from typing import Any

import streamlit as st

from db.requests import Request, bounds_of, choices_of, default_of


def draw_fields(model: type[Request], *, key: str, without: Collection[str]) -> None:
    """Draw a widget for every field but these, under `KEY.FIELD` in the session's state."""
    for name, field in model.model_fields.items():
        if name not in without:
            _draw_field(model, name, field.title or name.replace("_", " ").capitalize(), key)


def values_of_form(model: type[Request], *, key: str) -> dict[str, Any]:
    """What the widgets `KEY.FIELD` of a form hold; a field without a widget is left out."""
    held = {name: st.session_state.get(f"{key}.{name}") for name in model.model_fields}
    return {name: value for name, value in held.items() if value is not None}


def _draw_field(model: type[Request], name: str, label: str, key: str) -> None:
    field = model.model_fields[name]
    default, where = default_of(model, name), f"{key}.{name}"
    choices: Sequence[Any] = choices_of(model, name)
    if isinstance(default, tuple):
        if choices:
            st.multiselect(
                label,
                choices,
                default=default,
                key=where,
                placeholder="as by default",
                help=field.description,
            )
    elif choices:
        st.selectbox(
            label, choices, index=choices.index(default), key=where, help=field.description
        )
    elif isinstance(default, bool):
        st.checkbox(label, default, key=where, help=field.description)
    elif isinstance(default, int | float):
        bounds = bounds_of(model, name)
        st.number_input(
            label,
            min_value=bounds.get("ge"),
            max_value=bounds.get("le"),
            value=default,
            key=where,
            help=field.description,
        )
    else:
        st.text_input(label, default or "", key=where, help=field.description)
