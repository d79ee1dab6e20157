"""`python -m trainer.serve.model_server`: search for the Try-it page, in its own process.

The app never loads PyTorch; it starts this on demand. It listens on loopback on a port the system
gives, answers only requests with its token, writes both into a file in INF_HOME (its owner's and
this machine's only), and ends after ten minutes without a request.
"""

import hmac
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import select

from db.corpus.datasets import get_dataset
from db.errors import BadInput, InfError
from db.extras import missing_extra
from db.machine import of_this_machine
from db.store.settings import owners_process
from db.store.store import Store, open_store
from db.tables import Passage
from trainer.model.backbone import load_model, question_encoder, template_of
from trainer.serve.own_index import Entry, OwnIndex, open_index, require_fit
from trainer.serve.passage_vectors import (
    PassageVectors,
    as_unit,
    searched_passages,
    vectors_by,
)
from trainer.settings.template import Template

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

log = logging.getLogger("inf.model_server")
IDLE_SECONDS = 600.0
MAX_MODELS = 4
MAX_RESULTS = 100
MAX_REQUEST_BYTES = 1_000_000


def state_file() -> Path:
    """Path of the file with a running server's port and token."""
    return of_this_machine("model-server.json")


class Searcher:
    """Models and the vectors of datasets, loaded on first use."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._models: dict[str, SentenceTransformer] = {}
        self._templates: dict[str, Template] = {}  # of a Hub's model, it is a question to the Hub
        self._corpora: dict[tuple[str, int, int, int], PassageVectors] = {}
        self._indexes: dict[str, OwnIndex] = {}
        # of a model, an index's place, and the dataset with its texts
        self._fit: dict[tuple[str, str, str], str] = {}

    def search(self, request: dict[str, Any]) -> dict[str, Any]:
        """The best passages of a dataset, or of your own index (`index`: its place), by one
        model, with the time without loading."""
        name, dataset = str(request["model"]), str(request.get("dataset") or "")
        instruction, query = str(request.get("instruction", "")), str(request["query"])
        if not query.strip():
            raise BadInput("no query", "type one", code="query_missing")
        depth = max(1, min(MAX_RESULTS, int(request.get("results", 10))))
        place = str(request.get("index") or "")
        with self._lock:
            model = self._model(name)
            index = self._index(name, model, place, dataset) if place else None
            corpus = None if index else self._corpus(name, model, dataset)
            began = time.monotonic()
            text = self._templates[name].apply(instruction.strip(), query)
            encode = question_encoder(model, () if instruction.strip() else (text,))
            question = np.asarray(encode([text], convert_to_numpy=True))  # (1, d)
            own = index.search(question[0], depth) if index else []
            best = corpus.best(as_unit(question)[0], depth) if corpus else []
            seconds = time.monotonic() - began
        hits = self._own_texts(own, dataset) if index else self._texts(best)
        count = index.count if index else len(corpus.ids) if corpus else 0
        note = self._fit.get((name, place, dataset), "")
        return {"hits": hits, "seconds": seconds, "passages": count, "note": note}

    def _index(self, name: str, model: "SentenceTransformer", place: str, dataset: str) -> OwnIndex:
        """The index, opened once, which the model's base has made. Raises BadInput."""
        if place not in self._indexes:
            self._indexes[place] = open_index(place)
        index = self._indexes[place]
        if (name, place, dataset) not in self._fit:
            self._fit[name, place, dataset] = require_fit(
                index,
                name,
                lambda texts: model.encode_document(texts, convert_to_numpy=True),
                lambda ids: self._stored_texts(ids, dataset),
            )
        return index

    def _stored_texts(self, ids: Sequence[str], dataset: str) -> dict[str, str]:
        """The texts of the dataset's passages with these ids of a source."""
        if not dataset:
            return {}
        with self.store.read() as session:
            query = select(Passage.external_id, Passage.text).where(
                Passage.dataset_id == get_dataset(session, dataset).id,
                Passage.external_id.in_(ids),
            )
            return {row.external_id: row.text for row in session.execute(query)}

    def _own_texts(self, found: Sequence[Entry], dataset: str) -> list[dict[str, Any]]:
        known = self._stored_texts([each.id for each in found if not each.text], dataset)
        return [
            {
                "passage_id": each.id,
                "text": each.text or known.get(each.id, ""),
                "score": each.score,
            }
            for each in found
        ]

    def _model(self, name: str) -> "SentenceTransformer":
        if name not in self._models:
            while len(self._models) >= MAX_MODELS:  # the one loaded first goes
                gone = next(iter(self._models))
                del self._models[gone]
                self._corpora = {k: v for k, v in self._corpora.items() if k[0] != gone}
            self._models[name] = load_model(name)
            self._templates[name] = template_of(name)
        return self._models[name]

    def _corpus(self, name: str, model: "SentenceTransformer", dataset: str) -> PassageVectors:
        with self.store.read() as session:
            dataset_id = get_dataset(session, dataset).id
            count, last = searched_passages(session, dataset_id)
        if not count:
            raise BadInput(
                f"dataset {dataset!r} has no passages",
                "import some with `datasets import NAME passages=FILE`",
                code="dataset_without_passages",
            )
        key = (name, dataset_id, count, last)
        if key not in self._corpora:
            self._corpora = {k: v for k, v in self._corpora.items() if k[:2] != key[:2]}
            self._corpora[key] = vectors_by(self.store, dataset_id, model)
        return self._corpora[key]

    def _texts(self, best: list[tuple[int, float]]) -> list[dict[str, Any]]:
        with self.store.read() as session:
            found = {
                row.id: row
                for row in session.scalars(
                    select(Passage).where(Passage.id.in_([number for number, _ in best]))
                )
            }
        return [
            {"passage_id": found[n].external_id, "text": found[n].text, "score": score}
            for n, score in best
        ]


