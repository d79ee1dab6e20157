"""A run while it works: its pace, what it cost and will cost, what is accepted; its controls."""

import time

import streamlit as st

from app.curate import actions as curating
from app.groups.run_label import LIVE
from app.text.counted import counted
from app.text.plain import plain
from db.release.releases import recipe_of_run
from db.run.calls import CallTotals, call_totals
from db.run.runs import Funnel, RunSummary
from db.run.workers import WorkerTotals
from db.store.store import open_store

STOPPED = ("paused", "failed", "cancelled", "lost")
COUNTS = ("Calls", "Tokens in", "Tokens out", "Reasoning")
RATE_SECONDS = 10.0  # the rate is over about this long


def draw_controls(run: RunSummary, concurrency: int) -> None:
    """Pause, cancel and the calls at a time while it works; budget and resume while it does not."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if run.status in LIVE:
            st.number_input(
                "Calls at a time",
                1,
                50_000,
                concurrency,
                key=f"curate.width-{run.id}",
                width=140,
                on_change=curating.set_width,
                args=(run.id,),
                help="A running worker takes it up within a second or two.",
            )
            st.button(
                "Pause",
                key="curate.pause",
                icon=":material/pause:",
                on_click=curating.stop,
                args=(run.id,),
                help="What is in flight is finished and kept. It can be resumed.",
            )
            st.button(
                "Cancel run",
                key="curate.cancel",
                icon=":material/stop:",
                on_click=curating.stop,
                args=(run.id, True),
                help="As pausing, but the run counts as cancelled.",
            )
        elif run.status in STOPPED:
            if not run.offline:
                st.number_input(
                    "Budget in $",
                    0.0,
                    1e6,
                    run.budget_usd or 0.0,
                    key=f"curate.raise-{run.id}",
                    width=140,
                    help="0: none. It has to be more than what is spent.",
                )
            st.button(
                "Resume",
                type="primary",
                key="curate.resume",
                icon=":material/play_arrow:",
                on_click=curating.resume,
                args=(run.id,),
            )


def draw_pulse(run: RunSummary, found: Funnel, workers: WorkerTotals, *, live: bool) -> None:
    """Calls per second, calls in flight, trouble, money."""
    numbers: list[tuple[str, str, str]] = []
    if live:
        rate = _rate(run.id, workers.made)
        numbers += [
            ("Calls/s", "…" if rate is None else f"{rate:,.1f}", counted(workers.alive, "worker")),
            ("In flight", f"{workers.in_flight:,}", f"of {workers.width:,.0f} allowed now"),
        ]
    slowed = "never slowed down"
    if workers.throttled:
        slowed = f"slowed down {counted(workers.throttled, 'time')}"
    numbers += [
        ("Calls made", f"{workers.made:,}", f"{workers.reused:,} answers reused"),
        ("Failed tries", f"{workers.failures:,}", slowed),
    ]
    if not run.offline:
        to_come = _to_come(run.spent_usd, found)
        more = "to come: unknown" if to_come is None else f"to come: about ${to_come:,.4f}"
        if found.finished == found.pairs:
            more = "nothing to come"
        if workers.made and not run.spent_usd:
            more = "its models have no price in prices.toml"
        numbers.append(("Spent", f"${run.spent_usd:,.4f}", more))
    with st.container(horizontal=True, gap="small"):
        for label, number, more in numbers:
            with st.container(border=True, width=136, height="stretch"):
                st.metric(label, plain(number))
                st.caption(plain(more))


def draw_calls(run_id: int) -> None:
    """Acceptance, tokens and cost by stage, prompt and model, of finished groups."""
    if not st.toggle("Calls by stage, prompt and model", key="curate.show_calls"):
        return
    with open_store().read() as session:
        totals = call_totals(session, run_id)
        stages = recipe_of_run(session, run_id)[0].body.get("stages", {})
    if not totals:
        st.caption("No group is finished yet.")
        return
    st.dataframe(
        [_row(each, stages.get(each.task, {})) for each in totals],
        hide_index=True,
        column_config={
            "Accepted": st.column_config.ProgressColumn(format="percent", color="primary"),
            "USD": st.column_config.NumberColumn(format="%.4f"),
            **dict.fromkeys(COUNTS, st.column_config.NumberColumn(format="localized")),
        },
    )
    st.caption("Accepted: parsed and passed by the rules. Reasoning tokens are output tokens.")


def _row(each: CallTotals, stage: dict[str, str]) -> dict[str, object]:
    return {
        "Stage": each.task.replace("_", " "),
        "Calls": each.calls,
        "Accepted": each.parsed / each.calls if each.calls else None,
        "Tokens in": each.input_tokens,
        "Tokens out": each.output_tokens,
        "Reasoning": each.reasoning_tokens,
        "USD": each.cost_usd,
        "Model": each.model,
        "Prompt": f"{stage.get('prompt', '')} {stage.get('prompt_sha256', '')[:8]}",
    }


def _rate(run_id: int, made: int) -> float | None:
    """Calls per second since some seconds ago; None until there is something to compare with."""
    now, key = time.monotonic(), f"curate.samples-{run_id}"
    samples = [each for each in st.session_state.get(key, []) if now - each[0] <= RATE_SECONDS]
    samples.append((now, made))
    st.session_state[key] = samples
    (first_at, first), (last_at, last) = samples[0], samples[-1]
    return None if last_at - first_at < 1.0 else (last - first) / (last_at - first_at)


def _to_come(spent_usd: float, found: Funnel) -> float | None:
    """What the groups still to do will cost, if they cost as much as the finished ones."""
    return spent_usd / found.finished * (found.pairs - found.finished) if found.finished else None
