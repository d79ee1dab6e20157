"""Evaluation of models on held-out groups and on folders, as jobs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from trainer_folders import write_beir, write_followir
from trainer_jobs import claim, config_for
from trainer_release import write_release

from app.cli.evaluations import scored_text
from db.errors import BadInput
from db.outcome.evaluations import list_benchmarks, list_evaluations
from db.store.store import Store
from trainer.evaluate.job import evaluate, too_easy
from trainer.launch.here import train
from trainer.records.rows import Evaluated


@pytest.mark.long
def test_a_checkpoint_is_scored_beside_its_base_model_on_its_split(
    store: Store, tmp_path: Path
) -> None:
    config = config_for(tmp_path, 12, max_steps="2", held_out="0.25", held_out_seed="5")
    trained = train(claim(store, config))
    handle = claim(
        store, {"models": [trained["path"]], "release": config["release"]}, kind="evaluate"
    )
    result = evaluate(handle)
    assert [model["model"] for model in result["models"]] == ["tiny-random-bert", trained["path"]]
    chosen = {"choice": "kept", "judge": "", "groups": 3}
    assert result["held_out"] == {"fraction": 0.25, "seed": 5, **chosen}
    assert result["queries"] == 9 and result["documents"] == 9 and result["notes"] == []
    base, own = result["models"]
    for name, value in trained["held_out"]["after"].items():
        assert own["metrics"][name] == pytest.approx(value, abs=1e-6)
        assert base["metrics"][name] == pytest.approx(trained["held_out"]["before"][name], abs=1e-6)
    with store.read() as session:
        evaluations = [e for e in list_evaluations(session) if e.job_id == handle.id]
        assert list_benchmarks(session) == [result["benchmark"]]
    assert {e.checkpoint_id for e in evaluations} == {None, trained["checkpoint_id"]}
    assert len(evaluations[0].per_query) == 9 + 3  # nine questions, three p-MRR


def test_a_model_uses_the_template_it_stores(sqlite_store: Store, tmp_path: Path) -> None:
    config = config_for(tmp_path, max_steps="1", template="{query} ({instruction})")
    trained = train(claim(sqlite_store, config))
    result = evaluate(
        claim(
            sqlite_store,
            {
                "models": [trained["path"], "tiny-random-bert"],
                "release": config["release"],
                "query_prefix": "query: ",
            },
            kind="evaluate",
        )
    )
    own, other = result["models"]
    assert own["template"] == "{query} ({instruction})" and own["prompts"]["query"] == ""
    assert other["template"] == "{instruction} {query}" and other["prompts"]["query"] == "query: "


def test_benchmark_folders_are_scored(sqlite_store: Store, tmp_path: Path) -> None:
    for folder, kind in (
        (write_followir(tmp_path / "News21"), "FollowIR"),
        (write_beir(tmp_path / "beir"), "BEIR"),
    ):
        handle = claim(
            sqlite_store,
            {"models": ["tiny-random-bert"], "benchmark": str(folder)},
            kind="evaluate",
        )
        result = evaluate(handle)
        metrics = result["models"][0]["metrics"]
        assert result["kind"] == kind and result["held_out"] is None
        assert (metrics["p-mrr"] is None) == (kind == "BEIR")
        assert ("changed:map" in metrics) == (kind == "FollowIR")


def test_values_of_every_query_are_written_on_request(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    write_followir(tmp_path / "F" / "Core17")
    write_beir(tmp_path / "F" / "beir")
    arguments = ("evaluate", "--model", "bm25", "--per-query", tmp_path / "q.jsonl")
    ran = inf(*arguments, "--benchmark", tmp_path / "F", "--json")
    assert ran.code == 0, ran.err
    rows = [json.loads(line) for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    assert [(row["benchmark"], row["query"]) for row in rows] == [
        *(("F/Core17", query) for query in ("q1-og", "q2-og", "q1-changed", "q2-changed", "q1")),
        ("F/beir", "1"),
    ]
    assert {row["model"] for row in rows} == {"bm25"}
    (moved,) = [row for row in rows if "p-mrr" in row]
    assert moved["p-mrr"] == ran.json["parts"][0]["models"][0]["metrics"]["p-mrr"]
    ran = inf(*arguments, "--benchmark", tmp_path / "F", "--json")
    assert ran.code == 2 and "choose another file" in ran.json["error"]
    ran = inf("evaluate", "--model", "bm25", "--release", "1", "--subset", "mair-paper", "--json")
    assert ran.code == 2 and "--subset requires --benchmark" in ran.json["error"]


def test_another_release_than_the_trained_one_is_noted(sqlite_store: Store, tmp_path: Path) -> None:
    config = config_for(tmp_path, max_steps="1")
    trained = train(claim(sqlite_store, config))
    other = write_release(tmp_path / "other", 12, content_sha256="d00d" * 16)
    result = evaluate(
        claim(sqlite_store, {"models": [trained["path"]], "release": str(other)}, kind="evaluate")
    )
    assert "was trained on another release" in result["notes"][0]


def test_the_groups_of_a_further_release_are_not_scored_as_held_out(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """All of them trained, unless the release holds some out itself."""
    other = write_release(tmp_path / "other", 12, content_sha256="d00d" * 16)
    config = config_for(tmp_path, max_steps="1", more_releases=str(other))
    trained = train(claim(sqlite_store, config))
    wanted = {"models": [trained["path"]], "release": str(other)}
    with pytest.raises(BadInput, match="also trained on the release"):
        evaluate(claim(sqlite_store, wanted, kind="evaluate"))


@pytest.mark.long
def test_two_checkpoints_with_different_splits_are_not_compared(
    sqlite_store: Store, tmp_path: Path
) -> None:
    paths = []
    for seed in ("1", "2"):
        config = config_for(tmp_path, max_steps="1", held_out_seed=seed)
        config["out"] = str(tmp_path / f"out-{seed}")
        paths.append(train(claim(sqlite_store, config))["path"])
    handle = claim(
        sqlite_store,
        {"models": paths, "release": str(tmp_path / "release")},
        kind="evaluate",
    )
    with pytest.raises(BadInput, match="held out different groups"):
        evaluate(handle)


def test_bm25_is_a_baseline_by_name_and_differences_have_intervals(
    sqlite_store: Store, tmp_path: Path
) -> None:
    release = write_release(tmp_path, 30)
    handle = claim(
        sqlite_store,
        {"models": ["bm25", "tiny-random-bert"], "release": str(release), "held_out": 0.4},
        kind="evaluate",
    )
    result = evaluate(handle)
    bm25, other = (model["metrics"] for model in result["models"])
    (compared,) = result["comparisons"]
    found = compared["measures"]["map"]
    assert found["queries"] == 36
    assert found["difference"] == pytest.approx(other["map"] - bm25["map"])
    assert found["low"] <= found["difference"] <= found["high"] and 0 < found["p"] <= 1
    clear = found["p_holm"] <= 0.05 and not found["low"] <= 0 <= found["high"]
    assert (found["verdict"] == "no clear difference") != clear
    folder = write_followir(tmp_path / "Core17")
    handle = claim(sqlite_store, {"models": ["bm25"], "benchmark": str(folder)}, kind="evaluate")
    assert evaluate(handle)["models"][0]["metrics"]["p-mrr"] is not None


def test_an_untrained_model_that_follows_every_group_makes_them_too_easy() -> None:
    def notes(flip: float, model: dict[str, object]) -> list[str]:
        metrics = {"instruction-flip": flip}
        return too_easy([{"model": "m", "metrics": metrics, "record": {"model": model}}])

    (note,) = notes(0.95, {"trained_on": None})
    assert "m has instruction-flip 0.95" in note and "too easy" in note
    assert notes(0.9, {"trained_on": None}) == notes(0.95, {"trained_on": "0a"}) == []
    assert notes(0.95, {}) == []  # a TREC run: unknown


def test_the_commands_report_says_in_words_what_a_difference_shows(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """One query is too few: the reason stands where the interval would."""
    config = {
        "models": ["bm25", "tiny-random-bert"],
        "benchmark": str(write_beir(tmp_path / "beir")),
    }
    result = evaluate(claim(sqlite_store, config, kind="evaluate"))
    text = scored_text(Evaluated.model_validate(result), with_details=True)
    rows = [line.split() for line in text.splitlines()]
    assert "nDCG@10" not in text and ["tiny-random-bert", "bm25", "ndcg@10"] in [
        r[:3] for r in rows
    ]
    assert "unknown: 1 independent group of queries: an interval needs 10" in text
    assert "bm25 is BM25 (bm25s, Lucene, k1 1.5, b 0.75, stop words, Snowball stemmer" in text
    (compared,) = result["comparisons"]
    known = {"low": -0.2, "high": 0.3, "p_holm": 0.4, "verdict": "no clear difference"}
    compared["measures"]["ndcg@10"] |= known | {"method": "bootstrap-t", "clusters": 12}
    shown = " ".join(scored_text(Evaluated.model_validate(result), with_details=False).split())
    assert "-0.2000 0.3000 0.4000 no clear difference bootstrap-t 12" in shown
