"""The batches of a run that works through OpenAI's Batch API: where each stands."""

import streamlit as st

from app.text.counted import counted
from app.text.plain import plain
from db.run.batches import OPEN, BatchSummary, list_batches
from db.store.store import open_store


def draw_batches(run_id: int) -> None:
    """A line on what is at the server, and the batches one by one on request."""
    with open_store().read() as session:
        found = list_batches(session, run_id)
    waiting = [each for each in found if each.status in OPEN]
    calls = sum(each.calls for each in waiting)
    words = f"{counted(len(waiting), 'batch', 'batches')} at the server with {calls:,} calls"
    if not waiting:
        words = "No batch is at the server now"
    st.caption(plain(f"{words}. A batch takes at most 24 hours; nothing needs to stay open here."))
    if found and st.toggle("Batches", key="curate.show_batches"):
        st.dataframe([_row(each) for each in found], hide_index=True)


def _row(each: BatchSummary) -> dict[str, object]:
    return {
        "Status": each.status,
        "Model": each.model,
        "Calls": each.calls,
        "Asked again": each.failed,
        "Since": each.created_at,
        "Ended": each.ended_at,
        "At the server": each.remote_id or "",
        "Trouble": each.error or "",
    }
