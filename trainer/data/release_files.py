"""Reading a release from its folder: `release.json` and `data/*.parquet|jsonl`.

A release on disk is all that training sees. A plain folder of such files without a manifest works
too (InF-IR from another source): its licence and whether it was made offline are then unknown.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analysis.files.published import MANIFEST, manifest_of
from analysis.files.ragged import LISTED, rows_of_groups
from analysis.files.rows import read_rows
from analysis.files.shared import here
from analysis.files.storage import place_of
from db.errors import BadInput, NotFound
from db.shape import Shape, shape_in
from db.store.store import Store
from db.tables import Release
from trainer.data.claims import PROMPTRIEVER_COLUMNS, negatives_of, promptriever_groups
from trainer.data.groups import Group, group_of

SUFFIXES = (".parquet", ".jsonl")
HELD_OUT_SUFFIX = "_held_out"
TEST = "test"


@dataclass(frozen=True)
class ReleaseData:
    """The groups of a release and its manifest (empty if there is none)."""

    path: Path
    groups: list[Group]
    manifest: dict[str, Any]
    content_sha256: str
    licences: list[str]

    @property
    def name(self) -> str:
        return str(self.manifest.get("name") or self.manifest.get("dataset") or self.path.name)

    @property
    def shape(self) -> Shape:
        """What its groups are, by the manifest."""
        return self.groups[0].shape

    @property
    def release_id(self) -> int | None:
        found = self.manifest.get("release_id")
        return found if isinstance(found, int) else None

    @property
    def offline(self) -> bool | None:
        """Whether the offline provider wrote its texts; None if not stated."""
        found = self.manifest.get("offline")
        return found if isinstance(found, bool) else None


def find_release(store: Store, given: str) -> Path:
    """The folder of a release given by number, path or URL. Raises NotFound or BadInput.

    A release of another storage is copied to this machine.
    """
    if given.isdigit() and not Path(given).is_dir():
        with store.read() as session:
            release = session.get(Release, int(given))
        if release is None:
            raise NotFound(
                f"no release {given}",
                "`releases create` makes one, or give its folder",
                code="release_unknown",
            )
        given = release.path
        if place_of(given).is_local and not here(given).is_dir():
            raise NotFound(
                f"release {release.id} is no longer at {given}",
                "export it again",
                code="release_folder_missing",
            )
    path = place_of(given).fetch(manifest=MANIFEST).resolve()
    if not path.is_dir():
        raise NotFound(
            f"no release folder {given}",
            f"`releases create NAME out={given}` makes one",
            code="release_folder_missing",
        )
    return path


def read_release(path: Path) -> ReleaseData:
    """All groups of a release folder. Raises BadInput with file, line and reason."""
    manifest = manifest_of(path)
    files = _files(path)
    licences: dict[str, None] = {}
    # `test` is ours only where the manifest says so: another's test split was never held out here
    has_test = (manifest.get("filter") or {}).get("split_by") == "train"
    shape = shape_in(manifest, f"{path / MANIFEST}")
    groups = [group for file in files for group in _groups(file, path, licences, has_test, shape)]
    if not groups:
        raise BadInput(
            f"{path} holds no groups",
            "export a dataset with kept groups",
            code="release_without_groups",
        )
    sha256 = manifest.get("content_sha256") or _sha256(groups)
    return ReleaseData(path, groups, manifest, str(sha256), sorted(licences))


def _files(path: Path) -> list[Path]:
    folder = path / "data" if (path / "data").is_dir() else path
    files = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)
    if not files:
        raise BadInput(
            f"{folder} holds no .parquet or .jsonl file",
            "give the folder of a release",
            code="folder_without_data_files",
        )
    return files


def _groups(
    file: Path, root: Path, licences: dict[str, None], has_test: bool, shape: Shape
) -> Iterator[Group]:
    """The groups of one file; their licences are noted in `licences`.

    Promptriever's columns are put together to groups of a shape that contrasts scenarios; with one
    scenario each row is a group of its own, also that of a query without its instruction.
    """
    split = file.name.split("-")[0]
    set_aside = split.endswith(HELD_OUT_SUFFIX) or (has_test and split == TEST)
    place = file.relative_to(root)
    for number, row in rows_of_file(file, place, shape if len(shape.roles) > 1 else None):
        if row.keys() >= PROMPTRIEVER_COLUMNS:
            if row.get("licence"):
                licences[str(row["licence"])] = None
            yield from _promptriever(row, f"{place}, row {number}", set_aside)
            continue
        for column in shape.columns:
            value = row.get(column)
            if not isinstance(value, str) or not value.strip():
                found = "no" if value is None else "an empty" if value == "" else "no usable"
                raise BadInput(
                    f"{place}, row {number}: {found} `{column}`; every group needs the "
                    f"{len(shape.columns)} text columns of a release",
                    "export the release again: `releases create DATASET out=FOLDER`",
                    code="group_column_missing",
                )
        if row.get("licence"):
            licences[str(row["licence"])] = None
        group_id = row.get("group_id")
        yield group_of(
            row,
            group_id=str(group_id) if group_id is not None else f"{place}:{number}",
            shape=shape,
            negatives=negatives_of(row.get(LISTED, {}), shape),
            dropped=row.get("verdict", "kept") != "kept" and row.get("review") != "approve",
            approved=row.get("review") == "approve",
            set_aside=set_aside,
        )


def _promptriever(row: dict[str, Any], where: str, set_aside: bool) -> Iterator[Group]:
    """The groups of a row with Promptriever's columns. Raises BadInput with the reason."""
    name = str(row.get("query_id") or where)
    found = list(promptriever_groups(row, name))
    missing = "only_query" if not row.get("only_query") else "" if found else "positive_passages"
    if missing:
        raise BadInput(
            f"{where}: no usable `{missing}`; a row with Promptriever's columns needs a query and "
            "a positive passage",
            "add it, or leave out the row",
            code="promptriever_row_incomplete",
        )
    approved = row.get("review") == "approve"
    dropped = row.get("verdict", "kept") != "kept" and not approved
    for group in found:
        yield replace(group, set_aside=set_aside, dropped=dropped, approved=approved)


def rows_of_file(
    file: Path, place: Path, shape: Shape | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(row, values) of a JSONL or Parquet file, one for each group where a shape is given.

    Raises BadInput for a row that cannot be read.
    """
    rows = read_rows(file)
    for found in rows if shape is None else rows_of_groups(rows, shape):
        if found.reason is not None:
            raise BadInput(
                f"{place}, row {found.line}: {found.reason}",
                "correct it, or export the release again",
                code="row_invalid",
            )
        yield found.line, found.values


def _sha256(groups: list[Group]) -> str:
    whole = hashlib.sha256()
    for group in groups:
        own = [  # of the first scenario without its place, as before there were others
            [each.grade, each.text, *([each.scenario] if each.scenario else [])]
            for each in group.negatives
        ]
        content = group.row() | ({"negatives": own} if own else {})
        whole.update(json.dumps(content, sort_keys=True, ensure_ascii=False).encode())
    return whole.hexdigest()


def rows_of_configuration(release: ReleaseData, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a configuration other than `default`; nothing where the release lacks it."""
    folder = release.path / name
    for file in sorted(folder.iterdir()) if folder.is_dir() else []:
        if file.suffix in SUFFIXES:
            yield from (row for _, row in rows_of_file(file, file.relative_to(release.path)))
