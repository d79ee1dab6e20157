"""Nothing that goes wrong with a server is silent, and nothing of it floods the log."""

import logging
import re
from datetime import timedelta

import pytest

from curation.providers.trouble import MAX_MESSAGE, TroubleLog, clock_time
from db.tables import utc_now


def test_the_newest_error_with_its_time_and_the_retries_of_a_minute() -> None:
    trouble = TroubleLog()
    assert trouble.state().last_error is None
    trouble.failed(ValueError("first"))
    trouble.failed(ValueError("x" * 1000))
    for _ in range(3):
        trouble.retrying(None)
    found = trouble.state()
    assert found.last_error == "ValueError: " + "x" * MAX_MESSAGE
    assert found.last_error_at is not None
    assert utc_now() - found.last_error_at < timedelta(seconds=5)
    assert found.retries_per_minute == 3 and found.waiting_until is None


def test_a_wait_is_logged_once_and_shown_until_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trouble = TroubleLog()
    with caplog.at_level(logging.WARNING, logger="inf.curate"):
        for _ in range(10):  # every call in flight gets the same header
            trouble.retrying(300.0)
    (line,) = [each for each in caplog.messages if "waiting" in each]
    assert re.fullmatch(r"waiting until \d\d:\d\d:\d\d as the server requested", line)
    until = trouble.state().waiting_until
    assert until is not None and timedelta(seconds=290) < until - utc_now()
    assert clock_time(until) in line


def test_a_burst_of_failures_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    trouble = TroubleLog()
    with caplog.at_level(logging.WARNING, logger="inf.curate"):
        for number in range(500):
            trouble.failed(RuntimeError(f"number {number}"))
    assert caplog.messages == ["1 calls failed, the last one with RuntimeError: number 0"]
