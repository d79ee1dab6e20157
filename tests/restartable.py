"""A server that a test can kill like a power cut and start again on the same port."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from live_server import free_port, wait_for

from db.modules import run_module

SERVE = (*run_module("app.cli.main"), "serve")


class Restartable:
    """`inf serve` on the store at `store_url`, with `folder` as its home; ended by SIGKILL."""

    def __init__(
        self,
        folder: Path,
        store_url: str,
        *,
        command: Sequence[str] = SERVE,
        **environment: str,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.environment = {"INF_HOME": str(folder), "INF_DATABASE_URL": store_url, **environment}
        self.command = command
        self.log = folder / "serve.log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until the first page comes."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *self.command, "--port", str(self.port)],
                cwd=self.log.parent,
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        wait_for(self.url, self.process, self.log)

    def kill(self) -> None:
        """End the server at once, without a chance to say goodbye."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def restartable(
    folder: Path,
    store_url: str,
    *,
    command: Sequence[str] = SERVE,
    **environment: str,
) -> Iterator[Restartable]:
    """A running server, ended afterwards."""
    server = Restartable(folder, store_url, command=command, **environment)
    server.start()
    try:
        yield server
    finally:
        server.kill()
