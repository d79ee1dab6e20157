"""The folder that goes to the Hub: which of its files go, and whether it is still the release.

What a release's tag says of its content holds only while the folder is as the export left it: the
manifest and the card are compared with the store, the data files with the manifest's sha256, read
in blocks.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from curation.release.files import file_sha256
from curation.release.findings import PICTURE
from curation.release.plan import MANIFEST, read_manifest
from db.errors import NotFound, Refused
from db.tables import Release

CARD = "README.md"


def files_to_push(folder: Path) -> dict[str, Path]:
    """The folder's files by their path in the repository; hidden ones stay here."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.relative_to(folder).as_posix().startswith(".")
    }


def require_as_exported(release: Release, check: Callable[[], None]) -> None:
    """Raise Refused, naming the file, where the release's folder is not what was exported.

    `check` is called before each file that is read (a cancelled job ends there). Raises NotFound
    for a folder that is gone.
    """
    folder = Path(release.path)
    if not folder.is_dir():
        raise NotFound(f"{folder} is no longer there: export it again")
    manifest = read_manifest(folder)
    if manifest is None or not _is_of(manifest, release):
        raise _changed(release, f"{MANIFEST} differs")
    there = files_to_push(folder)
    told = {str(file["path"]): file for file in manifest["files"]}
    for path in (CARD, *told):
        if path not in there:
            raise _changed(release, f"{path} is gone")
    for path in there:
        if path not in told and path not in (CARD, MANIFEST, PICTURE):
            raise _changed(release, f"{path} was added")
    card = release.card.encode()
    if card and (there[CARD].stat().st_size != len(card) or there[CARD].read_bytes() != card):
        raise _changed(release, f"{CARD} differs")
    for path, file in told.items():
        check()
        size = there[path].stat().st_size
        if size != file.get("bytes") or file_sha256(there[path]) != file.get("sha256"):
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
        f"the folder is no longer release {release.id}: {how} ({release.path}); export again, to "
        "a new folder"
    )
