"""The time left: no figure before there is a basis, and a right one from there on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.run.time_left import (
    MIN_ANSWERS,
    MIN_FINISHED,
    MIN_SECONDS,
    RATE_SECONDS,
    RecentRate,
    calls_per_group,
    time_left,
    time_left_text,
)
from db.run.runs import STAGES, Funnel
from db.run.workers import Pace
from db.shape import INF_IR


def at(
    *, pairs: int, finished: int, in_work: int = 0, shares: tuple[float, ...] = (1, 1, 1, 1)
) -> Funnel:
    """A run of which so many groups are finished, of which these shares reached each stage."""
    reached = {stage: round(finished * share) for stage, share in zip(STAGES, shares, strict=True)}
    kept = reached["validation"]
    dropped = {"unparsable": finished - kept} if finished > kept else {}
    return Funnel(
        run_id=1,
        dataset_id=1,
        pairs=pairs,
        waiting=pairs - finished - in_work,
        in_work=in_work,
        reached=reached,
        kept=kept,
        dropped=dropped,
    )


def test_the_calls_and_seconds_left_by_hand() -> None:
    # half of the groups stop after their negatives; 20 are open: 20 x (1 + 2) + 10 x (2 + 3) calls
    found = at(pairs=60, finished=40, in_work=4, shares=(1, 1, 0.5, 0.5))
    left = time_left(found, Pace(120.0, {"instruction": 4, "negatives": 6}), INF_IR)
    assert [round(phase.left) for phase in left.phases] == [16, 34, 20, 30]
    assert [phase.answered for phase in left.phases] == [44, 86, 40, 60]
    assert left.calls == 100 and left.seconds == pytest.approx(50.0)
    assert [phase.seconds for phase in left.phases] == pytest.approx([8.0, 17.0, 10.0, 15.0])
    assert time_left(found, Pace(120.0, {}), INF_IR, judged=9).phases[3].left == 90


def test_each_missing_basis_is_named_and_gives_no_figure() -> None:
    few = time_left(at(pairs=60, finished=MIN_FINISHED - 1), Pace(120.0), INF_IR)
    many_at_once = time_left(at(pairs=60, finished=20, in_work=21), Pace(120.0), INF_IR)
    no_rate = time_left(at(pairs=60, finished=30), Pace(None), INF_IR)
    assert few.seconds is many_at_once.seconds is no_rate.seconds is None
    assert few.why == many_at_once.why == "too few groups are finished"
    assert no_rate.why == "too few answers in the last minutes"
    assert all(phase.seconds is None for phase in few.phases)
    assert time_left(at(pairs=60, finished=60), Pace(None), INF_IR).seconds == 0.0


@given(
    pairs=st.integers(50, 5000),
    done=st.floats(0.0, 1.0),
    width=st.integers(1, 300),
    per_second=st.floats(0.05, 500.0),
    share=st.floats(0.05, 1.0),
)
def test_at_a_steady_pace_the_figure_is_right_and_never_without_a_basis(
    pairs: int, done: float, width: int, per_second: float, share: float
) -> None:
    finished = int(done * pairs)
    in_work = min(width, pairs - finished)
    found = at(pairs=pairs, finished=finished, in_work=in_work, shares=(1, 1, share, share))
    left = time_left(found, Pace(60 * per_second, {}), INF_IR)
    if finished < pairs and finished < max(MIN_FINISHED, in_work):
        assert left.seconds is None and left.why
        return
    calls = (pairs - finished) * (3 + 5 * share)
    true = calls / per_second
    assert left.seconds is not None and left.seconds >= 0
    # rounding of the shares to whole groups is all that may differ
    assert left.seconds == pytest.approx(true, rel=0.25 if finished < 100 else 0.05, abs=1e-6)


@given(
    st.lists(st.tuples(st.floats(0.1, 30.0), st.integers(0, 50)), min_size=1, max_size=200),
)
def test_the_rate_is_of_the_last_minutes_and_needs_time_and_answers(
    steps: list[tuple[float, int]],
) -> None:
    now, total = 0.0, 0
    rate = RecentRate(clock=lambda: now)
    rate.add(0)
    history = [(0.0, 0)]
    for seconds, answers in steps:
        now, total = now + seconds, total + answers
        rate.add(total)
        history.append((now, total))
        found = rate.per_minute()
        before = [each for each in history if each[0] <= now - RATE_SECONDS]
        first = before[-1] if before else history[0]
        span, came = now - first[0], total - first[1]
        if span < MIN_SECONDS or came < MIN_ANSWERS:
            assert found is None
        else:
            assert found == pytest.approx(60 * came / span)


def test_after_an_outage_the_rate_before_it_is_forgotten() -> None:
    now = 0.0
    rate = RecentRate(clock=lambda: now)
    for second in range(100):
        now = float(second)
        rate.add(10 * second)
    assert rate.per_minute() == pytest.approx(600.0)
    for second in range(100, 400):
        now = float(second)
        rate.add(990)
    assert rate.per_minute() is None


def test_calls_per_group_are_those_of_the_paper() -> None:
    calls = calls_per_group(INF_IR)
    assert sum(calls.values()) == 8 and tuple(calls) == STAGES


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(40, "about 40 s left"), (720, "about 12 min left"), (12600, "about 3.5 h left")],
)
def test_a_progress_line_gives_one_unit(seconds: float, text: str) -> None:
    assert time_left_text(seconds) == text
