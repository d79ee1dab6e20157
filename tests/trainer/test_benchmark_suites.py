"""Suites in the formats they are published in: FollowIR's three sets, BRIGHT, MAIR, InstructIR."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from trainer_folders import (
    write_bright,
    write_followir,
    write_instructions_of_a_query,
    write_instructir,
    write_jsonl,
)
from trainer_jobs import claim

from db.errors import BadInput
from db.outcome.evaluations import get_evaluation, list_evaluations
from db.store.store import Store
from trainer.evaluate.benchmarks import Question
from trainer.evaluate.intervals import about_questions, following_means
from trainer.evaluate.job import evaluate
from trainer.evaluate.scoring import measure_run
from trainer.suites.beir import retrieval_benchmark
from trainer.suites.registry import SUBSETS, read_benchmarks, suite_means, take_subset


def write_mair(
    folder: Path, labels: Any = None, documents: str = "xyz", task: str = "DD_2015"
) -> Path:
    labels = [{"id": "x", "score": 2}] if labels is None else labels
    for part in ("", "en_") if task == "DD_2015" else ("",):
        row = {"qid": "q", "instruction": "find it", "query": "what", "labels": labels}
        write_jsonl(folder / "MAIR-Queries" / task / f"{part}queries.jsonl", [row])
        write_jsonl(
            folder / "MAIR-Docs" / task / f"{part}docs.jsonl",
            [{"id": name, "doc": f"text {name}"} for name in documents],
        )
    return folder


def test_documents_that_bright_excludes_are_not_ranked(tmp_path: Path) -> None:
    aops, biology = read_benchmarks(write_bright(tmp_path / "BRIGHT"))
    assert (aops.name, biology.name, biology.kind) == ("BRIGHT/aops", "BRIGHT/biology", "BRIGHT")
    assert biology.excluded == {"0": ["b"], "1": []}
    run = {"0": {"b": 3.0, "a": 2.0, "c": 1.0}, "1": {"a": 3.0, "b": 2.0, "c": 1.0}}
    scores = measure_run(biology, run, {})
    assert scores.per_query["0"]["mrr"] == 1.0  # b stands first and is excluded
    assert scores.per_query["1"]["mrr"] == 0.5


@pytest.mark.parametrize("write", [write_instructir, write_instructions_of_a_query])
def test_robustness_is_the_lowest_over_a_querys_instructions(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    (benchmark,) = read_benchmarks(write(tmp_path))
    assert benchmark.kind == "InstructIR" and "robustness@10" in benchmark.convention
    run = {
        "7_0": {"d0": 2.0, "d1": 1.0},  # nDCG 1
        "7_1": {"d0": 2.0, "d1": 1.0},  # right one second: nDCG 1/log2(3) = 0.6309
        "8_0": {"d2": 1.0},  # nDCG 1
    }
    scores = measure_run(benchmark, run, {})
    assert scores.metrics["robustness@10"] == pytest.approx((0.63093 + 1) / 2, abs=1e-5)
    assert scores.metrics["ndcg@10"] == pytest.approx((1 + 0.63093 + 1) / 3, abs=1e-5)
    mean = following_means(scores.per_query, about_questions(benchmark))["robustness@10"]
    assert mean.value == pytest.approx(scores.metrics["robustness@10"])
    assert (mean.queries, mean.clusters) == (2, 2) and mean.low is not None


def test_ids_that_look_like_instructions_of_a_query_are_not_taken_for_them() -> None:
    """`7_0` and `7_1` ask two queries; `a` and `b` ask one under two instructions."""
    questions = {"7_0": Question("i", "one"), "7_1": Question("j", "two")}
    judgments = {name: {"d": 1} for name in ("7_0", "7_1", "a", "b")}
    apart = retrieval_benchmark("x", questions, {"d": ""}, dict(list(judgments.items())[:2]), "")
    assert apart.kind == "BEIR" and apart.same_query == {}
    questions |= {"a": Question("i", "three"), "b": Question("j", "three")}
    together = retrieval_benchmark("x", questions, {"d": ""}, judgments, "")
    assert together.same_query == {"7_0": "7_0", "7_1": "7_1", "a": "a", "b": "a"}


def test_robustness_equals_mtebs(tmp_path: Path) -> None:
    from mteb._evaluators.retrieval_metrics import robustness_at_10

    (benchmark,) = read_benchmarks(write_instructir(tmp_path))
    run = {"7_0": {"d1": 2.0, "d0": 1.0}, "7_1": {"d1": 1.0}, "8_0": {"d0": 2.0, "d2": 1.0}}
    scores = measure_run(benchmark, run, {})
    theirs = {name: {"ndcg_cut_10": values["ndcg@10"]} for name, values in scores.per_query.items()}
    wanted = robustness_at_10(benchmark.judgments, run, theirs)
    assert scores.metrics["robustness@10"] == pytest.approx(wanted)


def test_mair_tasks_and_their_parts_are_sets(tmp_path: Path) -> None:
    parts = {one.name: one for one in read_benchmarks(write_mair(tmp_path))}
    assert set(parts) == {"MAIR/DD_2015", "MAIR/DD_2015-en"}
    one = parts["MAIR/DD_2015"]
    assert one.judgments == {"q": {"x": 2}} and one.questions["q"].instruction == "find it"


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (
            lambda folder: write_mair(folder, [{"id": "nowhere", "score": 1}]),
            "no document 'nowhere'",
        ),
        (lambda folder: write_mair(folder, "x"), "`labels` must be a list"),
        (lambda folder: write_mair(folder, documents="xx"), "line 2: document 'x' is there twice"),
        (lambda folder: write_bright(folder, gold_ids=["z"]), "row 1: no document 'z'"),
    ],
)
def test_a_bad_suite_is_refused_with_file_and_line(
    tmp_path: Path, write: Callable[[Path], Path], words: str
) -> None:
    with pytest.raises(BadInput) as refused:
        read_benchmarks(write(tmp_path))
    assert words in str(refused.value) and str(tmp_path) in str(refused.value)


def test_a_task_without_documents_and_an_empty_suite_are_refused(tmp_path: Path) -> None:
    folder = write_bright(tmp_path / "a")
    (folder / "documents" / "aops-00000-of-00001.parquet").unlink()
    with pytest.raises(BadInput, match="no aops"):
        read_benchmarks(folder)
    (tmp_path / "b" / "MAIR-Queries").mkdir(parents=True)
    with pytest.raises(BadInput, match=r"no <task>/queries\.jsonl"):
        read_benchmarks(tmp_path / "b")


def test_the_papers_five_tasks_of_mair_are_a_subset_by_name(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    for task in (*SUBSETS["mair-paper"], "LeetCode"):
        write_mair(tmp_path / "M", task=task)
    (tmp_path / "M" / "MAIR-Queries" / "DD_2015" / "en_queries.jsonl").unlink()
    ran = inf(
        *("evaluate", "--model", "bm25", "--benchmark", tmp_path / "M"),
        *("--subset", "mair-paper", "--json"),
    )
    assert ran.code == 0, ran.err
    wanted = [f"MAIR/{task}" for task in SUBSETS["mair-paper"]]
    assert [part["benchmark"] for part in ran.json["parts"]] == wanted
    assert ran.json["benchmark"] == "M mair-paper"
    with sqlite_store.read() as session:
        (mean,) = list_evaluations(session, benchmark="M mair-paper (mean of 5)")
    assert mean.metrics["ndcg@10"] == ran.json["models"][0]["metrics"]["ndcg@10"]
    few = read_benchmarks(write_mair(tmp_path / "few", task="DD_2016"))
    with pytest.raises(BadInput, match="needs the task DD_2015, and the benchmark has DD_2016"):
        take_subset(few, "mair-paper")
    with pytest.raises(BadInput, match="no subset 'mine'"):
        take_subset(few, "mine")


def test_followirs_score_takes_each_sets_own_measure(tmp_path: Path) -> None:
    for name in ("Robust04", "News21", "Core17"):
        write_followir(tmp_path / "FollowIR" / name)
    benchmarks = read_benchmarks(tmp_path / "FollowIR")
    values: list[dict[str, float | None]] = [  # in the order Core17, News21, Robust04
        {"map@1000": 0.1, "ndcg@5": 0.9, "p-mrr": 0.3},
        {"map@1000": 0.8, "ndcg@5": 0.2, "p-mrr": None},
        {"map@1000": 0.6, "ndcg@5": 0.7, "p-mrr": 0.1},
    ]
    means = suite_means(benchmarks, values)
    assert means["followir score"] == pytest.approx((0.1 + 0.2 + 0.6) / 3)
    assert means["map@1000"] == pytest.approx(0.5) and means["p-mrr"] is None
    assert "followir score" not in suite_means(benchmarks[:2], values[:2])


def test_a_suite_is_scored_set_by_set_and_in_the_mean(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    for name in ("Robust04", "News21", "Core17"):
        write_followir(tmp_path / "FollowIR" / name)
    config = {"models": ["bm25", "tiny-random-bert"], "benchmark": str(tmp_path / "FollowIR")}
    result = evaluate(claim(sqlite_store, config, kind="evaluate"))
    assert [part["benchmark"] for part in result["parts"]] == [
        f"FollowIR/{name}" for name in ("Core17", "News21", "Robust04")
    ]
    mean = result["models"][1]["metrics"]
    parts = [part["models"][1]["metrics"] for part in result["parts"]]
    assert mean["p-mrr"] == pytest.approx(sum(part["p-mrr"] for part in parts) / 3)
    assert mean["followir score"] > 0
    assert all(len(part["comparisons"]) == 1 for part in result["parts"])
    with sqlite_store.read() as session:
        found = list_evaluations(session)
        stored = get_evaluation(session, result["models"][1]["evaluation_id"])
    names = [*(part["benchmark"] for part in result["parts"]), "FollowIR (mean of 3)"]
    assert sorted(each.benchmark for each in found) == sorted(2 * names)
    assert stored.metrics == mean and stored.model == "tiny-random-bert"
    assert stored.benchmark == "FollowIR (mean of 3)" and stored.per_query == {}
    ran = inf("evaluate", "--model", "bm25", "--benchmark", tmp_path / "FollowIR")
    assert ran.code == 0, ran.err
    assert "followir score" in ran.out and "FollowIR/News21" in ran.out
