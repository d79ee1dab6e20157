"""Waiting for what another process or thread does."""

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Until it holds; a test that waits longer fails."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it never happened in {seconds:g} s"
        time.sleep(0.05)
