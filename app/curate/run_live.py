"""A run in progress: rate, cost, acceptance, controls, trouble, time left and batches."""

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from analysis.figures.figures import stage_lanes
from analysis.figures.numbers import Cells
from app.access.identity import SessionUser
from app.curate import actions
from app.kit.figure import draw_plot
from app.kit.page import MISSING, draw_table
from app.operations.overview import run
from app.operations.overview import run as run_now
from app.operations.overview.run import LIVE
from app.text.numbers import counted, duration
from app.text.plain import plain
from curation.recipe.drop_reasons import reason_text
from curation.recorded import NAME as RECORDED
from curation.run.time_left import TimeLeft
from db.run.batches import OPEN, BatchSummary
from db.run.calls import CallTotals
from db.run.runs import Funnel, Outcomes, RunSummary
from db.run.workers import Trouble, WorkerTotals

STOPPED = ("paused", "failed", "cancelled", "lost")
COUNTS = ("Calls", "Tokens in", "Tokens out", "Reasoning")
RATE_SECONDS = 10.0  # window of the calls-per-second rate
MIN_LANES = 3  # intervals that are drawn at least


def draw_controls(run: RunSummary, concurrency: int, *, guard_tripped: bool = False) -> None:
    """Draw pause, cancel and concurrent calls while the run works, else budget and resume.

    `guard_tripped`: the guard paused the run; it can go on without.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if run.status in LIVE:
            st.number_input(
                "Concurrent calls",
                1,
                50_000,
                concurrency,
                key=f"curate.width-{run.id}",
                width=140,
                on_change=actions.set_width,
                args=(run.id,),
                help="Takes effect within a second or two.",
            )
            st.button(
                "One worker more",
                key="curate.grow",
                icon=":material/person_add:",
                on_click=actions.grow,
                args=(run.id,),
                help="A further process shares the run: its groups, concurrent calls and budget.",
            )
            st.button(
                "One worker less",
                key="curate.shrink",
                icon=":material/person_remove:",
                on_click=actions.shrink,
                args=(run.id,),
                help="The newest process completes its calls in flight and leaves; one stays.",
            )
            st.button(
                "Pause",
                key="curate.pause",
                icon=":material/pause:",
                on_click=actions.stop,
                args=(run.id,),
                help="Calls in flight are completed and kept. The run can be resumed.",
            )
            st.button(
                "Cancel run",
                key="curate.cancel",
                icon=":material/stop:",
                on_click=actions.stop,
                args=(run.id, True),
                help="Like Pause, but the run is marked as cancelled.",
            )
        elif run.status in STOPPED:
            if not run.offline:
                st.number_input(
                    "Budget in $",
                    0.01,
                    1e6,
                    None,
                    key=f"curate.raise-{run.id}",
                    width=140,
                    placeholder="no limit" if run.budget_usd is None else f"{run.budget_usd:,.2f}",
                    help="Must exceed the amount spent. Empty: as before.",
                )
            st.button(
                "Resume",
                type="primary",
                key="curate.resume",
                icon=":material/play_arrow:",
                on_click=actions.resume,
                args=(run.id,),
            )
            if guard_tripped:
                st.button(
                    "Go on without guard",
                    key="curate.no_guard",
                    icon=":material/remove_moderator:",
                    on_click=actions.resume,
                    args=(run.id, False),
                    help="Continue although all groups so far were dropped for one reason.",
                )


def draw_retry(run: RunSummary, ended: Outcomes) -> None:
    """Draw the choice of a drop reason and the button that tries its groups again."""
    if not ended.dropped:
        return
    key = f"curate.retry-{run.id}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Dropped groups",
            sorted(ended.dropped, key=lambda reason: -ended.dropped[reason]),
            format_func=lambda reason: f"{reason_text(reason)} · {ended.dropped[reason]:,}",
            key=key,
            width=420,
        )
        st.button(
            "Try these again",
            key="curate.retry",
            icon=":material/replay:",
            on_click=actions.retry,
            args=(run.id,),
            help="Opens the groups dropped for this reason. The answers that led to the drop are "
            "requested anew, other answers are reused. Groups in a study, in a release or with a "
            "review stay as they are.",
        )


def draw_pulse(run: RunSummary, found: Funnel, workers: WorkerTotals, *, live: bool) -> None:
    """Draw calls per second, calls in flight, failures and cost."""
    numbers: list[tuple[str, str, str]] = []
    if live:
        rate = _rate(run.id, workers.made)
        who = workers.without_place() or counted(workers.alive, "worker")
        numbers += [
            ("Calls/s", "…" if rate is None else f"{rate:,.1f}", who),
            (
                "In flight",
                f"{workers.in_flight:,}",
                f"of {workers.width:,.0f} allowed now" if workers.width else "no limit",
            ),
        ]
    slowed = "never throttled"
    if workers.throttled:
        slowed = f"throttled {counted(workers.throttled, 'time')}"
    if workers.died_in_flight:
        slowed += f"; about {counted(workers.died_in_flight, 'call')} in flight when workers died"
    numbers += [
        ("Calls made", f"{workers.made:,}", f"{workers.reused:,} answers reused"),
        ("Failed attempts", f"{workers.failures:,}", slowed),
    ]
    if not run.offline:
        remaining = _remaining_usd(run.spent_usd, found)
        more = "remaining: unknown" if remaining is None else f"remaining: about ${remaining:,.4f}"
        if found.finished == found.pairs:
            more = "nothing remaining"
        if workers.unanswered_usd:
            more += f"; at most ${workers.unanswered_usd:,.4f} for calls without an answer"
        spent = f"${run.spent_usd:,.4f}"
        if run.provider == RECORDED:
            spent, more = MISSING, "recorded answers cost nothing"
        elif workers.made and not run.spent_usd:
            spent, more = MISSING, "not known: no price for its models in prices.toml"
        numbers.append(("Spent", spent, more))
    with st.container(horizontal=True, gap="small"):
        for label, number, more in numbers:
            with st.container(border=True, width=136, height="stretch"):
                st.metric(label, plain(number))
                st.caption(plain(more))


def draw_calls(user: SessionUser, run_id: int) -> None:
    """Draw acceptance, tokens and cost of finished groups by stage, prompt and model."""
    if not st.toggle("Calls by stage, prompt and model", key="curate.show_calls"):
        return
    found = run_now.calls(user, run_id)
    if not found.totals:
        st.caption("No finished groups yet.")
        return
    draw_table(
        [_row(each, found.stages.get(each.task, {})) for each in found.totals],
        column_config={
            "Accepted": st.column_config.ProgressColumn(format="percent", color="primary"),
            "USD": st.column_config.NumberColumn(format="%.4f"),
            **dict.fromkeys(COUNTS, st.column_config.NumberColumn(format="localized")),
        },
    )
    if found.unknown_servers:
        st.caption(f"{counted(found.unknown_servers, 'older answer')} from an unknown server.")
    st.caption("Accepted: parsed and passed the rules. Reasoning tokens count as output tokens.")


def _row(each: CallTotals, stage: dict[str, str]) -> Cells:
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
    """Calls per second over the last RATE_SECONDS; None until there are two samples."""
    now, key = time.monotonic(), f"curate.samples-{run_id}"
    samples = [each for each in st.session_state.get(key, []) if now - each[0] <= RATE_SECONDS]
    samples.append((now, made))
    st.session_state[key] = samples
    (first_at, first), (last_at, last) = samples[0], samples[-1]
    return None if last_at - first_at < 1.0 else (last - first) / (last_at - first_at)


def _remaining_usd(spent_usd: float, found: Funnel) -> float | None:
    """The cost of the remaining groups, extrapolated from the finished ones."""
    return spent_usd / found.finished * (found.pairs - found.finished) if found.finished else None


def draw_trouble(trouble: Trouble, *, live: bool) -> None:
    """Draw a notice while the run waits, and the newest error with its time."""
    if live and trouble.waiting_until is not None:
        until = local_time(trouble.waiting_until)
        message = f"Waiting until {until} as the server requested."
        if trouble.waiting_for is not None and trouble.waiting_since is not None:
            message = (
                f"Waiting for the {trouble.away} since {local_time(trouble.waiting_since)}: "
                f"{trouble.waiting_for}. Next attempt at {until}; the run goes on by itself."
            )
        st.info(plain(message), icon=":material/hourglass_top:")
    if trouble.last_error is None or trouble.last_error_at is None:
        return
    rate = f" · Retries in the last minute: {trouble.retries_per_minute:,}." if live else ""
    st.caption(
        plain(f"Last error at {local_time(trouble.last_error_at)}: {trouble.last_error}{rate}")
    )


def local_time(moment: datetime) -> str:
    """A moment in the browser's time zone, with the day if that is not today."""
    zone = browser_zone()
    local, today = moment.astimezone(zone), datetime.now(UTC).astimezone(zone).date()
    return local.strftime("%H:%M:%S" if local.date() == today else "%Y-%m-%d %H:%M:%S")


def browser_zone() -> ZoneInfo:
    """The browser's time zone, or UTC."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


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


def draw_lanes(user: SessionUser, run_id: int) -> None:
    """Draw a lane per stage over time: how many answers came. Nothing before there are three
    intervals to see."""
    ends, counts = run_now.answers_over_time(user, run_id)
    if len(ends) < MIN_LANES:
        return
    st.caption("Answers by stage over time: the bluer, the more")
    lanes = {stage.capitalize(): numbers for stage, numbers in counts.items()}
    when = [moment.astimezone(browser_zone()) for moment in ends]
    draw_plot(stage_lanes(lanes, when), key=f"curate.lanes-{run_id}.figure")


def summary(left: TimeLeft) -> str:
    """One sentence: the time left, or why there is no figure."""
    calls = counted(round(left.calls), "call")
    if left.seconds is None:
        return f"About {calls} left. No time yet: {left.why}."
    return (
        f"About {duration(timedelta(seconds=left.seconds))} left: about {calls} at the rate of the "
        "last minutes."
    )


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
        draw_table([_batch_row(each) for each in found])


def _batch_row(each: BatchSummary) -> dict[str, object]:
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
