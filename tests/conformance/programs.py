"""Programs that a test starts and ends: servers, and `inf`, which INF_CONFORMANCE_INF names."""

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from waiting import until

INF = os.environ["INF_CONFORMANCE_INF"]
START_SECONDS = 120


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def program(
    words: Sequence[str], *, folder: Path | None = None, **environment: str
) -> Iterator["subprocess.Popen[str]"]:
    """A process that ends with the block."""
    running = subprocess.Popen(
        words,
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield running
    finally:
        running.terminate()
        running.communicate(timeout=30)


@contextmanager
def server(
    words: Sequence[str], url: str, *, folder: Path | None = None, **environment: str
) -> Iterator[str]:
    """The address of a program that answers there, and ends with the block."""
    with program(words, folder=folder, **environment) as running:

        def answers() -> bool:
            assert running.poll() is None, f"{words[0]} ended"
            try:
                return httpx.get(url, timeout=30).status_code < 500
            except httpx.TransportError:
                return False

        until(answers, START_SECONDS)
        yield url
