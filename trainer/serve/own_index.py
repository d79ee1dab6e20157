"""An index that a team has already: searched with a model, where the model's base has made it.

A place is one of

    FOLDER                               vectors.npy (n, d) or index.faiss, with ids.json, ids.txt
                                         or ids.npy; or *.parquet with `id`, `vector` and maybe
                                         `text`
    qdrant:URL/COLLECTION                a Qdrant server, or a folder of its local mode
    elasticsearch:URL/INDEX              an Elasticsearch server, over a field `dense_vector`

The last two take `?vector=NAME` (where there are several) and `&text=FIELD` (`text` unless given,
empty: none); a key is read from the variable INF_INDEX_KEY. Servers are reached through their own
clients (extra `index`). Nothing is written to an index.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs

import numpy as np

from db.errors import BadInput
from trainer.serve.passage_vectors import PassageVectors, as_unit

KEY = "INF_INDEX_KEY"
SAMPLE = 3
LEAST_COSINE = 0.99
OTHER_MODEL = "give the model that made the index, or one trained on it with trained_side=query"
TIMEOUT_SECONDS = 30
VECTORS, FAISS = "vectors.npy", "index.faiss"
ID_FILES = ("ids.json", "ids.txt", "ids.npy")


@dataclass(frozen=True)
class Entry:
    """What an index holds under an id: its text ("" where it holds none), a score or a vector."""

    id: str
    text: str
    score: float = 0.0
    vector: np.ndarray | None = None


class OwnIndex(Protocol):
    """Vectors with ids, searched by the measure that the index was built for."""

    place: str
    dimensions: int
    count: int

    def search(self, vector: np.ndarray, depth: int) -> list[Entry]:
        """The nearest to the model's vector (d,) of a question, best first."""
        ...

    def sample(self) -> list[Entry]:
        """A few entries with their vectors; empty where the index gives none back."""
        ...


def open_index(place: str) -> OwnIndex:
    """The index of a place. Raises BadInput naming what is missing there."""
    servers: dict[str, Callable[..., OwnIndex]] = {
        "qdrant:": QdrantIndex,
        "elasticsearch:": ElasticIndex,
    }
    for prefix, kind in servers.items():
        if place.startswith(prefix):
            url, _, options = place.removeprefix(prefix).partition("?")
            url, _, name = url.rstrip("/").rpartition("/")
            if not url or not name:
                raise BadInput(
                    f"{place} is no {prefix}URL/NAME", "give one", code="index_place_invalid"
                )
            given = {key: values[-1] for key, values in parse_qs(options, True).items()}
            if unknown := sorted(given.keys() - {"vector", "text"}):
                raise BadInput(
                    f"{place}: no option {unknown[0]!r}",
                    "there are vector and text",
                    code="index_option_unknown",
                )
            return kind(place, url, name, given)
    folder = Path(place).expanduser()
    if not folder.is_dir():
        raise BadInput(
            f"{place} is no folder",
            "give one, qdrant:URL/NAME or elasticsearch:URL/NAME",
            code="index_place_invalid",
        )
    if (folder / FAISS).is_file():
        return FaissIndex(folder)
    return FolderIndex(folder)


