"""Coverage of the 95 % intervals of paired differences, by simulation: docs/intervals.md.

    python bench/paired_coverage.py [--simulations 4000] [--resamples 400] [--workers 1]

A cluster is a base query with several questions; its differences share one effect and each adds its
own noise. The interval is that of `analysis.figures.paired`. Seeds are fixed.
"""

import argparse
import itertools
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

# A script's own folder comes first on the path: bench/analysis.py would replace the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from analysis.figures.paired import MIN_DIFFERENT, interval_reach  # noqa: E402

CLUSTERS = (10, 15, 20, 30, 50)
SIZES = {"2 questions each": 2, "8 questions each": 8, "1 to 8 questions": 0}
# nDCG of one relevant passage jumps between the values of its ranks; most stay where they are
JUMPS, JUMP_SHARES = (0.0, 0.37, 0.5, 1.0, -0.37, -0.63), (0.6, 0.1, 0.1, 0.08, 0.08, 0.04)
EFFECTS = {
    "normal": 0.0,
    "half ties": 0.15,
    "jumps": float(np.dot(JUMPS, JUMP_SHARES)),
    "skewed": 1.0,
}


def effects(kind: str, size: int, generator: np.random.Generator) -> np.ndarray:
    """The effects of clusters; their expectation is `EFFECTS[kind]`."""
    if kind == "normal":
        return generator.normal(0, 1, size)
    if kind == "half ties":
        return np.where(generator.random(size) < 0.5, 0, generator.normal(0.3, 1, size))
    if kind == "jumps":
        return generator.choice(JUMPS, p=JUMP_SHARES, size=size)
    return generator.exponential(1, size)


def coverage(kind: str, sizes: str, clusters: int, simulations: int, resamples: int) -> tuple:
    """(share of intervals that hold the expectation among those shown, share refused)."""
    place = [*EFFECTS].index(kind) * 100 + [*SIZES].index(sizes)
    generator = np.random.default_rng([place, clusters])
    held = shown = 0
    for _ in range(simulations):
        own = effects(kind, clusters, generator)
        if np.count_nonzero(own) < MIN_DIFFERENT and kind == "jumps":
            continue
        counts = (
            np.full(clusters, SIZES[sizes]) if SIZES[sizes] else generator.integers(1, 9, clusters)
        ).astype(float)
        noise = 0 if kind == "jumps" else generator.normal(0, 0.5, clusters) * np.sqrt(counts)
        totals = own * counts + noise
        reach, _, _ = interval_reach(totals, counts, resamples)
        held += abs(totals.sum() / counts.sum() - EFFECTS[kind]) <= reach
        shown += 1
    return held / shown, 1 - shown / simulations


def main() -> None:
    """Simulate every cell and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    rows = list(itertools.product(EFFECTS, SIZES))
    cells = [(*row, clusters) for row in rows for clusters in CLUSTERS]
    with ProcessPoolExecutor(given.workers) as pool:
        jobs = [pool.submit(coverage, *cell, given.simulations, given.resamples) for cell in cells]
        found = {cell: job.result() for cell, job in zip(cells, jobs, strict=True)}
    values = np.array([held for held, _ in found.values()])
    error = np.sqrt(0.95 * 0.05 / given.simulations)
    print(
        f"{len(cells)} cells, {given.simulations:,} simulations each; standard error {error:.4f}."
    )
    print(f"Least {values.min():.3f}, mean {values.mean():.3f}, most {values.max():.3f}.\n")
    print("| differences | clusters of | " + " | ".join(map(str, CLUSTERS)) + " |")
    print("|---|---|" + "---:|" * len(CLUSTERS))
    for row in rows:
        cell_texts = []
        for clusters in CLUSTERS:
            held, refused = found[*row, clusters]
            cell_texts.append(f"{held:.3f}" + (f" ({refused:.1%} refused)" if refused else ""))
        print(f"| {row[0]} | {row[1]} | " + " | ".join(cell_texts) + " |")


if __name__ == "__main__":
    main()
