"""What differs between operating systems: locks on files, processes, process groups, signals.

Only this module uses `fcntl` (through filelock), process groups and signal numbers; it imports and
works on a Python without them. Tested on Linux; macOS and Windows are not run. On Windows a
process's descendants stand in for its group; those whose parent has ended are not found.
"""

import errno
import functools
import hashlib
import ipaddress
import os
import re
import signal
import socket
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import psutil
from filelock import lock_descriptor

from db.errors import Refused
from db.home import home

HAS_GROUPS = hasattr(os, "killpg")
NEW_GROUP_ON_WINDOWS = 0x200  # subprocess.CREATE_NEW_PROCESS_GROUP
# What a file system without locks answers: NFS without a lock service, some of FUSE and Lustre.
WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
FLOCK, POSIX = "flock", "posix"  # the locks of files of INF_HOME, and those of SQLite
BOTH = (FLOCK, POSIX)
# How file systems that machines share are mounted where locks hold on each machine alone: of which
# kinds, and which locks. Others, such as GlusterFS and CephFS, send both to their servers.
NFS = ("nfs", "nfs4")
LOCAL_LOCKS = {
    "with nolock": (NFS, BOTH),
    "with local_lock=all": (NFS, BOTH),
    "with local_lock=flock": (NFS, (FLOCK,)),
    "with local_lock=posix": (NFS, (POSIX,)),
    "with nobrl": (("cifs", "smb3"), BOTH),
    "with localflocks": (("gfs2", "ocfs2"), BOTH),
    "without flock": (("lustre",), BOTH),  # `localflock` is another option
    **{f"as {kind}": ((kind,), BOTH) for kind in ("fuse.sshfs", "fuse.rclone", "fuse.s3fs")},
}
MOUNTS = Path("/proc/self/mountinfo")
OCTAL = re.compile(r"\\([0-7]{3})")  # a space, say, in a path there
PORT = 8501  # where `serve` listens by default
KILLED = -9  # `Popen.returncode` of a process that was killed by SIGKILL


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host, by its name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def url_of(host: str, port: int) -> str:
    """The URL of what listens there; an IPv6 address in brackets."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def try_lock(descriptor: int, folder: Path, *, wait: bool = False) -> bool:
    """Lock an open file of a folder against other processes; False if one of them holds the lock.

    `wait`: until none of them holds it. The system releases the lock when the descriptor is closed
    or the process ends in any way. Raises Refused where the folder's file system has no locks, or
    such as hold on each machine alone.
    """
    if how := locks_of(folder):
        raise _without_locks(folder, f"it is mounted {how}")
    try:
        return lock_descriptor(descriptor, blocking=wait)
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise
        raise _without_locks(folder, error.strerror or str(error)) from error


def _without_locks(folder: Path, why: str) -> Refused:
    return Refused(
        f"files in {folder} cannot be locked ({why}): two processes could use them at once",
        "set INF_HOME to a folder on a local disk of each machine; several machines share a "
        "PostgreSQL store (INF_DATABASE_URL)",
        code="folder_without_locks",
    )


@functools.cache
def locks_of(folder: Path, used: str = FLOCK) -> str:
    """How the folder is mounted if these locks hold on this machine alone; "" where they do not, or
    this system does not tell."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="replace")
        return local_locks(mounts, folder.resolve(), used)
    except OSError:
        return ""


def local_locks(mounts: str, folder: Path, used: str) -> str:
    """How the file system that a folder is in is mounted if such locks are not the server's; "" if
    they are. `mounts`: as in Linux's /proc/self/mountinfo."""
    found: tuple[int, str] = (0, "")
    for line in mounts.splitlines():
        of_mount, _, of_system = line.partition(" - ")
        if not of_system:
            continue
        place = Path(OCTAL.sub(lambda code: chr(int(code[1], 8)), of_mount.split()[4]))
        kind, *_, options = of_system.split()
        if folder.is_relative_to(place) and len(place.parts) >= found[0]:
            given = [f"with {each}" for each in options.split(",")]
            given += [f"as {kind}"] + ["without flock"] * ("with flock" not in given)
            local = [how for how in given if _is_local(how, kind, used)]
            found = len(place.parts), local[-1] if local else ""
    return found[1]


