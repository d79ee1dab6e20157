"""The vectors of a dataset's passages by one model, kept on disk for Try it.

A file `$INF_HOME/passage-vectors/<model>-<dataset>-<contents>.npy` of float32 unit vectors, one
row per passage in the order of ids, read as a memory map: a server that starts again searches at
once. It is written as `.partial` and renamed, so a killed one leaves nothing that looks whole.
`contents` hashes the passages' ids and texts: a dataset that changed has another file, and the old
is removed. `model` hashes what reads passages, by content: a model whose index stays
(`trainer.model.doors`) reads the file of its base.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.corpus.texts import passage_texts
from db.errors import BadInput
from db.home import home
from db.store.store import Store
from db.tables import Passage

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

AT_ONCE = 256
BATCH = 64
Encode = Callable[[list[str]], Any]
Progress = Callable[[int, int], None]


def _silent(done: int, total: int) -> None:
    """Report nothing."""


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


def vectors_by(
    store: Store, dataset_id: int, model: "SentenceTransformer", *, progress: Progress = _silent
) -> PassageVectors:
    """The kept vectors of the dataset's passages by the model, made where there are none.

    progress: receives (done, total) while they are made.
    """
    return passage_vectors(
        store,
        dataset_id,
        identity=passage_identity(model),
        encode=lambda texts: model.encode_document(texts, batch_size=BATCH, convert_to_numpy=True),
        progress=progress,
    )


def passage_identity(model: "SentenceTransformer") -> str:
    """What determines the model's passage vectors: weights and reading of the modules that make
    them, by content, wherever they lie; 0.2 s for 90 MB."""
    import torch

    from analysis.embed.chat_template import reading_of
    from trainer.model.doors import passage_modules

    digest = hashlib.sha256()
    for place, module in enumerate(passage_modules(model)):
        how = [getattr(module, name, None) for name in ("max_seq_length", "pooling_mode")]
        digest.update(f"{place} {type(module).__name__} {how}\n".encode())
        for name, weights in sorted(module.state_dict().items()):
            digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}\n".encode())
            flat = weights.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy())
    prompt = model.prompts.get("document") or ""
    return f"{digest.hexdigest()}{reading_of(model)} after {prompt!r} of {model.truncate_dim}"


def has_vectors(session: Session, dataset_id: int) -> bool:
    """Whether some model's vectors of the dataset as it is are kept; loads no model."""
    return any(_folder().glob(f"*-{dataset_id}-{_contents(_passages(session, dataset_id))}.npy"))


def passage_vectors(
    store: Store, dataset_id: int, *, identity: str, encode: Encode, progress: Progress = _silent
) -> PassageVectors:
    """The kept vectors, or those of `encode` (texts to rows), which are kept.

    identity: what the model is known by. Raises BadInput for a dataset without passages.
    """
    with store.read() as session:
        rows = _passages(session, dataset_id)
    if not rows:
        raise BadInput(
            f"dataset {dataset_id} has no passages",
            "import some first",
            code="dataset_without_passages",
        )
    ids = np.array([number for number, _ in rows], dtype=np.int64)
    folder = _folder()
    kept = f"{_digest([identity])}-{dataset_id}-"
    path = folder / f"{kept}{_contents(rows)}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write(store, ids, path, encode, progress)
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


def _passages(session: Session, dataset_id: int) -> list[tuple[int, str]]:
    query = select(Passage.id, Passage.sha256).where(*_of(dataset_id)).order_by(Passage.id)
    return [(number, sha256) for number, sha256 in session.execute(query)]


def _contents(passages: Sequence[tuple[int, str]]) -> str:
    return _digest(f"{number} {sha256}" for number, sha256 in passages)


def _folder() -> Path:
    return home() / "passage-vectors"


def _digest(parts: Sequence[str] | Iterator[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\n")
    return digest.hexdigest()[:24]


def _write(store: Store, ids: np.ndarray, path: Path, encode: Encode, progress: Progress) -> None:
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
        progress(start + len(part), len(ids))
    assert kept is not None
    kept.flush()
    draft.replace(path)
