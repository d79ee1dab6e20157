"""What differs between operating systems: locks on files, processes, process groups, signals.

Only this module knows `fcntl` (through filelock), process groups and signal numbers; it is imported
and works where Python has none of them. Linux is what is tested; macOS and Windows are not run. On
Windows a process's descendants stand for its group: those whose parent has ended are not found.
"""

import os
import signal
import socket
import uuid
from typing import Any

import psutil
from filelock import lock_descriptor

HAS_GROUPS = hasattr(os, "killpg")
NEW_GROUP_ON_WINDOWS = 0x200  # subprocess.CREATE_NEW_PROCESS_GROUP
KILLED = -9  # what `Popen.returncode` says of a process that was killed by force


def try_lock(descriptor: int) -> bool:
    """Lock an open file against other processes; False where one of them holds it.

    The system takes the lock back when the descriptor is closed or the process ends, however.
    """
    return lock_descriptor(descriptor, blocking=False)


def wait_for_lock(descriptor: int) -> None:
    """Lock an open file against other processes, as soon as none of them holds it."""
    lock_descriptor(descriptor)


def new_owner() -> str:
    """A name for this process as a holder of things: machine, process, its start, and a UUID."""
    process = psutil.Process()
    return f"{socket.gethostname()}:{process.pid}:{process.create_time():.2f}:{uuid.uuid4().hex}"


def is_dead(owner: str) -> bool:
    """Whether the process of this name ended on this machine; False for another machine's."""
    host, pid, created, _ = owner.rsplit(":", 3)
    if host != socket.gethostname():
        return False
    try:
        process = psutil.Process(int(pid))
        is_same = f"{process.create_time():.2f}" == created
        return not is_same or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:  # another user's: there
        return False


def process_exists(pid: int) -> bool:
    """Whether a process has this number now."""
    return bool(psutil.pid_exists(pid))


def own_group() -> dict[str, Any]:
    """The arguments of `subprocess.Popen` for a process that leads a group of its own."""
    if HAS_GROUPS:
        return {"start_new_session": True}
    return {"creationflags": NEW_GROUP_ON_WINDOWS}


def stop_process(pid: int) -> None:
    """Ask a process to end (SIGTERM; Windows ends it at once), if it is still there."""
    try:
        psutil.Process(pid).terminate()
    except psutil.NoSuchProcess:
        return


def end_group(pid: int, *, by_force: bool) -> None:
    """End a process with its group: SIGTERM, or SIGKILL by force; none there is no error."""
    if HAS_GROUPS:
        try:
            os.killpg(pid, signal.SIGKILL if by_force else signal.SIGTERM)
        except ProcessLookupError:
            return
        return
    for process in _descendants(pid):
        try:
            process.kill() if by_force else process.terminate()
        except psutil.NoSuchProcess:
            continue


def group_exists(pid: int) -> bool:
    """Whether any process of the group is alive."""
    if not HAS_GROUPS:
        return bool(_descendants(pid))
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        leader = psutil.Process(pid)
        found = [*leader.children(recursive=True), leader]
        return [one for one in found if one.status() != psutil.STATUS_ZOMBIE]
    except psutil.NoSuchProcess:
        return []


def kill_this_process() -> None:
    """End this process now, with nothing closed or written."""
    psutil.Process().kill()
