"""Trouble with a run's server: the newest error, retries per minute, and what is waited for."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from app.text.plain import plain
from db.run.workers import Trouble


def draw_trouble(trouble: Trouble, *, live: bool) -> None:
    """Draw a notice while the run waits, and the newest error with its time."""
    if live and trouble.waiting_until is not None:
        until = local_time(trouble.waiting_until)
        st.info(
            plain(f"Waiting until {until} as the server requested."),
            icon=":material/hourglass_top:",
        )
    if trouble.last_error is None or trouble.last_error_at is None:
        return
    rate = f" · Retries in the last minute: {trouble.retries_per_minute:,}." if live else ""
    st.caption(
        plain(f"Last error at {local_time(trouble.last_error_at)}: {trouble.last_error}{rate}")
    )


def local_time(moment: datetime) -> str:
    """A moment in the browser's time zone, with the day if that is not today."""
    try:
        zone = ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        zone = ZoneInfo("UTC")
    local, today = moment.astimezone(zone), datetime.now(UTC).astimezone(zone).date()
    return local.strftime("%H:%M:%S" if local.date() == today else "%Y-%m-%d %H:%M:%S")
