"""Cards and Croissant of a release and a checkpoint, as the Hub and others read them."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from exporting import export, load_afresh
from hub_card_rules import card_errors
from hub_server import Hub
from records_world import make_run

from analysis.text.licences import licence_metadata
from curation.hub.checkpoint_folder import PushedRelease, card_with
from curation.release.card.croissant import spdx
from curation.release.card.front_matter import languages_of
from db.store.store import Store
from db.tables import Checkpoint, Evaluation

GOOD = "---\nlicense: mit\nlanguage: [en]\n---\n# x\n"


def head_of(card: str) -> dict[str, Any]:
    """The front matter of a card."""
    found: dict[str, Any] = yaml.safe_load(card.split("---")[1])
    return found


@pytest.mark.parametrize(
    ("repo_type", "line", "refused"),
    [
        ("model", "base_model: /home/ada/models/mini", "base_model"),
        ("model", "base_model: models/deep/down", "base_model"),
        ("model", "license: CC BY-SA 3.0", "license"),
        ("model", "license: other\nlicense_name: cc by, mit", "license_name"),
        ("model", "license: other", "license_name"),
        ("model", "language: [English]", "language"),
        ("model", "datasets: [/srv/releases/1]", "datasets"),
        ("model", "model-index: [{name: x, results: [{task: {}, dataset: {}}]}]", "model-index"),
        ("model", "widget: [{sentence: x}]", "widget"),
        ("dataset", "size_categories: [n<1000]", "size_categories"),
        ("dataset", "configs: [{config_name: a}, {config_name: a}]", "duplicate"),
        (
            "dataset",
            "configs: [{config_name: a, data_files: [{split: a b, path: x}]}]",
            "not valid",
        ),
        ("dataset", "tags: {a: b}", "tags"),
        ("dataset", "a: [", "YAML"),
    ],
)
def test_the_stand_in_refuses_what_the_hub_refuses(repo_type: str, line: str, refused: str) -> None:
    assert card_errors(GOOD, repo_type) == []
    assert any(refused in each for each in card_errors(f"---\n{line}\n---\n", repo_type))


def test_licences_are_written_by_the_hubs_identifiers() -> None:
    assert licence_metadata(["CC BY-SA 3.0", "cc-by-sa-3.0"]) == {"license": "cc-by-sa-3.0"}
    assert licence_metadata([]) == {"license": "unknown"}
    mixed = licence_metadata(["MIT", "Our Terms, 2nd"])
    assert mixed["license_name"] == "mit-and-our-terms-2nd"
    written = yaml.safe_dump(mixed)
    assert card_errors(f"---\n{written}---\n", "dataset") == []
    assert [spdx(name) for name in ("apache-2.0", "cc-by-4.0", "mit", "", "Our Terms")] == [
        "Apache-2.0",
        "CC-BY-4.0",
        "MIT",
        "NOASSERTION",
        "Our Terms",
    ]


def test_a_language_counts_from_one_group_in_a_hundred() -> None:
    assert languages_of({"en": 990, "de": 10, "fr": 9, "": 400}) == ["en"]
    assert languages_of({"de": 40, "en": 60, "": 0}) == ["en", "de"]
    assert languages_of({"": 5}) == languages_of({}) == []


@pytest.fixture
def released(sqlite_store: Store, tmp_path: Path) -> Path:
    make_run(
        sqlite_store,
        texts={
            "passage_positive": "The tower of the town is on the hill and it is as old as that."
        },
    )
    export(
        sqlite_store,
        tmp_path / "out",
        split_by="train",
        held_out=0.3,
        format="jsonl",
        views=["tevatron", "sentence-transformers", "promptriever"],
    )
    return tmp_path / "out"


@pytest.mark.long
def test_a_dataset_card_is_one_the_hub_accepts_with_train_and_test(
    released: Path, tmp_path: Path
) -> None:
    from huggingface_hub import DatasetCard

    card = (released / "README.md").read_text()
    assert card_errors(card, "dataset") == []
    assert DatasetCard(card).data.pretty_name == "books"
    head = head_of(card)
    assert head["size_categories"] == ["n<1K"] and head["language"] == ["en"]
    default = next(config for config in head["configs"] if config["config_name"] == "default")
    assert default["default"] is True
    assert [file["split"] for file in default["data_files"]] == ["train", "test"]
    assert load_afresh(released, tmp_path).keys() == {"train", "test"}
    assert json.loads((released / "release.json").read_text())["languages"] == ["en"]


@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv"])
def test_mlcroissant_accepts_the_description_and_reads_the_rows(
    sqlite_store: Store, tmp_path: Path, format: str
) -> None:
    make_run(sqlite_store)
    out = tmp_path / "out"
    views = [] if format == "csv" else ["tevatron"]
    export(sqlite_store, out, split_by="train", format=format, views=views)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of mlcroissant's own imports
        import mlcroissant

        dataset = mlcroissant.Dataset(jsonld=out / "croissant.json")
        assert not dataset.metadata.ctx.issues.errors
        names = [each.id for each in dataset.metadata.record_sets]
        name = next(each for each in names if each.startswith("data/train"))
        rows = list(dataset.records(name))
    assert len(rows) == 4
    first = {key.rpartition("/")[2]: value for key, value in rows[0].items()}
    assert first["query_positive"] if "query_positive" in first else first["query_id"]
    assert any(each.startswith("tevatron/") for each in names) == bool(views)


MEMORY = {"settings": {"base_model": "/srv/models/secret/mini"}}


def checkpoint(store: Store, folder: Path) -> None:
    """A checkpoint whose folder names paths of this machine, with two evaluations."""
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "README.md").write_text(
        "---\nlicense: mit\ntags: [a]\n---\n# InF-Embed: mini\nfrom /srv/models/secret/mini\n"
    )
    (folder / "inf_embed.json").write_text(json.dumps(MEMORY))
    (folder / "config.json").write_text(json.dumps({"_name_or_path": "/srv/models/secret/mini"}))
    with store.write() as session:
        found = Checkpoint(
            path=str(folder), base_model="/srv/models/secret/mini", config={"out": str(folder)}
        )
        session.add(found)
        session.flush()
        for metrics in ({"ndcg@10": 0.5}, {"ndcg@10": 0.75, "p-MRR": None, "flip": 1}):
            session.add(
                Evaluation(
                    checkpoint_id=found.id, model="m", benchmark="/data/FollowIR", metrics=metrics
                )
            )
        session.commit()


def test_a_pushed_checkpoint_names_no_folder_and_carries_its_evaluations(
    sqlite_store: Store, tmp_path: Path, hub: Hub, there: dict[str, str], inf: Callable[..., Any]
) -> None:
    checkpoint(sqlite_store, tmp_path / "model")
    done = inf("hub", "push", "--checkpoint", 1, "--repo", "ada/mini", "--json", **there)
    assert done.code == 0, done.out
    files = hub.files("models/ada/mini")
    assert not [name for name, data in files.items() if b"/srv" in data or b"/data" in data]
    assert str(tmp_path).encode() not in b"".join(files.values())
    card = files["README.md"].decode()
    assert card_errors(card, "model") == []
    (model,) = head_of(card)["model-index"]
    (result,) = model["results"]
    assert result["dataset"]["name"] == "FollowIR"
    assert result["metrics"] == [
        {"type": "ndcg_at_10", "value": 0.75},
        {"type": "flip", "value": 1.0},
    ]
    again = inf("hub", "push", "--checkpoint", 1, "--repo", "ada/mini", "--json", **there)
    assert again.json["pushed"] is False  # the same files again


def test_a_card_that_the_hub_refuses_is_an_error_in_one_sentence_and_nothing_is_pushed(
    sqlite_store: Store, tmp_path: Path, hub: Hub, there: dict[str, str], inf: Callable[..., Any]
) -> None:
    checkpoint(sqlite_store, tmp_path / "model")
    (tmp_path / "model" / "README.md").write_text("---\nlicense: Our own\n---\n# x\n")
    done = inf("hub", "push", "--checkpoint", 1, "--repo", "ada/mini", "--json", **there)
    assert done.code == 1
    assert "refuses the card" in done.json["error"] and "license" in done.json["error"]
    assert list(hub.files("models/ada/mini")) == [".gitattributes"]


@pytest.mark.parametrize(
    ("downloads", "place"),
    [
        ({"xlangai/BRIGHT": "ab12"}, {"type": "xlangai/BRIGHT", "revision": "ab12"}),
        ({}, {"type": "bright", "revision": f"sha256:{'cd' * 32}"}),  # read from a folder
        ({"a/b": "1", "c/d": "2"}, {"type": "bright", "revision": f"sha256:{'cd' * 32}"}),
    ],
)
def test_a_published_benchmark_has_the_revision_that_was_evaluated(
    downloads: dict[str, str], place: dict[str, str]
) -> None:
    record = {"benchmark": {"sha256": "cd" * 32}, "downloads": downloads}
    card = card_with(
        GOOD, [Evaluation(model="m", benchmark="BRIGHT", metrics={"mrr": 0.5}, record=record)], None
    )
    dataset = head_of(card)["model-index"][0]["results"][0]["dataset"]
    assert {name: dataset[name] for name in ("type", "revision")} == place
    assert card_errors(card, "model") == []


def test_datasets_are_named_where_the_release_was_pushed() -> None:
    release = PushedRelease("ada/books", "c0ffee", True, "ab" * 32)
    evaluations = [
        Evaluation(model="m", benchmark=name, metrics={"mrr": 0.5})
        for name in ("held-out Books abababababab", "FollowIR")
    ]
    card = card_with(GOOD, evaluations, release)
    assert head_of(card)["datasets"] == ["ada/books"]
    ours, theirs = (each["dataset"] for each in head_of(card)["model-index"][0]["results"])
    assert (ours["type"], ours["revision"]) == ("ada/books", "c0ffee")
    assert ours["name"] == "held-out Books abababababab"
    assert theirs["type"] == "followir" and "revision" not in theirs  # stored before records were
    assert card.endswith("\n# x\n")
    assert card_errors(card, "model") == []
