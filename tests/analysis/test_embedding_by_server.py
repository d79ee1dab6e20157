"""Vectors from an OpenAI-compatible server: cached by text, gone on with after a break."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from analysis.embed import embedding
from analysis.embed.embedding import embed_texts, model_identity
from db.errors import BadInput
from db.store.store import Store


class Server(ThreadingHTTPServer):
    seen: list[str]
    refuses_after: int


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        refused = len(self.server.seen) >= self.server.refuses_after
        body: dict[str, Any] = {"error": "no"}
        if not refused:
            self.server.seen += request["input"]
            body = {
                "data": [
                    {"index": place, "embedding": [float(len(text)), 3.0]}
                    for place, text in enumerate(request["input"])
                ]
            }
        payload = json.dumps(body).encode()
        self.send_response(401 if refused else 200)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    running = Server(("127.0.0.1", 0), Handler)
    running.seen, running.refuses_after = [], 10**9
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{running.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def test_each_text_is_asked_for_once_and_its_vector_has_length_one(
    sqlite_store: Store, server: Server
) -> None:
    found = embed_texts(sqlite_store, ["abcd", "x", "abcd"], model="openai:small")
    assert np.allclose(found[0], [0.8, 0.6])  # [4, 3] / 5
    assert np.allclose(found[0], found[2])
    again = embed_texts(sqlite_store, ["x", "abcd"], model="openai:small")
    assert np.allclose(again, found[[1, 0]])
    assert sorted(server.seen) == ["abcd", "x"]


def test_a_broken_embedding_goes_on_from_what_was_stored(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "COMMITTED_AT_ONCE", 2)
    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    server.refuses_after = 4
    with pytest.raises(BadInput, match="401"):
        embed_texts(sqlite_store, texts, model="openai:small")
    server.refuses_after = 10**9
    found = embed_texts(sqlite_store, texts, model="openai:small")
    assert found.shape == (5, 2)
    assert sorted(server.seen) == texts, "what was stored before the break is not requested again"


def test_the_cache_separates_servers_and_keeps_no_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:secret@one.example:8080/v1/")
    assert model_identity("openai:m") == "openai:m@https://one.example:8080/v1"
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert model_identity("openai:m") == "openai:m@https://api.openai.com/v1"