class Server(ThreadingHTTPServer):
    """Loopback only; remembers the time of the last request."""

    daemon_threads = True

    def __init__(self, searcher: Searcher) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.searcher, self.token = searcher, secrets.token_urlsafe(32)
        self.requested_at, self.busy = time.monotonic(), 0

    def stop_when_idle(self, idle_seconds: float) -> None:
        """End the server after so long without a request."""
        while self.busy or time.monotonic() - self.requested_at < idle_seconds:
            time.sleep(min(1.0, idle_seconds / 4))
        self.shutdown()


class Handler(BaseHTTPRequestHandler):
    """GET /health and POST /search, both with the token."""

    server: Server

    def do_GET(self) -> None:
        if self._is_allowed():
            self._answer(200, {"status": "ok", "pid": os.getpid()})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if not self._is_allowed():
            return
        if self.path != "/search" or length > MAX_REQUEST_BYTES:
            self._answer(404, {"error": "POST /search, of less than a megabyte"})
            return
        self.server.busy += 1
        try:
            self._answer(200, self.server.searcher.search(json.loads(self.rfile.read(length))))
        except (InfError, ImportError) as error:
            self._answer(400, {"error": str(missing_extra(error) or error)})
        except (KeyError, ValueError, TypeError) as error:
            self._answer(400, {"error": f"the request cannot be read: {error!r}"})
        except Exception as error:  # report it to the page and keep serving
            log.exception("search failed")
            self._answer(500, {"error": f"the model server failed: {error}"})
        finally:
            self.server.busy -= 1

    def _is_allowed(self) -> bool:
        given = self.headers.get("Authorization", "").encode()
        if hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            self.server.requested_at = time.monotonic()
            return True
        self._answer(401, {"error": "the token is missing or wrong"})
        return False

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:
        log.info(format, *args)


def serve(idle_seconds: float = IDLE_SECONDS) -> None:
    """Listen, write the state file, end when idle."""
    server = Server(Searcher(open_store()))
    state = {"port": server.server_port, "token": server.token, "pid": os.getpid()}
    path = state_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(state, file)
    draft.rename(path)
    threading.Thread(target=server.stop_when_idle, args=(idle_seconds,), daemon=True).start()
    try:
        server.serve_forever()
    finally:
        if path.exists() and json.loads(path.read_text()).get("pid") == os.getpid():
            path.unlink()


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.basicConfig(level=logging.INFO)
    owners_process(True)  # what a search may reach was checked by the page that sends it
    serve(float(os.environ.get("INF_MODEL_SERVER_IDLE_SECONDS", IDLE_SECONDS)))
