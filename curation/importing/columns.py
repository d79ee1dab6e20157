"""The names of columns: which file a mapping is for, what a file lacks, what usual names propose.

A mapping is `OURS=THEIRS`. `pairs.OURS` and `passages.OURS` name the file; without that it is for
each file that has the column. Usual names (`question`, `answer`, `anchor`, `positive`) are proposed
and never applied by themselves: `answer` may as well be a further column. Pure.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from analysis.files.rows import read_rows
from db.errors import BadInput

ID_COLUMNS = frozenset({"query_id", "passage_id"})
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "pairs": ("query_id", "query", "passage_id", "passage", "negatives"),
    "passages": ("passage_id", "text", "title"),
}
LOOKED_AT = 100  # rows whose columns are looked at before any is read
EXAMPLE = "query,passage\nwhat is tea?,Leaves in hot water."
# Usual names, the likeliest first; compared without case, spaces, hyphens and underscores.
USUAL: Mapping[str, tuple[str, ...]] = {
    "query": (
        *("query", "question", "anchor", "search_query", "query_text", "prompt", "instruction"),
        *("input", "sentence1", "sentence_a", "title", "claim", "premise", "topic", "text"),
    ),
    "passage": (
        *(
            "passage",
            "positive",
            "pos",
            "answer",
            "response",
            "context",
            "document",
            "passage_text",
        ),
        *("completion", "output", "target", "body", "content", "sentence2", "sentence_b"),
        *("evidence", "hypothesis", "abstract", "text", "label"),
    ),
    "negatives": ("hard_negatives", "neg"),  # the names that need no mapping are in `rows`
    "text": ("text", "passage", "document", "contents", "content", "body", "abstract", "context"),
    "title": ("title", "headline", "name"),
    "query_id": ("query_id", "qid", "question_id", "id"),
    "passage_id": (
        *("passage_id", "pid", "doc_id", "docid", "document_id", "corpus_id", "docno", "_id", "id"),
    ),
}


@dataclass(frozen=True)
class FileColumns:
    """The columns of a file's first rows, each with its first value; `kind`: pairs or passages.

    `row`: the columns of the first row alone.
    """

    kind: str
    path: Path
    first: Mapping[str, Any]
    row: frozenset[str] = frozenset()


@dataclass
class Lacking:
    """A file that lacks columns, those it has, and what stands for ours: by its names, and with
    what is in it (`guessed`, for a person who looks at the rows)."""

    kind: str
    file: str
    missing: list[str]
    has: list[str]
    proposed: dict[str, str] = field(default_factory=dict)
    guessed: dict[str, str] = field(default_factory=dict)

    def sentence(self) -> str:
        """The file, what it lacks and what it has, without a full stop."""
        missing = " and ".join(f"no column {name}" for name in self.missing)
        return f"{self.file} has {missing}; it has {_listed(self.has)}"


class MissingColumns(BadInput):
    """Files lack columns: all at once, with proposals and the shortest file that would do."""

    def __init__(self, lacking: Sequence[Lacking], *, several_files: bool) -> None:
        self.lacking = list(lacking)
        self.proposed, self.guessed = (
            {
                f"{each.kind}.{ours}" if several_files else ours: theirs
                for each in lacking
                for ours, theirs in getattr(each, how).items()
            }
            for how in ("proposed", "guessed")
        )
        if self.proposed:
            named = " ".join(f"`column={ours}={_quoted(t)}`" for ours, t in self.proposed.items())
            remedy = f"their names propose {named}: give these, or all by `usual_columns=`"
        else:
            ours = f"{lacking[0].kind}." if several_files else ""
            missing = lacking[0].missing[0].strip("`").partition("`")[0]
            remedy = f"name the file's own with `column={ours}{missing}=NAME`"
        super().__init__(
            "; ".join(each.sentence() for each in lacking),
            f"{remedy}; the shortest file of pairs that would do is\n{EXAMPLE}",
            code="columns_missing",
        )

    @property
    def details(self) -> dict[str, Any]:
        """The proposed columns."""
        return {"proposed_columns": self.proposed}


def columns_of(kind: str, path: Path) -> FileColumns:
    """The columns of the file's first rows. Raises BadInput where it cannot be read."""
    first: dict[str, Any] = {}
    of_row: frozenset[str] = frozenset()
    for row in islice(read_rows(path), LOOKED_AT):
        of_row = of_row or frozenset(row.values)
        for name, value in row.values.items():
            if first.get(name) is None:
                first[name] = value
    return FileColumns(kind, path, first, of_row)


