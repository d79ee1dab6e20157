"""Benchmarks by name: downloaded from the hub in the layout they are published in.

The names are those of `trainer.suites.registry`, or any dataset `owner/name` in one of the layouts
that folders may have. `HF_ENDPOINT` names
another server that speaks the Hub's protocol. Downloads are kept in the Hub's own cache.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark
from trainer.suites.mfollowir import parts_by_language
from trainer.suites.mteb_folders import CARD, parts_of
from trainer.suites.registry import DOWNLOADS, SUBSETS, SUITES, read_benchmarks, take_subset

FILES = ["*.jsonl", "*.tsv", "examples/*.parquet", "documents/*.parquet"]


def is_hub_name(name: str) -> bool:
    """Whether this names a benchmark of the hub: a known suite, or owner/name and no folder."""
    if Path(name).expanduser().exists():
        return False
    is_repository = name.count("/") == 1 and not name.startswith((".", "/", "~"))
    return name.lower() in DOWNLOADS or is_repository


def spelled(name: str) -> str:
    """The name that evaluations are stored under: `followir` and `FollowIR` are one benchmark."""
    suite = SUITES.get(name.lower())
    return suite.label if suite else name


def load_hub_benchmarks(name: str) -> list[Benchmark]:
    """Download and read; each knows the commits of what it was read from.

    Raises BadInput where the hub does not have it or cannot be reached.
    """
    suite = DOWNLOADS.get(name.lower())
    parts = suite.repositories if suite else {"": name}
    tasks = SUBSETS.get(name.lower(), ())
    wanted = [f"{task}/*.jsonl" for task in tasks] or FILES
    with tempfile.TemporaryDirectory(prefix="inf-benchmark-") as folder:
        place = Path(folder) / spelled(name).replace("/", "--")
        commits: dict[str, dict[str, str]] = {}
        for inner, repository in parts.items():
            found = _download(repository, wanted if inner else _files_of(repository))
            commits[inner] = {repository: found.name}
            if inner:
                place.mkdir(exist_ok=True)
            (place / inner).symlink_to(found, target_is_directory=True)
        every = {repository: commit for of in commits.values() for repository, commit in of.items()}
        benchmarks = [
            replace(each, downloads=commits.get(each.name.split("/")[-1], every))
            for each in read_benchmarks(place)
        ]
        subset = name.lower()
        return take_subset(benchmarks, subset) if subset in SUBSETS else benchmarks


def _files_of(repository: str) -> list[str]:
    """What to download: the files that the card names, where it is in mteb's layout."""
    folder = _download(repository, [CARD])
    found = [parts_of(folder), *parts_by_language(folder).values()]
    named = [
        path
        for parts in found
        for splits in parts.values()
        for paths in splits.values()
        for path in paths
    ]
    return [CARD, *named] if named else FILES


def _download(repository: str, wanted: list[str]) -> Path:
    """The folder of the files in the Hub's cache, whose name is the commit."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, repo_type="dataset", allow_patterns=wanted))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"the benchmark {repository} cannot be downloaded ({lines[0]})",
            "look at its name and at the network, or give its folder",
            code="benchmark_download_failed",
        ) from error
