"""TREC run and qrels files, judged@k and pinned benchmarks."""

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import pytrec_eval
from conftest import Ran
from trainer_folders import (
    write_beir,
    write_followir,
    write_infosearch,
    write_jsonl,
    write_judgments,
)
from trainer_jobs import claim

from db.errors import BadInput
from db.outcome.evaluations import get_evaluation, list_evaluations
from db.store.store import Store
from trainer.evaluate.benchmarks import Benchmark
from trainer.evaluate.job import evaluate
from trainer.evaluate.measures.rankings import judged_share
from trainer.evaluate.scoring import Scores
from trainer.records.likeness import differences
from trainer.records.pinning import PIN_FILE, benchmark_content, write_pin
from trainer.suites.registry import read_benchmark
from trainer.trec import scoring
from trainer.trec.files import RunFile, read_qrels, read_run, trec_files, write_qrels, write_run
from trainer.trec.scoring import read_run_of, score_run


def scored(file: Path, benchmark: Benchmark) -> tuple[Scores, int]:
    return score_run(read_run_of(file, [benchmark]).scores, benchmark)


RUN = "1 Q0 d0 1 0.5 tag\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Q0 d0 1 0.5\n", "line 1 has 5 fields"),
        (RUN + "1 Q0 d1 2 nan tag\n", "line 2: the score 'nan' is no finite number"),
        (RUN + "1 Q0 d1 2 inf tag\n", "no finite number"),
        (RUN + "1 Q0 d1 2 a.5 tag\n", "'a.5' is no finite number"),
        (RUN * 2, "line 2: document 'd0' is there twice for query '1'"),
        ("\n\n", "holds no line"),
    ],
)
def test_a_bad_run_file_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.run"
    file.write_text(text)
    with pytest.raises(BadInput, match=r"bad\.run") as bad:
        read_run(file)
    assert message in str(bad.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0 d0 0.5\n", "the grade '0.5' is no whole number"),
        ("1 0 d0 1\n1 0 d0 0\n", "line 2: document 'd0' is there twice"),
        ("1 0 d0\n", "line 1 has 3 fields"),
    ],
)
def test_a_bad_qrels_file_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "qrels").write_text(text)
    with pytest.raises(BadInput) as bad:
        read_qrels(tmp_path / "qrels")
    assert message in str(bad.value)


def test_an_id_with_a_space_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has a space"):
        write_run(tmp_path / "a.run", {"q 1": {"d": 1.0}}, "t")
    with pytest.raises(BadInput, match="has a space"):
        write_qrels(tmp_path / "qrels", {"q": {"d\t1": 1}})


def test_the_rank_column_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("1 Q0 d0 1 0.1 t\n1\tQ0\td1\t9\t0.9\tt\n")
    assert read_run(tmp_path / "a.run").scores == {"1": {"d0": 0.1, "d1": 0.9}}


def test_what_is_written_is_read_back_to_the_last_digit(tmp_path: Path) -> None:
    draw = random.Random(1)
    run = {f"q{n}": {f"d{m}": draw.random() for m in range(9)} for n in range(3)}
    write_run(tmp_path / "a.run", run, "our model")
    assert read_run(tmp_path / "a.run").scores == run
    first = (tmp_path / "a.run").read_text().splitlines()[0].split()
    assert (
        first[3] == "1" and float(first[4]) == max(run["q0"].values()) and first[5] == "our-model"
    )
    with pytest.raises(FileExistsError):
        write_run(tmp_path / "a.run", run, "again")


def test_a_tag_names_the_checkpoint_and_not_where_it_lies(tmp_path: Path) -> None:
    for number, (model, tag) in enumerate(
        (
            ("/home/ann/my models/checkpoints/books", "books"),
            ("cross-encoder:/data/a/rank+/data/b/books", "cross-encoder:rank+books"),
            ("sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"),
        )
    ):
        write_run(tmp_path / f"{number}.run", {"q": {"d": 1.0}}, model)
        assert (tmp_path / f"{number}.run").read_text().split()[-1] == tag


