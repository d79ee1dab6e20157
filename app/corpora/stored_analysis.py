"""A stored analysis on its page: choose one, show its origin, start the next."""

from collections.abc import Callable, Sequence

import streamlit as st

from app.corpora import actions
from app.jobs_page.card import follow_job
from app.kit.analysis_command import analysis_command
from app.kit.choice import choose
from app.kit.figure import Origin
from db.tables import Analysis


def draw_start_button(page: str, label: str) -> None:
    """The button that queues the analysis of the form."""
    st.button(
        label,
        type="primary",
        key=f"{page}.start",
        on_click=actions.start,
        args=(page,),
    )


def draw_started(page: str) -> None:
    """The progress of the job that was started here."""
    if f"{page}.job" in st.session_state:
        follow_job(st.session_state[f"{page}.job"], key=f"{page}.follow")


def choose_analysis(
    page: str, found: Sequence[Analysis], name: Callable[[Analysis], str] | None = None
) -> Analysis:
    """The chosen stored analysis, by default the latest."""
    return choose(
        "Stored analysis",
        found,
        key=f"{page}.chosen",
        parameter="analysis",
        ident=lambda each: each.id,
        name=name or analysis_name,
    )


def analysis_name(found: Analysis) -> str:
    """Its corpora and when it was computed."""
    names = ", ".join(corpus["corpus"] for corpus in found.result["corpora"])
    against = ", ".join(corpus["corpus"] for corpus in found.result.get("against", ()))
    return f"{names}{' against ' * bool(against)}{against} · {found.created_at:%Y-%m-%d %H:%M}"


def origin_of(found: Analysis) -> Origin:
    """Its input hash, time and command."""
    runs = [corpus.get("run_id") for corpus in found.result["corpora"]]
    return Origin(
        found.inputs_sha256[:12],
        found.created_at,
        analysis_command(found.kind, found.config, runs),
    )
