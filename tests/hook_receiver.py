"""An endpoint of webhooks on this machine, which keeps what it got and answers as it is set to."""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from standardwebhooks import Webhook


@dataclass
class Got:
    """One request: its headers in lower case and its body."""

    headers: dict[str, str]
    body: str

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["data"]
        return found

    def verified(self, secret: str) -> Any:
        """The message, by the specification's own library. Raises where its signature is wrong."""
        return Webhook(secret).verify(self.body, self.headers)


@dataclass
class Receiver:
    """`status`: what it answers. `hangs`: it takes the request and does not answer until left."""

    status: int = 204
    hangs: bool = False
    location: str = ""
    got: list[Got] = field(default_factory=list)

    def __enter__(self) -> Self:
        receiver = self
        self._left = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append(Got(headers, body))
                if receiver.hangs:
                    receiver._left.wait(60)
                    return
                self.send_response(receiver.status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Keep standard error clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def wait_for(self, count: int, seconds: float = 60.0) -> list[Got]:
        """The first so many requests, once they came."""
        until = time.monotonic() + seconds
        while len(self.got) < count:
            assert time.monotonic() < until, f"{len(self.got)} of {count} came"
            time.sleep(0.02)
        return self.got[:count]
