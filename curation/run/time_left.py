"""How long a run still takes: the calls that are left by phase, at the rate of the last minutes.

Calls left in a phase = open groups x the share of finished groups that reached the phase x its
calls per group, less the answers that groups in progress already have there. Seconds = calls left /
answers per second of all workers over the last RATE_SECONDS.

No figure is given before there is a basis, which is

- at least MIN_SECONDS of work and MIN_ANSWERS answers in the window of every worker
  (`RecentRate`), so none after an outage either until answers come again, and
- at least MIN_FINISHED finished groups, and no fewer than there are groups in progress: what
  finishes first are drops, and shares taken from those alone promise too early an end.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from curation.recipe.tasks import VALIDATION, WRITING, levels_of
from db.run.runs import STAGES, Funnel
from db.run.workers import Pace
from db.shape import Shape

RATE_SECONDS = 180.0
MIN_SECONDS = 20.0
MIN_ANSWERS = 20
MIN_FINISHED = 10


@dataclass(frozen=True)
class PhaseLeft:
    """A phase of the run: answers so far, calls expected still, and their time at this rate."""

    stage: str
    answered: int
    left: float
    seconds: float | None


@dataclass(frozen=True)
class TimeLeft:
    """What is left of a run; `seconds` is None and `why` names what is missing without a basis."""

    phases: list[PhaseLeft]
    seconds: float | None
    why: str = ""

    @property
    def calls(self) -> float:
        """Calls expected still."""
        return sum(phase.left for phase in self.phases)


def time_left_text(seconds: float) -> str:
    """The time left for a progress line: `about 40 s left`, `about 12 min left`."""
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    if seconds < 90 * 60:
        return f"about {seconds / 60:.0f} min left"
    return f"about {seconds / 3600:.1f} h left"


class RecentRate:
    """Answers per minute over the last RATE_SECONDS of one worker."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, answers: int) -> None:
        """Note the number of answers so far; called about once a second."""
        now = self._clock()
        self._samples.append((now, answers))
        # one sample from before the window stays: the window is full from there on
        while len(self._samples) > 2 and self._samples[1][0] <= now - RATE_SECONDS:
            self._samples.popleft()

    def per_minute(self) -> float | None:
        """The rate, None with too little to go by."""
        if not self._samples:
            return None
        (first_at, first), (last_at, last) = self._samples[0], self._samples[-1]
        seconds, answers = last_at - first_at, last - first
        if seconds < MIN_SECONDS or answers < MIN_ANSWERS:
            return None
        return 60 * answers / seconds


def calls_per_group(shape: Shape, judged: int | None = None) -> dict[str, int]:
    """The calls of a group that is not dropped, by stage; `judged` of its judges, one a scenario
    if none."""
    written = dict.fromkeys(WRITING, 0)
    for level in levels_of(shape):
        written[level.stage] += len(level.tasks)
    return written | {VALIDATION: len(shape.roles) if judged is None else judged}


def time_left(found: Funnel, pace: Pace, shape: Shape, judged: int | None = None) -> TimeLeft:
    """The calls and the time that a run of groups of this shape still takes."""
    open_groups = found.pairs - found.finished
    calls = calls_per_group(shape, judged)
    left = _calls_left(found, pace.in_progress, calls)
    why = ""
    if open_groups and found.finished < max(MIN_FINISHED, found.in_work):
        why = "too few groups are finished"
    elif open_groups and pace.answers_per_minute is None:
        why = "too few answers in the last minutes"
    per_second = None if why else (pace.answers_per_minute or 0.0) / 60
    phases = [
        PhaseLeft(
            stage,
            found.reached[stage] * calls[stage] + pace.in_progress.get(stage, 0),
            left[stage],
            left[stage] / per_second if per_second else None,
        )
        for stage in STAGES
    ]
    if not open_groups:
        return TimeLeft(phases, 0.0)
    seconds = sum(left.values()) / per_second if per_second else None
    return TimeLeft(phases, seconds, why)


def _calls_left(
    found: Funnel, in_progress: Mapping[str, int], calls: Mapping[str, int]
) -> dict[str, float]:
    open_groups = found.pairs - found.finished
    left = {}
    for stage in STAGES:
        share = found.reached[stage] / found.finished if found.finished else 1.0
        expected = open_groups * share * calls[stage]
        left[stage] = max(0.0, expected - in_progress.get(stage, 0))
    return left
