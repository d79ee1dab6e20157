"""Processes of jobs: how Python is started for one, and how its process group is ended.

Every child gets `-P` and PYTHONSAFEPATH=1, so that neither it nor its own children import from the
current folder: a user's `db.py` there would otherwise replace our package.
"""

import time

import psutil

from db.jobs import jobs
from db.machine import end_group, group_exists
from db.modules import run_module
from db.tables import Job

ENTRY = "app.jobs.entry"
REST_GRACE_SECONDS = 3.0
PROCESS_DEFAULTS = {
    # OpenMP threads that wait by spinning starve the others where cores are shared: a training
    # step took 30 s instead of 3 s at load 12 on 2 cores.
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
}
SAFE_PATH = {"PYTHONSAFEPATH": "1"}


def command_of(job: Job) -> list[str]:
    """Python's arguments for the process of a claimed job."""
    return [*run_module(ENTRY), str(job.id), str(job.attempt)]


def is_alive_here(job: Job) -> bool | None:
    """Whether the job's process runs here; None where that cannot be known."""
    is_alive = jobs.is_this_process_alive(job)
    return is_alive and is_process_of(job)


def is_process_of(job: Job) -> bool:
    """Whether the process with the job's pid is really the job's: pids are reused."""
    try:
        arguments = psutil.Process(job.pid).cmdline()
    except psutil.Error:
        return False
    return list(arguments[-2:]) == [str(job.id), str(job.attempt)]


def end_rest_of_group(pid: int) -> None:
    """End the processes that a finished job left running: SIGTERM first, SIGKILL after a grace."""
    end_group(pid, by_force=False)
    deadline = time.monotonic() + REST_GRACE_SECONDS
    while group_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    end_group(pid, by_force=True)
