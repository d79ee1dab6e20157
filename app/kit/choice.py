"""Choosing a dataset, a run, or a page of a long list; the choice is kept in the URL."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from app.text.languages import DEFAULT, text
from app.text.plain import plain

T = TypeVar("T")
PAGE_ROWS = 20


@dataclass(frozen=True)
class Drawn:
    """A choice as it was drawn last: under which number, with which value, at which address."""

    number: int
    value: str | None
    address: str | None


def choose(
    label: str,
    options: Sequence[T],
    *,
    key: str,
    parameter: str,
    ident: Callable[[T], object],
    name: Callable[[T], str],
    default: Callable[[], T] | None = None,
    language: str = DEFAULT,
) -> T:
    """A select box over the options, of which `?parameter=` in the URL names one, also after Back.

    Without it, the choice is the one drawn before, at first what `default` returns, or the first
    option. An address that names none of them is answered so: what is shown is not what it names.
    """
    by_id = {str(ident(option)): option for option in options}
    wanted = st.query_params.get(parameter)
    before = _drawn_before(key)
    if wanted in by_id:
        shown = wanted
    elif before and before.address == wanted and before.value in by_id:
        shown = before.value
    else:
        shown = next(iter(by_id)) if default is None else str(ident(default()))
    is_gone = bool(wanted) and wanted not in by_id
    with st.container(gap="small") if is_gone else nullcontext():
        if is_gone:
            missing = f"{label} {wanted}: {text(language, 'refused.not_there')}"
            st.warning(plain(missing), icon=":material/link_off:")
        chosen = draw_choice(
            label,
            list(by_id),
            shown,
            key=key,
            address=wanted,
            on_choice=partial(_write_to_url, parameter),
            format_func=lambda each: name(by_id[each]) if each in by_id else each,
        )
    return by_id[chosen or shown]


def draw_choice(
    label: str,
    options: Sequence[str],
    shown: str | None,
    *,
    key: str,
    on_choice: Callable[[str], object],
    address: str | None = None,
    **look: Any,
) -> str | None:
    """A select box that shows `shown`; `on_choice` is called with what the user picks instead.

    Where the address changed what is shown, not the user, another box is drawn, under another key:
    a browser that has not heard of the change sends the value of the box that it has, and Streamlit
    would take it for a choice. For the same reason `shown` is the box's own first value: a value
    that is set in the session is sent once, and lost with the drawing that a busy browser skips.
    """
    number = _number(key, shown)
    st.session_state[f"{key}.drawn"] = Drawn(number, shown, address)
    with st.container(key=f"{key}-choice"):
        chosen: str | None = st.selectbox(
            label,
            options,
            index=None if shown is None else options.index(shown),
            key=_widget(key, number),
            on_change=_take_choice,
            args=(key, number, on_choice),
            **look,
        )
    return chosen


def _number(key: str, shown: str | None) -> int:
    """The number of the box that shows this: another one than before where that shows otherwise."""
    before: Drawn | None = st.session_state.get(f"{key}.drawn")
    if before is None:
        return 0
    held = st.session_state.get(_widget(key, before.number), shown)
    return before.number + (before.value != shown or held != shown)


def _take_choice(key: str, number: int, on_choice: Callable[[str], object]) -> None:
    before = st.session_state[f"{key}.drawn"]
    chosen = st.session_state[_widget(key, number)]
    if chosen is not None and number == before.number:
        on_choice(chosen)
        st.session_state[f"{key}.drawn"] = Drawn(number, chosen, chosen)


def _widget(key: str, number: int) -> str:
    return f"{key}.{number}" if number else key


def _drawn_before(key: str) -> Drawn | None:
    """The choice as drawn last, where this page drew it."""
    before: Drawn | None = st.session_state.get(f"{key}.drawn")
    return before if before and _widget(key, before.number) in st.session_state else None


def _write_to_url(parameter: str, chosen: str) -> None:
    st.query_params[parameter] = chosen


def take_from_url(key: str, parameter: str, options: Mapping[str, object]) -> None:
    """Set a widget that is not drawn yet to what `?parameter=` in the URL names.

    options: the widget's values by how the URL names them.
    """
    wanted = st.query_params.get(parameter, "")
    if wanted in options and key not in st.session_state:
        st.session_state[key] = options[wanted]


def take_many_from_url(key: str, parameter: str, options: Mapping[str, object]) -> None:
    """Set a multiselect that is not drawn yet to what `?parameter=A,B` in the URL names."""
    wanted = st.query_params.get(parameter, "").split(",")
    found = [options[name] for name in wanted if name in options]
    if found and key not in st.session_state:
        st.session_state[key] = found


def keep_in_url(parameter: str, chosen: Sequence[object]) -> None:
    """Name what is chosen as `?parameter=A,B` in the URL, for a reload or a link."""
    wanted = ",".join(map(str, chosen))
    if wanted == st.query_params.get(parameter, ""):
        return
    if wanted:
        st.query_params[parameter] = wanted
    else:
        del st.query_params[parameter]


def draw_pages(total: int, *, key: str, rows: int = PAGE_ROWS) -> int:
    """Draw the pager of a list that is longer than a page. Returns the offset.

    Call it before the list inside a container, or after the list together with `page_offset`.
    """
    pages = max(1, -(-total // rows))
    if st.session_state.get(key, 1) > pages:
        st.session_state[key] = pages
    if pages == 1:
        return 0
    page = st.pagination(pages, key=key)
    return (int(page or 1) - 1) * rows


def page_offset(key: str, rows: int = PAGE_ROWS) -> int:
    """The offset of the page chosen in `draw_pages`, available before the pager is drawn."""
    return (int(st.session_state.get(key) or 1) - 1) * rows
