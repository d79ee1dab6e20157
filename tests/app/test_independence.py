"""A model that chose the groups it is evaluated on is named, by the content of its weights."""

from pathlib import Path

from analysis.embed.model_hash import is_same_model, model_sha256
from app.models.independence import circular_sentence
from db.outcome.evaluations import Scored


def folder(path: Path, content: bytes, name: str = "model.safetensors") -> str:
    path.mkdir()
    (path / name).write_bytes(content)
    (path / "config.json").write_text(f'{{"called": "{path.name}"}}')
    return str(path)


def test_a_copy_is_the_same_model_and_another_training_is_not(tmp_path: Path) -> None:
    one, copy = folder(tmp_path / "one", b"weights"), folder(tmp_path / "copy", b"weights")
    other = folder(tmp_path / "other", b"weightz")
    assert is_same_model(one, copy) and not is_same_model(one, other)
    assert is_same_model("gpt-x", "gpt-x") and not is_same_model("gpt-x", "gpt-y")
    assert model_sha256("gpt-x") is None and not is_same_model("", "")


def test_weights_written_again_have_another_hash(tmp_path: Path) -> None:
    path = folder(tmp_path / "one", b"weights")
    before = model_sha256(path)
    (tmp_path / "one" / "model.safetensors").write_bytes(b"other weights")
    assert model_sha256(path) != before


def test_the_sentence_names_the_model_and_the_independent_alternative(tmp_path: Path) -> None:
    base, copy = folder(tmp_path / "base", b"weights"), folder(tmp_path / "copy", b"weights")
    other = folder(tmp_path / "other", b"others")

    def scored(model: str, base_model: str | None) -> Scored:
        return Scored(model, "held-out a 123", {}, None, base_model)

    told = circular_sentence("held-out a 123", [scored(copy, None)], {"offline:embedding": base})
    assert f"{copy} is offline:embedding" in told and "approved by people" in told
    told = circular_sentence("held-out a 123", [scored("ckpt", copy)], {"offline:embedding": base})
    assert "ckpt (its base model) is offline:embedding" in told
    assert circular_sentence("held-out a 123", [scored(other, None)], {"j": base}) == ""
