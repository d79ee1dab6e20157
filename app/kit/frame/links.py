"""Links to pages. All keep the chosen dataset: no other module calls Streamlit's own."""

from collections.abc import Mapping
from typing import Any, NoReturn

import streamlit as st

from app.kit.frame.dataset import with_dataset
from app.kit.menu import FILES

NOTHING: Mapping[str, object] = {}


def page_link(
    view: str,
    label: str,
    *,
    icon: str | None = None,
    width: Any = "stretch",
    parameters: Mapping[str, object] = NOTHING,
) -> None:
    """Draw a link to a page, with these parameters in its URL.

    Whether the user may open the page is for the caller to ask.
    """
    st.page_link(FILES[view], label=label, icon=icon, width=width, query_params=_in_url(parameters))


def go_to(view: str, parameters: Mapping[str, object] = NOTHING) -> NoReturn:
    """End this page and open another."""
    st.switch_page(FILES[view], query_params=_in_url(parameters))


def _in_url(parameters: Mapping[str, object]) -> dict[str, str]:
    return with_dataset({name: str(value) for name, value in parameters.items()})