def require_fit(
    index: OwnIndex,
    model: str,
    encode: Callable[[list[str]], Any],
    texts: Callable[[Sequence[str]], Mapping[str, str]],
) -> str:
    """How the index was compared with the model; raises BadInput where the model's base cannot
    have made it.

    encode: passages to vectors, by the model. texts: those of the store by id, for an index that
    holds none.
    """
    size = np.asarray(encode(["a"])).shape[1]
    if index.dimensions != size:
        raise BadInput(
            f"{index.place} has vectors of {index.dimensions} numbers and {model} makes {size}",
            OTHER_MODEL,
            code="index_dimensions_differ",
        )
    entries = [each for each in index.sample() if each.vector is not None]
    known = texts([each.id for each in entries])
    pairs = [(each, each.text or known.get(each.id, "")) for each in entries]
    found = [(each, text) for each, text in pairs if text]
    if not found:
        why = "holds no texts" if entries else "gives no vectors back"
        return f"not compared with the model: the index {why}"
    own = as_unit(encode([text for _, text in found]))  # (k, d)
    stored = as_unit([each.vector for each, _ in found])  # (k, d)
    cosines = (own * stored).sum(axis=1)
    worst = int(cosines.argmin())
    if cosines[worst] < LEAST_COSINE:
        raise BadInput(
            f"{index.place} was not made by {model}: its vector of {found[worst][0].id!r} and the "
            f"model's have cosine {cosines[worst]:.3f}, at least {LEAST_COSINE} is needed",
            OTHER_MODEL,
            code="index_of_another_model",
        )
    return f"{len(found)} of its vectors are the model's: cosine at least {cosines[worst]:.4f}"


