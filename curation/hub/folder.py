"""The folder pushed to the Hub: its files, and whether it is still the exported release.

A release's tag is correct only while the folder is as exported: the manifest and the card are
compared with the store, the data files with the manifest's sha256, read in blocks.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.files.opening import file_sha256
from analysis.files.rows import MTEB_TASK
from analysis.files.storage import place_of
from curation.release.card.croissant import CROISSANT, croissant
from curation.release.plan import MANIFEST, PICTURE, read_manifest
from db.errors import NotFound, Refused
from db.tables import Release

CARD = "README.md"


def files_to_push(folder: Path) -> dict[str, Path]:
    """The folder's files by their path in the repository, without hidden ones."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.relative_to(folder).as_posix().startswith(".")
    }


def require_as_exported(release: Release, check: Callable[[], None]) -> None:
    """Raise Refused, naming the file, if the release's folder differs from the export.

    `check` is called before each file that is read (a cancelled job ends there). Raises NotFound
    for a missing folder.
    """
    folder = place_of(release.path).fetch(manifest=MANIFEST)
    if not folder.is_dir():
        raise NotFound(
            f"{folder} does not exist any more", "export it again", code="release_folder_missing"
        )
    manifest = read_manifest(folder)
    if manifest is None or not _is_of(manifest, release):
        raise _changed(release, f"{MANIFEST} differs")
    present = files_to_push(folder)
    listed = {str(file["path"]): file for file in manifest["files"]}
    for path in (CARD, *listed):
        if path not in present:
            raise _changed(release, f"{path} is missing")
    for path in present:
        if path not in listed and path not in (CARD, MANIFEST, CROISSANT, PICTURE, MTEB_TASK.name):
            raise _changed(release, f"{path} was added")
    card = release.card.encode()
    if card and (present[CARD].stat().st_size != len(card) or present[CARD].read_bytes() != card):
        raise _changed(release, f"{CARD} differs")
    described = present.get(CROISSANT)  # releases before it have none
    if described and described.read_text(encoding="utf-8") != croissant(manifest):
        raise _changed(release, f"{CROISSANT} differs")
    task = present.get(MTEB_TASK.name)
    if task and file_sha256(task) != manifest.get("mteb_task_sha256"):
        raise _changed(release, f"{MTEB_TASK.name} differs")
    for path, file in listed.items():
        check()
        size = present[path].stat().st_size
        if size != file.get("bytes") or file_sha256(present[path]) != file.get("sha256"):
            raise _changed(release, f"{path} differs")


def _is_of(manifest: dict[str, Any], release: Release) -> bool:
    files = manifest.get("files")
    return (
        manifest.get("release_id") == release.id
        and manifest.get("content_sha256") == release.content_sha256
        and manifest.get("format") == release.format
        and manifest.get("filter") == release.filter
        and manifest.get("counts") == release.counts
        and isinstance(files, list)
        and all(isinstance(file, dict) and "path" in file for file in files)
    )


def _changed(release: Release, how: str) -> Refused:
    return Refused(
        f"the folder is no longer release {release.id}: {how} ({release.path})",
        "export again, to a new folder",
        code="release_folder_changed",
    )
