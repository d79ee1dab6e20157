"""In a network of its own that goes down: what is sent arrives nowhere, and nothing is closed.

`vanished_host.py FOLDER DATABASE`: a database host that drops packets. The server is that of the
socket in FOLDER, reached by TCP through a proxy here. The last line is JSON: after how many seconds
each use of the store failed, and with what.
`vanished_host.py`: a client that vanishes, in a transaction with a lock. The last line: after how
many seconds the server frees it.
"""

import fcntl
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from postgres_cluster import Cluster
from sqlalchemy import create_engine, make_url, text

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from db.patience import is_away  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import open_store  # noqa: E402

GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 1


def set_network(*, up: bool) -> None:
    """Let the loopback interface of this network work, or drop everything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh22x", b"lo", 0)
        (_, flags) = struct.unpack("16sh22x", fcntl.ioctl(any_socket, GET_FLAGS, request))
        flags = flags | UP if up else flags & ~UP
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh22x", b"lo", flags))


def forward(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes until either side is closed."""
    while data := source.recv(65536):
        target.sendall(data)
    target.close()


def accept(listening: socket.socket, server: str, answers: threading.Event) -> None:
    """Connect whoever comes with the server; while it does not answer, keep them waiting."""
    kept = []
    while True:
        client, _ = listening.accept()
        if not answers.is_set():
            kept.append(client)
            continue
        there = socket.socket(socket.AF_UNIX)
        there.connect(server)
        for pair in ((client, there), (there, client)):
            threading.Thread(target=forward, args=pair, daemon=True).start()


def failed_after(work: Callable[[], object]) -> tuple[float, bool]:
    """After how many seconds the work failed, and whether as a store that is away."""
    began = time.monotonic()
    try:
        work()
    except Exception as error:
        return time.monotonic() - began, is_away(error)
    return -1.0, False


def hold(url: str) -> None:
    """Hold a lock in a transaction until the end."""
    owners_process(True)
    with open_store(url).read() as session:
        session.execute(text("LOCK TABLE held"))
        sys.stdout.write("held\n")
        sys.stdout.flush()
        time.sleep(600)


def let_client_vanish() -> None:
    """Kill a client that holds a lock while its network is down; when is the lock free?"""
    with Cluster(listens="127.0.0.1") as cluster:
        url = cluster.create()
        with create_engine(url).connect() as connection:
            connection.execute(text("CREATE TABLE held ()"))
            connection.commit()
            far = make_url(url).set(host="127.0.0.1", query={}).render_as_string()
            with subprocess.Popen(
                [sys.executable, __file__, far], stdout=subprocess.PIPE
            ) as client:
                assert client.stdout is not None and client.stdout.readline() == b"held\n"
                set_network(up=False)
                client.kill()
            began = time.monotonic()
            connection.execute(text("SET lock_timeout = '150s'"))
            connection.execute(text("LOCK TABLE held"))
        sys.stdout.write(f"{time.monotonic() - began:.1f}\n")


def main() -> None:
    if len(sys.argv) == 2:
        return hold(sys.argv[1])
    set_network(up=True)
    if len(sys.argv) == 1:
        return let_client_vanish()
    folder, database = sys.argv[1:]
    owners_process(True)
    answers = threading.Event()
    answers.set()
    listening = socket.create_server(("127.0.0.1", 0))
    proxy = (listening, f"{folder}/.s.PGSQL.5432", answers)
    threading.Thread(target=accept, args=proxy, daemon=True).start()
    port = listening.getsockname()[1]
    store = open_store(f"postgresql+psycopg://inf@127.0.0.1:{port}/{database}")

    def look(statement: str) -> None:
        with store.read() as session:
            session.execute(text(statement))

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(failed_after, lambda: look("SELECT pg_sleep(300)"))
        look("SELECT 1")  # a connection that is kept for the next use
        time.sleep(1)
        set_network(up=False)
        found = {"sending": failed_after(lambda: look("SELECT 1")), "waiting": asked.result()}
    set_network(up=True)
    answers.clear()
    store.close()
    found["connecting"] = failed_after(lambda: look("SELECT 1"))
    answers.set()
    look("SELECT 1")  # it is back
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