class FolderIndex:
    """Vectors of a folder, in memory, ranked by cosine."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        ids, vectors, self._texts = _read_folder(folder)
        if vectors.ndim != 2 or not len(vectors):
            raise BadInput(
                f"{folder}: its vectors have shape {vectors.shape}, not (n, d)",
                "store vectors of one length, a row each",
                code="index_shape_invalid",
            )
        if len(ids) != len(vectors):
            raise _other_number(folder, ids, len(vectors))
        self._ids = ids
        self._all = PassageVectors(np.arange(len(ids)), as_unit(vectors))
        self.count, self.dimensions = vectors.shape

    def search(self, vector: np.ndarray, depth: int) -> list[Entry]:
        unit = as_unit([vector])[0]
        return [self._entry(row, score) for row, score in self._all.best(unit, depth)]

    def sample(self) -> list[Entry]:
        return [
            Entry(self._ids[row], self._texts[row] if self._texts else "", vector=of)
            for row, of in enumerate(self._all.vectors[:SAMPLE])
        ]

    def _entry(self, row: int, score: float) -> Entry:
        return Entry(self._ids[row], self._texts[row] if self._texts else "", score)


class FaissIndex:
    """An index file of FAISS; a distance becomes a score by its sign."""

    def __init__(self, folder: Path) -> None:
        import faiss

        self.place = str(folder)
        try:
            self._index = faiss.read_index(str(folder / FAISS))
        except RuntimeError as error:
            raise _unreadable(folder / FAISS, error) from error
        self._rows: Any = self._index  # by place, as `ids` has them
        numbers = None
        if isinstance(self._index, faiss.IndexIDMap):
            numbers = faiss.vector_to_array(self._index.id_map).tolist()
            self._rows = faiss.downcast_index(self._index.index)
        self._ids = _ids_of(folder)
        self._place = {number: row for row, number in enumerate(numbers)} if numbers else None
        self.count, self.dimensions = int(self._index.ntotal), int(self._index.d)
        if len(self._ids) != self.count:
            raise _other_number(folder, self._ids, self.count)
        self._sign = 1.0 if self._index.metric_type == faiss.METRIC_INNER_PRODUCT else -1.0

    def search(self, vector: np.ndarray, depth: int) -> list[Entry]:
        question = np.ascontiguousarray(vector[None], dtype=np.float32)
        scores, rows = self._index.search(question, min(depth, self.count))
        return [
            Entry(self._id(int(row)), "", self._sign * float(score))
            for score, row in zip(scores[0], rows[0], strict=True)
            if row >= 0
        ]

    def _id(self, number: int) -> str:
        """The id of what the index found under a number, which it may have been given."""
        row = number if self._place is None else self._place.get(number, self.count)
        if row >= self.count:
            raise BadInput(
                f"{self.place}: {FAISS} found its vector {number}, and there are {self.count} ids",
                "number its vectors from 0 in the order of the ids, or wrap it in IndexIDMap",
                code="index_ids_mismatch",
            )
        return self._ids[row]

    def sample(self) -> list[Entry]:
        found = []
        for row in range(min(SAMPLE, self.count)):
            try:
                vector: Any = self._rows.reconstruct(row)
                found.append(Entry(self._ids[row], "", vector=vector))
            except RuntimeError:  # a kind of index that does not keep what it was given
                return []
        return found


class QdrantIndex:
    """A collection of Qdrant; a point's id is its payload's `id`, or its own."""

    def __init__(self, place: str, url: str, name: str, options: Mapping[str, str]) -> None:
        import qdrant_client

        self.place, self._name = place, name
        self._text = options.get("text", "text")
        is_server = url.startswith(("http://", "https://"))
        if not is_server and not Path(url).is_dir():
            raise BadInput(
                f"{place}: {url} is neither a URL nor a folder of Qdrant's local mode",
                "correct it",
                code="index_place_invalid",
            )
        with self._translated():
            self._client = (
                qdrant_client.QdrantClient(
                    url=url,
                    api_key=os.environ.get(KEY),
                    timeout=TIMEOUT_SECONDS,
                    check_compatibility=False,
                )
                if is_server
                else qdrant_client.QdrantClient(path=url)
            )
            about: Any = self._client.get_collection(name)
        vectors = about.config.params.vectors
        named = vectors if isinstance(vectors, dict) else {"": vectors}
        self._vector = _one_vector(place, list(named), options)
        self.dimensions, self.count = int(named[self._vector].size), int(about.points_count or 0)

    def search(self, vector: np.ndarray, depth: int) -> list[Entry]:
        with self._translated():
            found: Any = self._client.query_points(
                self._name,
                query=[float(value) for value in vector],
                using=self._vector or None,
                limit=depth,
                with_payload=True,
            )
        return [self._entry(point, point.score) for point in found.points]

    def sample(self) -> list[Entry]:
        with self._translated():
            points: Any = self._client.scroll(
                self._name, limit=SAMPLE, with_payload=True, with_vectors=True
            )[0]
        return [self._entry(point) for point in points]

    def _entry(self, point: Any, score: float = 0.0) -> Entry:
        held = point.payload or {}
        vector = getattr(point, "vector", None)
        of = vector.get(self._vector) if isinstance(vector, dict) else vector
        name, text = str(held.get("id", point.id)), str(held.get(self._text) or "")
        return Entry(name, text, float(score), None if of is None else np.asarray(of))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from qdrant_client.http.exceptions import ApiException

        try:
            yield
        except (ApiException, ValueError, RuntimeError) as error:
            raise _unreadable(self.place, error) from error


class ElasticIndex:
    """An index of Elasticsearch, by its approximate nearest neighbours."""

    def __init__(self, place: str, url: str, name: str, options: Mapping[str, str]) -> None:
        from elasticsearch import Elasticsearch

        self.place, self._name = place, name
        self._text = options.get("text", "text")
        key = os.environ.get(KEY)
        with self._translated():
            self._client = Elasticsearch(url, api_key=key, request_timeout=TIMEOUT_SECONDS)
            mapping = self._client.indices.get_mapping(index=name).body
            self.count = int(self._client.count(index=name)["count"])
        (of,) = list(mapping.values())[:1] or [{}]
        fields = of.get("mappings", {}).get("properties", {})
        dense = {each: kind for each, kind in fields.items() if kind.get("type") == "dense_vector"}
        self._vector = _one_vector(place, list(dense), options)
        self.dimensions = int(dense[self._vector]["dims"])
        self._takes_units = dense[self._vector].get("similarity") == "dot_product"

    def search(self, vector: np.ndarray, depth: int) -> list[Entry]:
        question = as_unit([vector])[0] if self._takes_units else vector
        knn = {
            "field": self._vector,
            "query_vector": [float(value) for value in question],
            "k": depth,
            "num_candidates": max(100, 10 * depth),
        }
        return self._entries(knn=knn, size=depth)

    def sample(self) -> list[Entry]:
        return self._entries(query={"match_all": {}}, size=SAMPLE, fields=[self._vector])

    def _entries(self, **request: Any) -> list[Entry]:
        with self._translated():
            found = self._client.search(
                index=self._name, source_excludes=[self._vector], **request
            ).body
        entries = []
        for hit in found["hits"]["hits"]:
            vector = (hit.get("fields") or {}).get(self._vector)
            text = str((hit.get("_source") or {}).get(self._text) or "")
            of = None if vector is None else np.asarray(vector, dtype=np.float32)
            entries.append(Entry(str(hit["_id"]), text, float(hit.get("_score") or 0.0), of))
        return entries

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from elasticsearch import ApiError, TransportError

        try:
            yield
        except (ApiError, TransportError, ValueError) as error:
            raise _unreadable(self.place, error) from error


def _unreadable(place: str | Path, error: Exception) -> BadInput:
    return BadInput(
        f"{place} cannot be read: {error}",
        "Check the folder or the address",
        code="index_unreadable",
    )


def _other_number(folder: Path, ids: Sequence[str], vectors: int) -> BadInput:
    return BadInput(
        f"{folder} has {len(ids)} ids for {vectors} vectors",
        "write ids and vectors of the same passages",
        code="index_ids_mismatch",
    )


def _one_vector(place: str, names: Sequence[str], options: Mapping[str, str]) -> str:
    wanted = options.get("vector")
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    listed = ", ".join(names) or "none"
    raise BadInput(
        f"{place}: which vectors is not clear",
        f"add ?vector=NAME: there are {listed}",
        code="index_vector_ambiguous",
    )


def _read_folder(folder: Path) -> tuple[list[str], np.ndarray, list[str]]:
    """(ids, vectors (n, d), texts or []) of vectors.npy or of all *.parquet."""
    if (folder / VECTORS).is_file():
        try:
            vectors = np.load(folder / VECTORS, mmap_mode="r")
        except ValueError as error:
            raise _unreadable(folder / VECTORS, error) from error
        return _ids_of(folder), vectors, []
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise BadInput(
            f"{folder} has none of {VECTORS}, {FAISS} and *.parquet",
            "add one of these files, or name another folder",
            code="index_place_invalid",
        )
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as parquet

    try:
        tables = [parquet.read_table(file) for file in files]
        table = pa.concat_tables(tables)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(folder, error) from error
    for name in ("id", "vector"):
        if name not in table.column_names:
            raise BadInput(
                f"{files[0]} has no column `{name}`: `id`, `vector`, maybe `text`",
                "name the columns so",
                code="index_column_missing",
            )
    try:
        column = table.column("vector").combine_chunks()
        sizes = pc.unique(pc.fill_null(pc.list_value_length(column), 0)).to_pylist()
    except pa.ArrowException as error:  # no lists of numbers, or more of them than one array has
        raise _unreadable(f"column `vector` of {folder}", error) from error
    if len(sizes) != 1:
        raise BadInput(
            f"{folder}: the vectors of its column `vector` differ in length",
            "store vectors of one length, a row each",
            code="index_shape_invalid",
        )
    texts = table.column("text").to_pylist() if "text" in table.column_names else []
    ids = [str(name) for name in table.column("id").to_pylist()]
    # not row by row: a million vectors as lists of numbers would take 12 GB
    vectors = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
    return ids, vectors.reshape(-1, sizes[0]), [str(text or "") for text in texts]


def _ids_of(folder: Path) -> list[str]:
    for name in ID_FILES:
        file = folder / name
        if not file.is_file():
            continue
        try:
            if file.suffix == ".npy":
                return [str(each) for each in np.load(file)]
            text = file.read_text(encoding="utf-8")
            return (
                [str(each) for each in json.loads(text)]
                if name == ID_FILES[0]
                else (text.splitlines())
            )
        except ValueError as error:
            raise _unreadable(file, error) from error
    raise BadInput(
        f"{folder} has none of {', '.join(ID_FILES)}: the ids of its vectors, in order",
        "add one of these files",
        code="index_ids_missing",
    )
