"""A model that chose the groups it is evaluated on is named, by the content of its weights."""

from pathlib import Path

import pytest
from trainer_jobs import claim
from trainer_release import make_rows, write_release, write_rows

from analysis.embed.model_hash import NamedModel, model_sha256, named_model, same_model
from db.outcome.evaluations import Scored, newest_scores
from db.store.store import Store
from trainer.data.release_files import read_release
from trainer.evaluate.job import evaluate
from trainer.records.circular import (
    circular_sentence,
    circular_sentences,
    held_out_record,
    validators_of_record,
)


def folder(path: Path, content: bytes, name: str = "model.safetensors") -> str:
    path.mkdir()
    (path / name).write_bytes(content)
    (path / "config.json").write_text(f'{{"called": "{path.name}"}}')
    return str(path)


def is_same(one: str, other: str) -> bool | None:
    return same_model(named_model(one), named_model(other))


def test_a_copy_is_the_same_model_and_another_training_is_not(tmp_path: Path) -> None:
    one, copy = folder(tmp_path / "one", b"weights"), folder(tmp_path / "copy", b"weights")
    other = folder(tmp_path / "other", b"weightz")
    assert is_same(one, copy) and is_same(one, other) is False
    assert is_same("gpt-x", "gpt-x") and is_same("gpt-x", "gpt-y") is None
    assert model_sha256("gpt-x") is None and is_same("", "") is False


def test_one_name_with_other_weights_than_were_recorded_is_another_model(tmp_path: Path) -> None:
    """A folder that was trained anew after the run: its hash counts, not its name."""
    path = folder(tmp_path / "one", b"weights")
    assert same_model(named_model(path, "0a" * 32), named_model(path)) is False
    assert same_model(named_model(path), named_model(f"{path}/"))
    assert same_model(NamedModel("copy", None), named_model(path)) is None


def test_weights_written_again_have_another_hash(tmp_path: Path) -> None:
    path = folder(tmp_path / "one", b"weights")
    before = model_sha256(path)
    (tmp_path / "one" / "model.safetensors").write_bytes(b"other weights")
    assert model_sha256(path) != before


def test_the_weights_that_were_evaluated_count_not_those_there_are_now(tmp_path: Path) -> None:
    """The folder has held the validator when it was evaluated, and was trained anew since."""
    path, judge = folder(tmp_path / "one", b"weights"), folder(tmp_path / "judge", b"weights")
    was = model_sha256(path)
    (tmp_path / "one" / "model.safetensors").write_bytes(b"other weights")
    assert was == model_sha256(judge)

    def sentence(weights: str | None) -> str:
        scored = Scored(path, "held-out a 123", {}, None, None, weights_sha256=weights)
        return circular_sentence("held-out a 123", [scored], {"j": named_model(judge)})

    assert "is j" in sentence(was)
    assert sentence(model_sha256(path)) == ""


def test_the_sentence_names_the_model_and_the_independent_alternative(tmp_path: Path) -> None:
    base, copy = folder(tmp_path / "base", b"weights"), folder(tmp_path / "copy", b"weights")
    other = folder(tmp_path / "other", b"others")

    def scored(model: str, base_model: str | None) -> Scored:
        return Scored(model, "held-out a 123", {}, None, base_model)

    told = circular_sentence(
        "held-out a 123", [scored(copy, None)], {"offline:embedding": named_model(base)}
    )
    assert f"{copy} is offline:embedding" in told and "approved by people" in told
    told = circular_sentence(
        "held-out a 123", [scored("ckpt", copy)], {"offline:embedding": named_model(base)}
    )
    assert "ckpt (its base model) is offline:embedding" in told
    assert (
        circular_sentence("held-out a 123", [scored(other, None)], {"j": named_model(base)}) == ""
    )


def test_groups_that_people_approved_are_circular_for_nobody(tmp_path: Path) -> None:
    validator = folder(tmp_path / "v", b"weights")

    def sentence(approved: bool) -> str:
        record = {"approved": approved, "validators": {validator: None}}
        scored = [Scored(validator, "held-out a 123", {}, None, None, held_out=record)]
        return circular_sentence("held-out a 123", scored, validators_of_record(scored))

    assert "Circular" in sentence(False) and sentence(True) == ""


def test_a_record_names_the_judge_that_chose_the_groups_instead_of_the_validator(
    tmp_path: Path,
) -> None:
    base, other = folder(tmp_path / "base", b"weights"), folder(tmp_path / "other", b"others")
    release = read_release(write_release(tmp_path / "release", 4))
    release.manifest["models"] = {"validation": {"model": base, "sha256": model_sha256(base)}}

    def sentence(choice: str, judge: str) -> str:
        record = held_out_record(release, {"choice": choice, "judge": judge})
        scored = [Scored(base, "held-out a 123", {}, None, None, held_out=record)]
        return circular_sentence("held-out a 123", scored, validators_of_record(scored))

    assert sentence("all", f"transformers:{other}") == ""
    assert "Circular" in sentence("kept", f"transformers:{other}")
    assert "Circular" in sentence("all", f"transformers:{base}")


@pytest.mark.parametrize("approved_by", ["choice", "export", "nobody"])
def test_an_evaluation_names_the_validator_of_a_release_of_another_store(
    sqlite_store: Store, tmp_path: Path, approved_by: str
) -> None:
    """Also detached, where nothing but the job writes the notes."""
    rows = [row | {"review": "approve"} for row in make_rows(12)]
    release = write_release(
        tmp_path / "release",
        models={"validation": {"model": "bm25", "sha256": None}},
        filter={"reviews": "approved" if approved_by == "export" else "not-rejected"},
    )
    write_rows(release, rows)
    config = {"models": ["bm25"], "release": str(release), "held_out": 0.5}
    config |= {"held_out_groups": "approved" if approved_by == "choice" else "kept"}
    result = evaluate(claim(sqlite_store, config, "evaluate"))
    with sqlite_store.read() as session:
        sentences = circular_sentences(session, newest_scores(session))
    assert sentences == result["notes"]
    assert [note.partition(":")[0] for note in sentences] == (
        [f"Circular on {result['benchmark']}"] if approved_by == "nobody" else []
    )