def test_measures_of_trec_files_are_pytrec_evals(tmp_path: Path, inf: Callable[..., Ran]) -> None:
    """Random runs with ties; q0 has no relevant document, q1 is not in the run."""
    draw = random.Random(7)
    run = {
        f"q{n}": {f"d{m}": draw.choice([0.1, 0.2, 0.3]) for m in draw.sample(range(40), 25)}
        for n in range(2, 12)
    }
    judged = {f"q{n}": {f"d{m}": draw.randint(0, 2) for m in range(0, 40, 3)} for n in range(1, 12)}
    judged["q0"] = {"d1": 0}
    judged["q1"]["d0"] = 1
    write_run(tmp_path / "a.run", run, "t")
    write_qrels(tmp_path / "qrels", judged)
    ran = inf(
        "evaluate", "trec", "--run", tmp_path / "a.run", "--qrels", tmp_path / "qrels", "--json"
    )
    assert ran.code == 0, ran.err
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "map", "recip_rank"})
    found = theirs.evaluate(run)
    for query, values in found.items():
        ours = ran.json["per_query"][query]
        assert ours["ndcg@10"] == pytest.approx(values["ndcg_cut_10"], abs=1e-12)
        assert ours["map"] == pytest.approx(values["map"], abs=1e-12)
        assert ours["mrr"] == pytest.approx(values["recip_rank"], abs=1e-12)
    mean = sum(values["ndcg_cut_10"] for values in found.values()) / 11  # q1 scores 0
    assert ran.json["metrics"]["ndcg@10"] == pytest.approx(mean, abs=1e-12)
    assert ran.json["without_relevant"] == ["q0"] and ran.json["missing"] == ["q1"]


def test_judged_share_counts_documents_that_somebody_graded_also_as_irrelevant() -> None:
    scores = {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}
    assert judged_share(scores, {"a": 1, "c": 0, "x": 2}) == 0.5
    assert judged_share(scores, {"a": 1, "c": 0}, depth=1) == 1.0
    assert judged_share({"a": 1.0, "b": 1.0}, {"b": 0}, depth=1) == 1.0  # ties: id, descending
    assert judged_share({}, {"a": 1}) == 0.0


def test_an_exported_run_comes_back_with_the_same_scores_and_is_comparable(
    sqlite_store: Store, tmp_path: Path
) -> None:
    folder = str(write_followir(tmp_path / "Core17"))
    config = {"models": ["bm25"], "benchmark": folder, "trec": str(tmp_path / "out")}
    ours = evaluate(claim(sqlite_store, config, kind="evaluate"))["models"][0]
    (run,) = (tmp_path / "out").rglob("*.run")
    assert read_qrels(run.parent / "qrels")["q1-changed"] == {"d1": 1, "d2": 0}
    again = {"models": [f"trec:{run}"], "benchmark": folder}
    theirs = evaluate(claim(sqlite_store, again, kind="evaluate"))["models"][0]
    assert theirs["metrics"] == ours["metrics"]
    assert differences(ours["record"], theirs["record"]) == []
    with sqlite_store.read() as session:
        record = get_evaluation(session, theirs["evaluation_id"]).record
    assert record["model"]["identity"].startswith("trec:sha256 ")


def test_a_shallower_run_is_scored_and_not_compared(sqlite_store: Store, tmp_path: Path) -> None:
    folder = str(write_beir(tmp_path / "beir"))
    (tmp_path / "a.run").write_text("1 Q0 d1 1 2.0 t\n1 Q0 d0 2 1.0 t\n")
    config = {"models": ["bm25", f"trec:{tmp_path / 'a.run'}"], "benchmark": folder}
    result = evaluate(claim(sqlite_store, config, kind="evaluate"))
    assert result["models"][1]["metrics"]["mrr"] == 0.5
    (compared,) = result["comparisons"]
    assert compared["refused"] == ["other ranking depth (2 instead of 3)"]
    assert not any(compared["measures"].values())


