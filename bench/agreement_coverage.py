"""Coverage of the 95 % intervals of kappa, by simulation: the table of docs/intervals.md.

    nice python bench/agreement_coverage.py [--simulations 4000] [--workers 1]

Each item has a true label, sampled from the margins; each judge reports it with probability
sqrt(kappa), else samples a label from the margins. Any two judges then have the given kappa. The
interval is that of `analysis.agreement.intervals` (`tests/analysis/test_agreement_coverage.py`
holds both equal), of the mean pairwise Cohen's kappa and of Fleiss' kappa. An interval is refused
only where the judges used one label throughout: kappa is 0/0 there. Seeds are fixed.

Whether a limit lies beyond kappa needs no quantile: the lower limit is at most kappa where at least
the tail's share of posterior draws is. `SCREENING` draws decide the clear cases, `DECIDING` further
ones those within reach of the tail, so that the average simulation takes about 300 draws and the
close ones have the precision of the product's 10,000.
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
FEWEST = 10  # items; with a kappa more: resampling items covered 0.445 at 0.85, skewed
FEWEST_KAPPAS = (0.2, 0.4, 0.6, 0.8, 0.85, 0.9)
CHUNK = 2_000_000  # weights in memory at once
SCREENING, DECIDING = 120, 1500  # posterior draws of every simulation, and of the close ones
CLEAR = 10  # of the screening draws on kappa's far side: with a tail of 0.025 one time in 2,000
WIDTHS, WIDTH_DRAWS = 200, 400  # simulations and draws behind the mean width


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
    narrowest: float
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

    def of(self, weights: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both kappas of weights (…, patterns seen); NaN where undefined."""
        shares = weights / weights.sum(axis=-1, keepdims=True)
        observed = shares @ self.agree[seen]
        margins = (shares @ self.given[seen]).reshape(*shares.shape[:-1], self.judges, self.labels)
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


def extra_items(counts: np.ndarray, kappas: Kappas) -> np.ndarray:
    """What either posterior adds to the counts: (2 limits, simulations, patterns)."""
    given = (counts @ kappas.given).reshape(len(counts), kappas.judges, kappas.labels)
    used = given.sum(axis=1) > 0
    extra = np.zeros((2, *counts.shape), dtype=np.float32)
    for row in np.unique(used, axis=0):
        labels = [int(label) for label in np.flatnonzero(row)]
        if len(labels) < 2:
            continue
        like = np.flatnonzero((used == row).all(axis=1))
        alone = kappas.rows(one_alone(kappas.judges, range(kappas.judges), labels))
        for pattern in alone:  # with two judges either of them "alone" is the same pattern
            extra[0, like, pattern] += EXTRA_ITEM / len(alone)
        for pattern in kappas.rows(all_agree(kappas.judges, labels)):
            extra[1, like, pattern] = EXTRA_ITEM / len(labels)
    return extra


