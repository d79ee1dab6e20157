"""Exact search: 1,000 questions over 1,000,000 vectors of 384 numbers, the best 1,000 of each.

    python bench/searching.py [--documents 1000000] [--questions 1000] [--depth 1000]

Random unit vectors (what is timed does not depend on them), ids as a corpus has them; the vectors
are there before the clock starts. Prints seconds and the process's peak memory over that of the
vectors alone.
"""

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trainer.evaluate.searching import search

GIB = 1024 * 1024  # ru_maxrss counts KiB


def unit_vectors(count: int, width: int, seed: int) -> np.ndarray:
    """(count, width) float32, in place: no copy next to it."""
    vectors = np.random.default_rng(seed).standard_normal((count, width), dtype=np.float32)
    for start in range(0, count, 65_536):
        part = vectors[start : start + 65_536]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--depth", type=int, default=1_000)
    given = parser.parse_args()
    corpus = unit_vectors(given.documents, given.width, seed=0)
    questions = unit_vectors(given.questions, given.width, seed=1)
    ids = [f"d{number:07d}" for number in range(given.documents)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    found = search(questions, corpus, ids, depth=given.depth)
    seconds = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    own = found.best[0]
    best = int(np.argmax(corpus @ questions[0]))
    assert next(iter(own)) == ids[best] and len(own) == min(given.depth, given.documents)
    print(
        f"{given.documents:,} x {given.width}, {given.questions:,} questions, best "
        f"{given.depth:,}: {seconds:.1f} s; peak {after / GIB:.2f} GiB, "
        f"{(after - before) / GIB:.2f} GiB of it for the search"
    )


if __name__ == "__main__":
    main()
