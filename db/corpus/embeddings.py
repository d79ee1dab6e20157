"""Cached vectors, by (model, sha256 of the text). A vector is computed once per store.

Note: `model` is the *identity* of a model (see `analysis.embed.embedding`), not always the name
entered: a folder may hold newly trained weights under the same path.
"""

from collections.abc import Sequence

import numpy as np
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.tables import Embedding

KEYS_PER_QUERY = 900


def cached_vectors(session: Session, model: str, sha256s: Sequence[str]) -> dict[str, np.ndarray]:
    """The stored vectors, float32, by sha256; missing ones are omitted."""
    found: dict[str, np.ndarray] = {}
    for start in range(0, len(sha256s), KEYS_PER_QUERY):
        rows = session.execute(
            select(Embedding.text_sha256, Embedding.vector).where(
                Embedding.model == model,
                Embedding.text_sha256.in_(sha256s[start : start + KEYS_PER_QUERY]),
            )
        )
        found.update((sha256, np.frombuffer(vector, dtype="<f4")) for sha256, vector in rows)
    return found


def store_vectors(
    session: Session, model: str, sha256s: Sequence[str], vectors: np.ndarray
) -> None:
    """Store vectors; one that another process stored first is kept. Does not commit."""
    if not sha256s:
        return
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    rows = [
        {"model": model, "text_sha256": sha256, "vector": row.astype("<f4").tobytes()}
        for sha256, row in zip(sha256s, vectors, strict=True)
    ]
    session.execute(insert(Embedding).on_conflict_do_nothing(), rows)
