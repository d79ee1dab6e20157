"""Starting the supervisor of a store where none runs: the local one, or a Ray cluster's.

A lock file in INF_HOME per store, launcher and machine tells whether one runs; the kernel frees it
when its holder ends, however it ends.
"""

import hashlib
import os
import subprocess
import sys

from app.jobs.kinds import queues_taken
from app.jobs.processes import SAFE_PATH
from app.jobs.ray_cluster import checked_address, require_reachable_store
from db.home import home
from db.jobs import jobs
from db.machine import of_this_machine, own_group, try_lock
from db.modules import run_module
from db.store.secrets import inherited
from db.store.settings import logs
from db.store.store import Store

_started: "list[subprocess.Popen[bytes]]" = []  # kept, so that those which ended are reaped


def ensure_taken(store: Store, launcher: str) -> None:
    """Make sure that the supervisor of this launcher runs.

    Raises BadInput where a Ray cluster could not reach the store.
    """
    if launcher == jobs.LOCAL:
        ensure_supervisor(store)
    else:
        ensure_ray_supervisor(store, launcher)


def ensure_supervisor(store: Store) -> None:
    """Start `inf jobs work`, detached, where none runs for this store on this machine, which takes
    jobs of some queue.

    Raises BadInput for an unknown one in INF_QUEUES.
    """
    if queues_taken() and _is_free(store):
        _start(store, "supervisor.log")


def ensure_ray_supervisor(store: Store, address: str) -> None:
    """Start `inf jobs work --launcher ray`, detached, where none runs for this store and cluster.

    Raises BadInput where the cluster could not reach the store.
    """
    require_reachable_store(store, checked_address(address))
    if _is_free(store, address):
        _start(store, "supervisor-ray.log", "--launcher", "ray", "--address", address)


def _is_free(store: Store, launcher: str = "") -> bool:
    lock = try_supervisor_lock(store, launcher)
    if lock is None:
        return False
    os.close(lock)  # the new process takes it
    return True


def _start(store: Store, log_name: str, *options: str) -> None:
    logs().mkdir(parents=True, exist_ok=True)
    _started[:] = [process for process in _started if process.poll() is None]
    with (logs() / log_name).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *run_module("app.cli.main"), "jobs", "work", *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=inherited() | SAFE_PATH | {"INF_DATABASE_URL": store.url},
            **own_group(),
        )
    _started.append(process)


def try_supervisor_lock(store: Store, launcher: str = "") -> int | None:
    """The lock of this machine's supervisor of this store, as a file descriptor; None if taken."""
    home().mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(f"{store.url}{launcher}".encode()).hexdigest()[:12]
    lock = os.open(of_this_machine(f"supervisor-{name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    taken = False
    try:
        taken = try_lock(lock, home())
    finally:
        if not taken:
            os.close(lock)
    return lock if taken else None
