"""p-MRR and the measures: by hand, against mteb, against pytrec_eval."""

import random

import numpy as np
import pytest
import pytrec_eval

from trainer.evaluate.measures.rankings import (
    average,
    measure,
    p_mrr,
    p_mrr_by_query,
    rank_change,
    rank_of,
)
from trainer.evaluate.searching import search


@pytest.mark.parametrize(
    ("original", "changed", "value"),
    [
        (2, 5, 0.6),  # it sank: 1 − 2/5
        (5, 2, -0.6),  # it rose: 2/5 − 1
        (3, 3, 0.0),
        (1, 4, 0.75),
        (4, 1, -0.75),
        (1, 1000, 0.999),
    ],
)
def test_rank_change_by_hand(original: int, changed: int, value: float) -> None:
    assert rank_change(original, changed) == pytest.approx(value)


def test_p_mrr_is_the_mean_over_documents_then_over_queries() -> None:
    # a: (0.6 + 0)/2 = 0.3; b: −0.6; c has no changed document. Mean of a and b: −0.15
    by_query = p_mrr_by_query({"a": [(2, 5), (1, 1)], "b": [(5, 2)], "c": []})
    assert by_query == {"a": pytest.approx(0.3), "b": pytest.approx(-0.6)}
    assert p_mrr(by_query) == pytest.approx(-0.15)
    assert p_mrr({}) is None


def test_ties_are_broken_by_score_then_id_descending() -> None:
    scores = {"a": 1.0, "b": 2.0, "c": 1.0}
    assert [rank_of(name, scores) for name in "abc"] == [3, 1, 2]
    assert rank_of("missing", scores) == 4


def random_runs(seed: int) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Ten queries over thirty documents; scores from five values, so ties abound."""
    draw = random.Random(seed)
    documents = [f"d{number}" for number in range(30)]
    run, judgments = {}, {}
    for query in range(10):
        kept = draw.sample(documents, draw.randint(5, 30))
        run[f"q{query}"] = {name: draw.choice([0.1, 0.2, 0.3, 0.4, 0.5]) for name in kept}
        judgments[f"q{query}"] = {name: draw.randint(0, 2) for name in draw.sample(documents, 8)}
    return run, judgments


@pytest.mark.parametrize("seed", range(5))
def test_p_mrr_equals_mteb_on_random_runs_with_ties(seed: int) -> None:
    from mteb._evaluators.retrieval_metrics import calculate_pmrr

    original, _ = random_runs(seed)
    changed, _ = random_runs(seed + 100)
    draw = random.Random(seed)
    moved = {query: draw.sample([f"d{n}" for n in range(30)], 3) for query in original}
    ours = p_mrr(
        p_mrr_by_query(
            {
                query: [(rank_of(d, original[query]), rank_of(d, changed[query])) for d in names]
                for query, names in moved.items()
            }
        )
    )
    theirs = calculate_pmrr(
        {f"{query}-og": scores for query, scores in original.items()},
        {f"{query}-changed": scores for query, scores in changed.items()},
        moved,
    )
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_rank_is_the_reciprocal_of_pytrec_evals(seed: int) -> None:
    run, _ = random_runs(seed)
    for query, scores in run.items():
        for document in scores:
            evaluator = pytrec_eval.RelevanceEvaluator({query: {document: 1}}, {"recip_rank"})
            theirs = evaluator.evaluate({query: scores})[query]["recip_rank"]
            assert rank_of(document, scores) == round(1 / theirs)


def naive_measures(scores: dict[str, float], judged: dict[str, int]) -> dict[str, float]:
    """MAP, MRR, nDCG@10 and Recall@10 along the order that the convention for ties gives."""
    order = sorted(scores, key=lambda name: (scores[name], name), reverse=True)
    right = [name for name, grade in judged.items() if grade > 0]
    places = [place for place, name in enumerate(order, 1) if name in right]
    gain = sum(judged.get(name, 0) / np.log2(1 + n) for n, name in enumerate(order[:10], 1))
    grades = sorted(judged.values(), reverse=True)[:10]
    best = sum(grade / np.log2(1 + n) for n, grade in enumerate(grades, 1))
    return {
        "map": sum(n / place for n, place in enumerate(places, 1)) / len(right),
        "mrr": 1 / places[0] if places else 0.0,
        "ndcg@10": gain / best,
        "recall@10": sum(place <= 10 for place in places) / len(right),
    }


@pytest.mark.parametrize("seed", range(5))
def test_measures_equal_naive_loops_on_random_runs_with_ties(seed: int) -> None:
    run, judgments = random_runs(seed)
    found = measure(run, judgments)
    assert found
    for query, values in found.items():
        wanted = naive_measures(run[query], judgments[query])
        assert {name: values[name] for name in wanted} == pytest.approx(wanted, abs=1e-9)


def test_measures_by_hand() -> None:
    # right documents at ranks 1 and 3: MAP = (1/1 + 2/3)/2 = 5/6, MRR = 1
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    found = measure(run, {"q": {"a": 1, "c": 1}})["q"]
    assert found["map"] == pytest.approx(5 / 6) and found["mrr"] == 1.0
    ideal, ours = 1 + 1 / np.log2(3), 1 + 1 / np.log2(4)
    assert found["ndcg@5"] == pytest.approx(ours / ideal)


def test_a_query_missing_from_the_run_scores_nothing_and_one_without_right_documents_is_out() -> (
    None
):
    found = measure({"a": {"x": 1.0}}, {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 0}})
    assert set(found) == {"a", "b"} and found["b"]["map"] == 0.0
    assert average(found)["map"] == 0.5 and average({})["map"] is None


@pytest.mark.parametrize("depth", [3, 40])
def test_search_is_exact_also_where_scores_tie(depth: int) -> None:
    draw = np.random.default_rng(7)
    corpus = draw.integers(-1, 2, size=(40, 3)).astype(np.float32)
    questions = draw.integers(-1, 2, size=(9, 3)).astype(np.float32)
    ids = [f"d{number}" for number in draw.permutation(40)]
    found = search(questions, corpus, ids, depth=depth, ranked={2: ids[:5]})
    for place, question in enumerate(questions):
        scores = {name: float(vector @ question) for name, vector in zip(ids, corpus, strict=True)}
        ordered = sorted(scores, key=lambda name: (scores[name], name), reverse=True)
        assert list(found.best[place]) == ordered[:depth]
        if place == 2:
            assert found.ranks[2] == {name: rank_of(name, scores) for name in ids[:5]}
