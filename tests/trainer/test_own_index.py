"""A team's own index: every kind ranks as the vectors do; what does not fit is refused."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from base_folders import trained
from study_world import make_world

from db.errors import BadInput
from db.store.store import Store
from db.tables import Passage
from trainer.model.backbone import load_model
from trainer.serve.model_server import Searcher
from trainer.serve.own_index import open_index

BASE = "tiny-random-bert"
TEXTS = [
    "tea is made of leaves",
    "the bridge is 80 metres long",
    "a hill of sand",
    "iron and stone",
    "the mill by the river",
]
IDS = [f"own {number}" for number in range(len(TEXTS))]


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    """(5, d) unit vectors of TEXTS by BASE."""
    found = load_model(BASE).encode_document(TEXTS, normalize_embeddings=True)
    return np.asarray(found, dtype=np.float32)


def write_npy(folder: Path, vectors: np.ndarray) -> str:
    folder.mkdir()
    np.save(folder / "vectors.npy", 3 * vectors)  # ranked by cosine whatever the length
    (folder / "ids.json").write_text(json.dumps(IDS))
    return str(folder)


def write_parquet(folder: Path, vectors: np.ndarray) -> str:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    folder.mkdir()
    columns = {"id": IDS, "vector": vectors.tolist(), "text": TEXTS}
    for number, rows in enumerate((slice(0, 2), slice(2, None))):
        part = {name: values[rows] for name, values in columns.items()}
        parquet.write_table(pa.table(part), folder / f"part-{number}.parquet")
    return str(folder)


def write_faiss(folder: Path, vectors: np.ndarray, kind: str = "IndexFlatIP") -> str:
    import faiss

    folder.mkdir()
    index = getattr(faiss, kind)(vectors.shape[1])
    index.add(vectors)
    faiss.write_index(index, str(folder / "index.faiss"))
    (folder / "ids.txt").write_text("\n".join(IDS) + "\n")
    return str(folder)


def write_faiss_l2(folder: Path, vectors: np.ndarray) -> str:
    return write_faiss(folder, vectors, "IndexFlatL2")


def write_faiss_with_numbers(folder: Path, vectors: np.ndarray) -> str:
    """Numbers that are places of other vectors: silently wrong where they are taken for places."""
    import faiss

    folder.mkdir()
    index = faiss.IndexIDMap(faiss.IndexFlatIP(vectors.shape[1]))
    index.add_with_ids(vectors, np.array([3, 0, 4, 1, 2]))
    faiss.write_index(index, str(folder / "index.faiss"))
    (folder / "ids.txt").write_text("\n".join(IDS) + "\n")
    return str(folder)


def write_qdrant(folder: Path, vectors: np.ndarray) -> str:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder))
    params = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection("books", vectors_config=params)
    points = [
        models.PointStruct(id=n, vector=of.tolist(), payload={"id": IDS[n], "text": TEXTS[n]})
        for n, of in enumerate(vectors)
    ]
    client.upsert("books", points)
    client.close()
    return f"qdrant:{folder}/books"


class Elastic(ThreadingHTTPServer):
    """Answers what an Elasticsearch server answers to the client about one index."""

    daemon_threads = True
    vectors: np.ndarray
    asked: list[dict[str, Any]]

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        route = path.split("?")[0].split("/")[-1]
        if path.startswith("/gone"):
            error = {"type": "index_not_found_exception", "reason": "no such index [gone]"}
            return 404, {"error": error, "status": 404}
        if route == "_mapping":
            field = {"type": "dense_vector", "dims": self.vectors.shape[1]}
            return 200, {"books-1": {"mappings": {"properties": {"v": field}}}}
        if route == "_count":
            return 200, {"count": len(TEXTS)}
        self.asked.append(body)
        if "knn" in body:
            scores = self.vectors @ np.array(body["knn"]["query_vector"])
            order = np.argsort(-scores)[: body["knn"]["k"]]
            hits = [self.hit(n) | {"_score": (1 + float(scores[n])) / 2} for n in order]
        else:
            hits = [
                self.hit(n) | {"fields": {"v": self.vectors[n].tolist()}}
                for n in range(body["size"])
            ]
        return 200, {"hits": {"hits": hits}}

    def hit(self, number: int) -> dict[str, Any]:
        return {"_id": IDS[number], "_source": {"text": TEXTS[number]}}


class ElasticHandler(BaseHTTPRequestHandler):
    server: Elastic

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        status, found = self.server.answer(self.command, self.path, body)
        payload = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("X-Elastic-Product", "Elasticsearch")
        kind = self.headers.get("Accept", "application/json").split(",")[0]
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def elastic(vectors: np.ndarray) -> Iterator[Elastic]:
    with Elastic(("127.0.0.1", 0), ElasticHandler) as server:
        server.vectors, server.asked = vectors, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def ranking(searcher: Searcher, **asked: Any) -> list[str]:
    found = searcher.search({"model": BASE, "query": "how long is the bridge"} | asked)
    return [hit["passage_id"] for hit in found["hits"]]


def by_hand(vectors: np.ndarray, model: str = BASE, text: str = "how long is the bridge") -> Any:
    question = np.asarray(load_model(model).encode_query([text], normalize_embeddings=True))[0]
    return [IDS[row] for row in np.argsort(-(vectors @ question))]


@pytest.mark.parametrize(
    "write",
    [
        write_npy,
        write_parquet,
        write_faiss,
        write_faiss_l2,
        write_faiss_with_numbers,
        write_qdrant,
    ],
)
def test_every_kind_of_index_ranks_as_its_vectors_do(
    sqlite_store: Store, tmp_path: Path, vectors: np.ndarray, write: Any
) -> None:
    place = write(tmp_path / "index", vectors)
    assert ranking(Searcher(sqlite_store), index=place) == by_hand(vectors)


def test_numbers_without_ids_are_refused(tmp_path: Path, vectors: np.ndarray) -> None:
    import faiss

    place = write_faiss(tmp_path / "index", vectors)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(vectors.shape[1]), vectors.shape[1], 1)
    index.train(vectors)
    index.add_with_ids(vectors, np.arange(1000, 1005))
    faiss.write_index(index, str(tmp_path / "index" / "index.faiss"))
    with pytest.raises(BadInput, match="there are 5 ids"):
        open_index(place).search(vectors[0], 3)


def test_distances_are_of_the_models_own_vectors(tmp_path: Path, vectors: np.ndarray) -> None:
    """A base whose vectors are not of length one: a question of length one ranks otherwise."""
    lengths = np.array([[0.5], [1.0], [3.0], [2.0], [4.0]], dtype=np.float32)
    question = 4 * vectors[4]
    place = write_faiss_l2(tmp_path / "index", lengths * vectors)
    assert open_index(place).search(question, 1)[0].id == IDS[4]
    assert open_index(place).search(question / 4, 1)[0].id != IDS[4]


def test_an_elasticsearch_server_is_searched_by_its_own_client(
    sqlite_store: Store, elastic: Elastic, vectors: np.ndarray
) -> None:
    url = f"elasticsearch:http://127.0.0.1:{elastic.server_port}"
    searcher = Searcher(sqlite_store)
    found = searcher.search(
        {"model": BASE, "query": "how long is the bridge", "index": f"{url}/books"}
    )
    assert [hit["passage_id"] for hit in found["hits"]] == by_hand(vectors)
    assert found["passages"] == len(TEXTS) and "3 of its vectors" in found["note"]
    assert found["hits"][0]["text"] in TEXTS
    assert elastic.asked[-1]["knn"]["field"] == "v"
    with pytest.raises(BadInput, match="index_not_found"):
        searcher.search({"model": BASE, "query": "x", "index": f"{url}/gone"})


def test_both_rankings_are_of_the_same_vectors_where_the_index_stays(
    sqlite_store: Store, tmp_path: Path, vectors: np.ndarray
) -> None:
    place = write_parquet(tmp_path / "index", vectors)
    stays = trained(tmp_path / "query", trained_side="query")
    searcher = Searcher(sqlite_store)
    assert ranking(searcher, index=place, model=stays) == by_hand(vectors)
    asked = {"model": stays, "query": "how long", "instruction": "In metres.", "index": place}
    found = searcher.search(asked)
    model: Any = load_model(stays)
    question = model.encode_query(["how long"], instruction="In metres.", normalize_embeddings=True)
    scores = {hit["passage_id"]: hit["score"] for hit in found["hits"]}
    for name, own in zip(IDS, vectors @ np.asarray(question)[0], strict=True):
        assert scores[name] == pytest.approx(float(own), abs=1e-5)


@pytest.mark.parametrize("write", [write_parquet, write_qdrant])
def test_a_model_that_moved_its_passages_is_refused(
    sqlite_store: Store, tmp_path: Path, vectors: np.ndarray, write: Any
) -> None:
    place = write(tmp_path / "index", vectors)
    both = trained(tmp_path / "both")
    with pytest.raises(BadInput, match="was not made by") as refused:
        ranking(Searcher(sqlite_store), index=place, model=both)
    assert refused.value.code == "index_of_another_model"


def test_other_dimensions_are_refused(sqlite_store: Store, tmp_path: Path) -> None:
    place = write_npy(tmp_path / "index", np.ones((5, 7), dtype=np.float32))
    with pytest.raises(BadInput, match="vectors of 7 numbers") as refused:
        ranking(Searcher(sqlite_store), index=place)
    assert refused.value.code == "index_dimensions_differ"


def test_texts_that_the_index_lacks_are_the_datasets(sqlite_store: Store, tmp_path: Path) -> None:
    from sqlalchemy import select

    make_world(sqlite_store)
    with sqlite_store.read() as session:
        rows = session.scalars(select(Passage).limit(4)).all()
    names, texts = [row.external_id for row in rows], [row.text for row in rows]
    (tmp_path / "index").mkdir()
    np.save(tmp_path / "index" / "vectors.npy", load_model(BASE).encode_document(texts))
    np.save(tmp_path / "index" / "ids.npy", np.array(names))
    asked = {"model": BASE, "query": "tea", "index": str(tmp_path / "index")}
    searcher = Searcher(sqlite_store)
    searcher.search(asked)  # without texts nothing is compared, and that is not remembered for all
    found = searcher.search(asked | {"dataset": "world"})
    assert {hit["text"] for hit in found["hits"]} == set(texts)
    assert "3 of its vectors are the model's" in found["note"]
    found = Searcher(sqlite_store).search(asked)
    assert found["note"] == "not compared with the model: the index holds no texts"
    other = np.random.default_rng(1).normal(size=np.load(tmp_path / "index/vectors.npy").shape)
    np.save(tmp_path / "index" / "vectors.npy", other.astype(np.float32))
    with pytest.raises(BadInput, match="was not made by"):
        Searcher(sqlite_store).search(asked | {"dataset": "world"})


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("/no/such/folder", "is no folder"),
        ("qdrant:books", "qdrant:URL/NAME"),
        ("qdrant:/no/such/books", "neither a URL nor a folder"),
        ("elasticsearch:http://127.0.0.1:9/books", "cannot be read"),
        ("qdrant:http://127.0.0.1:9/books", "cannot be read"),
        ("qdrant:http://127.0.0.1:9/books?vectors=v", "no option 'vectors'"),
    ],
)
def test_a_place_without_an_index_is_a_sentence(place: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        open_index(place)


@pytest.mark.parametrize("name", ["vectors.npy", "index.faiss", "a.parquet"])
def test_a_damaged_file_is_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\0damaged" * 9)
    (tmp_path / "ids.txt").write_text("a\n")
    with pytest.raises(BadInput, match="cannot be read"):
        open_index(str(tmp_path))


def test_a_column_without_lists_is_a_sentence(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    parquet.write_table(pa.table({"id": ["a"], "vector": ["[1, 2]"]}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="column `vector`"):
        open_index(str(tmp_path))


def test_a_missing_id_is_noticed(tmp_path: Path, vectors: np.ndarray) -> None:
    place = Path(write_npy(tmp_path / "index", vectors))
    (place / "ids.json").write_text(json.dumps(IDS[:-1]))
    with pytest.raises(BadInput, match="4 ids for 5 vectors"):
        open_index(str(place))
    (place / "ids.json").unlink()
    with pytest.raises(BadInput, match=r"none of ids\.json"):
        open_index(str(place))
