"""Benchmarks by name: downloaded from the hub in the layout they are published in.

`followir`, `bright`, `mair`, `mair-paper` (its five tasks of the paper's tables) and `instructir`,
or any dataset `owner/name` in one of the layouts that folders may have. `HF_ENDPOINT` names
another server that speaks the Hub's protocol. Downloads are kept in the Hub's own cache.
"""

import tempfile
from pathlib import Path

from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark
from trainer.evaluate.mteb_folders import CARD, parts_of
from trainer.evaluate.suites import SUBSETS, read_benchmarks, take_subset

# Name → the folder that each dataset is given in the suite.
SUITES: dict[str, dict[str, str]] = {
    "followir": {
        "Robust04": "jhu-clsp/robust04-instructions",
        "News21": "jhu-clsp/news21-instructions",
        "Core17": "jhu-clsp/core17-instructions",
    },
    "bright": {"": "xlangai/BRIGHT"},
    "mair": {"MAIR-Queries": "MAIR-Bench/MAIR-Queries", "MAIR-Docs": "MAIR-Bench/MAIR-Docs"},
    "mair-paper": {"MAIR-Queries": "MAIR-Bench/MAIR-Queries", "MAIR-Docs": "MAIR-Bench/MAIR-Docs"},
    "instructir": {"": "mteb/InstructIR-mteb"},
}
# As the suites call themselves, whatever case was typed.
SPELLED = {"followir": "FollowIR", "bright": "BRIGHT", "mair": "MAIR", "instructir": "InstructIR"}
LAYOUTS = ["*.jsonl", "*.tsv", "examples/*.parquet", "documents/*.parquet"]


def is_hub_name(name: str) -> bool:
    """Whether this names a benchmark of the hub: a known suite, or owner/name and no folder."""
    if Path(name).expanduser().exists():
        return False
    return name.lower() in SUITES or (name.count("/") == 1 and not name.startswith((".", "/", "~")))


def spelled(name: str) -> str:
    """The name that evaluations are stored under: `followir` and `FollowIR` are one benchmark."""
    return SPELLED.get(name.lower(), name)


def load_hub_benchmarks(name: str) -> list[Benchmark]:
    """Download and read. Raises BadInput where the hub does not have it or cannot be reached."""
    parts = SUITES.get(name.lower(), {"": name})
    tasks = SUBSETS.get(name.lower(), ())
    wanted = [f"{task}/*.jsonl" for task in tasks] or LAYOUTS
    with tempfile.TemporaryDirectory(prefix="inf-benchmark-") as folder:
        suite = Path(folder) / spelled(name).replace("/", "--")
        if "" in parts:
            suite.symlink_to(_download(parts[""], _files_of(parts[""])), target_is_directory=True)
        else:
            suite.mkdir()
            for inner, repository in parts.items():
                (suite / inner).symlink_to(_download(repository, wanted), target_is_directory=True)
        benchmarks = read_benchmarks(suite)
        subset = name.lower()
        return take_subset(benchmarks, subset) if subset in SUBSETS else benchmarks


def _files_of(repository: str) -> list[str]:
    """What to download: the files that the card names, where it is in mteb's layout."""
    parts = parts_of(Path(_download(repository, [CARD])))
    named = [path for splits in parts.values() for paths in splits.values() for path in paths]
    return [CARD, *named] if named else LAYOUTS


def _download(repository: str, wanted: list[str]) -> str:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return str(snapshot_download(repository, repo_type="dataset", allow_patterns=wanted))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"the benchmark {repository} cannot be downloaded ({lines[0]}): look at its name and "
            "at the network, or give its folder"
        ) from error
