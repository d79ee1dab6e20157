"""A model behind an OpenAI-compatible server; the wire is faked, nothing of ours."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainer_folders import write_beir
from trainer_jobs import claim

from analysis.embed.server import EmbeddingServer
from db.errors import BadInput
from db.store.store import Store
from trainer.evaluate.job import evaluate


class Server(ThreadingHTTPServer):
    faults: list[tuple[int, Any]]  # answered first, one per request
    seen: list[dict[str, Any]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(asked | {"key": self.headers.get("Authorization")})
        rows = [
            {"index": place, "embedding": [float(len(text)), 1.0]}
            for place, text in enumerate(asked["input"])
        ]
        status, body = (200, {"data": rows[::-1]})  # the order of answers is by index only
        if self.server.faults:
            status, body = self.server.faults.pop(0)
        payload = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        self.send_header("Retry-After", "0.01")
        self.end_headers()
        self.wfile.write(payload)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    running = Server(("127.0.0.1", 0), Handler)
    running.faults, running.seen = [], []
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{running.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def test_vectors_are_unit_in_the_order_of_the_texts_with_their_prefixes(server: Server) -> None:
    model = EmbeddingServer("openai:small")
    model.prompts["query"] = "q: "
    vectors = model.encode_query(["", "abc", "a"], batch_size=2)
    wanted = np.array([[3.0, 1.0], [6.0, 1.0], [4.0, 1.0]])
    assert np.allclose(vectors, wanted / np.linalg.norm(wanted, axis=1, keepdims=True))
    assert [asked["input"] for asked in server.seen] == [["q: ", "q: abc"], ["q: a"]]
    assert {(asked["model"], asked["key"]) for asked in server.seen} == {("small", "Bearer key")}


def test_a_throttled_request_is_retried(server: Server) -> None:
    server.faults = [(429, {"error": "slow down"}), (503, "busy")]
    assert EmbeddingServer("openai:small").encode_document(["abc"]).shape == (1, 2)
    assert len(server.seen) == 3


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ([(401, {"error": "no such key"})], "401"),
        ([(429, "slow down")] * 5, "429"),
        ([(200, "<html>")], "invalid JSON"),
        ([(200, {"data": [{}]})], "no list of embeddings"),
        ([(200, {"data": []})], "0 embeddings for 1 texts"),
    ],
)
def test_a_refused_request_is_reported_with_the_reason(
    server: Server, faults: list[tuple[int, Any]], words: str
) -> None:
    server.faults = list(faults)
    with pytest.raises(BadInput) as refused:
        EmbeddingServer("openai:small").encode_document(["abc"])
    assert words in str(refused.value) and server.faults == []


def test_a_server_is_scored_beside_bm25_by_name(
    server: Server, sqlite_store: Store, tmp_path: Path
) -> None:
    config = {"models": ["bm25", "openai:small"], "benchmark": str(write_beir(tmp_path))}
    result = evaluate(claim(sqlite_store, config, kind="evaluate"))
    assert result["models"][1]["model"] == "openai:small"
    assert result["models"][1]["metrics"]["mrr"] > 0
    with pytest.raises(BadInput, match="names no model"):
        EmbeddingServer("openai:")