def mapping_by_kind(
    columns: Mapping[str, str], files: Sequence[FileColumns]
) -> dict[str, dict[str, str]]:
    """The mapping of each kind of file. Raises BadInput for one that cannot be meant."""
    kinds = list(dict.fromkeys(each.kind for each in files))
    found: dict[str, dict[str, str]] = {kind: {} for kind in COLUMNS}
    for given, theirs in columns.items():
        named, dot, ours = given.rpartition(".")
        if (dot and named not in COLUMNS) or not any(
            ours in COLUMNS[kind] for kind in ([named] if dot else COLUMNS)
        ):
            known = dict.fromkeys(name for names in COLUMNS.values() for name in names)
            raise BadInput(
                f"no column `{given}` to map to{did_you_mean(ours, known)}",
                f"one of {', '.join(known)}, where need be with its "
                "file, as pairs.passage_id or passages.passage_id",
                code="column_unknown",
            )
        if dot and named not in kinds:
            raise BadInput(
                f"`{given}` maps a column of {named}, and there is no file of {named}",
                "give that file, too",
                code="column_mapping_without_file",
                field=given,
            )
        able = [
            each for each in files if (each.kind == named if dot else ours in COLUMNS[each.kind])
        ]
        having = files_having(given, theirs, able)
        for kind in [named] if dot else _meant(ours, theirs, having):
            found[kind][ours] = theirs
    for named, mapping in found.items():
        for ours, theirs in mapping.items():
            if list(mapping.values()).count(theirs) > 1:
                raise BadInput(
                    f"the file's column `{theirs}` is mapped twice (of the {named})",
                    "map each column once",
                    code="column_mapped_twice",
                    field=f"{named}.{ours}",
                )
    return found


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name, as the end of a sentence; "" where none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def files_having(given: str, theirs: str, able: Sequence[FileColumns]) -> list[FileColumns]:
    """The files that have the column; all of them where none has a row.

    A row of JSON may be the first with its column, so the files are read whole before a refusal.
    Raises BadInput with their columns and the nearest name.
    """
    has = list(dict.fromkeys(name for each in able for name in each.first))
    having = [each for each in able if theirs in each.first]
    having = having or [each for each in able if not has or _has_late(each.path, theirs)]
    if having:
        return having
    named = ", ".join(dict.fromkeys(each.path.name for each in able[:3]))
    raise BadInput(
        f"`{given}` is mapped to `{theirs}`, and {named} has no column `{theirs}`: it has "
        f"{_listed(has)}{did_you_mean(theirs, has)}",
        "map one that it has",
        code="column_missing",
        field=given,
    )


def _has_late(path: Path, name: str) -> bool:
    return any(name in row.values for row in read_rows(path))


def _meant(ours: str, theirs: str, having: Sequence[FileColumns]) -> list[str]:
    """The kinds of file that a mapping without a file is for, of those that have the column."""
    kinds = list(dict.fromkeys(each.kind for each in having))
    both = [each for each in having if ours in each.first]
    if len(kinds) > 1 and both and ours != theirs:
        raise BadInput(
            f"`column={ours}={theirs}` may be meant for one file or for both: {both[0].path.name} "
            f"has a column `{ours}`, too",
            f"write pairs.{ours}={theirs}, passages.{ours}={theirs}, or both",
            code="column_ambiguous",
        )
    return kinds


def missing_columns(columns: Iterable[str], kind: str) -> list[str]:
    """The required columns that a file lacks, as a message shows them.

    Passages need `passage_id` and `text`; pairs need `query` and either `passage` or `passage_id`.
    """
    have = set(columns)
    if kind == "passages":
        return [f"`{name}`" for name in ("passage_id", "text") if name not in have]
    missing = [] if "query" in have else ["`query`"]
    return missing if have & {"passage_id", "passage"} else [*missing, "`passage` or `passage_id`"]


def proposed_columns(
    file: FileColumns, mapping: Mapping[str, str], *, with_passages: bool
) -> dict[str, str]:
    """Usual names of the file's columns for those of ours that it lacks, where their values fit.

    `with_passages`: whether a file of passages comes along, so that pairs need ids, not texts.
    """
    taken = set(mapping.values()) | (set(COLUMNS[file.kind]) & set(file.first))
    have = set(mapping) | (set(COLUMNS[file.kind]) & set(file.first))
    plain = {_plain(name): name for name in reversed(list(file.first))}
    found: dict[str, str] = {}
    # texts before ids, so that a column stands for the likelier of the two
    for ours in sorted(COLUMNS[file.kind], key=lambda name: name in ID_COLUMNS):
        if ours in have or (ours == "passage" and "passage_id" in have):
            continue
        for usual in USUAL[ours]:
            theirs = plain.get(_plain(usual))
            if theirs is not None and theirs not in taken and _fits(ours, file.first[theirs]):
                found[ours] = theirs
                taken.add(theirs)
                break
    if file.kind == "pairs" and {"passage", "passage_id"} <= set(found):
        del found["passage" if with_passages else "passage_id"]  # a text brings its own id
    return found


def guessed_columns(file: FileColumns, proposed: Mapping[str, str]) -> dict[str, str]:
    """What names propose of a file of pairs, and where they propose no text, the columns of its
    texts: the longest value is a passage's, the shortest of the others a query's."""
    found = dict(proposed)
    used = {*found.values(), *COLUMNS[file.kind]}
    lengths = {
        name: len(value.split())
        for name, value in file.first.items()
        if name not in used and _fits("query", value)
    }
    texts = [name for name in sorted(lengths, key=lengths.__getitem__) if lengths[name] > 1]
    have = {*found, *file.first}
    if texts and not have & {"passage", "passage_id"}:
        found["passage"] = texts.pop()
    if texts and "query" not in have:
        found["query"] = texts.pop(0)
    return found if file.kind == "pairs" else dict(proposed)


def renamed(values: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The row under our names of columns; `columns` maps ours to the file's.

    A column of the file that has one of our names, but is not the one mapped to it, keeps its
    values under `NAME (file)`.
    """
    if not columns:
        return values
    taken = {theirs: ours for ours, theirs in columns.items()}
    out: dict[str, Any] = {}
    for name, value in values.items():
        if name in taken:
            out[taken[name]] = value
        else:
            out[f"{name} (file)" if name in columns else name] = value
    return out


def _fits(ours: str, value: Any) -> bool:
    if ours == "negatives":
        return isinstance(value, str | list | dict)
    is_text = isinstance(value, str) and bool(value.strip())
    if ours in ID_COLUMNS:
        return is_text or (isinstance(value, int) and not isinstance(value, bool))
    return is_text and not (ours != "title" and str(value).strip().isdecimal())


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character not in " -_")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:12]) or "none"


def _quoted(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").isalnum() else f"'{name}'"
