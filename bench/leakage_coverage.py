"""Coverage of the interval of the leakage check, by simulation.

    python bench/leakage_coverage.py [--sets 1000] [--workers 2] [--leaks] [--first-seed 1000]

A set is one comparison of a run: for each pair a positive and its negatives, texts of random
words. Without a leak the interval has to hold 0.5. With one, a share of the negatives hold one of
five words that positives lack, and the interval has to hold the mean AUC over all sets of the cell:
what a classifier trained on so many pairs reaches. Seeds are fixed; the table stands in
docs/intervals.md. --leaks: the cells with a leak alone; --first-seed: other sets, such as those
that no constant of the formula was chosen on.
"""

import argparse
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

# A script's own folder comes first on the path: bench/analysis.py would replace the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from analysis.text.leakage import LabelledText, compare_texts  # noqa: E402

WORDS = [f"{first}{second}" for first in ("ba", "do", "ke", "li", "mu") for second in "nrstvz"]
SIGNS = ("surely", "perhaps", "indeed", "anyway", "moreover")
CELLS = [  # pairs, negatives of a pair, share of negatives with a sign
    *((pairs, 1, 0.0) for pairs in (20, 40, 60, 100, 140, 200)),
    (60, 1, 0.5),
    (60, 1, 0.25),
    (60, 1, 1.0),
    (140, 1, 0.5),
]


def made_up(cell: tuple[int, int, float], seed: int) -> list[LabelledText]:
    """The texts of one set."""
    pairs, negatives, leak = cell
    chance = random.Random(f"{cell} {seed}")
    found = []
    for number in range(pairs):
        for place in range(1 + negatives):
            words = [chance.choice(WORDS) for _ in range(30)]
            if place and chance.random() < leak:
                words[chance.randrange(30)] = chance.choice(SIGNS)
            found.append(LabelledText(f"{seed} q{number}", " ".join(words), place > 0))
    return found


def measured(job: tuple[tuple[int, int, float], int]) -> tuple[float, float, float]:
    """AUC and limits of one set."""
    found = compare_texts(made_up(*job))
    return (found["auc"], *found["interval"])


def main() -> None:
    """Simulate every cell and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--leaks", action="store_true")
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.sets)
    error = np.sqrt(0.95 * 0.05 / given.sets)
    print(f"{given.sets:,} sets of each; standard error {error:.4f}.\n")
    print("| pairs | negatives of a pair | with a sign | mean AUC | coverage | mean width |")
    print("|---:|---:|---:|---:|---:|---:|")
    with ProcessPoolExecutor(given.workers) as pool:
        for cell in (cell for cell in CELLS if cell[2] or not given.leaks):
            jobs = [(cell, seed) for seed in seeds]
            auc, low, high = np.array(list(pool.map(measured, jobs, chunksize=20))).T
            right = auc.mean() if cell[2] else 0.5
            held, width = np.mean((low <= right) & (right <= high)), np.mean(high - low)
            row = f"| {cell[0]} | {cell[1]} | {cell[2]:.0%} | {auc.mean():.3f} "
            print(f"{row}| {held:.3f} | {width:.2f} |", flush=True)


if __name__ == "__main__":
    main()
