"""Pulling a dataset from the Hub into the store, by name and revision.

Files with InF-IR's seven columns become groups; files with `query_id`, `query`, `passage_id` and
`passage` become pairs. The origin is recorded by commit, whatever the name of the requested
revision.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.files.rows import READERS
from curation.hub.hub import reading_api, translated_errors
from curation.importing.groups import GroupImport, Progress, has_groups, import_groups
from curation.importing.importing import ImportReport, import_dataset
from curation.release.plan import read_manifest
from db.errors import BadInput, Refused
from db.store.store import Store

DATA = READERS.keys() - {".json"}  # on the Hub a .json file describes the dataset


@dataclass(frozen=True)
class Pulled:
    """What was pulled: groups or pairs, and from which commit."""

    repo: str
    commit: str
    licence: str
    groups: GroupImport | None
    pairs: ImportReport | None


def pull(
    store: Store,
    *,
    repo: str,
    name: str,
    revision: str | None = None,
    licence: str = "",
    skip_bad: bool = False,
    imported_by: str = "",
    progress: Progress | None = None,
) -> Pulled:
    """Download a dataset and import it as `name`.

    The licence is the card's if none is given. Raises HubError, NotFound, BadInput, BadRows, and
    Refused for a repository with files of unknown columns.
    """
    api = reading_api()
    patterns = [f"*{suffix}" for suffix in DATA] + ["release.json"]
    with tempfile.TemporaryDirectory(prefix="inf-pull-") as folder:
        with translated_errors(f"pulling {repo}", pulling=True):
            info = api.dataset_info(repo, revision=revision)
            licence = licence or _licence(info)
            api.snapshot_download(
                repo,
                repo_type="dataset",
                revision=info.sha,
                local_dir=folder,
                allow_patterns=patterns,
            )
        files = data_files(Path(folder))
        source, origin = f"hf:{repo}", f"hf:{repo}@{info.sha}"
        shared: dict[str, Any] = {
            "name": name,
            "source": source,
            "licence": licence,
            "skip_bad": skip_bad,
            "progress": progress,
        }
        if all(map(has_groups, files)):
            groups = import_groups(
                store, files=files, origin=origin, imported_by=imported_by, **shared
            )
            return Pulled(repo, info.sha, licence, groups, None)
        if len(files) > 1:
            raise Refused(
                f"{repo} has {len(files)} files without InF-IR's columns: download them and "
                "import them with `inf import --pairs FILE --passages FILE`"
            )
        return Pulled(
            repo, info.sha, licence, None, import_dataset(store, pairs=files[0], **shared)
        )


def data_files(folder: Path) -> list[Path]:
    """The files of the default configuration: the manifest's, those in `data`, or all."""
    manifest = read_manifest(folder)
    if manifest is not None:
        listed = [
            folder / file["path"]
            for file in manifest.get("files", [])
            if file.get("config", "default") == "default"
        ]
        if listed and all(path.is_file() for path in listed):
            return listed
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in DATA and ".cache" not in path.parts
    )
    inner = [path for path in found if path.parent.name == "data"]
    if not found:
        raise BadInput("the dataset has no .parquet, .jsonl or .csv file")
    return inner or found


def _licence(info: Any) -> str:
    card = getattr(info, "card_data", None)
    listed = getattr(card, "license", None) if card is not None else None
    return listed if isinstance(listed, str) and listed not in ("other", "unknown") else ""
