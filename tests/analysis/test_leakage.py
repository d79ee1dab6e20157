"""The leakage check finds what is planted, and chance where texts are exchangeable."""

import random
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from analysis.text import leakage
from analysis.text.leakage import (
    MAX_PAIRS,
    MIN_PAIRS,
    LabelledText,
    assign_folds,
    compare_texts,
    leakage_report,
    sampled_pairs,
    within_fold_auc,
)

WORDS = [f"{first}{second}" for first in ("ba", "do", "ke", "li", "mu") for second in "nrstvz"]


def made_up(chance: random.Random, length: int = 30) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(length))


def texts_of(pairs: int, planted: str = "", seed: int = 1) -> list[LabelledText]:
    """Exchangeable texts, two a pair about a subject of its own; negatives hold what is planted."""
    chance = random.Random(seed)
    found = []
    for number in range(pairs):
        subject = f"subject{number} " * 5
        found.append(LabelledText(f"q{number}", subject + made_up(chance), False))
        found.append(LabelledText(f"q{number}", subject + planted + made_up(chance), True))
    return found


def test_a_planted_phrase_is_found_and_named() -> None:
    found = compare_texts(texts_of(60, "as an important note "), resamples=200)
    assert found["auc"] >= 0.9 and found["interval"][0] > 0.8
    assert any("important" in feature for feature in found["features"]["negative"])
    assert (found["pairs"], found["negatives"], found["positives"]) == (60, 60, 60)


def test_a_planted_length_is_found_by_length_alone() -> None:
    chance = random.Random(3)
    texts = [
        LabelledText(f"q{number}", made_up(chance, 30 + 15 * side), bool(side))
        for number in range(60)
        for side in (0, 1)
    ]
    found = compare_texts(texts, resamples=200)
    assert found["length_auc"] > 0.99 and found["auc"] >= 0.9
    shorter = [LabelledText(one.pair, one.text, not one.negative) for one in texts]
    assert compare_texts(shorter, resamples=0)["length_auc"] == pytest.approx(found["length_auc"])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_exchangeable_texts_are_at_chance_within_the_interval(seed: int) -> None:
    found = compare_texts(texts_of(80, seed=seed), seed=seed, resamples=300)
    low, high = found["interval"]
    assert low <= 0.5 <= high and abs(found["auc"] - 0.5) < 0.15


def test_no_pair_is_in_two_folds_and_no_classifier_sees_the_pair_it_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = texts_of(25)
    trained: list[set[str]] = []
    fit = leakage._fit

    def watched(counted: Any, labels: np.ndarray, rows: np.ndarray) -> object:
        trained.append({texts[row].pair for row in rows})
        return fit(counted, labels, rows)

    monkeypatch.setattr(leakage, "_fit", watched)
    compare_texts(texts, resamples=0)
    folds = assign_folds([one.pair for one in texts], seed=0)
    for fold, seen in enumerate(trained[: leakage.FOLDS]):
        held_out = {pair for pair, mine in folds.items() if mine == fold}
        assert held_out and not held_out & seen and held_out | seen == set(folds)


def test_the_auc_is_scikit_learns_in_one_fold_ties_included() -> None:
    chance = np.random.default_rng(0)
    scores, labels = chance.integers(0, 6, 200).astype(float), chance.random(200) < 0.4
    ours = within_fold_auc(scores, labels, np.zeros(200))
    assert ours == pytest.approx(roc_auc_score(labels, scores))


def test_texts_of_different_folds_are_not_compared() -> None:
    scores = np.array([1.0, 2.0, 11.0, 12.0])  # the second fold's scale is another
    labels, folds = np.array([False, True, False, True]), np.array([0, 0, 1, 1])
    assert within_fold_auc(scores, labels, folds) == 1.0


def test_weights_count_a_text_so_many_times() -> None:
    scores, labels = np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
    weighted = within_fold_auc(scores, labels, np.zeros(3), np.array([3.0, 1.0, 1.0]))
    assert weighted == pytest.approx(1 / 4)  # of 3 + 1 negatives one is above the positive


def test_a_text_shared_by_two_groups_of_a_pair_counts_once_and_too_few_pairs_say_so() -> None:
    texts = texts_of(MIN_PAIRS - 1)
    found = compare_texts([*texts, *texts])
    assert found["positives"] == MIN_PAIRS - 1 and found["auc"] is None
    assert "at least 20 are needed" in found["reason"]


def test_a_large_run_is_sampled_by_pairs_the_same_each_time() -> None:
    texts = [
        LabelledText(f"q{number}", str(number), side)
        for number in range(MAX_PAIRS + 50)
        for side in (False, True)
    ]
    chosen = sampled_pairs(texts, seed=4)
    assert len(chosen) == 2 * MAX_PAIRS and chosen == sampled_pairs(texts, seed=4)
    assert sampled_pairs([LabelledText("q", "only one side", True)], seed=0) == []


def test_the_report_names_what_leaks() -> None:
    report = leakage_report(
        {"P1- / P+": texts_of(40, "without question "), "I- / I+": texts_of(40)}, resamples=50
    )
    assert report["leaks"] == ["P1- / P+"]


def test_counting_once_gives_the_scores_of_a_pipeline_fitted_in_each_fold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    monkeypatch.setattr(leakage, "MAX_FEATURES", 300)  # so that some are left out
    chance = random.Random(5)
    texts = [made_up(chance, chance.randint(4, 40)) for _ in range(120)]
    labels = np.array([number % 3 == 0 for number in range(120)])
    rows, others = np.arange(0, 90), np.arange(90, 120)
    lengths = FunctionTransformer(
        lambda some: np.log1p([[len(text), len(text.split())] for text in some])
    )
    oracle = make_pipeline(
        make_union(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=300),
            TfidfVectorizer(
                analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, max_features=300
            ),
            make_pipeline(lengths, StandardScaler()),
        ),
        LogisticRegression(class_weight="balanced", solver="liblinear", random_state=0),
    ).fit([texts[row] for row in rows], labels[rows])
    model, _, features = leakage._fit(leakage._Counted.of(texts), labels, rows)
    expected = oracle.decision_function([texts[row] for row in others])
    np.testing.assert_allclose(model.decision_function(features(others)), expected, rtol=1e-9)
