"""Analysis at size: seconds and peak memory of APS, INGF and agreement, next to the naive way.

    .venv/bin/python bench/analysis.py [aps] [ingf] [agreement] [team] [embedding]
        [--vectors 10000000] [--texts 1000000] [--judgments 1000000] [--naive 10000]
        [--passages FILE]

Every measurement runs in a process of its own, whose peak memory is that process's alone. The
inputs are made here (seeded): Gaussian vectors of 384 numbers with a common direction, texts of 36
words (the paper's mean instruction, Table 1) drawn by Zipf's law, judges who are right four times
in five. The seconds are those of the measure: making the input is left out. Where it is streamed
(vectors, texts) the time spent in making each part is taken off. Limits to stay under on two cores:
APS constant memory, INGF 60 s and 4 GB, agreement 5 s.

`embedding` encodes real passages (JSONL with `text`) with SentenceTransformer.encode and with ours,
one after the other in one process, and tells the lowest cosine between the two.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import stdev
from typing import Any, NamedTuple

import numpy as np

# A script's own folder comes first on the path, where this file would stand for the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from analysis.agreement.agreement import Decision, agreement_report  # noqa: E402
from analysis.embed.embedding import encoder_of  # noqa: E402
from analysis.text.diversity import ApsSum  # noqa: E402
from analysis.text.ingf import clean, inverse_ngram_frequency  # noqa: E402

DIMENSIONS, BLOCK = 384, 50_000
WORDS_PER_TEXT, VOCABULARY = 36, 200_000
PASSAGES = Path(__file__).parents[2] / "shared" / "data" / "google_queries" / "passages.jsonl"
making = [0.0, 0.0]  # wall and CPU seconds that this process spent in making its input


def timed(parts: Iterator[Any]) -> Iterator[Any]:
    """The parts; the time that each takes to be made is added to `making`."""
    while True:
        wall, processor = time.perf_counter(), time.process_time()
        part = next(parts, None)
        making[0] += time.perf_counter() - wall
        making[1] += time.process_time() - processor
        if part is None:
            return
        yield part


def blocks(vectors: int) -> Iterator[np.ndarray]:
    """Seeded vectors, a block in memory at a time."""
    for start in range(0, vectors, BLOCK):
        generator = np.random.default_rng(start)
        size = (min(BLOCK, vectors - start), DIMENSIONS)
        yield generator.standard_normal(size, dtype=np.float32) + np.float32(0.2)


def texts(number: int) -> Iterator[str]:
    """Seeded texts, one at a time."""
    for part in timed(_texts(number)):
        yield from part


def _texts(number: int) -> Iterator[list[str]]:
    generator = np.random.default_rng(0)
    words = [f"word{rank}" for rank in range(VOCABULARY)]
    for start in range(0, number, 10_000):
        size = (min(10_000, number - start), WORDS_PER_TEXT)
        ranks = np.minimum(generator.zipf(1.3, size=size), VOCABULARY) - 1
        yield [" ".join([words[rank] for rank in row]) for row in ranks.tolist()]


def decisions(number: int, judges: int = 5, labels: int = 6) -> list[Decision]:
    """Seeded judgments: people and two models over the same items."""
    items = number // judges
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 3, items)
    rows: list[Decision] = []
    for judge in range(judges):
        right = generator.random(items) < 0.8
        said = np.where(right, truth, generator.integers(0, labels, items)).tolist()
        kind = "model" if judge >= judges - 2 else "person"
        rows += [
            Decision(item, f"judge {judge}", f"{label}", kind) for item, label in enumerate(said)
        ]
    return rows


def streamed_aps(vectors: int) -> float | None:
    """Closed form, one pass."""
    total = ApsSum()
    for block in timed(blocks(vectors)):
        total.add(block)
    return total.measure().value


def naive_aps(vectors: int) -> float:
    """The mean over the pairs of the whole matrix of cosines."""
    whole = np.concatenate(list(timed(blocks(vectors)))).astype(np.float64)
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    cosines = whole @ whole.T
    return float((cosines.sum() - np.trace(cosines)) / (vectors * (vectors - 1)))


def packed_ingf(number: int) -> list[float | None]:
    """Numbered tokens, packed n-grams."""
    return [measure.value for measure in inverse_ngram_frequency(texts(number))]


def naive_ingf(number: int) -> list[float]:
    """A counter of tuples."""
    found = []
    for n in (2, 3):
        counts: Counter[tuple[str, ...]] = Counter()
        for text in texts(number):
            words = clean(text).split(" ")
            counts.update(zip(*(words[start:] for start in range(n)), strict=False))
        found.append(len(counts) / stdev(counts.values()))
    return found


def whole_agreement(number: int) -> float | None:
    """Every measure with its intervals; the headline of the people."""
    (rows,) = timed(decisions(each) for each in (number,))
    value: float | None = agreement_report(rows)["human_human"]["value"]
    return value


def team(number: int, overlap: int, judges: int = 1000, labels: int = 13) -> Iterator[Decision]:
    """Seeded judgments of a team, `overlap` of the judges for each item, and of two models."""
    for part in timed(_team(number, overlap, judges, labels)):
        yield from part


def _team(number: int, overlap: int, judges: int, labels: int) -> Iterator[list[Decision]]:
    generator, items = np.random.default_rng(0), number // overlap
    for start in range(0, items, 1000):
        size = min(1000, items - start)
        truth = generator.integers(0, labels, (size, 1))
        first = generator.integers(0, judges, (size, 1))
        who = (first + 97 * np.arange(overlap)) % judges  # 97 and 1,000 share no factor
        who = np.concatenate([who, np.tile([judges, judges + 1], (size, 1))], axis=1)
        right = generator.random(who.shape) < 0.7
        label = np.where(right, truth, generator.integers(0, labels, who.shape))
        yield [
            Decision(
                start + row, f"judge {one:04d}", f"{said}", "person" if one < judges else "model"
            )
            for row, (those, what) in enumerate(zip(who.tolist(), label.tolist(), strict=True))
            for one, said in zip(those, what, strict=True)
        ]


def sparse_team(number: int) -> Any:
    """Three of a thousand judges for each item; the headline of the people."""
    return agreement_report(team(number, 3))["human_human"]["value"]


def crowded_team(number: int) -> Any:
    """All of a thousand judges for each item."""
    return agreement_report(team(number, 1000))["human_human"]["value"]


def compare_embedding(file: Path) -> None:
    """SentenceTransformer.encode next to ours, on the texts of the file."""
    found = [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()]
    encoder = encoder_of()
    start = time.perf_counter()
    reference = encoder.model.encode(found, normalize_embeddings=True, show_progress_bar=False)
    slow = time.perf_counter() - start
    start = time.perf_counter()
    vectors = encoder.encode(found)
    fast = time.perf_counter() - start
    cosine = float((vectors * reference).sum(axis=1).min())
    print(f"embedding of {len(found):,} passages: SentenceTransformer.encode {slow:.1f} s")
    print(f"  ours {fast:.1f} s, {slow / fast:.2f} times as fast, lowest cosine {cosine:.7f}")
    print(f"  {encoder.how}", flush=True)


class Measured(NamedTuple):
    """What the work returned; wall and CPU seconds without those of making its input; peak
    memory of its process in GB; wall seconds of making the input."""

    value: Any
    seconds: float
    processor_seconds: float
    memory: float
    made: float

    def __str__(self) -> str:
        return (
            f"{self.seconds:.2f} s ({self.processor_seconds:.2f} s of CPU time), "
            f"{self.memory:.2f} GB; making the input: {self.made:.1f} s"
        )


def measured(work: Callable[[int], Any], size: int) -> Measured:
    """Run the work in a process of its own."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_child, args=(work, size, theirs))
    process.start()
    result: Measured = mine.recv()
    process.join()
    return result


