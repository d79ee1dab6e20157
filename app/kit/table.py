"""Tables of the pages: without an index, and with a dash in cells without a value."""

from typing import Any

import streamlit as st

MISSING = "–"  # in cells without a value; Streamlit's own is "None"


def draw_table(rows: Any, **table: Any) -> Any:
    """Draw the rows, or a frame, as a table. Returns the selection if one is asked for.

    `table` goes to `st.dataframe`.
    """
    return st.dataframe(rows, hide_index=True, placeholder=MISSING, **table)
