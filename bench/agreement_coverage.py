"""Coverage of the 95 % intervals of kappa, by simulation: the table of docs/intervals.md.

    python bench/agreement_coverage.py [--simulations 4000] [--draws 250] [--workers 2]

Each item has a true label, drawn from the margins; each judge reports it with probability
sqrt(kappa), else draws a label from the margins. Any two judges then have the given kappa. The
interval is that of `analysis.agreement.intervals` (`tests/analysis/test_agreement_coverage.py`
holds both equal), of the mean pairwise Cohen's kappa and of Fleiss' kappa. An interval is refused
only where the judges used one label throughout: kappa is 0/0 there. Seeds are fixed.
"""

import argparse
import itertools
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# A script's own folder comes first on the path: bench/analysis.py would replace the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from analysis.agreement.intervals import (  # noqa: E402
    EXTRA_ITEM,
    all_agree,
    one_alone,
    tail_probability,
)

MARGINS = {
    "even": (0.5, 0.5),
    "skewed": (0.8, 0.2),
    "even, 3 labels": (1 / 3, 1 / 3, 1 / 3),
    "skewed, 3 labels": (0.8, 0.1, 0.1),
}
JUDGES = {"even": (2, 3, 4, 5), "skewed": (2, 3, 4, 5)}
FEW = (2,)  # judges in the cells with three labels: 3⁵ patterns would take hours
ITEMS = (15, 20, 30, 60, 200)
KAPPAS = (0.2, 0.4, 0.6, 0.8, 0.9)
CHUNK = 3_000_000  # weights in memory at once


@dataclass(frozen=True)
class Cell:
    """One row of the table."""

    margins: str
    judges: int
    items: int
    kappa: float
    seed: int


@dataclass(frozen=True)
class Covered:
    """Share of intervals that hold kappa among those shown, and the share refused."""

    cell: Cell
    mean_kappa: float
    fleiss: float
    width: float
    refused: float


