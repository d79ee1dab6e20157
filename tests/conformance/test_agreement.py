"""The coefficients of a study, computed by others from its judgments."""

from collections import defaultdict
from typing import Any

import irrCAC.raw
import krippendorff
import numpy as np
import pandas
import pytest
from statsmodels.stats import inter_rater


@pytest.fixture(scope="module")
def table(printed: Any) -> pandas.DataFrame:
    """A row an item, a column a judge, a cell a label."""
    rows = printed("judgments")["data"]
    found = pandas.DataFrame(rows).pivot(index="item_id", columns="judge", values="choice")
    assert found.shape == (90, 2) and found.notna().all().all()
    return found


def test_cohens_kappa_by_statsmodels(table: pandas.DataFrame, printed: Any) -> None:
    labels = sorted(set(table.to_numpy().ravel()))
    counts = pandas.crosstab(table.iloc[:, 0], table.iloc[:, 1]).reindex(
        index=labels, columns=labels, fill_value=0
    )
    theirs = inter_rater.cohens_kappa(counts.to_numpy())
    (ours,) = printed("agreement")["pairs"]
    assert ours["kappa"] == pytest.approx(theirs.kappa, abs=1e-12)
    assert ours["standard_error"] == pytest.approx(theirs.std_kappa, abs=1e-12)


def alphas(found: Any) -> dict[str, float]:
    """Every value in the report that says it is Krippendorff's alpha, by its path."""
    values: dict[str, float] = defaultdict(float)

    def walk(each: Any, path: str) -> None:
        if isinstance(each, dict):
            if each.get("coefficient") == "krippendorff_alpha" and each.get("value") is not None:
                values[path] = each["value"]
            for name, inner in each.items():
                walk(inner, f"{path}/{name}")
        elif isinstance(each, list):
            for number, inner in enumerate(each):
                walk(inner, f"{path}/{number}")

    walk(found, "")
    return values


def test_alpha_by_krippendorff_and_irrcac(table: pandas.DataFrame, printed: Any) -> None:
    labels = sorted(set(table.to_numpy().ravel()))
    numbers = table.map(labels.index).to_numpy().T
    by_krippendorff = krippendorff.alpha(
        numbers, level_of_measurement="nominal", value_domain=range(len(labels))
    )
    by_irrcac = irrCAC.raw.CAC(table).krippendorff()["est"]["coefficient_value"]
    assert by_irrcac == pytest.approx(by_krippendorff, abs=1e-4)  # it rounds to five digits
    ours = printed("agreement")["all_judges"]["krippendorff_alpha"]["value"]
    assert ours == pytest.approx(by_krippendorff, abs=1e-12)
    assert np.isfinite(ours)