def draw(
    shapes: np.ndarray, kappas: Kappas, draws: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Both kappas of draws from Dirichlet(shapes): (draws, simulations) each."""
    seen = shapes.any(axis=0)  # a pattern that no simulation has needs no draw
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    chunk = max(1, CHUNK // (draws * int(seen.sum())))
    for start in range(0, len(shapes), chunk):
        block = shapes[start : start + chunk, seen]
        size = (draws, *block.shape)
        weights = generator.standard_gamma(block, size, dtype=np.float32)
        for each, values in zip(kappas.of(weights, seen), found, strict=True):
            each_of: list[np.ndarray] = values
            each_of.append(each)
    return np.concatenate(found[0], axis=1), np.concatenate(found[1], axis=1)


def intervals(
    counts: np.ndarray, kappas: Kappas, items: int, draws: int, generator: np.random.Generator
) -> np.ndarray:
    """Limits of both kappas: (simulations, 2 kappas, 2 limits)."""
    tail, found = tail_probability(items), np.full((len(counts), 2, 2), np.nan)
    for limit, extra in enumerate(extra_items(counts, kappas)):
        shapes = (counts + extra).astype(np.float32)
        for which, values in enumerate(draw(shapes, kappas, draws, generator)):
            found[:, which, limit] = np.quantile(values, (tail, 1 - tail)[limit], axis=0)
    return found


def beyond(
    shapes: np.ndarray,
    kappas: Kappas,
    limit: int,
    kappa: float,
    tail: float,
    generator: np.random.Generator,
) -> np.ndarray:
    """Whether the lower (0) or upper (1) limit leaves kappa outside: (simulations, 2 kappas)."""

    def far(rows: np.ndarray, draws: int) -> np.ndarray:
        """Draws on kappa's far side: where they are too few, the limit lies beyond kappa."""
        values = np.stack(draw(shapes[rows], kappas, draws, generator), axis=-1)
        if np.isnan(values).any():
            raise ValueError("an undefined draw: the extra item should make kappa defined")
        counted: np.ndarray = (values <= kappa if limit == 0 else values >= kappa).sum(axis=0)
        return counted

    every = np.arange(len(shapes))
    screened = far(every, SCREENING)
    close = np.flatnonzero(screened.min(axis=1) < CLEAR)
    outside = np.zeros((len(shapes), 2), dtype=bool)
    if len(close):
        outside[close] = far(close, DECIDING) < tail * DECIDING
        outside &= screened < CLEAR
    return outside


def coverage(cell: Cell, simulations: int) -> Covered:
    """One cell of the table."""
    kappas = Kappas(len(MARGINS[cell.margins]), cell.judges)
    counts = answers(cell, simulations)
    labels = (counts @ kappas.given).reshape(simulations, cell.judges, -1).sum(axis=1) > 0
    shown = counts[labels.sum(axis=1) > 1]
    generator = np.random.default_rng([cell.seed, 1])
    tail, outside = tail_probability(cell.items), np.zeros((len(shown), 2), dtype=bool)
    for limit, extra in enumerate(extra_items(shown, kappas)):
        shapes = (shown + extra).astype(np.float32)
        outside |= beyond(shapes, kappas, limit, cell.kappa, tail, generator)
    found = intervals(shown[:WIDTHS], kappas, cell.items, WIDTH_DRAWS, generator)
    widths = found[:, 0, 1] - found[:, 0, 0]
    mean, fleiss = 1 - outside.mean(axis=0)
    return Covered(
        cell,
        float(mean),
        float(fleiss),
        float(widths.mean()),
        float(widths.min()),
        1 - len(shown) / simulations,
    )


def cells() -> list[Cell]:
    """All cells, the costly ones first."""
    every = [
        (margins, judges, items, kappa)
        for margins in MARGINS
        for judges in JUDGES.get(margins, FEW)
        for items in ITEMS
        for kappa in KAPPAS
    ]
    # last, so that the others keep their seeds
    every += [
        (margins, judges, FEWEST, kappa)
        for margins in MARGINS
        for judges in JUDGES.get(margins, FEW)
        for kappa in FEWEST_KAPPAS
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
    lowest = int(values.min(axis=1).argmin())
    lines += [
        "",
        f"Refused (one label throughout): at most {most:.3%} of a cell with n ≥ 30 and "
        f"kappa ≤ 0.8; at most {max(row.refused for row in rows):.1%} of any cell. Narrowest "
        f"interval {min(row.narrowest for row in rows):.3f}. Lowest cell: {rows[lowest].cell}.",
        "",
        "Coverage of the mean pairwise kappa / of Fleiss' kappa (mean width; share refused where "
        "it is not 0):",
        "",
    ]
    shown = sorted({row.cell.kappa for row in rows})
    lines += [
        "| margins | judges | n | " + " | ".join(f"kappa {k}" for k in shown) + " |",
        "|---|---:|---:|" + "---|" * len(shown),
    ]
    by_cell = {
        (row.cell.margins, row.cell.judges, row.cell.items, row.cell.kappa): row for row in rows
    }
    for margins, judges, items in dict.fromkeys(key[:3] for key in sorted(by_cell)):
        texts = []
        for kappa in shown:
            row = by_cell.get((margins, judges, items, kappa))
            if row is None:
                texts.append("–")
                continue
            refused = f"; {row.refused:.1%}" if row.refused else ""
            texts.append(f"{row.mean_kappa:.3f} / {row.fleiss:.3f} ({row.width:.2f}{refused})")
        lines.append(f"| {margins} | {judges} | {items} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def main() -> None:
    """Simulate every cell and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    started, every = time.perf_counter(), cells()
    with ProcessPoolExecutor(given.workers) as pool:
        rows = list(pool.map(coverage, every, itertools.repeat(given.simulations)))
    print(table(rows, given.simulations))
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
