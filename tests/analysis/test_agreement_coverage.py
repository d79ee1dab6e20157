"""The simulation of docs/intervals.md measures the intervals that the product shows."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from analysis.agreement.agreement import agreement_report
from analysis.agreement.answers import Decision

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "agreement_coverage.py"
# by its path: with bench/ on the path its analysis.py would replace the package
_spec = importlib.util.spec_from_file_location("agreement_coverage", SCRIPT)
assert _spec is not None and _spec.loader is not None
bench = sys.modules["agreement_coverage"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bench)


@pytest.mark.parametrize(("judges", "margins"), [(2, "skewed"), (4, "even"), (3, "even, 3 labels")])
def test_the_simulated_interval_is_that_of_the_report(judges: int, margins: str) -> None:
    counts = bench.answers(bench.Cell(margins, judges, 25, 0.6, seed=3), 1)
    kappas = bench.Kappas(len(bench.MARGINS[margins]), judges)
    items = np.repeat(kappas.patterns, counts[0], axis=0)
    rows = [
        Decision(item, f"judge {judge}", f"label {label}")
        for item, row in enumerate(items)
        for judge, label in enumerate(row)
    ]
    report = agreement_report(rows)
    found = bench.intervals(counts, kappas, 25, 10_000, np.random.default_rng(0))[0]
    if judges == 2:  # with more the headline is alpha
        assert report["human_human"]["interval"] == pytest.approx(found[0], abs=0.02)
    assert report["people"]["fleiss_kappa"]["interval"] == pytest.approx(found[1], abs=0.02)


@pytest.mark.parametrize(
    "cell",
    [
        bench.Cell("skewed", 2, 10, 0.85, seed=4),  # resampling items covered 0.445 here
        bench.Cell("skewed", 2, 15, 0.9, seed=0),  # resampling items covered 0.36 here
        bench.Cell("skewed", 2, 20, 0.2, seed=1),
        bench.Cell("skewed", 5, 30, 0.6, seed=2),
        bench.Cell("even", 3, 50, 0.8, seed=3),
    ],
)
def test_the_interval_holds_kappa_in_nineteen_of_twenty_studies(cell: bench.Cell) -> None:
    covered = bench.coverage(cell, 600)
    error = np.sqrt(0.95 * 0.05 / 600)  # Monte-Carlo; the table has 4,000 simulations per cell
    assert covered.mean_kappa >= 0.94 - 2.5 * error
    assert covered.fleiss >= 0.94 - 2.5 * error
    assert covered.narrowest > 0
    # one label throughout: at n = 10 and 80 % of one label up to 0.8¹⁰ = 0.107 of the studies
    assert covered.refused <= (0.05 if cell.items >= 15 else 0.107)


@pytest.mark.long
@pytest.mark.parametrize("team", [bench.TEAMS[0], bench.TEAMS[4], bench.TEAMS[8]])
def test_alpha_is_right_for_a_team_and_a_mean_of_pairs_is_not(team: bench.Team) -> None:
    """The issue's design, two judges per item with skewed labels, and unequal overlap."""
    found = bench.team_coverage(team, 150)
    error = np.sqrt(0.95 * 0.05 / 150)  # Monte-Carlo; the table has 2,000 studies per design
    assert abs(found.bias["krippendorff_alpha"]) < 0.02  # 150 studies: an error of 0.006
    assert found.pairwise < -0.08
    for name in bench.FIGURES:
        assert 0.94 - 2.5 * error <= found.covered[name] <= 1


@pytest.mark.long
@pytest.mark.parametrize("team", [bench.TEAMS[2], bench.TEAMS[4]])
def test_a_person_with_the_others_is_covered_in_nineteen_of_twenty(team: bench.Team) -> None:
    """By standard errors 0.981 at a truth of 0.04 and 0.940 with two skewed judges of each item."""
    found = bench.team_coverage(team, 250)
    error = np.sqrt(0.95 * 0.05 / (250 * team.judges))  # about as many intervals
    assert 0.945 - 2 * error <= found.covered["rest"] <= 0.965 + 2 * error
