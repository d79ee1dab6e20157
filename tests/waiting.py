"""Waiting for what another process or thread does, or for simulated time."""

import asyncio
import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Until it holds; a test that waits longer fails."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it never happened in {seconds:g} s"
        time.sleep(0.05)


class SimulatedTime(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer where nothing else is left to do."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        due = self._scheduled[0]._when if self._scheduled else self.now
        # a timer fires early by the clock's resolution: it would be set again without end
        if not self._ready or due <= self.now + self._clock_resolution:
            self.now = max(self.now, due)
        super()._run_once()
