"""mFollowIR and InfoSearch in their published layouts; ordinary retrieval beside them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from trainer_folders import (
    write_beir,
    write_followir,
    write_infosearch,
    write_jsonl,
    write_mfollowir,
)
from trainer_jobs import claim

from app.text.remedies import in_commands
from db.errors import BadInput
from db.outcome.evaluations import list_evaluations
from db.store.store import Store
from trainer.evaluate.intervals import about_questions
from trainer.evaluate.job import evaluate
from trainer.evaluate.measures.rankings import rank_of
from trainer.evaluate.scoring import measure_run
from trainer.report.compared.ordinary import NOT_MEASURED, is_ordinary, ordinary_rows
from trainer.suites.registry import DOWNLOADS, read_benchmarks


def test_every_language_of_mfollowir_is_a_benchmark_with_candidates_of_its_own(
    tmp_path: Path,
) -> None:
    persian, russian = read_benchmarks(write_mfollowir(tmp_path / "mFollowIR"))
    assert (persian.name, russian.name, persian.kind) == (
        "mFollowIR/fas",
        "mFollowIR/rus",
        "mFollowIR",
    )
    assert persian.original == {"7": "7-og"} and persian.changed == {"7": "7-changed"}
    assert persian.questions["7-changed"].instruction == "few"
    assert persian.candidates["7-og"] == ["d0", "d1", "d2"]  # not the whole corpus of four
    assert russian.corpus["d3"] == "rus body 3" and persian.originals_count
    assert (persian.language, russian.language) == ("none", "ru")  # of BM25
    assert {"mfollowir", "mfollowir-crosslingual", "infosearch"} <= DOWNLOADS.keys()


def test_scores_on_mfollowir_equal_mtebs(tmp_path: Path) -> None:
    from mteb._evaluators.retrieval_metrics import evaluate_p_mrr_change

    (benchmark,) = read_benchmarks(write_mfollowir(tmp_path / "mFollowIR", ("zho",)))
    run = {
        "7-og": {"d0": 3.0, "d1": 2.0, "d2": 1.0},
        "7-changed": {"d0": 1.0, "d1": 2.0, "d2": 3.0},
    }
    ranks = {name: {d: rank_of(d, scores) for d in scores} for name, scores in run.items()}
    ours = measure_run(benchmark, run, ranks).metrics
    theirs = evaluate_p_mrr_change(benchmark.judgments, run, {"7": ["d1"]}, [1, 5, 10, 20])
    assert ours["p-mrr"] == pytest.approx(theirs["p-MRR"])
    # mteb rounds to five digits
    assert ours["ndcg@20"] == pytest.approx(theirs["og"]["ndcg_at_20"], abs=1e-5)
    assert ours["changed:ndcg@20"] == pytest.approx(theirs["changed"]["ndcg_at_20"], abs=1e-5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"top_ranked": None}, "names no part top_ranked-fas"),
        ({"qrel_diff": [{"query-id": "8", "corpus-ids": ["d1"]}]}, "instruction '8-og'"),
        ({"qrel_diff": [{"query-id": "7", "corpus-ids": ["dX"]}]}, "no document 'dX'"),
        (
            {"top_ranked": [{"query-id": "7-og", "corpus-ids": ["d0"]}]},
            "has nothing for '7-changed'",
        ),
    ],
)
def test_a_dataset_that_lacks_something_is_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    folder = write_mfollowir(tmp_path / "m", ("fas",), **changed)
    with pytest.raises(BadInput) as bad:
        read_benchmarks(folder)
    assert message in str(bad.value)


def test_infosearch_is_not_taken_for_followir_and_its_measures_are_by_hand(tmp_path: Path) -> None:
    (benchmark,) = read_benchmarks(write_infosearch(tmp_path / "Audience"))
    assert benchmark.kind == "InfoSearch" and list(benchmark.original) == ["q1"]
    assert benchmark.kept == {"q1": ["d1"]} and benchmark.changed_documents == {"q1": ["d2"]}
    assert benchmark.questions["q1-og"].instruction == "" and not benchmark.candidates
    run = {
        "q1-og": {"d3": 4.0, "d1": 3.0, "d2": 2.0, "d4": 1.0},  # d1 at 2, d2 at 3
        "q1-changed": {"d1": 5.0, "d3": 4.0, "d4": 3.0, "d2": 1.0},  # d1 at 1, d2 at 4
        "q1-reversed": {"d3": 4.0, "d2": 3.0, "d4": 2.0, "d1": 1.0},  # d1 at 4
    }
    ranks = {name: {d: rank_of(d, scores) for d in scores} for name, scores in run.items()}
    found = measure_run(benchmark, run, ranks).metrics
    assert found["sicr"] == 1.0
    # r_i = 1 and r_o = 2, N = 2 documents: not from within them, so 1 − √1/20
    assert found["wise"] == pytest.approx(1 - 1 / 20)
    assert found["p-mrr"] == pytest.approx(1 - 3 / 4)
    assert found["mrr"] == 0.5 and found["changed:mrr"] == 1.0  # the score is of the original
    assert found["reversed:mrr"] == 0.5
    about = about_questions(benchmark)
    assert len({about[name]["cluster"] for name in about}) == 1
    assert [name for name, of in about.items() if of["scored"]] == ["q1-og", "q1"]


def test_infosearch_without_a_reversed_instruction_is_refused(tmp_path: Path) -> None:
    folder = write_infosearch(tmp_path)
    row: dict[str, object] = {"_id": "q1", "text": "rivers", "instruction_changed": "x"}
    write_jsonl(folder / "queries.jsonl", [row])
    with pytest.raises(BadInput, match="line 1 has no `instruction_reversed`"):
        read_benchmarks(folder)


def test_infosearch_is_scored_by_a_job(sqlite_store: Store, tmp_path: Path) -> None:
    folder = write_infosearch(tmp_path / "Audience")
    config = {"models": ["bm25"], "benchmark": str(folder)}
    metrics = evaluate(claim(sqlite_store, config, kind="evaluate"))["models"][0]["metrics"]
    assert metrics["sicr"] == 0.0 and -1 <= metrics["wise"] <= 1


def test_ordinary_retrieval_stands_beside_instruction_scores(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    folder, beir = write_followir(tmp_path / "Core17"), write_beir(tmp_path / "beir")
    arguments = ("evaluate", "--model", "bm25", "--benchmark", folder)
    ran = inf(*arguments, "--ordinary", beir)
    assert ran.code == 1 and "beir has instructions" in ran.err
    write_jsonl(beir / "queries.jsonl", [{"_id": "1", "text": "one"}])
    ran = inf(*arguments, "--ordinary", beir, "--json")
    assert ran.code == 0, ran.err
    (part,) = ran.json["ordinary"]
    assert part["benchmark"] == "beir" and part["models"][0]["metrics"]["ndcg@10"] is not None
    with sqlite_store.read() as session:
        found = list_evaluations(session)
    assert [is_ordinary(each) for each in found] == [True, False]
    (row,) = ordinary_rows([found[1]], [found[0]])
    assert row["name"] == "bm25" and row["ndcg@10"] == found[0].metrics["ndcg@10"]
    ran = inf(*arguments)
    assert in_commands(NOT_MEASURED) in ran.out and "--ordinary" in ran.out
