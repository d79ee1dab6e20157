"""A run keeps its models by the content of their weights; a map by its validator is named."""

from curation_runs import add_dataset
from grown_dataset import grown

from analysis.embed.model_hash import DEFAULT_MODEL, model_sha256
from app.models.independence import circular_sentence
from curation.judging.independence import map_sentence
from curation.run.starting import start_run
from db.outcome.evaluations import Scored
from db.run.runs import get_run
from db.store.store import Store


def test_a_run_records_its_models_at_its_start(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    with sqlite_store.write() as session:
        run = start_run(session, dataset="small", provider="offline")
        session.commit()
        models = get_run(session, run.id).models
    assert models["validation"]["sha256"] == model_sha256(models["validation"]["model"])
    assert models.keys() >= {"validation"} and all(
        of.keys() == {"model", "sha256"} for of in models.values()
    )


def test_a_map_by_the_validator_is_circular_also_under_another_name(sqlite_store: Store) -> None:
    run_id = grown(sqlite_store)
    result = {"model": "/copies/minilm", "model_sha256": "0a", "corpora": [{"run_id": run_id}]}
    with sqlite_store.write() as session:
        assert map_sentence(session, result) == ""  # a run from before the models were recorded
        get_run(session, run_id).models = {"validation": {"model": DEFAULT_MODEL, "sha256": "0a"}}
        session.commit()
        sentence = map_sentence(session, result)
        assert f"the groups of run {run_id}" in sentence and "another model" in sentence
        assert map_sentence(session, result | {"model_sha256": "0b"}) == ""
        assert map_sentence(session, result | {"model_sha256": None}) == ""
        assert map_sentence(session, result | {"corpora": [{"run_id": None}]}) == ""


def test_a_validator_that_is_gone_from_this_machine_is_known_by_its_recorded_hash() -> None:
    sha256 = model_sha256(DEFAULT_MODEL)
    scored = [Scored(DEFAULT_MODEL, "held-out a 123", {}, None, None)]
    gone = {"offline:embedding": "/deleted/validator"}
    assert "Circular" in circular_sentence("held-out a 123", scored, gone, sha256)
    assert circular_sentence("held-out a 123", scored, gone) == ""
