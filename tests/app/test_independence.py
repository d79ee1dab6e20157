"""A model that chose the groups it is evaluated on is named, by the content of its weights."""

from pathlib import Path

from analysis.embed.model_hash import NamedModel, model_sha256, named_model, same_model
from app.models.independence import circular_sentence
from db.outcome.evaluations import Scored


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
