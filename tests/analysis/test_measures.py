import re
import warnings

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from statsmodels.stats.inter_rater import fleiss_kappa
from streamlit.testing.v1 import AppTest

from analysis.agreement import measures
from analysis.agreement.agreement import Decision, agreement_report
from analysis.agreement.measures import AgreementMeasure, measure_values, register

# Fleiss 1971: 30 patients, 6 psychiatrists, how many chose each of 5 diagnoses.
FLEISS_ROWS = (
    "00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 "
    "10050 11040 03300 10050 02031 00501 30012 51000 02040 10203 "
    "00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"
)
FLEISS = np.array([[int(digit) for digit in row] for row in FLEISS_ROWS.split()])
# Krippendorff 2011: 4 observers, 12 units, 5 values, gaps.
KRIPPENDORFF = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]


def of(counts: np.ndarray) -> dict[str, float]:
    counts = counts[counts.sum(axis=1) > 0]
    in_use = int((counts.sum(axis=0) > 0).sum())
    found = measure_values(counts, np.ones((1, len(counts))), in_use)
    return {name: float(values[0]) for name, values in found.items()}


def ordered_of(counts: np.ndarray) -> float:
    """Ordinal alpha of counts of labels in their order."""
    counts = counts[counts.sum(axis=1) > 0]
    weights, names = np.ones((1, len(counts))), measures.measure_names(is_ordered=True)
    assert names[0] == "ordinal_alpha"
    return float(measure_values(counts, weights, 2, names)["ordinal_alpha"][0])


def counts_of(raters: list[str], labels: str) -> np.ndarray:
    units = map("".join, zip(*raters, strict=True))
    return np.array([[unit.count(label) for label in labels] for unit in units])


def test_the_published_example_of_fleiss() -> None:
    assert of(FLEISS)["fleiss_kappa"] == pytest.approx(0.4302, abs=5e-5)


def test_the_published_example_of_krippendorff_and_the_values_of_irrcac() -> None:
    found = of(counts_of(KRIPPENDORFF, "12345"))
    assert found["krippendorff_alpha"] == pytest.approx(0.7434, abs=5e-5)
    # irrCAC's documentation of the same data: Gwet 0.77544, Fleiss 0.76117, raw 0.81818
    assert found["gwet_ac1"] == pytest.approx(0.77544, abs=5e-6)
    assert found["fleiss_kappa"] == pytest.approx(0.76117, abs=5e-6)
    assert found["agreement"] == pytest.approx(0.81818, abs=5e-6)
    # Krippendorff 2011: ordinal 0.815
    assert ordered_of(counts_of(KRIPPENDORFF, "12345")) == pytest.approx(0.815, abs=5e-4)


@pytest.mark.parametrize("seed", range(8))
def test_ordinal_alpha_is_that_of_krippendorffs_package(seed: int) -> None:
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, 4, size=40)
    raters = np.clip(truth + generator.integers(-1, 2, size=(3, 40)), 0, 3).astype(float)
    raters[generator.random(raters.shape) < 0.2] = np.nan
    counts = np.stack([(raters == label).sum(axis=0) for label in range(4)], axis=1)
    expected = krippendorff.alpha(
        reliability_data=raters, level_of_measurement="ordinal", value_domain=[0.0, 1.0, 2.0, 3.0]
    )
    assert ordered_of(counts) == pytest.approx(expected)


# grades of twelve items by four judges, with gaps
FOUR = (
    (2, None, 0, 2, 0, 1, 1, 2, None, 0, 2, 0),
    (1, 3, 0, 3, 0, 3, None, 2, None, 0, 1, 1),
    (2, 3, 0, 2, 2, 2, 3, 0, 3, 1, None, 0),
    (2, 3, 0, None, 1, 1, 2, 2, 3, 1, 0, 0),
)


def weighted_of(counts: np.ndarray, values: list[float] | None = None) -> dict[str, float]:
    counts = counts[counts.sum(axis=1) > 0]
    names, weights = measures.measure_names(is_ordered=True), np.ones((1, len(counts)))
    found = measure_values(counts, weights, 2, names, values or ())
    return {name: float(each[0]) for name, each in found.items()}