class Kappas:
    """Mean pairwise Cohen's and Fleiss' kappa of weighted answer patterns."""

    def __init__(self, labels: int, judges: int) -> None:
        self.labels, self.judges = labels, judges
        self.patterns = np.array(list(itertools.product(range(labels), repeat=judges)))
        self.pairs = list(itertools.combinations(range(judges), 2))
        self.agree = np.stack(
            [self.patterns[:, a] == self.patterns[:, b] for a, b in self.pairs], axis=1
        ).astype(np.float32)
        self.given = np.concatenate(
            [self.patterns[:, [j]] == np.arange(labels) for j in range(judges)], axis=1
        ).astype(np.float32)

    def of(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both kappas of weights (…, patterns); NaN where undefined."""
        shares = weights / weights.sum(axis=-1, keepdims=True)
        observed = shares @ self.agree
        margins = (shares @ self.given).reshape(*shares.shape[:-1], self.judges, self.labels)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = np.stack(
                [(margins[..., a, :] * margins[..., b, :]).sum(axis=-1) for a, b in self.pairs], -1
            )
            pairs = np.where(chance < 1 - 1e-9, (observed - chance) / (1 - chance), np.nan)
            defined = ~np.isnan(pairs)
            mean = np.where(defined, pairs, 0).sum(axis=-1) / defined.sum(axis=-1)
            together = (margins.mean(axis=-2) ** 2).sum(axis=-1)
            fleiss = (observed.mean(axis=-1) - together) / (1 - together)
        return mean, fleiss

    def rows(self, codes: np.ndarray) -> np.ndarray:
        """Places of answer patterns among all patterns."""
        powers = self.labels ** np.arange(self.judges - 1, -1, -1)
        places: np.ndarray = (codes * powers).sum(axis=-1)
        return places


def answers(cell: Cell, simulations: int) -> np.ndarray:
    """Counts of answer patterns, a row per simulation."""
    shares = MARGINS[cell.margins]
    generator = np.random.default_rng(cell.seed)
    size = (simulations, cell.items, cell.judges)
    truth = generator.choice(len(shares), size=(*size[:2], 1), p=shares)
    guess = generator.choice(len(shares), size=size, p=shares)
    given = np.where(generator.random(size) < np.sqrt(cell.kappa), truth, guess)
    kappas = Kappas(len(shares), cell.judges)
    places = kappas.rows(given)
    return np.stack([np.bincount(row, minlength=len(kappas.patterns)) for row in places])


def intervals(
    counts: np.ndarray, kappas: Kappas, items: int, draws: int, generator: np.random.Generator
) -> np.ndarray:
    """Limits of both kappas: (simulations, 2 kappas, 2 limits)."""
    used = (counts @ kappas.given).reshape(len(counts), kappas.judges, kappas.labels).sum(
        axis=1
    ) > 0
    extra = np.zeros((2, *counts.shape), dtype=np.float32)
    for place, row in enumerate(used):
        labels = [int(label) for label in np.flatnonzero(row)]
        if len(labels) < 2:
            continue
        alone = kappas.rows(one_alone(kappas.judges, range(kappas.judges), labels))
        # with two judges either of them "alone" is the same pattern
        np.add.at(extra[0, place], alone, EXTRA_ITEM / len(alone))
        extra[1, place, kappas.rows(all_agree(kappas.judges, labels))] = EXTRA_ITEM / len(labels)
    tail, found = tail_probability(items), np.full((len(counts), 2, 2), np.nan)
    chunk = max(1, CHUNK // (draws * counts.shape[1]))
    for start in range(0, len(counts), chunk):
        block = slice(start, start + chunk)
        shape = (draws, *counts[block].shape)
        known = generator.standard_gamma(counts[block].astype(np.float32), shape, dtype=np.float32)
        for limit, quantile in ((0, tail), (1, 1 - tail)):
            added = generator.standard_gamma(extra[limit, block], shape, dtype=np.float32)
            for which, values in enumerate(kappas.of(known + added)):
                found[block, which, limit] = np.quantile(values, quantile, axis=0)
    return found


def coverage(cell: Cell, simulations: int, draws: int) -> Covered:
    """One cell of the table."""
    kappas = Kappas(len(MARGINS[cell.margins]), cell.judges)
    counts = answers(cell, simulations)
    labels = (counts @ kappas.given).reshape(simulations, cell.judges, -1).sum(axis=1) > 0
    shown = labels.sum(axis=1) > 1
    generator = np.random.default_rng([cell.seed, 1])
    found = intervals(counts[shown], kappas, cell.items, draws, generator)
    holds = (found[..., 0] <= cell.kappa) & (cell.kappa <= found[..., 1])
    width = float((found[:, 0, 1] - found[:, 0, 0]).mean())
    mean, fleiss = holds.mean(axis=0)
    return Covered(cell, float(mean), float(fleiss), width, float(1 - shown.mean()))


def cells() -> list[Cell]:
    """All cells, the costly ones first."""
    every = [
        (margins, judges, items, kappa)
        for margins in MARGINS
        for judges in JUDGES.get(margins, FEW)
        for items in ITEMS
        for kappa in KAPPAS
    ]
    found = [Cell(*cell, seed=seed) for seed, cell in enumerate(every)]
    return sorted(found, key=lambda cell: -(len(MARGINS[cell.margins]) ** cell.judges))


def table(rows: list[Covered], simulations: int) -> str:
    """Markdown: a line per margins, judges and items; kappas across."""
    error = np.sqrt(0.95 * 0.05 / simulations)
    values = np.array([[row.mean_kappa, row.fleiss] for row in rows])
    lines = [
        f"{len(rows)} cells, {simulations:,} simulations each; Monte-Carlo standard error "
        f"{error:.4f}.",
        "",
        "| | least | mean | most |",
        "|---|---:|---:|---:|",
    ]
    for name, column in (("mean pairwise Cohen's kappa", 0), ("Fleiss' kappa", 1)):
        of = values[:, column]
        lines.append(f"| {name} | {of.min():.3f} | {of.mean():.3f} | {of.max():.3f} |")
    counted = [row for row in rows if row.cell.items >= 30 and row.cell.kappa <= 0.8]
    most = max(row.refused for row in counted)
    lines += [
        "",
        f"Refused (one label throughout): at most {most:.3%} of a cell with n ≥ 30 and "
        f"kappa ≤ 0.8; at most {max(row.refused for row in rows):.1%} of any cell.",
        "",
        "Coverage of the mean pairwise kappa / of Fleiss' kappa (mean width; share refused where "
        "it is not 0):",
        "",
        "| margins | judges | n | " + " | ".join(f"kappa {k}" for k in KAPPAS) + " |",
        "|---|---:|---:|" + "---|" * len(KAPPAS),
    ]
    by_cell = {
        (row.cell.margins, row.cell.judges, row.cell.items, row.cell.kappa): row for row in rows
    }
    for margins, judges, items in dict.fromkeys(key[:3] for key in sorted(by_cell)):
        texts = []
        for kappa in KAPPAS:
            row = by_cell[margins, judges, items, kappa]
            refused = f"; {row.refused:.1%}" if row.refused else ""
            texts.append(f"{row.mean_kappa:.3f} / {row.fleiss:.3f} ({row.width:.2f}{refused})")
        lines.append(f"| {margins} | {judges} | {items} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def main() -> None:
    """Simulate every cell and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=2500)
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    started, every = time.perf_counter(), cells()
    with ProcessPoolExecutor(given.workers) as pool:
        rows = list(
            pool.map(
                coverage,
                every,
                itertools.repeat(given.simulations),
                itertools.repeat(given.draws),
            )
        )
    print(table(rows, given.simulations))
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
