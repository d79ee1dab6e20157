"""Analyses that are killed go on from their parts, with the bytes of an uninterrupted one."""

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed_program import killed_program

from analysis.embed.model_source import DEFAULT_MODEL
from analysis.parts import DAYS, Parts, delete_parts
from analysis.text import near_duplicates
from analysis.text.near_duplicates import near_duplicate_keys
from db.corpus.datasets import text_sha256
from db.corpus.embeddings import store_vectors
from db.errors import BadInput
from db.outcome.analyses import list_analyses
from db.store.store import Store
from db.tables import Analysis

TEXTS, DIMENSIONS = 600, 8


def go_on() -> None:
    """Nothing stops the work."""


class Stop(Exception):
    """Raised by `check`."""


def texts_with_copies() -> list[str]:
    chance = random.Random(4)
    words = [f"word{n}" for n in range(900)]
    texts = [" ".join(chance.choices(words, k=30)) for _ in range(TEXTS)]
    for place in range(40, TEXTS, 40):
        texts[place] = texts[place - 33].upper() + " more"
    return texts


def test_a_part_is_computed_once_until_it_is_deleted(own_home: Path) -> None:
    computed: list[int] = []

    def compute() -> np.ndarray:
        computed.append(1)
        return np.arange(5)

    for _ in range(2):
        found = Parts("a" * 64, go_on).keep("one", compute)
        assert found.tolist() == [0, 1, 2, 3, 4] and len(computed) == 1
    Parts("b" * 64, go_on).keep("one", compute)
    assert len(computed) == 2, "of other inputs it is another part"
    delete_parts("a" * 64)
    assert [path.name for path in (own_home / "parts").iterdir()] == ["b" * 64]
    Parts("a" * 64, go_on).keep("one", compute)
    assert len(computed) == 3
    assert not list((own_home / "parts").rglob(f"*.{os.getpid()}"))


def test_parts_that_nobody_came_back_for_are_deleted(own_home: Path) -> None:
    for name, days in (("a", DAYS + 1), ("b", DAYS - 1)):
        Parts(name * 64, go_on).keep("one", lambda: np.arange(3))
        before = time.time() - days * 86_400
        os.utime(own_home / "parts" / (name * 64), (before, before))
    Parts("c" * 64, go_on)
    assert [path.name for path in (own_home / "parts").iterdir()] == ["b" * 64]


def test_near_duplicates_that_were_stopped_hash_no_text_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = texts_with_copies()
    whole = near_duplicate_keys(texts)
    assert len(set(whole)) < TEXTS
    monkeypatch.setattr(near_duplicates, "KEPT", 100)
    checks: list[int] = []

    def third_time() -> None:
        checks.append(1)
        if len(checks) == 3:
            raise Stop

    with pytest.raises(Stop):
        near_duplicate_keys(texts, keep=Parts("a" * 64, third_time).keep)
    checks.clear()
    keep = Parts("a" * 64, lambda: checks.append(1)).keep
    assert near_duplicate_keys(texts, keep=keep) == whole
    assert len(checks) == 4, "two of six parts were there"


@pytest.fixture
def corpus(sqlite_store: Store, tmp_path: Path) -> str:
    """A file of texts whose vectors are known."""
    texts = texts_with_copies()
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    vectors = np.random.default_rng(1).standard_normal((TEXTS, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with sqlite_store.write() as session:
        store_vectors(session, DEFAULT_MODEL, [text_sha256(text) for text in texts], vectors)
        session.commit()
    return str(path)


def analyses(store: Store, kind: str) -> Iterator[Analysis]:
    with store.read() as session:
        for found in list_analyses(session, kind):
            assert found.payload is None or len(found.payload) > 1_000
            yield found


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "config"), [("near_duplicates", {}), ("coverage", {"fit": 60, "seed": 3})]
)
def test_an_analysis_killed_at_random_moments_ends_with_the_bytes_of_one_that_was_not(
    what: str, config: dict[str, Any], sqlite_store: Store, corpus: str, own_home: Path
) -> None:
    wanted = {"url": sqlite_store.url, "what": what, "config": {"texts": [corpus], **config}}
    chance, parts = random.Random(7), own_home / "parts"
    with killed_program("killed_analysis.py") as ask:
        ask({**wanted, "seconds": 0.01})  # it has imported everything
        began = time.monotonic()
        assert ask({**wanted, "seconds": None}) == 0
        seconds = time.monotonic() - began
        ((result, payload),) = [(a.result, a.payload) for a in analyses(sqlite_store, what)]
        assert not list(parts.iterdir())
        with sqlite_store.write() as session:
            session.query(Analysis).delete()
            session.commit()
        kills, known = 0, dict[Path, int]()
        while (status := ask({**wanted, "seconds": seconds * chance.uniform(0.2, 1.1)})) != 0:
            assert status == -9 and (kills := kills + 1) < 40
            there = {path: path.stat().st_mtime_ns for path in parts.rglob("*.npy")}
            assert known.items() <= there.items(), "what was kept was computed again"
            known = there
    assert kills and known, "it was never killed after its first part"
    ((after, bytes_after),) = [(a.result, a.payload) for a in analyses(sqlite_store, what)]
    assert after == result and bytes_after == payload
    assert not list(parts.iterdir())


def test_a_part_that_finds_no_space_ends_in_one_sentence(own_home: Path) -> None:
    """`/dev/full` stands where the part is written."""
    folder = own_home / "parts" / ("a" * 64)
    folder.mkdir(parents=True)
    (folder / f"one.{os.getpid()}").symlink_to("/dev/full")
    with pytest.raises(BadInput) as full:
        Parts("a" * 64, go_on).keep("one", lambda: np.arange(100_000))
    assert full.value.code == "disk_full"
    assert "800,000" in full.value.message and str(own_home) in full.value.message
    assert "INF_HOME" in full.value.remedy
    assert list(folder.iterdir()) == []
