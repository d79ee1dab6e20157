"""The name under which a process holds leases and batches, and whether that process is over."""

import socket
import uuid

import psutil


def new_owner() -> str:
    """A name for this process as a holder of leases: machine, process, its start, and a UUID."""
    process = psutil.Process()
    return f"{socket.gethostname()}:{process.pid}:{process.create_time():.2f}:{uuid.uuid4().hex}"


def is_dead(owner: str) -> bool:
    """Whether the process that held leases under this name ended on this machine."""
    host, pid, created, _ = owner.rsplit(":", 3)
    if host != socket.gethostname():
        return False
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" != created
    except psutil.NoSuchProcess:
        return True