def weighted_by_loops(rows: list[list[float]], power: int) -> float:
    """Gwet 2014, 3.4, by plain loops over pairs of answers: 1 - D_o / D_e."""
    values = sorted({one for row in rows for one in row})
    observed = [
        sum(abs(a - b) ** power for i, a in enumerate(row) for j, b in enumerate(row) if i != j)
        / (len(row) * (len(row) - 1))
        for row in rows
        if len(row) > 1
    ]
    share = {one: sum(row.count(one) / len(row) for row in rows) / len(rows) for one in values}
    expected = sum(share[a] * share[b] * abs(a - b) ** power for a in values for b in values)
    return 1 - sum(observed) / len(observed) / expected


def test_weighted_fleiss_kappa_of_a_team_is_that_of_irrcac_and_of_plain_loops() -> None:
    rows = [[one for one in item if one is not None] for item in zip(*FOUR, strict=True)]
    counts = np.array([[row.count(label) for label in range(4)] for row in rows])
    found = weighted_of(counts)
    # irrCAC 0.4.4 of the same answers: CAC(…, weights="quadratic").fleiss(), and linear
    assert found["weighted_fleiss_kappa"] == pytest.approx(0.61285, abs=5e-6)
    assert found["linear_weighted_fleiss_kappa"] == pytest.approx(0.45247, abs=5e-6)
    assert of(counts)["fleiss_kappa"] == pytest.approx(0.27395, abs=5e-6)
    # by their values: grades 0, 1, 2 and 7 lie as far apart as their numbers do
    values = [0.0, 1.0, 2.0, 7.0]
    apart = [[values[one] for one in row] for row in rows]
    found = weighted_of(counts, values)
    assert found["weighted_fleiss_kappa"] == pytest.approx(weighted_by_loops(apart, 2))
    assert found["linear_weighted_fleiss_kappa"] == pytest.approx(weighted_by_loops(apart, 1))


def test_weights_change_nothing_where_there_are_two_grades() -> None:
    counts = np.array([[2, 1], [3, 0], [0, 3], [1, 1], [0, 2]])
    found = weighted_of(counts)
    assert found["weighted_fleiss_kappa"] == pytest.approx(of(counts)["fleiss_kappa"])
    assert found["linear_weighted_fleiss_kappa"] == pytest.approx(of(counts)["fleiss_kappa"])
    assert np.isnan(weighted_of(np.array([[3, 0], [2, 0]]))["weighted_fleiss_kappa"])


def test_measures_of_an_order_are_left_out_where_labels_are_only_names() -> None:
    assert "ordinal_alpha" not in of(FLEISS)


def test_ac1_worked_by_hand() -> None:
    # four items, two judges: aa, aa, aa, ab. p_o = 3/4; π = 7/8, 1/8; q = 2:
    # e = 7/64 + 7/64 = 7/32; AC1 = (3/4 - 7/32)/(25/32) = 17/25.
    # Fleiss: e = 50/64; kappa = (48 - 50)/14 = -1/7.
    found = of(np.array([[2, 0], [2, 0], [2, 0], [1, 1]]))
    assert found["gwet_ac1"] == pytest.approx(17 / 25)
    assert found["fleiss_kappa"] == pytest.approx(-1 / 7)
    # Krippendorff: (8 - 1)·2 / (64 - 49 - 1) = 1: alpha = 0
    assert found["krippendorff_alpha"] == pytest.approx(0.0)


def test_one_label_throughout_is_undefined() -> None:
    found = of(np.array([[3, 0], [2, 0]]))
    assert found["agreement"] == 1.0
    assert np.isnan([found["fleiss_kappa"], found["krippendorff_alpha"], found["gwet_ac1"]]).all()


complete = hnp.arrays(
    np.int64, st.tuples(st.integers(2, 12), st.integers(2, 5)), elements=st.integers(0, 3)
)  # items × judges → label


def label_counts(codes: np.ndarray, labels: int = 4) -> np.ndarray:
    return np.stack([(codes == label).sum(axis=1) for label in range(labels)], axis=1)


@given(complete)
def test_fleiss_is_that_of_statsmodels(codes: np.ndarray) -> None:
    counts = label_counts(codes)
    with np.errstate(all="ignore"):
        expected = fleiss_kappa(counts)
    ours = of(counts)["fleiss_kappa"]
    if len(np.unique(codes)) == 1:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(expected, abs=1e-12)


