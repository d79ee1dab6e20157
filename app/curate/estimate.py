"""Time and cost of a run by stage before it starts; unknown prices can be entered."""

from datetime import timedelta

import streamlit as st

from app.curate import actions
from app.curate.pairs_actions import chosen_query_ids
from app.kit.page import draw_table
from app.text.numbers import duration, money
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.run.estimate import Estimate, StageEstimate, prices_for
from curation.run.starting import choose_recipe, default_concurrency
from db.errors import InfError


def draw_estimate(dataset_id: int) -> None:
    """Draw the estimate for the settings of the form, with a table of its stages."""
    state = st.session_state
    provider = state["curate.provider"]
    batch = actions.uses_batches()
    try:
        recipe = choose_recipe(provider, state["curate.recipe"], actions.recipe_settings())
        estimate = actions.estimate_of(
            dataset_id,
            recipe,
            prices_for(provider, recipe, batch=batch),
            limit=_pairs(int(state["curate.limit"])),
            concurrency=int(state["curate.concurrency"]) or default_concurrency(provider),
            provider=provider,
        )
        reuse = actions.reuse_before_start()
    except InfError as error:
        st.error(plain(in_pages(str(error))))
        return
    _draw_table(estimate, offline=provider == "offline")
    st.caption(plain(_summary(estimate, provider, batch)))
    if reuse:
        st.caption(plain(reuse))
    if estimate.unpriced:
        _draw_price_form(estimate.unpriced)


def _pairs(limit: int) -> int | None:
    """How many pairs the run takes at most; None: all. Raises BadInput."""
    chosen = chosen_query_ids()
    return min(limit or len(chosen), len(chosen)) if chosen else limit or None


def _draw_table(estimate: Estimate, *, offline: bool) -> None:
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


def _measured(stage: StageEstimate) -> dict[str, object]:
    """What calls of the same task and model took in this store."""
    found = stage.measured
    return {
        "So far: s per call": None if found is None else found.seconds,
        "So far: cents per call": None if found is None else 100 * found.usd,
    }


def _summary(estimate: Estimate, provider: str, batch: bool) -> str:
    if provider == "offline":
        return f"{estimate.pairs:,} pairs, processed by rules and an embedding model at no cost."
    cost = "an unknown price" if estimate.usd is None else f"about {money(estimate.usd)}"
    each = estimate.seconds_per_call
    time = f"about {duration(timedelta(hours=estimate.hours))} at {each:.2g} s per call"
    if batch:
        time = "four rounds of batches, each within 24 hours and usually much faster"
    return (
        f"{estimate.pairs:,} pairs: {cost}, {time}. An upper estimate: it assumes that every pair "
        "reaches validation."
    )


def _draw_price_form(models: list[str]) -> None:
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
        args=(tuple(models),),
        help="Saved to prices.toml in INF_HOME; 0 for free models.",
    )
