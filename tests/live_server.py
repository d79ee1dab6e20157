"""`inf serve` as a real process on a free port, for tests that talk HTTP or drive a browser."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from db.modules import run_module

START_SECONDS = 400  # of `inf demo` on a loaded machine: it curates and maps 602 groups first


@dataclass
class Server:
    """A running server."""

    url: str
    process: "subprocess.Popen[bytes]"
    log: Path


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(
    folder: Path, command: str = "serve", *, port: int = 0, **environment: str
) -> Iterator[Server]:
    """The app on the store the environment names, started in `folder`; ended with its jobs.

    `command`: `serve`, or `demo`, which makes the store first. `port` 0: a free one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port, log = port or free_port(), folder / "serve.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *run_module("app.cli.main"), command, "--port", str(port)],
            cwd=folder,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(url, process, log)
        yield Server(url, process, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Until the first page comes."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            if httpx.get(url, timeout=30).status_code < 500:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"the server did not come up:\n{log.read_text()}")
