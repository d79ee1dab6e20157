"""The files of an import: one, several by a pattern, a folder, or a published collection.

A folder is what a format of `curation.sources` recognises (BEIR, MS MARCO), files named `pairs` and
`passages`, or a dataset of the Hub as it was downloaded: the shards of one split.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.files.opening import UNPACKED, encoding_notice
from analysis.files.rows import COMPRESSED, READERS, format_of
from curation.importing.columns import (
    COLUMNS,
    ID_COLUMNS,
    FileColumns,
    columns_of,
    mapping_by_kind,
    proposed_columns,
    renamed,
)
from curation.importing.rows import PairRow, PassageRow, parse_pair, parse_passage
from curation.release.plan import read_manifest
from curation.sources.converting import write_files
from curation.sources.registry import SOURCES
from curation.sources.rows import SourceKind
from db.errors import BadInput, BadRow, Refused
from db.home import temporary_folder
from db.shape import Shape, shape_in

# on the Hub a .json file describes the dataset
DATA_ENDINGS = (
    *(extension for extension in READERS if extension != ".json"),
    *(kind + packed for kind in COMPRESSED if kind != ".json" for packed in UNPACKED),
)
PATTERN = frozenset("*?[")


@dataclass(frozen=True)
class Reading:
    """The way to read the rows of one file; `made`: ids that are made from content,
    those that neither the first row nor the mapping names."""

    file: FileColumns
    columns: Mapping[str, str]
    with_passages: bool

    @property
    def path(self) -> Path:
        return self.file.path

    def parse(self, values: dict[str, Any]) -> PassageRow | PairRow:
        """The row under our column names. Raises BadValue with the reason."""
        row = renamed(values, self.columns)
        if self.file.kind == "passages":
            return parse_passage(row)
        return parse_pair(row, made=self._made)

    @cached_property
    def _made(self) -> frozenset[str]:
        return (
            ID_COLUMNS
            - renamed(dict.fromkeys(self.file.row), self.columns).keys()
            - {*self.columns}
        )

    def proposed(self) -> dict[str, str]:
        """What the usual names of the file's columns propose for those of ours it lacks."""
        return proposed_columns(self.file, self.columns, with_passages=self.with_passages)


@dataclass(frozen=True)
class ImportFiles:
    """The readings of an import, passages before pairs; rows that a conversion left out."""

    readings: list[Reading]
    left_out: list[BadRow] = field(default_factory=list)
    left_out_count: int = 0
    notices: list[str] = field(default_factory=list)


@contextmanager
def opened_files(
    pairs: Path,
    passages: Path | None,
    columns: Mapping[str, str] | None,
    *,
    layout: str | None = None,
    split: str | None = None,
    usual_columns: bool = False,
) -> Iterator[ImportFiles]:
    """The files of an import, for a while: a collection is converted into files of its own first.

    `layout` names a format of `curation.sources` that is read as such; `usual_columns` applies what
    the files' names propose. Raises BadInput, Refused.
    """
    layout, kind = _collection(pairs, layout)
    if kind is None:
        if passages is None and (both := _pairs_and_passages(pairs)):
            pairs, passages = both
        if passages is not None and passages == pairs:
            raise BadInput(
                f"{pairs.name} was given both for the pairs and for the passages",
                "name another file of passages, or none",
                code="file_given_twice",
            )
        of_passages: list[Path] = []
        if passages is not None:
            of_passages = files_of(passages, split if passages.is_dir() else None)
        yield _read_as(of_passages, files_of(pairs, split), columns or {}, usual_columns)
        return
    if passages is not None or columns:
        what = "a file of passages" if passages is not None else "`column=`"
        raise BadInput(
            f"{pairs.name} is read as {layout}, which cannot be combined with {what}",
            "leave out one of them",
            code="layout_not_combinable",
        )
    first = kind.inputs[0]
    given: dict[str, Any] = {first.name: pairs if first.is_file else str(pairs)}
    if split is not None:
        if all(each.name != "split" for each in kind.inputs):
            raise BadInput(
                f"{layout} has no splits", "leave out `split=`", code="layout_without_splits"
            )
        given["split"] = split
    with temporary_folder("inf-import-") as place:
        done = write_files(kind.convert(given), place, limit=None)
        found = _read_as([done.passages_path], [done.pairs_path], {}, False)
        rows = [BadRow(row.file, row.line, row.reason) for row in done.examples]
        yield replace(found, left_out=rows, left_out_count=sum(done.left_out.values()))


def readable_formats() -> dict[str, str]:
    """The formats of `curation.sources` that `layout` may name, with their help: those of one file
    or folder."""
    return {name: kind.help for name, kind in SOURCES.all().items() if _takes_a_path(kind)}


