"""What a benchmark suite is: how its folder is recognised and read, and where the Hub has it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainer.evaluate.benchmarks import Benchmark

Metrics = Mapping[str, float | None]


def no_further_means(
    benchmarks: Sequence[Benchmark], metrics: Sequence[Metrics]
) -> dict[str, float]:
    """{}: the suite has no figure besides the means of every measure."""
    return {}


@dataclass(frozen=True)
class Suite:
    """One published layout.

    name: what `--benchmark` takes for a download; label: as its authors write it, and as
    evaluations are stored under it; layout: its files, for the help. is_layout: whether a folder
    is in it; read: the benchmarks of such a folder. repositories: {folder in the suite ("": the
    suite itself): dataset of the Hub}, empty where it is read from folders only. subsets: {name:
    tasks}, offered by `--subset` and for download too. further_means: figures of its own over the
    sets (FollowIR's score).
    """

    name: str
    label: str
    layout: str
    is_layout: Callable[[Path], bool]
    read: Callable[[Path], list[Benchmark]]
    repositories: Mapping[str, str] = field(default_factory=dict)
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    subset_help: str = ""
    further_means: Callable[[Sequence[Benchmark], Sequence[Metrics]], dict[str, float]] = (
        no_further_means
    )
