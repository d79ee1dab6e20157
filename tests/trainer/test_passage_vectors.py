"""Passage vectors on disk: kept over a restart, made anew where the dataset or model changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from base_folders import trained
from conftest import Ran
from study_world import make_world

from analysis.embed.model_source import DEFAULT_MODEL
from db.home import home
from db.store.store import Store
from db.tables import Passage
from trainer.model.backbone import load_backbone
from trainer.serve.model_server import Searcher
from trainer.serve.passage_vectors import PassageVectors, passage_vectors, searched_passages
from trainer.settings.settings import parse_settings

BASE = "tiny-random-bert"


def kept_files() -> list[str]:
    return sorted(path.name for path in (home() / "passage-vectors").iterdir())


def test_a_model_whose_index_stays_searches_the_vectors_of_its_base(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_world(sqlite_store)
    searcher = Searcher(sqlite_store)
    asked: dict[str, Any] = {"dataset": "world", "query": "tea", "instruction": "Give a figure."}
    base = searcher.search({"model": BASE, **asked})
    (file,) = kept_files()
    stays = trained(tmp_path / "query", trained_side="query")
    found = searcher.search({"model": stays, **asked})
    assert kept_files() == [file]
    plain = [searcher.search({**asked, "model": m, "instruction": ""}) for m in (BASE, stays)]
    assert plain[0]["hits"] == plain[1]["hits"] and found["hits"] != base["hits"]
    searcher.search({"model": trained(tmp_path / "both"), **asked})
    assert len(kept_files()) == 2, "trained on both sides: passages of its own"


def test_what_would_change_the_vectors_makes_another_file(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_world(sqlite_store)
    asked = {"dataset": "world", "query": "tea"}
    model = load_backbone(parse_settings({"base_model": BASE, "trained_side": "query"}))
    router: Any = model[0]
    router.sub_modules["base"][0].max_seq_length = 4  # reads less of a passage
    model.save(str(tmp_path / "short"), create_model_card=False)
    Searcher(sqlite_store).search({"model": BASE, **asked})
    Searcher(sqlite_store).search({"model": str(tmp_path / "short"), **asked})
    assert len(kept_files()) == 2


def test_a_search_by_the_packaged_model_asks_no_network(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_world(sqlite_store)
    asked: list[object] = []

    def refuse(*about: object, **_: object) -> list[object]:
        asked.append(about)
        raise OSError("no network")

    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    given = {"model": DEFAULT_MODEL, "dataset": "world", "query": "tea", "instruction": "Short."}
    assert Searcher(sqlite_store).search(given)["hits"]
    assert asked == []


def test_the_command_keeps_what_the_search_reads(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    make_world(sqlite_store)
    done = inf("models", "index", BASE, "--dataset", "world", "--json")
    assert done.code == 0, done.err
    assert done.json["passages"] == 6
    before = kept_files()
    Searcher(sqlite_store).search({"model": BASE, "dataset": "world", "query": "tea"})
    assert kept_files() == before
    refused = inf("models", "index", BASE, "--dataset", "nowhere")
    assert refused.code != 0 and "nowhere" in refused.err


class Encoder:
    """Counts the texts it encodes; a text's vector is its length and its letters `a`."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.texts += texts
        return np.array([[len(text), text.count("a") + 1] for text in texts], dtype=np.float32)


def test_a_second_start_reads_what_the_first_wrote(store: Store) -> None:
    make_world(store)
    encode = Encoder()
    first = passage_vectors(store, 1, identity="m", encode=encode)
    again = passage_vectors(store, 1, identity="m", encode=Encoder())
    assert len(encode.texts) == len(first.ids) == 6
    assert np.array_equal(first.vectors, again.vectors)
    assert np.allclose(np.linalg.norm(first.vectors, axis=1), 1.0)
    other = Encoder()
    passage_vectors(store, 1, identity="another model", encode=other)
    assert len(other.texts) == 6


def test_a_new_passage_makes_a_new_file_and_removes_the_old_one(sqlite_store: Store) -> None:
    make_world(sqlite_store)
    passage_vectors(sqlite_store, 1, identity="m", encode=Encoder())
    with sqlite_store.write() as session:
        before = searched_passages(session, 1)
        session.add(Passage(dataset_id=1, external_id="new", text="new", sha256="n", origin="pool"))
        session.commit()
        assert searched_passages(session, 1) != before
    found = passage_vectors(sqlite_store, 1, identity="m", encode=Encoder())
    assert len(found.ids) == 7
    assert len(list((home() / "passage-vectors").iterdir())) == 1


def test_a_failing_encoder_leaves_no_complete_file(sqlite_store: Store) -> None:
    make_world(sqlite_store)

    def fail(texts: list[str]) -> np.ndarray:
        raise MemoryError

    with pytest.raises(MemoryError):
        passage_vectors(sqlite_store, 1, identity="m", encode=fail)
    assert not list((home() / "passage-vectors").glob("*.npy"))
    assert len(passage_vectors(sqlite_store, 1, identity="m", encode=Encoder()).ids) == 6


def test_nearest_first_and_ties_by_the_lower_id() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8], [0, 1]], dtype=np.float32)
    found = PassageVectors(np.array([4, 7, 9, 11]), vectors)
    question = np.array([0, 1], dtype=np.float32)
    assert [number for number, _ in found.best(question, 3)] == [7, 11, 9]
    assert [number for number, _ in found.best(question, 1)] == [7]
    assert len(found.best(question, 50)) == 4
