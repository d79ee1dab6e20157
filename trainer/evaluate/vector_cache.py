"""Vectors kept between evaluations, in the store, by model, kind of text, prefix and text.

A benchmark's corpus is encoded once per model: a second evaluation, another split of the same
release, or a job that was killed and goes on reads what is there. The model is known by its
content (`analysis.embed.embedding.model_identity`), so a folder that was trained anew is another
model. A corpus of more than `MAX_TEXTS` different texts is not cached: it would fill the store (a
million vectors of 384 numbers are 1.5 GB).
"""

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.embed.chat_template import reading_of
from analysis.embed.embedding import model_identity
from db.corpus.datasets import text_sha256
from db.corpus.embeddings import cached_vectors, store_vectors
from db.patience import Patiently
from db.store.store import Store
from trainer.settings.settings import TrainSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from analysis.embed.plain_model import PlainModel

MAX_TEXTS = 200_000
# What makes an untrained model's vectors, besides its weights.
PREPARED_BY = (
    *("pooling", "query_tokens", "passage_tokens", "interaction", "encoders"),
    *("chat_template", "lora_rank"),  # without LoRA the weights are float32
    # with `query` the base model is read as it is, and the prefix is that of instructed texts alone
    *("trained_side", "query_prefix"),
)


class VectorCache:
    """The kept vectors of one model, for one kind of text (queries or documents)."""

    def __init__(
        self,
        store: Store,
        model: str,
        kind: str,
        prefix: str,
        patiently: Patiently = lambda work: work(),
    ) -> None:
        """patiently: how reads and writes wait for a store that is away."""
        self.store, self.model = store, f"evaluated {model} as {kind} after {prefix!r}"
        self.patiently = patiently

    def read(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The vectors there are, by text."""
        if len(texts) > MAX_TEXTS:
            return {}
        keys = {text_sha256(text): text for text in texts}

        def read() -> dict[str, np.ndarray]:
            with self.store.read() as session:
                return cached_vectors(session, self.model, list(keys))

        found = self.patiently(read)
        return {keys[key]: vector for key, vector in found.items()}

    def keep(self, texts: Sequence[str], vectors: np.ndarray, of: int) -> None:
        """Keep some of the `of` texts' vectors; commits."""
        if of > MAX_TEXTS:
            return

        def keep() -> None:
            with self.store.write() as session:
                store_vectors(session, self.model, [text_sha256(text) for text in texts], vectors)
                session.commit()

        self.patiently(keep)


Caches = tuple[VectorCache | None, VectorCache | None]  # of queries, of documents


def caches_of(
    store: Store,
    known: str,
    model: "SentenceTransformer | PlainModel",
    patiently: Patiently,
) -> Caches:
    """(of queries, of documents) of the model that is known so, after its prompts."""
    kinds = ("query", "document")
    query, document = (
        VectorCache(store, known, kind, model.prompts.get(kind) or "", patiently) for kind in kinds
    )
    return query, document


def identity_of(name: str, prepared: TrainSettings | None = None) -> str:
    """What the cache knows a model by; `prepared`: an untrained one, as a training prepares it."""
    known = model_identity(name)
    if prepared is None:
        return known
    how = {key: getattr(prepared, key) for key in PREPARED_BY}
    return f"{known} {hashlib.sha256(json.dumps(how).encode()).hexdigest()[:16]}"


def base_caches(
    store: Store,
    settings: TrainSettings,
    model: "SentenceTransformer",
    patiently: Patiently = lambda work: work(),
) -> Caches | None:
    """Kept vectors of a training's base model, as its evaluation reads and writes them.

    None on a GPU: a training scores there in another precision than an evaluation. None with
    FSDP: each process has a part of the weights, so all of them must encode every text, and only
    the first has the store.
    """
    if model.device.type == "cuda" or settings.fsdp == "on":
        return None
    known = identity_of(settings.base_model, settings) + reading_of(model)
    return caches_of(store, known, model, patiently)