@given(complete.flatmap(lambda codes: st.tuples(st.just(codes), hnp.arrays(np.bool_, codes.shape))))
def test_alpha_with_gaps_is_that_of_the_package_krippendorff(drawn) -> None:
    codes, gaps = drawn
    with_gaps = np.where(gaps, np.nan, codes.astype(float))
    counts = label_counts(with_gaps)
    paired = counts[counts.sum(axis=1) >= 2]
    if not len(paired) or (paired.sum(axis=0) > 0).sum() < 2:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = krippendorff.alpha(
            value_counts=paired, level_of_measurement="nominal", value_domain=range(4)
        )
    assert of(counts)["krippendorff_alpha"] == pytest.approx(expected, abs=1e-12)


@given(complete, st.randoms(use_true_random=False))
def test_order_of_items_judges_and_labels_changes_nothing(codes: np.ndarray, rng) -> None:
    counts = label_counts(codes)
    items, labels = list(range(len(counts))), list(range(4))
    rng.shuffle(items)
    rng.shuffle(labels)
    before, after = of(counts), of(counts[np.ix_(items, labels)])
    assert after == pytest.approx(before, abs=1e-9, nan_ok=True)


def test_weights_stand_for_repeated_items() -> None:
    counts = np.array([[2, 0], [1, 1], [0, 2]])
    weighted = measure_values(counts, np.array([[3, 1, 2]]), 2)
    repeated = of(np.repeat(counts, [3, 1, 2], axis=0))
    for name, values in weighted.items():
        assert values[0] == pytest.approx(repeated[name])


DECISIONS = [
    Decision(item, judge, label)
    for judge, labels in {"ann": "aabbabab", "bob": "aabbabba"}.items()
    for item, label in enumerate(labels)
]


def page_of() -> None:
    """The measures of `DECISIONS` as the page Agreement shows them."""
    from analysis.agreement.agreement import Decision, agreement_report
    from app.agreement.report import draw_measures
    from app.kit.figure import Origin

    labels = {"ann": "aabbabab", "bob": "aabbabba"}
    decisions = [
        Decision(n, who, label) for who, of in labels.items() for n, label in enumerate(of)
    ]
    draw_measures(agreement_report(decisions), Origin("1", None, "inf"))


def test_a_measure_registered_once_is_in_the_report_the_page_and_the_command(
    monkeypatch: pytest.MonkeyPatch, inf, tmp_path
) -> None:
    """Its value is the share of disagreement, 2 of 8 items: one minus raw agreement."""
    added = AgreementMeasure(
        "disagreement",
        "Raw disagreement",
        "Share of pairs of judgments of one item that differ.",
        lambda given: 1 - given.observed,
        (0.0, 1.0),
        "an item with two judgments",
    )
    monkeypatch.setitem(measures.MEASURES, added.name, added)
    found = agreement_report(DECISIONS)["people"]["disagreement"]
    assert found["value"] == 0.25
    low, high = found["interval"]
    assert low < 0.25 < high
    path = tmp_path / "judgments.csv"
    lines = [f"{each.item},{each.judge},{each.label}" for each in DECISIONS]
    path.write_text("\n".join(["item,judge,label", *lines]))
    done = inf("analyze", "agreement", "--judgments", path)
    assert re.search(r"people +Raw disagreement +0\.2500", done.out)
    shown = AppTest.from_function(page_of).run()
    assert not shown.exception
    assert "Raw disagreement" in list(shown.dataframe[-1].value["Measure"])
    assert any("that differ" in caption.value for caption in shown.caption)


def test_a_name_cannot_be_registered_twice() -> None:
    with pytest.raises(ValueError, match="registered already"):
        register(measures.MEASURES["fleiss_kappa"])


def test_every_measure_stays_within_its_bounds_and_says_what_it_needs() -> None:
    counts = np.random.default_rng(0).integers(0, 3, size=(50, 4))
    counts = counts[counts.sum(axis=1) > 0]
    values = measure_values(counts, np.ones((1, len(counts))), 4, list(measures.MEASURES))
    for name, measure in measures.MEASURES.items():
        low, high = measure.bounds
        assert low <= values[name][0] <= high
        assert measure.label and measure.help.endswith(".") and measure.needs