def files_of(place: Path, split: str | None) -> list[Path]:
    """The files that a path, a pattern or a folder names. Raises BadInput, Refused."""
    if place.is_dir():
        try:
            return of_split(data_files(place), split)
        except BadInput as error:
            raise BadInput(
                f"{place}: {error}", "correct the pattern", code="pattern_invalid"
            ) from error
    if split is not None:
        raise BadInput(
            f"`split=` requires a folder, and {place.name} is none",
            "name the files of it",
            code="split_needs_folder",
        )
    if PATTERN & set(place.name) and not place.exists():
        found = sorted(path for path in place.parent.glob(place.name) if path.is_file())
        if not found:
            raise BadInput(
                f"no file matches {place}", "correct the path or the pattern", code="files_missing"
            )
        return found
    return [place]


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
        if path.name.lower().endswith(DATA_ENDINGS)
        and path.is_file()
        and ".cache" not in path.parts
    )
    inner = [path for path in found if path.parent.name == "data"]
    if not found:
        raise BadInput(
            "the dataset has no .parquet, .jsonl, .csv, .tsv or .xlsx file",
            "name a dataset with such files",
            code="dataset_files_missing",
        )
    return inner or found


def shape_of_files(files: Sequence[Path]) -> Shape:
    """The shape of groups in these files, by the manifest of the release whose folder, or `data`
    in it, they are in; InF-IR's without one. Raises BadInput for two."""
    folders = {path.parent.parent if path.parent.name == "data" else path.parent for path in files}
    found = {
        shape_in(read_manifest(each) or {}, f"the manifest in {each.name}") for each in folders
    }
    if len(found) > 1:
        raise BadInput(
            "these files are of releases of different shapes",
            "import each release by itself",
            code="files_of_two_shapes",
        )
    return found.pop()


def of_split(files: Sequence[Path], split: str | None) -> list[Path]:
    """The files of the split. Raises Refused where several splits would be mixed, BadInput for one
    that is not there."""
    by_split: dict[str, list[Path]] = {}
    for file in files:
        by_split.setdefault(_split(file), []).append(file)
    if split is not None:
        if split not in by_split:
            raise BadInput(
                f"no files of a split {split!r}: there are {', '.join(by_split)}",
                "name one of these",
                code="split_unknown",
            )
        return by_split[split]
    if len(by_split) > 1:
        raise Refused(
            f"there are files of several splits, {', '.join(by_split)}",
            "name one with `split=`",
            code="split_ambiguous",
        )
    return list(files)


def _split(file: Path) -> str:
    """`train` of `train-00000-of-00002.parquet`, `train.jsonl` or `train_1.csv.gz`."""
    stem = file.name.split(".")[0]
    return stem.split("-")[0].rstrip("0123456789").rstrip("_-") or stem


def _collection(place: Path, layout: str | None) -> tuple[str, SourceKind | None]:
    """The format that a place is read as; None where its files hold pairs themselves."""
    if layout is not None:
        kind = SOURCES.find(layout)
        if not _takes_a_path(kind):
            raise BadInput(
                f"{layout} needs several files",
                f"use `datasets convert {layout}`",
                code="layout_needs_several_files",
            )
        return layout, kind
    for name, kind in SOURCES.all().items() if place.is_dir() else ():
        if kind.recognises is not None and kind.recognises(place):
            return name, kind
    return "", None


def _takes_a_path(kind: SourceKind) -> bool:
    required = [each for each in kind.inputs if each.required]
    return len(required) == 1 and required[0] == kind.inputs[0] and not required[0].multiple


def _pairs_and_passages(folder: Path) -> tuple[Path, Path] | None:
    """The files `pairs` and `passages` of a folder that has one of each."""
    found = [
        [path for path in folder.glob(f"{kind}.*") if format_of(path)] if folder.is_dir() else []
        for kind in COLUMNS
    ]
    return (found[0][0], found[1][0]) if all(len(each) == 1 for each in found) else None


def _read_as(
    passages: Sequence[Path], pairs: Sequence[Path], columns: Mapping[str, str], usual: bool
) -> ImportFiles:
    files = [columns_of("passages", path) for path in passages]
    files += [columns_of("pairs", path) for path in pairs]
    by_kind = mapping_by_kind(columns, files)
    readings = [Reading(file, by_kind[file.kind], bool(passages)) for file in files]
    if usual:
        readings = [replace(each, columns={**each.proposed(), **each.columns}) for each in readings]
    notices = [notice for file in files if (notice := encoding_notice(file.path))]
    return ImportFiles(readings, notices=notices)
