"""CPU seconds of every test, its set-up and its processes: `pytest -p cpu_times`.

Wall time on a busy machine says little about a test. Here each phase of a test is charged with the
user and system seconds of this process and of the children it reaped, as lines of JSON in the file
that INF_TEST_CPU names; the closing lines of a run add them up by file.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


def cpu_seconds() -> float:
    """User and system seconds of this process and of its reaped children."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _append(path: Path, row: dict[str, object]) -> None:
    """Add a line; one write call, so that the workers of pytest-xdist may share a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Charge a test, its set-up and its teardown included, with what it used."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    try:
        return (yield)
    finally:
        if name := os.environ.get("INF_TEST_CPU"):
            _append(
                Path(name),
                {
                    "test": item.nodeid,
                    "cpu": round(cpu_seconds() - cpu, 3),
                    "wall": round(time.perf_counter() - wall, 3),
                    "long": item.get_closest_marker("long") is not None,
                    "fast": item.get_closest_marker("fast") is not None,
                },
            )
