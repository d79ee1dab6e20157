from pathlib import Path

import pytest
from trainer_folders import write_beir, write_followir, write_jsonl, write_judgments
from trainer_release import write_release

from db.errors import BadInput, NotFound
from db.shape import INF_IR
from trainer.data.groups import Group
from trainer.data.release_files import read_release
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.measures.rankings import rank_of
from trainer.evaluate.scoring import measure_run
from trainer.suites.registry import read_benchmark


def test_a_followir_folder_knows_what_changed_and_ranks_only_its_candidates(tmp_path: Path) -> None:
    benchmark = read_benchmark(write_followir(tmp_path))
    assert benchmark.kind == "FollowIR" and "changed qrels" not in benchmark.convention
    assert benchmark.changed_documents == {"q1": ["d2"], "q2": []}
    assert benchmark.candidates["q1-og"] == ["d1", "d2", "d3"]
    assert benchmark.corpus["d1"] == "T body 1"
    assert benchmark.questions["q1-changed"].instruction == "few"


def test_followir_scores_by_hand(tmp_path: Path) -> None:
    benchmark = read_benchmark(write_followir(tmp_path))
    run = {
        "q1-og": {"d1": 3.0, "d2": 2.0, "d3": 1.0},  # right d1, d2: MAP 1; d2 at rank 2
        "q1-changed": {"d1": 1.0, "d2": 0.5, "d3": 2.0},  # right d1 at rank 2: MAP 0.5; d2 at 3
        "q2-og": {"d1": 1.0, "d2": 2.0, "d3": 3.0},  # right d3: MAP 1
        "q2-changed": {"d1": 1.0, "d2": 2.0, "d3": 3.0},
    }
    ranks = {name: {d: rank_of(d, scores) for d in scores} for name, scores in run.items()}
    scores = measure_run(benchmark, run, ranks)
    assert scores.metrics["map"] == 1.0
    assert scores.metrics["changed:map"] == pytest.approx((0.5 + 1.0) / 2)
    assert scores.metrics["p-mrr"] == pytest.approx(1 - 2 / 3)  # q2 drops out
    assert scores.per_query["q1"] == {"p-mrr": pytest.approx(1 / 3)}


def test_a_beir_folder_is_read_with_or_without_instructions(tmp_path: Path) -> None:
    benchmark = read_benchmark(write_beir(tmp_path))
    assert benchmark.kind == "BEIR" and list(benchmark.questions) == ["1"]
    assert benchmark.questions["1"].instruction == "briefly"
    run = {"1": {"d0": 0.5, "d1": 0.9}}
    scores = measure_run(benchmark, run, {"1": {}})
    assert scores.metrics["mrr"] == 0.5 and scores.metrics["p-mrr"] is None
    assert "relevance changes" in scores.reasons["p-mrr"]


def test_held_out_groups_ask_three_questions_each_over_all_their_passages(tmp_path: Path) -> None:
    groups = read_release(write_release(tmp_path, 3)).groups
    benchmark = held_out_benchmark("bridges", groups)
    assert len(benchmark.questions) == 9 == len(benchmark.corpus)
    passages = benchmark.corpus
    original, changed = benchmark.original["g000001"], benchmark.changed["g000001"]
    assert "figure in metres" in benchmark.questions[original].instruction
    assert "builder" in benchmark.questions[changed].instruction
    (document,) = benchmark.changed_documents["g000001"]
    assert passages[document] == groups[1].text("P+")
    assert benchmark.judgments[original] == {document: 1}


def test_equal_questions_of_two_groups_share_their_right_passages() -> None:
    texts = ("q", "i", "P", "q-", "i-", "P1", "P2")
    one = Group("1", texts, shape=INF_IR)
    other = Group("2", (*texts[:2], "P'", *texts[3:]), shape=INF_IR)
    benchmark = held_out_benchmark("x", [one, other])
    assert len(benchmark.corpus) == 4
    assert len(benchmark.judgments["g000000-positive"]) == 2


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda f: (f / "qrels_changed" / "test.tsv").unlink(),
            "qrels_changed/test.tsv is missing",
        ),
        (lambda f: (f / "corpus.jsonl").unlink(), "corpus.jsonl is missing"),
        (lambda f: (f / "corpus.jsonl").write_text('{"_id": "d1", "text": "a"}\n' * 2), "twice"),
        (
            lambda f: (f / "queries.jsonl").write_text('{"_id": "q1", "text": "a"}\n' * 2),
            "line 2: query 'q1' is there twice",
        ),
        (lambda f: (f / "corpus.jsonl").write_text(""), "holds no document"),
        (lambda f: (f / "queries.jsonl").write_text('{"_id": "q1"}\n'), "line 1 has no `text`"),
        (lambda f: (f / "queries.jsonl").write_text("{\n"), "line 1: invalid JSON"),
        (lambda f: (f / "qrels_og" / "test.tsv").write_text("a\tb\n1\t2\n"), "line 2"),
        (
            lambda f: write_judgments(f / "qrels_og" / "test.tsv", [("q1", "dX", 1)]),
            "no document 'dX'",
        ),
        (
            lambda f: write_jsonl(f / "top_ranked.jsonl", [{"qid": "q1", "pid": "dX"}]),
            "no document 'dX'",
        ),
    ],
)
def test_a_bad_folder_is_named_with_file_and_line(
    tmp_path: Path, spoil: object, words: str
) -> None:
    folder = write_followir(tmp_path)
    spoil(folder)  # type: ignore[operator]
    with pytest.raises(BadInput) as bad:
        read_benchmark(folder)
    assert words in str(bad.value)


def test_a_folder_without_judgments_is_no_benchmark(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no relevance judgments"):
        read_benchmark(tmp_path)
    with pytest.raises(NotFound, match="no benchmark folder"):
        read_benchmark(tmp_path / "nowhere")
