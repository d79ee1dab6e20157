"""Clusters of queries come from a benchmark's data."""

from trainer.evaluate.benchmarks import Benchmark, Question
from trainer.evaluate.intervals import about_questions


def benchmark(kind: str, **given: object) -> Benchmark:
    texts = {"1": "tides", "2": "tides", "3": "cats", "4": "dogs", "g1-5": "ice", "g1-6": "snow"}
    questions = {name: Question(f"instruction {name}", text) for name, text in texts.items()}
    return Benchmark(kind, kind, "", questions, {}, {}, **given)  # type: ignore[arg-type]


def clusters(found: dict[str, dict[str, str | bool]]) -> set[frozenset[str]]:
    by_cluster: dict[object, set[str]] = {}
    for name, about in found.items():
        by_cluster.setdefault(about["cluster"], set()).add(name)
    return {frozenset(names) for names in by_cluster.values()}


def test_equal_queries_are_one_cluster_and_ids_that_look_alike_are_not() -> None:
    found = clusters(about_questions(benchmark("BEIR")))
    assert found == {frozenset(names) for names in (["1", "2"], ["3"], ["4"], ["g1-5"], ["g1-6"])}


def test_one_query_under_several_instructions_is_one_cluster() -> None:
    found = clusters(about_questions(benchmark("BEIR", same_query={"3": "a", "4": "a"})))
    assert frozenset(["3", "4", "a"]) in found  # with the base query, that of measures over it


def test_on_followir_the_changed_questions_are_of_the_cluster_and_not_scored() -> None:
    found = about_questions(
        benchmark("FollowIR", original={"q": "3"}, changed={"q": "4"}, originals_count=True)
    )
    assert frozenset(["q", "3", "4"]) in clusters(found)
    assert [found[name]["scored"] for name in ("q", "3", "4")] == [True, True, False]
