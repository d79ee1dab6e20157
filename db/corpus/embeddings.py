"""Cached vectors, by (model, sha256 of the text). A vector is computed once per store.

What would surprise: `model` here is the *identity* of a model (see `analysis.embed.embedding`), not
always the name somebody typed: a folder may be trained anew under the same path.
"""

from collections.abc import Sequence

import numpy as np
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.tables import Embedding

ASKED_AT_ONCE = 900


def cached_vectors(session: Session, model: str, sha256s: Sequence[str]) -> dict[str, np.ndarray]:
    """The vectors there are, float32, by sha256; what is missing is left out."""
    found: dict[str, np.ndarray] = {}
    for start in range(0, len(sha256s), ASKED_AT_ONCE):
        rows = session.execute(
            select(Embedding.text_sha256, Embedding.vector).where(
                Embedding.model == model,
                Embedding.text_sha256.in_(sha256s[start : start + ASKED_AT_ONCE]),
            )
        )
        found.update((sha256, np.frombuffer(vector, dtype="<f4")) for sha256, vector in rows)
    return found


def store_vectors(
    session: Session, model: str, sha256s: Sequence[str], vectors: np.ndarray
) -> None:
    """Keep vectors; one that somebody else kept meanwhile stays. Does not commit."""
    if not sha256s:
        return
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    rows = [
        {"model": model, "text_sha256": sha256, "vector": row.astype("<f4").tobytes()}
        for sha256, row in zip(sha256s, vectors, strict=True)
    ]
    session.execute(insert(Embedding).on_conflict_do_nothing(), rows)
