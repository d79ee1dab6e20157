"""A TCP proxy before a database whose packets are dropped in the middle of a commit."""

import itertools
import socket
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

COMMIT = b"Q" + struct.pack("!i", 11) + b"COMMIT\0"  # a simple query of PostgreSQL's protocol
RESET = struct.pack("ii", 1, 0)  # closed by RST, as the kernel does to a connection that timed out


class LossyProxy:
    """`with LossyProxy(socket, every=7, arrives=True) as proxy`: its `port` on 127.0.0.1.

    Of every so many commits one is the last that its connection carries: it `arrives`, or not, and
    nothing is answered for `seconds`, after which the connection ends. `lost` counts them.
    """

    def __init__(self, server: Path, *, every: int, arrives: bool, seconds: float = 0.5) -> None:
        self._server, self._every, self._arrives = server, every, arrives
        self._seconds, self.lost = seconds, 0
        self._commits = itertools.count(1)

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server))
                dropped = threading.Event()
                for work in (self._up, self._down):
                    threading.Thread(target=work, args=(client, server, dropped)).start()

    def _up(self, client: socket.socket, server: socket.socket, dropped: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if data.endswith(COMMIT) and next(self._commits) % self._every == 0:
                    self.lost += 1
                    dropped.set()
                    if self._arrives:
                        server.sendall(data)
                    time.sleep(self._seconds)
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    break
                server.sendall(data)
        for each in (client, server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RD)
            each.close()

    def _down(self, client: socket.socket, server: socket.socket, dropped: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if not dropped.is_set():
                    client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_WR)
