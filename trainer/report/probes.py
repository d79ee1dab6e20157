"""Probe items: a few held-out groups whose right passage is followed through a training.

For each the rank of P+ under (I+,Q+), which should be 1, and under (I-,Q+), which should grow: the
instruction no longer asks for it.
"""

from collections.abc import Mapping
from typing import Any

from trainer.evaluate.benchmarks import Benchmark

MAX_PROBES = 4


def choose_probes(benchmark: Benchmark, limit: int = MAX_PROBES) -> list[str]:
    """The ids of `limit` held-out groups, spread evenly: the same for the same split."""
    ids = list(benchmark.changed)  # none of a shape without a second instruction
    count = min(limit, len(ids))
    return [ids[place * len(ids) // count] for place in range(count)]


def describe_probes(benchmark: Benchmark, probes: list[str]) -> list[dict[str, Any]]:
    """The texts of the probes and among how many passages they are ranked."""
    found = []
    for probe in probes:
        question = benchmark.questions[benchmark.original[probe]]
        other = benchmark.questions[benchmark.changed[probe]]
        found.append(
            {
                "query": question.query,
                "instruction_positive": question.instruction,
                "instruction_negative": other.instruction,
                "passage": benchmark.corpus[benchmark.changed_documents[probe][0]],
                "passages": len(benchmark.corpus),
            }
        )
    return found


def probe_ranks(
    benchmark: Benchmark, probes: list[str], ranks: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    """`probe/N/asked` and `probe/N/other`: the rank of P+ under I+ and under I-."""
    found = {}
    for number, probe in enumerate(probes):
        document = benchmark.changed_documents[probe][0]
        found[f"probe/{number}/asked"] = float(ranks[benchmark.original[probe]][document])
        found[f"probe/{number}/other"] = float(ranks[benchmark.changed[probe]][document])
    return found
