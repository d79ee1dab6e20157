"""Every benchmark suite by name. To add one, write a file with its `SUITE` and list it here.

The layout of a folder is recognised in this order. A folder of several FollowIR or BEIR folders is
a suite too; a suite's number is the plain mean over its sets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Final

from db.errors import BadInput, NotFound
from trainer.evaluate.benchmarks import Benchmark
from trainer.suites import beir, bright, followir, infosearch, mair, mfollowir, mteb_folders
from trainer.suites.suite import Suite

SUITES: Final[dict[str, Suite]] = {
    each.name: each
    for each in (
        bright.SUITE,
        mair.SUITE,
        mteb_folders.SUITE,
        mfollowir.SUITE,
        mfollowir.CROSS_LINGUAL,
        infosearch.SUITE,  # before FollowIR, whose files it has too
        followir.SUITE,
        beir.SUITE,
    )
}
SUBSETS: Final[dict[str, tuple[str, ...]]] = {
    name: tasks for suite in SUITES.values() for name, tasks in suite.subsets.items()
}
# {name: suite} of what can be downloaded: suites and their subsets.
DOWNLOADS: Final[dict[str, Suite]] = {
    name: suite
    for suite in SUITES.values()
    if suite.repositories
    for name in (suite.name, *suite.subsets)
}
LABELS: Final = ", ".join(suite.label for suite in SUITES.values())
DOWNLOAD_NAMES: Final = ", ".join(DOWNLOADS)
SUBSET_HELP: Final = "; ".join(filter(None, (suite.subset_help for suite in SUITES.values())))
LAYOUTS: Final = "; ".join(f"{suite.label}: {suite.layout}" for suite in SUITES.values())


def take_subset(benchmarks: Sequence[Benchmark], subset: str) -> list[Benchmark]:
    """The tasks of a named subset. Raises BadInput where one of them is missing."""
    if subset not in SUBSETS:
        raise BadInput(
            f"no subset {subset!r}: there is {', '.join(SUBSETS)}",
            "name one of these",
            code="subset_unknown",
        )
    found = {benchmark.name.split("/")[-1]: benchmark for benchmark in benchmarks}
    if missing := [task for task in SUBSETS[subset] if task not in found]:
        raise BadInput(
            f"{subset} needs the task {missing[0]}, and the benchmark has {', '.join(found)}",
            "give another `subset=`",
            code="benchmark_task_missing",
        )
    return [found[task] for task in SUBSETS[subset]]


def read_benchmarks(folder: Path) -> list[Benchmark]:
    """The benchmarks of a folder: one, or every set of a suite. Raises NotFound or BadInput."""
    if not folder.is_dir():
        raise NotFound(
            f"no benchmark folder {folder}",
            "check the path; `benchmark=dataset:NAME` is a dataset of the store",
            code="benchmark_folder_missing",
        )
    for suite in SUITES.values():
        if suite.is_layout(folder):
            return suite.read(folder)
    if not any((folder / name).exists() for name in ("queries.jsonl", "corpus.jsonl")):
        inner = sorted(path for path in folder.iterdir() if (path / "queries.jsonl").is_file())
        if inner:
            return [
                replace(benchmark, name=f"{folder.name}/{benchmark.name}")
                for path in inner
                for benchmark in read_benchmarks(path)
            ]
    raise BadInput(
        f"{folder} has no relevance judgments: qrels/test.tsv (BEIR), or qrels_og/test.tsv and "
        "qrels_changed/test.tsv (FollowIR), is needed",
        "add them, or name another folder",
        code="benchmark_without_judgments",
    )


def read_benchmark(folder: Path) -> Benchmark:
    """The only benchmark of a folder. Raises BadInput where it holds several."""
    found = read_benchmarks(folder)
    if len(found) != 1:
        raise BadInput(
            f"{folder} holds {len(found)} benchmarks",
            "give the folder of one",
            code="benchmark_ambiguous",
        )
    return found[0]


def suite_means(
    benchmarks: Sequence[Benchmark], metrics: Sequence[Mapping[str, float | None]]
) -> dict[str, float | None]:
    """Every measure's mean over the sets, and the suites' own figures over them.

    A measure that one of the sets does not have, or has undefined, has no mean (None).
    """
    names = list(dict.fromkeys(name for values in metrics for name in values))
    means: dict[str, float | None] = {}
    for name in names:
        values = [found.get(name) for found in metrics]
        known = [value for value in values if value is not None]
        means[name] = fmean(known) if len(known) == len(values) else None
    for suite in SUITES.values():
        means |= suite.further_means(benchmarks, metrics)
    return means
