"""Dawid and Skene's estimates: equal to crowd-kit, to the paper's patients, and to the truth."""

import re

import numpy as np
import pandas as pd
import pytest
from crowdkit.aggregation import DawidSkene
from hypothesis import given
from hypothesis import strategies as st

from analysis.agreement.answers import Decision
from analysis.study.dawid_skene import (
    FEW_ITEMS,
    TWO_JUDGES,
    _p_of,
    consensus_rows,
    dawid_skene,
    judge_quality,
)
from curation.judging.consensus import outlier_sentences

LABELS = ("a", "b", "c")


def simulated(
    accuracies: dict[str, float], items: int, seed: int, *, gaps: float = 0.0
) -> tuple[list[Decision], list[str]]:
    generator = np.random.default_rng(seed)
    truth = [LABELS[t] for t in generator.integers(0, 3, items)]
    decisions = []
    for name, accuracy in accuracies.items():
        for item, right in enumerate(truth):
            if generator.random() < gaps:
                continue
            others = [label for label in LABELS if label != right]
            label = right if generator.random() < accuracy else str(generator.choice(others))
            decisions.append(Decision(item, name, label))
    return decisions, truth


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")  # of crowd-kit
@pytest.mark.parametrize("seed", [0, 1])
def test_without_smoothing_it_is_crowd_kits_estimate(seed: int) -> None:
    people = {"ada": 0.9, "bob": 0.75, "cas": 0.6, "dan": 0.85}
    decisions, _ = simulated(people, 300, seed, gaps=0.2)  # crowd-kit bounds cells of 0
    frame = pd.DataFrame([(d.item, d.judge, d.label) for d in decisions])
    frame.columns = pd.Index(["task", "worker", "label"])
    theirs = DawidSkene(n_iter=400, tol=1e-10).fit(frame)
    ours = dawid_skene(decisions, smoothing=0, iterations=3000, tolerance=1e-8)
    probabilities = theirs.probas_.loc[ours.answers.items, ours.answers.labels].to_numpy()
    assert np.abs(ours.probability - probabilities).max() < 2e-3
    for place, judge in enumerate(ours.answers.judges):
        # theirs: rows are (worker, observed label), columns true labels
        errors = theirs.errors_.loc[judge.name].loc[ours.answers.labels, ours.answers.labels]
        assert np.abs(ours.confusion[place] - errors.to_numpy().T).max() < 2e-3


def test_it_finds_who_is_right_where_the_majority_is_wrong() -> None:
    """Two careless judges outvote a careful one on many items; EM weighs them by their errors."""
    people = {"careful": 0.97, "c1": 0.55, "c2": 0.55, "c3": 0.55}
    decisions, truth = simulated(people, 600, 4)
    rows = consensus_rows(dawid_skene(decisions))
    right = np.mean([row["label"] == truth[row["item"]] for row in rows])
    majority = np.mean(
        [max(sorted(row["votes"]), key=row["votes"].get) == truth[row["item"]] for row in rows]
    )
    assert right > 0.93 > majority + 0.05


def test_probabilities_are_calibrated_about() -> None:
    decisions, truth = simulated(dict.fromkeys("pqrs", 0.7), 2000, 5)
    rows = consensus_rows(dawid_skene(decisions))
    unsure = [row for row in rows if 0.6 < row["probability"] < 0.9]
    share = np.mean([row["label"] == truth[row["item"]] for row in unsure])
    assert abs(share - np.mean([row["probability"] for row in unsure])) < 0.06


def test_the_outlier_is_named_with_what_they_do_wrong() -> None:
    decisions, truth = simulated({"ada": 0.9, "bob": 0.9, "cas": 0.9}, 150, 6)
    # dan is as good as the others, but answers "b" to most items of kind c
    for item, right in enumerate(truth):
        label = "b" if right == "c" and item % 5 else right
        decisions.append(Decision(item, "dan", label))
    rows = {
        row["judge"]: row for row in judge_quality(dawid_skene(decisions), dict(enumerate(truth)))
    }
    assert [name for name, row in rows.items() if row["outlier"]] == ["dan"]
    assert (rows["dan"]["worst"], rows["dan"]["instead"]) == ("c", "b")
    assert rows["dan"]["worst_accuracy"] < 0.4 < rows["dan"]["worst_others"]
    (sentence,) = outlier_sentences({"judges": list(rows.values())})
    share = r"\d+\.\d% \(\d+\.\d% to \d+\.\d%\)"  # none without its interval
    first = rf"dan is right on {share} of 150 items where the others are on {share};"
    assert re.match(first, sentence)
    assert re.search(rf"most of all on c items \({share} against {share}\), where", sentence)


def test_among_equals_there_is_rarely_an_outlier() -> None:
    found = 0
    for seed in range(40):
        decisions, _ = simulated(dict.fromkeys("pqrst", 0.8), 60, 100 + seed)
        found += any(row["outlier"] for row in judge_quality(dawid_skene(decisions)))
    assert found <= 5  # 5 % of 40 is 2; the test is two-sided and Holm's


def test_hard_items_are_held_against_nobody() -> None:
    """eve judges only the half on which everybody errs more."""
    easy, _ = simulated(dict.fromkeys("pqr", 0.95), 80, 7)
    hard, _ = simulated(dict.fromkeys("pqrs", 0.6), 80, 8)
    decisions = easy + [
        Decision(100 + int(str(d.item)), "eve" if d.judge == "s" else d.judge, d.label)
        for d in hard
    ]
    rows = {row["judge"]: row for row in judge_quality(dawid_skene(decisions))}
    assert rows["eve"]["accuracy"] < 0.8 and not rows["eve"]["outlier"]


def test_two_judges_and_few_items_have_a_reason_and_no_number() -> None:
    decisions, _ = simulated({"ada": 0.9, "bob": 0.5}, 40, 9)
    assert {row["reason"] for row in judge_quality(dawid_skene(decisions))} == {TWO_JUDGES}
    few, _ = simulated(dict.fromkeys("pqr", 0.8), 6, 9)
    assert {row["reason"] for row in judge_quality(dawid_skene(few))} == {FEW_ITEMS}


def test_one_answer_makes_no_judge_perfect() -> None:
    decisions, _ = simulated(dict.fromkeys("pqr", 0.8), 60, 10)
    consensus = dawid_skene([*decisions, Decision(0, "new", decisions[0].label)])
    new = [judge.name for judge in consensus.answers.judges].index("new")
    assert consensus.confusion[new].max() < 0.9


def test_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no decision"):
        dawid_skene([])


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from("pqr"), st.sampled_from(LABELS)),
        min_size=1,
        max_size=30,
    )
)
def test_whatever_the_answers_probabilities_sum_to_one(
    given_answers: list[tuple[int, str, str]],
) -> None:
    consensus = dawid_skene(Decision(*each) for each in given_answers)
    assert np.allclose(consensus.probability.sum(axis=1), 1)
    assert np.allclose(consensus.confusion.sum(axis=2), 1)
    assert np.isfinite(consensus.without_each()).all()


def test_a_judge_who_is_always_below_the_others_alike_is_an_outlier_despite_zero_spread() -> None:
    """Ten items, every difference -0.5: the sign test gives 2 · 0.5¹⁰ where t divides by 0."""
    assert _p_of(-0.5, 0.0, 10) == pytest.approx(2 / 1024)
    assert _p_of(-0.5, 1e-17, 10) == pytest.approx(2 / 1024)
    assert _p_of(0.0, 0.0, 10) == 1.0
