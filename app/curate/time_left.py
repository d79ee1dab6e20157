"""The time a run still takes, in all and by phase."""

from datetime import timedelta

import streamlit as st

from app.kit.page import draw_table
from app.text.numbers import counted, duration
from app.text.plain import plain
from curation.run.time_left import TimeLeft


def draw_time_left(left: TimeLeft) -> None:
    """Draw the remaining time with its basis, and the phases on request."""
    st.caption(plain(summary(left)))
    if st.toggle("Time left by phase", key="curate.show_phases"):
        draw_table(
            [
                {
                    "Phase": phase.stage,
                    "Answers": phase.answered,
                    "Calls left, about": round(phase.left),
                    "Time left": "–"
                    if phase.seconds is None
                    else duration(timedelta(seconds=phase.seconds)),
                }
                for phase in left.phases
            ],
        )


def summary(left: TimeLeft) -> str:
    """One sentence: the time left, or why there is no figure."""
    calls = counted(round(left.calls), "call")
    if left.seconds is None:
        return f"About {calls} left. No time yet: {left.why}."
    return (
        f"About {duration(timedelta(seconds=left.seconds))} left: about {calls} at the rate of the "
        "last minutes."
    )
