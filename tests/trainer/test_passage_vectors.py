"""Passage vectors on disk: kept over a restart, made anew where the dataset or model changed."""

import numpy as np
import pytest
from study_world import make_world

from db.store.settings import home
from db.store.store import Store
from db.tables import Passage
from trainer.serve.passage_vectors import PassageVectors, passage_vectors, searched_passages


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
