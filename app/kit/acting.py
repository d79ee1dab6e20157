"""Buttons that ask for one operation and say what came of it."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
from app.kit.fields import at_field, values_of_form
from app.operations.acting import queued
from db.requests import Request


def acting(
    operation: Callable[..., Any],
    said: Callable[[Any], str] = lambda _: "",
    *,
    takes: tuple[str, ...] = (),
    held: Mapping[str, str] | None = None,
    form: str = "",
) -> Callable[..., None]:
    """The callback that asks for the operation as the session's user, and reports its result.

    It takes what the operation takes after the actor; a job that the operation launches is queued.
    A request is made of what the form with this key holds, of widgets (`held`: their keys by
    field), and of the arguments: the fields that it `takes`. Keys have arguments in braces. Without
    a request what widgets hold is given to the operation itself. An error of a field of the form is
    drawn there.
    """
    parameters = inspect.signature(operation).parameters
    model = next((each.annotation for each in parameters.values() if _is_request(each)), None)

    @action
    def act(*args: Any, **given: Any) -> None:
        if form:
            with at_field(f"{form.format(*args)}.{{}}"):
                do(*args, **given)
        else:
            do(*args, **given)

    def do(*args: Any, **given: Any) -> None:
        if "launch" in parameters:
            given["launch"] = queued
        if model is not None and (takes or held or form):
            values = values_of_form(model, key=form.format(*args)) if form else {}
            for field, key in (held or {}).items():
                values[field] = st.session_state.get(key.format(*args))
            found = {name: value for name, value in values.items() if value is not None}
            args = (model.read(found | dict(zip(takes, args, strict=True))),)
        elif held:
            given |= {name: st.session_state[key.format(*args)] for name, key in held.items()}
        if text := said(operation(signed_in_user(), *args, **given)):
            notify(text)

    return act


def keep(key: str, value: Any, text: str = "") -> str:
    """Keep what came of it for the page's next run; returns the text."""
    st.session_state[key] = value
    return text


def _is_request(parameter: inspect.Parameter) -> bool:
    kind = parameter.annotation
    return isinstance(kind, type) and issubclass(kind, Request)