def _child(work: Callable[[int], Any], size: int, answer: Any) -> None:
    start, processor = time.perf_counter(), time.process_time()
    value = work(size)
    seconds = time.perf_counter() - start - making[0]
    used = time.process_time() - processor - making[1]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    answer.send(Measured(value, seconds, used, memory, making[0]))


def main() -> None:
    """Measure what was asked for and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["aps", "ingf", "agreement"])
    parser.add_argument("--vectors", type=int, default=10_000_000)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--judgments", type=int, default=1_000_000)
    parser.add_argument("--naive", type=int, default=10_000)
    parser.add_argument("--passages", type=Path, default=PASSAGES)
    arguments = parser.parse_args()
    for what, ours, naive, size in (
        ("aps", streamed_aps, naive_aps, arguments.vectors),
        ("ingf", packed_ingf, naive_ingf, arguments.texts),
    ):
        if what in arguments.what:
            small, slow = measured(ours, arguments.naive), measured(naive, arguments.naive)
            assert np.allclose(small.value, slow.value, rtol=1e-9), (small.value, slow.value)
            print(f"{what} of {arguments.naive:,}: {small}")
            print(f"  naive: {slow}, equal: {slow.value}")
            whole = measured(ours, size)
            print(f"{what} of {size:,}: {whole}: {whole.value}", flush=True)
    if "agreement" in arguments.what:
        whole = measured(whole_agreement, arguments.judgments)
        print(f"agreement of {arguments.judgments:,} judgments: {whole}: {whole.value}")
    if "team" in arguments.what:
        for work in (sparse_team, crowded_team):
            for size in (1300, arguments.judgments):
                whole = measured(work, size)
                print(f"{work.__name__} of {size:,} judgments: {whole}: {whole.value}", flush=True)
    if "embedding" in arguments.what:
        compare_embedding(arguments.passages)


if __name__ == "__main__":
    main()
