"""Widgets of a form from the fields of a request."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol

import streamlit as st

from app.text.languages import DEFAULT, error_text
from app.text.plain import plain, sentence
from app.text.remedies import in_pages
from db.errors import InfError
from db.requests import (
    Request,
    bounds_of,
    choices_of,
    default_of,
    is_mapping,
    mapping_of,
    type_of,
)

SHARE = {"ge": 0, "le": 1}  # the bounds of a share, which forms show in percent
WRONG, AT = "fields.wrong", "fields.at"  # errors by their fields' keys; keys of fields with a place
# The field to blame for an error, by its code or, where it ends in "_", by the beginning of it; a
# request names its own.
FIELDS = {
    "account_": "name",
    "account_field_": "email",
    "branch_missing": "branch",
    "combinations_too_many": "objectives",
    "connection_exists": "name",
    "connection_key_": "key",
    "connection_name_": "name",
    "connection_secret_": "secret",
    "connection_url_": "url",
    "connection_without_url": "url",
    "corpus_missing": "datasets",
    "dataset_name_": "name",
    "email_": "email",
    "evaluation_data_missing": "benchmark",
    "evaluation_set_missing": "against_datasets",
    "item_count_": "items",
    "model_missing": "models",
    "password_": "password",
    "recipe_file_name_invalid": "name",
    "recipe_name_": "name",
    "release_exists": "name",
    "release_name_": "name",
    "repository_name_": "repo",
    "right_not_chosen": "rights",
    "rows_invalid": "lines",
    "server_address_": "url",
    "server_redirects": "url",
    "server_wants_sign_in": "url",
    "server_refuses_key": "key",
    "server_unreachable": "url",
    "stratum_unknown": "strata",
    "sweep_name_missing": "name",
    "token_beyond_person": "rights",
    "token_days": "days",
    "token_name": "name",
    "webhook_url": "url",
}


class Uploaded(Protocol):
    """What a file's widget returns: a file uploaded by the browser."""

    name: str
    file_id: str
    size: int

    def read(self, size: int = -1, /) -> bytes: ...


def draw_fields(
    model: type[Request],
    names: Iterable[str],
    *,
    key: str,
    now: Request | None = None,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Draw a widget for each of these fields, under `KEY.FIELD` in the session's state.

    now: what they begin with, by default the model's defaults; more: what the widget of a field
    takes besides, such as `options` that are known only here. A share is drawn in percent, several
    texts as lines, a number that may be left out as an empty field.
    """
    for name in names:
        first = None if model.model_fields[name].is_required() else default_of(model, name)
        value = first if now is None else getattr(now, name)
        given = {"key": f"{key}.{name}", **(more or {}).get(name, {})}
        is_wrong = given["key"] in st.session_state.get(WRONG, ())
        with st.container(width=given.get("width", "stretch")) if is_wrong else nullcontext():
            _draw_field(model, name, value, given)
            draw_wrong(given["key"])


def draw_wrong(key: str) -> None:
    """What is wrong with the field of this key, under it, after the press that found it."""
    st.session_state.setdefault(AT, set()).add(key)
    if wrong := st.session_state.get(WRONG, {}).pop(key, ""):
        st.error(plain(sentence(wrong)), icon=":material/error:")


@contextmanager
def at_field(form: str) -> Iterator[None]:
    """Keep an error for the field of the form that is to blame for it; raise any other.

    form: the keys of its fields, as `releases.{}`.
    """
    try:
        yield
    except InfError as error:
        key = form.format(field_of(error))
        if key not in st.session_state.get(AT, ()):
            raise
        st.session_state.setdefault(WRONG, {})[key] = error_text(DEFAULT, error)


def field_of(error: InfError) -> str | None:
    """The field of a form that is to blame for the error, if one is."""
    if isinstance(named := error.values.get("field"), str):
        return named
    codes = [
        code
        for code in FIELDS
        if code == error.code or (code.endswith("_") and error.code.startswith(code))
    ]
    return FIELDS[max(codes, key=len)] if codes else None


def values_of_form(model: type[Request], *, key: str) -> dict[str, Any]:
    """What the widgets `KEY.FIELD` of a form hold; a field without one, or empty, is left out.

    Raises BadInput for lines of a mapping that are not `KEY=VALUE`.
    """
    held = {name: st.session_state.get(f"{key}.{name}") for name in model.model_fields}
    return {name: _value(model, name, held) for name, held in held.items() if held is not None}


def _value(model: type[Request], name: str, held: Any) -> Any:
    if bounds_of(model, name) == SHARE:
        return held / 100
    if not (isinstance(held, str) and type_of(model, name)[1]):
        return held
    lines = held.splitlines()
    return mapping_of(model, name, filter(str.strip, lines)) if is_mapping(model, name) else lines


def _draw_field(model: type[Request], name: str, value: Any, given: dict[str, Any]) -> None:
    field, bounds = model.model_fields[name], bounds_of(model, name)
    label = field.title or name.replace("_", " ").capitalize()
    given = {"help": in_pages(field.description or ""), **given}
    options, kind = given.pop("options", choices_of(model, name)), type_of(model, name)[0]
    if isinstance(value, tuple):
        if options:
            st.multiselect(label, options, value, **{"placeholder": "as by default", **given})
        else:
            st.text_area(label, "\n".join(value), **given)
    elif options:
        index = options.index(value) if value in options else 0 if field.is_required() else None
        st.selectbox(label, options, index, **given)
    elif isinstance(value, bool):
        st.checkbox(label, value, **given)
    elif bounds == SHARE:
        st.number_input(f"{label}, %", 0, 100, round(100 * value), **given)
    elif kind in (int, float):  # Streamlit takes bounds of the value's own type alone
        ends = (None if end is None else kind(end) for end in map(bounds.get, ("ge", "le")))
        limits = dict(zip(("min_value", "max_value"), ends, strict=True))
        st.number_input(label, value=value, **{"step": kind(1), **limits, **given})
    else:
        st.text_input(label, value or "", **given)
