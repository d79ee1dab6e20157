"""Time and cost of a run by stage before it starts; unknown prices can be entered."""

from datetime import timedelta

import streamlit as st

from analysis.figures.numbers import Cells
from app.access.session_user import signed_in_user
from app.curate import actions
from app.kit.page import draw_table
from app.operations import runs
from app.operations.runs import RunEstimate
from app.text.numbers import counted, duration, money
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.run.estimate import StageEstimate
from db.errors import InfError


def draw_estimate(*, with_table: bool) -> str:
    """Estimate the form's run; with a table of its stages if so chosen.

    Returns the summary, which stands next to the button; "" where there is no estimate.
    """
    user = signed_in_user()
    try:
        wanted = actions.wanted_run()
        estimate = runs.estimate(user, wanted)
        reuse = ""
        if with_table:
            reuse = runs.reuse_if_created(user, wanted, "Choose “Request new answers” above")
    except InfError as error:
        st.error(plain(in_pages(str(error))))
        return ""
    if with_table:
        _draw_table(estimate, offline=wanted.provider == "offline")
        if reuse:
            st.caption(plain(reuse))
        if estimate.unpriced:
            _draw_price_form(estimate.unpriced)
    return _summary(estimate, wanted.provider)


def _draw_table(estimate: RunEstimate, *, offline: bool) -> None:
    rows = [
        {
            "Stage": stage.task.replace("_", " "),
            "Model": stage.model,
            "Calls": stage.calls,
            "Tokens in": stage.input_tokens,
            "Tokens out": stage.output_tokens,
            "USD": stage.usd,
            **_measured(stage),
        }
        for stage in estimate.stages
    ]
    if offline:
        rows = [{key: row[key] for key in ("Stage", "Model", "Calls")} for row in rows]
    draw_table(
        rows,
        column_config={
            "Calls": st.column_config.NumberColumn(format="localized"),
            "Tokens in": st.column_config.NumberColumn(format="localized"),
            "Tokens out": st.column_config.NumberColumn(format="localized"),
            "USD": st.column_config.NumberColumn(format="%.4f"),
            "So far: s per call": st.column_config.NumberColumn(format="%.2f"),
            "So far: cents per call": st.column_config.NumberColumn(format="%.4f"),
        },
    )


def _measured(stage: StageEstimate) -> Cells:
    """What calls of the same task and model took in this store."""
    found = stage.measured
    return {
        "So far: s per call": None if found is None else found.seconds,
        "So far: cents per call": None if found is None else 100 * found.usd,
    }


def _summary(estimate: RunEstimate, provider: str) -> str:
    if provider == "offline":
        return f"{estimate.pairs:,} pairs, processed by rules and an embedding model at no cost."
    cost = "an unknown price" if estimate.usd is None else f"about {money(estimate.usd)}"
    each = estimate.seconds_per_call
    time = "four rounds of batches, each within 24 hours and usually much faster"
    if estimate.hours is not None:
        time = (
            f"about {duration(timedelta(hours=estimate.hours))} at {each:.2g} s per call, "
            f"{counted(estimate.concurrency, 'call')} at once"
        )
    return (
        f"{estimate.pairs:,} pairs: {cost}, {time}. An upper estimate: it assumes that every pair "
        "reaches validation."
    )


def _draw_price_form(models: tuple[str, ...]) -> None:
    for model in models:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            for what, label in (("in", "input"), ("out", "output")):
                st.number_input(
                    f"{model}: USD per million {label} tokens",
                    0.0,
                    1e6,
                    0.0,
                    key=f"curate.price.{model}.{what}",
                )
    st.button(
        "Save prices",
        key="curate.keep_prices",
        on_click=actions.save_prices,
        args=(models,),
        help="Saved to prices.toml in INF_HOME; 0 for free models.",
    )
