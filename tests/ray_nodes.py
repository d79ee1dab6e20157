"""A real Ray cluster of processes on this machine: a head that runs no job, and nodes.

Every node is `ray start --block`; requests need a token. Nodes get the environment of a machine
that has secrets of its own.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import httpx
import psutil
import waiting
from conftest import require
from live_server import free_port

from app.jobs.ray_cluster import OVER, UNKNOWN, WAITING, Resources, submission_of
from db.store.store import Store
from db.tables import Job

START_SECONDS = 180
WAIT_SECONDS = 240
STORE_BYTES = 80_000_000  # the least that Ray takes is 75 MiB
TESTS = Path(__file__).resolve().parent
PROGRAM = Path(sys.executable).parent / "ray"


class ClusterDown(Exception):
    """The head or a node did not come up; the end of their log says why."""


until = partial(waiting.until, seconds=WAIT_SECONDS)


class LocalRay:
    """`address` is that of the dashboard; `environment` what a client needs besides.

    Each node says that it has a GPU, whether there is one or not: Ray believes it and gives it out.
    """

    def __init__(self, *, cpus_per_node: int = 2, gpus_per_node: int = 1, **secret: str) -> None:
        self.cpus, self.gpus, self.token = cpus_per_node, gpus_per_node, secrets.token_hex(24)
        self.folder = Path(tempfile.mkdtemp(prefix="inf-ray-", dir="/tmp"))  # sockets: short paths
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}
        self._of_nodes = os.environ | self.environment | secret
        self._of_nodes |= {
            "PATH": f"{PROGRAM.parent}:{secret.get('PATH', os.environ['PATH'])}",
            "PYTHONPATH": str(TESTS),
            "RAY_USAGE_STATS_ENABLED": "0",
            "OMP_NUM_THREADS": "1",
        }
        self.nodes: list[subprocess.Popen[bytes]] = []
        self._head: subprocess.Popen[bytes] | None = None
        self._port, self._dashboard = free_port(), free_port()
        self.address = f"http://127.0.0.1:{self._dashboard}"
        self.gcs = f"127.0.0.1:{self._port}"  # of programs that join the cluster themselves

    def start(self) -> None:
        """Start the head. Raises ClusterDown."""
        self._head = self._started(
            *("--head", f"--port={self._port}", "--num-cpus=0", "--dashboard-host=127.0.0.1"),
            *(f"--dashboard-port={self._dashboard}", f"--ray-client-server-port={free_port()}"),
            f"--temp-dir={self.folder}",
        )

    def stop(self) -> None:
        """End every node and what runs on it."""
        for node in [*self.nodes, *([self._head] if self._head else [])]:
            kill_node(node)
        shutil.rmtree(self.folder, ignore_errors=True)

    def add_nodes(self, count: int) -> None:
        """So many more nodes; they are there when it returns. Raises ClusterDown."""
        for _ in range(count):
            self.nodes.append(self._started(f"--address={self.gcs}"))

    def _started(self, *words: str) -> "subprocess.Popen[bytes]":
        """A node that the cluster counts, begun again where it gave up.

        Ray itself gives a node 30 s to start, which a loaded machine may exceed.
        """
        wanted, deadline = self.alive() + 1, time.monotonic() + START_SECONDS
        node = self._start(*words)
        while self.alive() < wanted:
            gone = node.poll() is not None
            if gone or time.monotonic() > deadline:
                kill_node(node)
            if time.monotonic() > deadline:
                raise ClusterDown((self.folder / "nodes.log").read_text()[-4000:])
            if gone:
                node = self._start(*words)
            time.sleep(0.2)
        return node

    def _start(self, *words: str) -> "subprocess.Popen[bytes]":
        is_head = "--head" in words
        cpus = [] if is_head else [f"--num-cpus={self.cpus}"]
        with (self.folder / "nodes.log").open("ab") as log:
            return subprocess.Popen(
                [
                    *(str(PROGRAM), "start", "--block", "--disable-usage-stats"),
                    f"--num-gpus={0 if is_head else self.gpus}",
                    *(f"--object-store-memory={STORE_BYTES}", "--include-log-monitor=false"),
                    *("--min-worker-port=0", "--max-worker-port=0"),
                    *("--dashboard-agent-listen-port=0", *cpus, *words),
                ],
                env=self._of_nodes,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def alive(self) -> int:
        """How many nodes the cluster counts, the head too; 0 while nobody answers."""
        try:
            said = httpx.get(
                f"{self.address}/nodes",
                params={"view": "summary"},
                headers={"Authorization": f"Bearer {self.token}"},
                timeout=10,
            )
            found = said.json()["data"]["summary"]
        except (httpx.HTTPError, ValueError, KeyError):
            return 0
        return sum((node.get("raylet") or {}).get("state") == "ALIVE" for node in found)

    def node_of(self, pid: int) -> "subprocess.Popen[bytes]":
        """The node in which a process runs."""
        above = {parent.pid for parent in psutil.Process(pid).parents()}
        return next(node for node in self.nodes if node.pid in above)


@contextmanager
def cluster_of(nodes: int, **secret: str) -> Iterator[LocalRay]:
    """A head and so many nodes, which know the secrets; skips, or fails, where Ray is missing."""
    if find_spec("ray") is None:
        require("ray", "Ray is not installed: the extra `ray`")
    cluster = LocalRay(**secret)
    try:
        try:
            cluster.start()
            cluster.add_nodes(nodes)
        except ClusterDown as down:
            require("ray", f"no Ray cluster starts on this machine: {down}")
        yield cluster
    finally:
        cluster.stop()


def kill_node(node: "subprocess.Popen[bytes]") -> None:
    """SIGKILL for a node and everything that runs on it, as when a machine loses its power."""
    try:
        found = psutil.Process(node.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        found = []
    for process in [*found, psutil.Process(node.pid)] if node.poll() is None else found:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    node.wait()


class IdleRay:
    """The jobs of a cluster without nodes, in place of `RayCluster`: they wait until stopped.

    `on_submit` gets the row of each attempt; where it returns True the attempt has ended by itself.
    """

    address = "http://127.0.0.1:1"

    def __init__(self, on_submit: Callable[[Job], bool] = lambda job: False) -> None:
        self.on_submit = on_submit
        self.submitted: list[tuple[int, int]] = []
        self._states: dict[str, str] = {}

    def submit(self, store: Store, job: Job, resources: Resources) -> str:
        name = submission_of(store, job)
        self.submitted.append((job.id, job.attempt))
        self._states[name] = OVER if self.on_submit(job) else WAITING
        return name

    def state(self, name: str) -> str:
        return self._states.get(name, UNKNOWN)

    def stop(self, name: str) -> None:
        self._states[name] = OVER

    def end_message(self, name: str) -> str:
        return "its node died"

    def log(self, name: str) -> str:
        return f"the log of {name}"
