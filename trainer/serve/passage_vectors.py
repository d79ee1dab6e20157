"""The vectors of a dataset's passages by one model, kept on disk for Try it.

A file `$INF_HOME/passage-vectors/<model>-<dataset>-<contents>.npy` of float32 unit vectors, one
row per passage in the order of ids, read as a memory map: a server that starts again searches at
once. It is written as `.partial` and renamed, so a killed one leaves nothing that looks whole.
`contents` hashes the passages' ids and texts: a dataset that changed has another file, and the old
is removed.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.corpus.texts import passage_texts
from db.store.settings import home
from db.store.store import Store
from db.tables import Passage

AT_ONCE = 1024
Encode = Callable[[list[str]], Any]


@dataclass(frozen=True)
class PassageVectors:
    """ids (n,) int64, ascending; vectors (n, d) float32 of length one, row for row."""

    ids: np.ndarray
    vectors: np.ndarray

    def best(self, question: np.ndarray, depth: int) -> list[tuple[int, float]]:
        """(passage id, cosine) of the nearest to a unit vector (d,); ties by the lower id."""
        scores = self.vectors @ question  # (n,)
        depth = min(depth, len(scores))
        least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        rows = np.flatnonzero(scores >= least)  # with every tie at the cut
        rows = rows[np.lexsort((rows, -scores[rows]))][:depth]
        return [(int(self.ids[row]), float(scores[row])) for row in rows]


def searched_passages(session: Session, dataset_id: int) -> tuple[int, int]:
    """How many passages a dataset offers, and their highest id: a change that costs nothing."""
    query = select(func.count(), func.max(Passage.id)).where(*_of(dataset_id))
    count, last = session.execute(query).one()
    return count, last or 0


def passage_vectors(
    store: Store, dataset_id: int, *, identity: str, encode: Encode
) -> PassageVectors:
    """The kept vectors, or those of `encode` (texts to rows), which are kept.

    identity: what the model is known by. There must be at least one passage.
    """
    with store.read() as session:
        rows = session.execute(
            select(Passage.id, Passage.sha256).where(*_of(dataset_id)).order_by(Passage.id)
        ).all()
    ids = np.array([number for number, _ in rows], dtype=np.int64)
    contents = _digest(f"{number} {sha256}" for number, sha256 in rows)
    folder = home() / "passage-vectors"
    kept = f"{_digest([identity])}-{dataset_id}-"
    path = folder / f"{kept}{contents}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write(store, ids, path, encode)
        for old in folder.glob(f"{kept}*.npy"):
            if old != path:
                old.unlink(missing_ok=True)
    return PassageVectors(ids, np.load(path, mmap_mode="r"))


def as_unit(vectors: Any) -> np.ndarray:
    """Rows of length one, float32; a row of zeros stays."""
    rows = np.asarray(vectors, dtype=np.float32)
    unit: np.ndarray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit


def _of(dataset_id: int) -> tuple[Any, ...]:
    return Passage.dataset_id == dataset_id, Passage.origin != "generated"


def _digest(parts: Sequence[str] | Iterator[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\n")
    return digest.hexdigest()[:24]


def _write(store: Store, ids: np.ndarray, path: Path, encode: Encode) -> None:
    draft = path.with_suffix(".partial")
    kept: np.memmap[Any, Any] | None = None
    for start in range(0, len(ids), AT_ONCE):
        part = [int(number) for number in ids[start : start + AT_ONCE]]
        with store.read() as session:
            texts = passage_texts(session, part)
        vectors = as_unit(encode([texts[number] for number in part]))
        if kept is None:
            kept = np.lib.format.open_memmap(
                draft, mode="w+", dtype=np.float32, shape=(len(ids), vectors.shape[1])
            )
        kept[start : start + len(part)] = vectors
    assert kept is not None
    kept.flush()
    draft.replace(path)
