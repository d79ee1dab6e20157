"""Choosing a dataset, a run, or a page of a long list; the choice is kept in the URL."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import streamlit as st

T = TypeVar("T")
PAGE_ROWS = 20


def choose(
    label: str,
    options: Sequence[T],
    *,
    key: str,
    parameter: str,
    ident: Callable[[T], object],
    name: Callable[[T], str],
    default: Callable[[], T] | None = None,
) -> T:
    """A select box over the options; `?parameter=` in the URL sets the initial choice.

    Without it, the initial choice is what `default` returns, or the first option.
    """
    by_id = {str(ident(option)): option for option in options}
    ids = list(by_id)
    wanted = st.query_params.get(parameter)
    if st.session_state.get(key) not in by_id:
        if wanted not in by_id:
            wanted = ids[0] if default is None else str(ident(default()))
        st.session_state[key] = wanted
    chosen = st.selectbox(
        label,
        ids,
        key=key,
        format_func=lambda each: name(by_id[each]) if each in by_id else each,
        on_change=_write_to_url,
        args=(key, parameter),
    )
    return by_id[chosen]


def _write_to_url(key: str, parameter: str) -> None:
    st.query_params[parameter] = st.session_state[key]


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