def _is_local(how: str, kind: str, used: str) -> bool:
    kinds, locks = LOCAL_LOCKS.get(how, ((), ()))
    return kind in kinds and used in locks


def require_locks(folder: Path) -> None:
    """Raise Refused where files of the folder, which is made, cannot be locked."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        try_lock(file.fileno(), folder)


def require_store_locks(file: Path) -> None:
    """Raise Refused where SQLite's locks of a store hold on each machine alone."""
    if how := locks_of(file.parent, POSIX):
        raise Refused(
            f"the store {file} cannot be locked (its folder is mounted {how}): two machines could "
            "write it at once",
            "set INF_DATABASE_URL to a file on a local disk; several machines share a PostgreSQL "
            "store",
            code="folder_without_locks",
        )


def of_this_machine(name: str) -> Path:
    """A file in INF_HOME that no other machine or container uses which has the same folder."""
    stem, dot, suffix = name.partition(".")
    space = hashlib.sha256(process_space().encode()).hexdigest()[:8]
    return home() / f"{stem}-{space}{dot}{suffix}"


def new_owner() -> str:
    """An owner name for this process: where it runs, process id, its start time, and a UUID."""
    process = psutil.Process()
    where = f"{socket.gethostname()}:{process_space()}"
    return f"{where}:{process.pid}:{process.create_time():.2f}:{uuid.uuid4().hex}"


def is_dead(owner: str) -> bool:
    """Whether the process of this name has ended; False where this process cannot know that.

    It can of processes of its own process space. The names of hosts do not tell: containers share
    one, and a process id means another process in each of them.
    """
    parts = owner.rsplit(":", 4)
    if len(parts) < 5 or parts[1] != process_space():  # elsewhere, or of an earlier version
        return False
    _, _, pid, created, _ = parts
    try:
        process = psutil.Process(int(pid))
        is_same = f"{process.create_time():.2f}" == created
        return not is_same or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # or another user's, which `hidepid` keeps from being seen
        return not _is_hidden(int(pid))
    except psutil.AccessDenied:  # another user's process: it is alive
        return False


def _is_hidden(pid: int) -> bool:
    if not HAS_GROUPS:  # there, a signal of 0 would be Ctrl-C
        return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError) as error:
        return isinstance(error, PermissionError)
    return False


@functools.cache
def process_space() -> str:
    """The name of one space of process ids among all others: this start of the system, and on Linux
    the namespace, of which each container may have its own."""
    if sys.platform != "linux":
        # to the minute: some systems compute it anew, from a clock that is adjusted
        return f"{uuid.getnode():x}.{psutil.boot_time() // 60:.0f}"
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}.{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return uuid.uuid4().hex  # nobody else's: no process is judged by its id


def process_exists(pid: int) -> bool:
    """Whether a process has this id now."""
    return bool(psutil.pid_exists(pid))


def own_group() -> dict[str, Any]:
    """The arguments of `subprocess.Popen` for a process that leads a group of its own."""
    if HAS_GROUPS:
        return {"start_new_session": True}
    return {"creationflags": NEW_GROUP_ON_WINDOWS}


def stop_process(pid: int) -> None:
    """Request a process to end (SIGTERM; Windows ends it at once), if it exists."""
    try:
        psutil.Process(pid).terminate()
    except psutil.NoSuchProcess:
        return


def end_group(pid: int, *, by_force: bool) -> None:
    """End a process and its group: SIGTERM, or SIGKILL by force; no error if there is none."""
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


def peak_memory() -> int:
    """The most bytes that this process has held since its program was started.

    Not Linux's `ru_maxrss`: a process inherits it from whichever started it, so that a small one
    that a large one started reports the large one's.
    """
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def kill_this_process() -> None:
    """End this process now, with nothing closed or written."""
    psutil.Process().kill()
