"""Coverage of the 95 % intervals of one model's means over clusters: docs/intervals.md.

    python bench/mean_coverage.py [--simulations 4000] [--signed 4000] [--resamples 400]

Shares (strict accuracy, flips, SICR): every cluster has a rate of its own, Beta distributed with
intraclass correlation 0.3, and its values are 0 or 1. WISE: of documents whose three ranks follow
a geometric law, an instruction that raises them with a chance of its own per cluster. p-MRR: the
change of rank between two such ranks. The interval is that of `analysis.figures.means`; it has to
hold the expectation. WISE and p-MRR, whose ranks are simulated one by one, have fewer cells. Seeds
are fixed.
"""

import argparse
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

# A script's own folder comes first on the path: bench/analysis.py would replace the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from analysis.figures.means import effective_clusters, share_interval  # noqa: E402
from analysis.figures.paired import MIN_DIFFERENT, interval_reach  # noqa: E402
from trainer.evaluate.measures.compliance import document_wise  # noqa: E402
from trainer.evaluate.measures.rankings import rank_change  # noqa: E402

CLUSTERS = (10, 15, 20, 30, 60)
SIZES = {"1 each": (1, 1), "1 to 4": (1, 4), "8 each": (8, 8)}
SHARES = (0.05, 0.3, 0.6, 0.9)
CORRELATION = 0.3


def shares_of(share: float) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
    """Totals of clusters whose values are 0 or 1 with this expectation."""
    scale = (1 - CORRELATION) / CORRELATION

    def totals(generator: np.random.Generator, counts: np.ndarray) -> np.ndarray:
        rates = generator.beta(share * scale, (1 - share) * scale, len(counts))
        return generator.binomial(counts, rates).astype(float)

    return totals


def ranks_of(
    value: Callable[[int, int, int], float], follows: float
) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
    """Totals of clusters of documents with ranks; `follows`: mean chance to be raised."""

    def totals(generator: np.random.Generator, counts: np.ndarray) -> np.ndarray:
        found = np.zeros(len(counts))
        rates = generator.beta(2 * follows, 2 * (1 - follows), len(counts))
        for place, (rate, count) in enumerate(zip(rates, counts, strict=True)):
            for _ in range(int(count)):
                original = int(generator.geometric(0.2))
                up, down = generator.geometric(0.3, 2)
                raised = generator.random() < rate
                instructed = max(1, original - up + 1) if raised else original + down - 1
                lowered = generator.random() < rate
                reverse = original + up if lowered else max(1, original - down + 1)
                found[place] += value(original, int(instructed), int(reverse))
        return found

    return totals


FIGURES = {
    **{f"share {share}": shares_of(share) for share in SHARES},
    "WISE, follows 0.3": ranks_of(lambda o, i, v: document_wise(o, i, v, 2), 0.3),
    "WISE, follows 0.7": ranks_of(lambda o, i, v: document_wise(o, i, v, 2), 0.7),
    "p-MRR, follows 0.5": ranks_of(lambda o, i, v: rank_change(o, v), 0.5),
}


@cache
def expectation(figure: str) -> float:
    """The mean of 200,000 independent values."""
    return float(FIGURES[figure](np.random.default_rng(0), np.ones(200_000, dtype=int)).mean())


def coverage(figure: str, size: str, clusters: int, simulations: int, resamples: int) -> tuple:
    """(share of intervals that hold the expectation among those shown, share refused)."""
    make, (least, most) = FIGURES[figure], SIZES[size]
    generator = np.random.default_rng([[*FIGURES].index(figure), most, clusters])
    is_share = figure.startswith("share")
    expected = float(figure.split()[1]) if is_share else expectation(figure)
    held = shown = 0
    for _ in range(simulations):
        counts = generator.integers(least, most + 1, clusters)
        totals = make(generator, counts)
        weights = counts.astype(float)
        value = totals.sum() / weights.sum()
        if is_share:
            low, high = share_interval(float(value), effective_clusters(totals, weights))
        elif np.count_nonzero(totals) < MIN_DIFFERENT:
            continue
        else:
            reach, _, _ = interval_reach(totals, weights, resamples)
            low, high = value - reach, value + reach
        held += low <= expected <= high
        shown += 1
    return held / max(shown, 1), 1 - shown / simulations


def table(figures: list[str], sizes: list[str], clusters: tuple[int, ...], given: tuple) -> None:
    """Print a table of these figures; given: (simulations, resamples)."""
    rows = [(figure, size) for figure in figures for size in sizes]
    found = {(*row, count): coverage(*row, count, *given) for row in rows for count in clusters}
    values = np.array([held for held, _ in found.values()])
    error = np.sqrt(0.95 * 0.05 / given[0])
    print(f"{len(found)} cells, {given[0]:,} simulations each; standard error {error:.4f}.")
    print(f"Least {values.min():.3f}, mean {values.mean():.3f}, most {values.max():.3f}.\n")
    print("| values | of a cluster | " + " | ".join(map(str, clusters)) + " |")
    print("|---|---|" + "---:|" * len(clusters))
    for row in rows:
        texts = []
        for count in clusters:
            held, refused = found[*row, count]
            texts.append(f"{held:.3f}" + (f" ({refused:.1%} refused)" if refused else ""))
        print(f"| {row[0]} | {row[1]} | " + " | ".join(texts) + " |")
    print(flush=True)


def main() -> None:
    """Simulate every cell and print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--signed", type=int, default=4000)
    parser.add_argument("--resamples", type=int, default=400)
    given = parser.parse_args()
    shares = [name for name in FIGURES if name.startswith("share")]
    table(shares, [*SIZES], CLUSTERS, (given.simulations, given.resamples))
    signed = [name for name in FIGURES if name not in shares]
    table(signed, [*SIZES][:2], CLUSTERS[::2], (given.signed, given.resamples))


if __name__ == "__main__":
    main()