def test_a_run_file_is_read_once_and_recorded_by_what_was_read(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another program goes on writing: scores and hash are of the same bytes."""
    file = tmp_path / "a.run"
    file.write_text("1 Q0 d0 1 2.0 t\n1 Q0 d1 2 1.0 t\n")
    before = hashlib.sha256(file.read_bytes()).hexdigest()

    def read_and_change(path: Path) -> RunFile:
        found = read_run(path)
        path.write_text("changed\n")
        return found

    monkeypatch.setattr(scoring, "read_run", read_and_change)
    config = {"models": [f"trec:{file}"], "benchmark": str(write_beir(tmp_path / "beir"))}
    (model,) = evaluate(claim(sqlite_store, config, kind="evaluate"))["models"]
    assert model["record"]["model"]["identity"] == f"trec:sha256 {before}"
    assert model["metrics"]["mrr"] is not None


FOLLOWIR_RUN = {
    f"{query}-{form}": {"d1": 3.0, "d2": 2.0, "d3": 1.0}
    for query in ("q1", "q2")
    for form in ("og", "changed")
}


def test_a_shallower_run_of_listed_candidates_has_its_own_depth(
    sqlite_store: Store, tmp_path: Path
) -> None:
    folder = str(write_followir(tmp_path / "Core17"))
    write_run(tmp_path / "a.run", FOLLOWIR_RUN | {"q2-og": {"d3": 1.0, "d1": 0.5}}, "t")
    config = {"models": ["bm25", f"trec:{tmp_path / 'a.run'}"], "benchmark": folder}
    (compared,) = evaluate(claim(sqlite_store, config, kind="evaluate"))["comparisons"]
    assert compared["refused"] == ["other ranking depth (2 instead of 4)"]


def test_a_run_without_a_form_of_a_query_is_refused_by_its_name(tmp_path: Path) -> None:
    benchmark = read_benchmark(write_followir(tmp_path / "Core17"))
    run = {query: of for query, of in FOLLOWIR_RUN.items() if query != "q2-changed"}
    write_run(tmp_path / "a.run", run, "t")
    with pytest.raises(BadInput, match="lacks 'q2-changed', a form of query 'q2'"):
        scored(tmp_path / "a.run", benchmark)


def test_p_mrr_is_undefined_where_the_run_lacks_the_document(tmp_path: Path) -> None:
    """d2 under the changed instruction: its rank is unknown, not the last."""
    benchmark = read_benchmark(write_followir(tmp_path / "Core17"))
    write_run(tmp_path / "whole.run", FOLLOWIR_RUN, "t")
    assert scored(tmp_path / "whole.run", benchmark)[0].metrics["p-mrr"] == 0.0
    write_run(tmp_path / "a.run", FOLLOWIR_RUN | {"q1-changed": {"d1": 3.0}}, "t")
    scores, _ = scored(tmp_path / "a.run", benchmark)
    assert scores.metrics["p-mrr"] is None and scores.per_query["q1"] == {}
    assert "document 'd2' of query 'q1'" in scores.reasons["p-mrr"]
    assert scores.metrics["mrr"] is not None


def test_sicr_and_wise_are_undefined_where_the_run_lacks_the_document(tmp_path: Path) -> None:
    benchmark = read_benchmark(write_infosearch(tmp_path / "Audience"))
    run = {f"q1-{form}": {"d1": 2.0, "d2": 1.0} for form in ("og", "changed", "reversed")}
    write_run(tmp_path / "whole.run", run, "t")
    assert scored(tmp_path / "whole.run", benchmark)[0].metrics["sicr"] == 0.0
    write_run(tmp_path / "a.run", run | {"q1-reversed": {"d2": 1.0}}, "t")
    scores, _ = scored(tmp_path / "a.run", benchmark)
    assert scores.metrics["sicr"] is None and scores.metrics["wise"] is None
    assert "document 'd1' of query 'q1'" in scores.reasons["sicr"]
    assert scores.metrics["p-mrr"] is not None and "sicr" not in scores.per_query["q1"]


@pytest.mark.parametrize("text", [None, "1 Q0 d0 1 0.5\n", "9 Q0 d0 1 1 t\n"])
def test_a_bad_run_file_is_refused_before_a_model_loads(
    sqlite_store: Store, tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "a.run").write_text(text)
    models = ["no/such-model", f"trec:{tmp_path / 'a.run'}"]
    config = {"models": models, "benchmark": str(write_beir(tmp_path / "beir"))}
    with pytest.raises(BadInput, match=r"a\.run"):
        evaluate(claim(sqlite_store, config, kind="evaluate"))


def test_a_run_file_belongs_to_one_benchmark(sqlite_store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(RUN)
    for name in ("one", "other"):
        write_beir(tmp_path / "suite" / name)
    config = {"models": [f"trec:{tmp_path / 'a.run'}"], "benchmark": str(tmp_path / "suite")}
    with pytest.raises(BadInput, match="belongs to one benchmark, and 2 are evaluated"):
        evaluate(claim(sqlite_store, config, kind="evaluate"))


@pytest.mark.parametrize(
    ("line", "message"), [("9 Q0 d0 1 1 t", "no query '9'"), ("1 Q0 dX 1 1 t", "document 'dX'")]
)
def test_a_run_of_another_benchmark_is_refused(
    sqlite_store: Store, tmp_path: Path, line: str, message: str
) -> None:
    (tmp_path / "a.run").write_text(line + "\n")
    folder = str(write_beir(tmp_path / "beir"))
    config = {"models": [f"trec:{tmp_path / 'a.run'}"], "benchmark": folder}
    with pytest.raises(BadInput, match=message):
        evaluate(claim(sqlite_store, config, kind="evaluate"))


def test_a_qrels_file_takes_the_place_of_the_judgments(sqlite_store: Store, tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "beir")
    (tmp_path / "qrels").write_text("1 0 d1 1\n2 0 d2 1\n1 0 elsewhere 1\n")
    (tmp_path / "a.run").write_text("1 Q0 d1 1 2.0 t\n1 Q0 d0 2 1.0 t\n")
    config = {"models": [f"trec:{tmp_path / 'a.run'}"], "benchmark": str(folder)}
    own = evaluate(claim(sqlite_store, config, kind="evaluate"))
    config["qrels"] = str(tmp_path / "qrels")
    with pytest.raises(BadInput, match="no query '2'"):  # not judged in the folder: not read
        evaluate(claim(sqlite_store, config, kind="evaluate"))
    (tmp_path / "qrels").write_text("1 0 d1 1\n1 0 elsewhere 1\n")
    other = evaluate(claim(sqlite_store, config, kind="evaluate"))
    assert own["models"][0]["metrics"]["mrr"] == 0.5 and own["models"][0]["metrics"]["map"] == 0.5
    assert other["models"][0]["metrics"]["mrr"] == 1.0
    assert other["models"][0]["metrics"]["map"] == 0.5  # the document elsewhere is never found
    reasons = differences(own["models"][0]["record"], other["models"][0]["record"])
    assert any("relevance judgments" in reason for reason in reasons)


def test_a_pinned_benchmark_with_other_content_is_refused_before_a_model_loads(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    folder = write_beir(tmp_path / "beir")
    ran = inf("evaluate", "pin", folder, "--write", "--json")
    assert ran.code == 0, ran.err
    pin = ran.json["sha256"]
    config = {"models": ["no/such-model"], "benchmark": str(folder), "pin": pin}
    write_judgments(folder / "qrels" / "test.tsv", [("1", "d1", 2)])
    for given in ({"pin": pin}, {"pin": pin[:12]}, {"pin": None}):  # the last: the folder's file
        with pytest.raises(BadInput, match="is not the one that was pinned"):
            evaluate(claim(sqlite_store, config | given, kind="evaluate"))
    write_judgments(folder / "qrels" / "test.tsv", [("1", "d0", 2)])
    result = evaluate(claim(sqlite_store, config | {"models": ["bm25"]}, kind="evaluate"))
    assert result["sha256"] == pin
    ran = inf("evaluate", "pin", folder, "--write", "--json")
    assert ran.code == 1 and "never overwritten" in ran.json["error"]
    with pytest.raises(BadInput, match="no sha256"):
        evaluate(claim(sqlite_store, config | {"pin": "latest"}, kind="evaluate"))


def test_an_empty_pin_is_refused_in_words(sqlite_store: Store, tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "beir")
    (folder / PIN_FILE).write_text("\n")
    config = {"models": ["bm25"], "benchmark": str(folder)}
    with pytest.raises(BadInput, match=r"benchmark\.sha256 is empty"):
        evaluate(claim(sqlite_store, config, kind="evaluate"))


def test_a_folders_pin_holds_also_as_ordinary_and_as_a_set_of_its_parent(
    sqlite_store: Store, tmp_path: Path
) -> None:
    for name in ("one", "other"):
        folder = write_beir(tmp_path / "suite" / name)
        write_jsonl(folder / "queries.jsonl", [{"_id": "1", "text": "one"}])
    write_pin(folder, [benchmark_content(read_benchmark(folder))])
    main = str(write_followir(tmp_path / "Core17"))
    configs: list[dict[str, object]] = [
        {"models": ["bm25"], "benchmark": str(tmp_path / "suite")},
        {"models": ["bm25"], "benchmark": main, "ordinary": str(folder)},
        {"models": ["bm25"], "benchmark": main, "ordinary": str(tmp_path / "suite")},
    ]
    for config in configs:
        evaluate(claim(sqlite_store, config, kind="evaluate"))
    write_judgments(folder / "qrels" / "test.tsv", [("1", "d1", 2)])
    for config in configs:
        with pytest.raises(BadInput, match="is not the one that was pinned"):
            evaluate(claim(sqlite_store, config, kind="evaluate"))


def test_an_id_that_a_run_cannot_hold_is_found_before_a_model_loads(
    sqlite_store: Store, tmp_path: Path
) -> None:
    folder = write_beir(tmp_path / "beir")
    write_jsonl(
        folder / "corpus.jsonl", [{"_id": name, "text": "body"} for name in ("d0", "not judged")]
    )
    config = {"models": ["no/such-model"], "benchmark": str(folder), "trec": str(tmp_path / "out")}
    with pytest.raises(BadInput, match="'not judged' is empty or has a space"):
        evaluate(claim(sqlite_store, config, kind="evaluate"))
    assert not (tmp_path / "out").exists()


def test_two_benchmarks_are_not_written_to_one_folder(sqlite_store: Store, tmp_path: Path) -> None:
    ordinary = write_beir(tmp_path / "b" / "test")
    write_jsonl(ordinary / "queries.jsonl", [{"_id": "1", "text": "one"}])
    config = {
        "models": ["no/such-model"],
        "benchmark": str(write_followir(tmp_path / "a" / "test")),
        "ordinary": str(ordinary),
        "trec": str(tmp_path / "out"),
    }
    with pytest.raises(BadInput, match="'test' and 'test' would both be written"):
        evaluate(claim(sqlite_store, config, kind="evaluate"))


def test_a_run_that_cannot_be_written_loses_no_scores(sqlite_store: Store, tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "beir")
    run = trec_files(str(tmp_path / "out"), "beir", "bm25")[0]
    run.mkdir(parents=True)
    config = {"models": ["bm25"], "benchmark": str(folder), "trec": str(tmp_path / "out")}
    with pytest.raises(OSError, match=r"bm25.*\.run"):
        evaluate(claim(sqlite_store, config, kind="evaluate"))
    with sqlite_store.read() as session:
        assert [each.model for each in list_evaluations(session)] == ["bm25"]
