"""Ordinary retrieval on a dataset of the store, where no BEIR folder is at hand."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from records_world import add_release
from trainer_folders import write_followir, write_jsonl
from trainer_jobs import claim

from db.corpus.datasets import find_dataset
from db.errors import BadInput, NotFound
from db.outcome.checkpoints import record_checkpoint
from db.outcome.evaluations import list_evaluations, newest_scores
from db.outcome.independence import trained_on_dataset
from db.store.store import Store
from db.tables import Dataset, Passage
from trainer.evaluate.job import dataset_benchmark, evaluate
from trainer.records.circular import circular_notes, circular_sentences


def import_dataset(inf: Callable[..., Ran], folder: Path) -> None:
    """Two queries of one text, two passages of one text, and one passage without a query."""
    passages = {
        "a": "Bees make honey.",
        "b": "The river floods in spring.",
        "c": "Bees make honey.",
        "d": "Violins are made of spruce.",
    }
    pairs = [("1", "who makes honey", "a"), ("2", "who makes honey", "c"), ("3", "floods", "b")]
    write_jsonl(
        folder / "passages.jsonl", [{"passage_id": key, "text": of} for key, of in passages.items()]
    )
    write_jsonl(
        folder / "pairs.jsonl",
        [{"query_id": key, "query": query, "passage_id": of} for key, query, of in pairs],
    )
    files = ("--pairs", folder / "pairs.jsonl", "--passages", folder / "passages.jsonl")
    ran = inf("import", "--dataset", "small", *files, "--source", "test", "--licence", "cc0-1.0")
    assert ran.code == 0, ran.err


def test_a_dataset_is_every_query_alone_against_all_its_passages(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    import_dataset(inf, tmp_path)
    with sqlite_store.write() as session:
        dataset = find_dataset(session, "small")
        assert dataset is not None
        session.add(
            Passage(
                dataset_id=dataset.id,
                external_id="written",
                text="Wasps make honey.",
                sha256="0",
                origin="generated",
            )
        )
        session.commit()
    found = dataset_benchmark(sqlite_store, "small")
    assert set(found.corpus) == {"a", "b", "d"}  # c is a again, and what was written is left out
    assert found.judgments == {"1": {"a": 1}, "3": {"b": 1}}
    assert not any(question.instruction for question in found.questions.values())


def test_a_dataset_without_pairs_or_of_another_name_is_refused(sqlite_store: Store) -> None:
    with pytest.raises(NotFound, match="nothing"):
        dataset_benchmark(sqlite_store, "nothing")
    with sqlite_store.write() as session:
        session.add(Dataset(name="empty"))
        session.commit()
    with pytest.raises(BadInput, match="'empty' has no pair"):
        dataset_benchmark(sqlite_store, "empty")


def test_a_dataset_serves_as_ordinary_retrieval_beside_instruction_scores(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a folder of the dataset's name lies in the current folder."""
    import_dataset(inf, tmp_path)
    (tmp_path / "small").mkdir()
    monkeypatch.chdir(tmp_path)
    folder = write_followir(tmp_path / "Core17")
    arguments = ("evaluate", "--model", "bm25", "--benchmark", folder)
    ran = inf(*arguments, "--ordinary", "dataset:small", "--json")
    assert ran.code == 0, ran.err
    (part,) = ran.json["ordinary"]
    assert part["benchmark"] == "dataset small" and part["models"][0]["metrics"]["mrr"] == 1.0
    with sqlite_store.read() as session:
        ordinary, instructed = list_evaluations(session)
    assert ordinary.record["instructions"] is False and instructed.record["instructions"]


def test_a_dataset_that_a_model_was_trained_on_is_no_evidence_and_the_note_says_so(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    import_dataset(inf, tmp_path)
    wanted = {"models": ["bm25"], "benchmark": "dataset:small"}
    result = evaluate(claim(sqlite_store, wanted, "evaluate"))
    with sqlite_store.write() as session:
        dataset = find_dataset(session, "small")
        assert dataset is not None
        assert circular_sentences(session, newest_scores(session)) == []
        release = add_release(session, dataset.id, name="r", content_sha256="0a")
        checkpoint = record_checkpoint(
            session, path="out/a", base_model="b", config={}, summary={}, release_id=release.id
        )
        mixed = record_checkpoint(
            session,
            path="out/b",
            base_model="b",
            config={},
            summary={"more_releases": [{"content_sha256": "0a"}]},
            release_id=None,
        )
        assert trained_on_dataset(session, mixed.id, "dataset small"), "a further release counts"
        (evaluation,) = list_evaluations(session)
        evaluation.checkpoint_id = checkpoint.id
        session.flush()
        (sentence,) = circular_sentences(session, newest_scores(session))
        assert circular_notes(session, result) == [sentence]  # which the job stores with its result
        assert circular_notes(session, result | {"notes": [sentence]}) == []
    assert sentence.startswith("Seen in training: bm25") and "another dataset" in sentence
