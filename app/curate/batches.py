"""The status of a run's batches in OpenAI's Batch API."""

import streamlit as st

from app.access.identity import SessionUser
from app.kit.page import draw_table
from app.operations.overview import run
from app.text.numbers import counted
from app.text.plain import plain
from db.run.batches import OPEN, BatchSummary


def draw_batches(user: SessionUser, run_id: int) -> None:
    """Draw a line on the open batches, and a table of all batches on request."""
    found = run.batches(user, run_id)
    waiting = [each for each in found if each.status in OPEN]
    calls = sum(each.calls for each in waiting)
    summary = (
        f"{counted(len(waiting), 'batch', 'batches')} at the server with {counted(calls, 'call')}"
    )
    if not waiting:
        summary = "No open batches"
    st.caption(plain(f"{summary}. A batch takes at most 24 hours; this page need not stay open."))
    if found and st.toggle("Batches", key="curate.show_batches"):
        draw_table([_row(each) for each in found])


def _row(each: BatchSummary) -> dict[str, object]:
    return {
        "Status": each.status,
        "Model": each.model,
        "Calls": each.calls,
        "Retried calls": each.failed,
        "Created": each.created_at,
        "Ended": each.ended_at,
        "Batch id": each.remote_id or "",
        "Error": each.error or "",
    }
