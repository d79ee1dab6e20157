"""The leakage check finds what is planted, and chance where texts are exchangeable."""

import random
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from analysis.figures.means import share_interval
from analysis.text import leakage
from analysis.text.leakage import (
    MAX_PAIRS,
    MIN_PAIRS,
    LabelledText,
    _interval,
    clustered_auc,
    compare_texts,
    fold_of,
    kernel_logistic,
    leakage_report,
    permuted_labels,
    sampled_pairs,
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
    found = compare_texts(texts_of(60, "as an important note "), permutations=50)
    assert found["auc"] >= 0.9 and found["interval"][0] > 0.8
    assert any("important" in feature for feature in found["features"]["negative"])
    assert (found["pairs"], found["negatives"], found["positives"]) == (60, 60, 60)


def test_an_auc_of_one_has_an_interval_that_is_no_point() -> None:
    low, high = compare_texts(texts_of(30, "as an important note " * 5), permutations=50)[
        "interval"
    ]
    assert low < 0.95 and high == pytest.approx(1)


def test_a_planted_length_is_found_by_length_alone() -> None:
    chance = random.Random(3)
    texts = [
        LabelledText(f"q{number}", made_up(chance, 30 + 15 * side), bool(side))
        for number in range(60)
        for side in (0, 1)
    ]
    found = compare_texts(texts, permutations=50)
    assert found["length_auc"] > 0.99 and found["auc"] >= 0.9
    shorter = [LabelledText(one.pair, one.text, not one.negative) for one in texts]
    assert compare_texts(shorter, permutations=0)["length_auc"] == pytest.approx(
        found["length_auc"]
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_exchangeable_texts_are_at_chance_within_the_interval(seed: int) -> None:
    found = compare_texts(texts_of(80, seed=seed), seed=seed, permutations=100)
    low, high = found["interval"]
    assert low <= 0.5 <= high and abs(found["auc"] - 0.5) < 0.15


def test_no_pair_is_in_two_folds_and_no_classifier_sees_the_pair_it_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = sampled_pairs(texts_of(25), seed=0)
    trained: list[set[str]] = []
    fit = leakage._fit

    def watched(counted: Any, labels: np.ndarray, rows: np.ndarray) -> object:
        trained.append({texts[row].pair for row in rows})
        return fit(counted, labels, rows)

    monkeypatch.setattr(leakage, "_fit", watched)
    compare_texts(texts, permutations=0)
    folds = {one.pair: fold_of(one.pair, seed=0) for one in texts}
    for fold, seen in enumerate(trained[: leakage.FOLDS]):
        held_out = {pair for pair, mine in folds.items() if mine == fold}
        assert held_out and not held_out & seen and held_out | seen == set(folds)


def test_the_auc_is_scikit_learns_in_one_fold_ties_included() -> None:
    chance = np.random.default_rng(0)
    scores, labels = chance.integers(0, 6, 200).astype(float), chance.random(200) < 0.4
    ours, _ = clustered_auc(scores, labels, np.zeros(200), np.arange(200))
    assert ours == pytest.approx(roc_auc_score(labels, scores))


def test_texts_of_different_folds_are_not_compared() -> None:
    scores = np.array([1.0, 2.0, 11.0, 12.0])  # the second fold's scale is another
    labels, folds = np.array([False, True, False, True]), np.array([0, 0, 1, 1])
    assert clustered_auc(scores, labels, folds, folds)[0] == 1.0


def test_the_variance_is_that_of_resampled_pairs() -> None:
    chance = np.random.default_rng(1)
    clusters = np.repeat(np.arange(150), 2)
    labels, folds = np.tile([False, True], 150), np.repeat(np.arange(150) % 3, 2)
    scores = chance.normal(size=300) + 0.7 * labels + np.repeat(chance.normal(size=150), 2)
    _, variance = clustered_auc(scores, labels, folds, clusters)
    found = []
    for _ in range(1000):
        chosen = chance.integers(0, 150, 150)
        rows = np.stack([2 * chosen, 2 * chosen + 1], axis=1).ravel()
        found.append(
            clustered_auc(scores[rows], labels[rows], folds[rows], np.repeat(np.arange(150), 2))[0]
        )
    assert variance == pytest.approx(float(np.var(found)), rel=0.15)


def test_labels_are_permuted_within_pairs_alone() -> None:
    clusters = np.array([0, 1, 0, 2, 1, 1, 2])
    labels = np.array([True, True, False, False, True, False, True])
    found = permuted_labels(labels, clusters, 400, seed=0)
    for pair in range(3):
        assert (found[:, clusters == pair].sum(axis=1) == labels[clusters == pair].sum()).all()
    np.testing.assert_allclose(
        found.mean(axis=0), [0.5, 2 / 3, 0.5, 0.5, 2 / 3, 2 / 3, 0.5], atol=0.1
    )


def test_many_labellings_at_once_are_fitted_as_scikit_learn_fits_one() -> None:
    from sklearn.linear_model import LogisticRegression

    chance = np.random.default_rng(2)
    features = chance.normal(size=(90, 12))
    labels = permuted_labels(np.arange(90) % 3 == 0, np.arange(90) // 3, 4, seed=1)
    weights = kernel_logistic(features @ features.T + 1, labels)
    for mine, each in zip(weights, labels, strict=True):
        oracle = LogisticRegression(class_weight="balanced", solver="liblinear", tol=1e-10)
        expected = oracle.fit(features, each).decision_function(features)
        np.testing.assert_allclose(mine @ (features @ features.T + 1), expected, atol=1e-3)


@pytest.mark.long
def test_the_interval_of_texts_without_a_leak_holds_chance_in_at_least_93_of_100_sets() -> None:
    """With the classifiers as they are, 80 to 90 of 100 did; all designs: docs/intervals.md."""
    held = 0
    for seed in range(100):
        chance = random.Random(seed)
        texts = [
            LabelledText(f"{seed} {number}", made_up(chance), side)
            for number in range(60)
            for side in (False, True)
        ]
        low, high = compare_texts(texts, permutations=100)["interval"]
        held += low <= 0.5 <= high
    assert held >= 93


def test_leaving_out_some_pairs_moves_a_figure_no_more_than_their_texts_do() -> None:
    """A release leaves out what a reviewer rejected: its card and the run's page must agree."""
    texts = texts_of(1200)  # of which 400 are sampled
    whole = compare_texts(texts, permutations=0)
    for out in (3, 500):
        some = [one for one in texts if int(one.pair[1:]) not in (out, out + 1, out + 2)]
        assert abs(compare_texts(some, permutations=0)["auc"] - whole["auc"]) < 0.01


def test_the_same_texts_in_another_order_give_the_same_report() -> None:
    texts = texts_of(40)
    mixed = random.Random(7).sample(texts, len(texts))
    assert compare_texts(mixed, permutations=20) == compare_texts(texts, permutations=20)


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
        {"P1- / P+": texts_of(40, "without question "), "I- / I+": texts_of(40)}, permutations=20
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


def test_an_interval_without_chance_counts_less_training_and_never_takes_chance_in() -> None:
    """By hand: A 0.75, B 0.0027, T 0.0045: B / 0.1875 = 0.0144, exp(-0.6745^2) / 0.1875 = 3.384."""
    again = np.array([[0.5 + 0.05, 0.0005], [0.5 - 0.05, 0.0005]])  # variance 0.005, less 0.0005
    low, high = _interval(0.75, 0.0027, again, 60)
    assert [low, high] == pytest.approx(
        share_interval(0.75, 1 / (0.0144 + 3.384 * 0.0045)), abs=1e-4
    )
    wide = share_interval(0.75, 1 / (0.0144 + 4 * 0.0045))
    assert 0.5 < wide[0] < low and high < wide[1]
    at_chance = share_interval(0.55, 1 / (0.0027 / (0.55 * 0.45) + 4 * 0.0045))
    assert _interval(0.55, 0.0027, again, 60) == pytest.approx(at_chance)
    assert _interval(1.0, 0.0, again, 60)[1] == 1.0
