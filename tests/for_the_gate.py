"""What a run of all tests needs on a machine whose time is limited.

A run that is cut off prints no closing lines, so failures and dead workers are named when they
happen. `INF_TEST_UNTIL` (seconds since 1970) skips, by name and reason, the long tests that would
start later than that; the gate runs them after all others, in another order each time, so that
what one run leaves out another has.
"""

import os
import random
import time
from pathlib import Path

import pytest

VARIABLE = "INF_TEST_UNTIL"
OUT_OF_TIME = f"out of time: the moment that {VARIABLE} names is past"


def shuffle_what_may_be_left_out(weights: dict[Path, float]) -> None:
    """Give each file of a run that may be out of time a chance to start early, the same in every
    worker of pytest-xdist."""
    if until := os.environ.get(VARIABLE):
        order = random.Random(until)
        for path in sorted(weights):
            weights[path] *= order.random()


class ForTheGate:
    """Hooks that need the run's configuration."""

    def __init__(self, config: pytest.Config) -> None:
        self.plugins = config.pluginmanager
        self.until = float(os.environ.get(VARIABLE) or "inf")

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a long test where the time is used up."""
        if item.get_closest_marker("long") and time.time() > self.until:
            pytest.skip(OUT_OF_TIME)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Name a failure."""
        if report.failed:
            self._say(f"FAILED after {report.duration:.0f} s: {report.nodeid}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str) -> None:
        """Name the test in which a worker of pytest-xdist died."""
        self._say(f"A WORKER DIED in {crashitem}")

    def _say(self, line: str) -> None:
        # a worker has none: its reports reach the controller
        if terminal := self.plugins.get_plugin("terminalreporter"):
            terminal.ensure_newline()
            terminal.write_line(line)
