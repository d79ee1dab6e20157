"""A model's card names who wrote, judged and was the base, by content, and what is circular."""

from pathlib import Path
from typing import Any

from analysis.embed.model_hash import model_sha256
from trainer.report.origins import circular_held_out, circular_origins, origin_rows, origins_of
from trainer.settings.settings import parse_settings


def weights(path: Path, content: bytes) -> str:
    path.mkdir()
    (path / "model.safetensors").write_bytes(content)
    return str(path)


def origins(base: str, **models: dict[str, Any]) -> dict[str, Any]:
    return origins_of(parse_settings({"base_model": base}), {"models": models})


def named(model: str, sha256: str | None = None) -> dict[str, Any]:
    return {"model": model, "sha256": sha256}


def test_a_validator_copied_to_another_folder_is_still_the_base(tmp_path: Path) -> None:
    base, copy = weights(tmp_path / "base", b"same"), weights(tmp_path / "copy", b"same")
    (sentence,) = circular_origins(origins(base, validation=named(copy, model_sha256(copy))))
    assert "the base model is also the validator" in sentence
    assert "held_out_groups=approved" in sentence and "another judge" in sentence


def test_a_folder_that_was_trained_anew_since_is_another_model(tmp_path: Path) -> None:
    """The release holds the hash of the run's start; the same path holds other weights now."""
    base = weights(tmp_path / "base", b"before")
    validation = named(base, model_sha256(base))
    (tmp_path / "base" / "model.safetensors").write_bytes(b"after!")
    assert circular_origins(origins(base, validation=validation)) == []


def test_models_without_a_hash_are_told_by_their_names(tmp_path: Path) -> None:
    base = weights(tmp_path / "base", b"x")
    same = {"validation": named("gpt-x"), "generation": named("gpt-x")}
    sentence, unknown = circular_origins(origins(base, **same))
    assert sentence.startswith("Circular: the model of generation also validated what it wrote")
    assert unknown.startswith("Unknown: whether the validator is also the base model. ")


def test_independence_is_not_asserted_where_a_hash_is_missing(tmp_path: Path) -> None:
    base = weights(tmp_path / "base", b"x")
    models = {"validation": named("gpt-x"), "generation": named("gpt-y")}
    (sentence,) = circular_origins(origins(base, **models))
    assert "also the base model, the model of generation." in sentence
    assert circular_origins(origins(base, generation=named("gpt-y"))) == []  # no validator named


def test_the_map_of_the_release_may_be_the_validators(tmp_path: Path) -> None:
    base = weights(tmp_path / "base", b"x")
    found = origins(base, validation=named("minilm", "0a")) | {"map": named("copy", "0a")}
    (sentence,) = circular_origins(found)
    assert "map is embedded by the validator" in sentence


def test_the_card_names_every_part_with_its_hash_and_what_is_unknown(tmp_path: Path) -> None:
    base = weights(tmp_path / "base", b"x")
    rows = dict(origin_rows(origins(base, generation=named("gpt-x"))))
    assert rows["Wrote (generation)"] == "gpt-x, weights not on this machine"
    assert rows["Judged (validation)"] == "not stated by the release"
    assert rows["Base"] == f"{base}, weights sha256 `{model_sha256(base)}`"


def test_a_judge_that_alone_chose_the_held_out_groups_stands_for_the_validator(
    tmp_path: Path,
) -> None:
    base, other = weights(tmp_path / "base", b"x"), weights(tmp_path / "other", b"y")
    validator = {"validation": named(base, model_sha256(base))}

    def sentences(judge: str, choice: str = "all") -> list[str]:
        wanted = {"base_model": base, "held_out_groups": choice, "held_out_judge": judge}
        settings = parse_settings(wanted)
        return circular_held_out(settings, origins_of(settings, {"models": validator}))

    assert sentences(f"transformers:{other}") == []  # the validator, here the base, chose nothing
    (circular,) = sentences(f"transformers:{base}:pointwise")
    assert "the base model is also transformers:" in circular and "confirmed" in circular
    (unknown,) = sentences("openai:gpt-x")
    assert unknown.startswith("Unknown: whether openai:gpt-x, which confirmed")
    (both,) = sentences(f"transformers:{other}", "kept")
    assert "also the validator that chose the groups" in both
