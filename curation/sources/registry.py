"""The sources by name: published collections that `inf convert` turns into pairs and passages.

Another package adds one by an entry point in the group `inf_studio.sources` that names a
`SourceKind`; see `curation.registry`. The command's arguments are made from `inputs`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.registry import Registry
from curation.sources.rows import Converted


@dataclass(frozen=True)
class SourceInput:
    """An argument of a source: positional if `help` is empty, else a required option.

    `is_file`: given to `read` as a Path, else as text. `multiple`: a list of one or more.
    """

    name: str
    help: str = ""
    is_file: bool = True
    multiple: bool = False


@dataclass(frozen=True)
class SourceKind:
    """A kind of collection; `read` takes the inputs by name and yields passages, pairs and rows
    left
    out, in any order."""

    help: str
    inputs: tuple[SourceInput, ...]
    read: Callable[..., Iterator[Converted]]

    def convert(self, values: dict[str, Any]) -> Iterator[Converted]:
        """The passages, pairs and rows left out of these inputs."""
        return self.read(**values)


def _msmarco(place: str) -> Iterator[Converted]:
    from curation.sources.msmarco import read_msmarco

    return read_msmarco(place)


def _trec(topics: Path, documents: list[Path], qrels: Path) -> Iterator[Converted]:
    from curation.sources.trec import read_trec

    return read_trec(topics, documents, qrels)


def _beir(folder: Path) -> Iterator[Converted]:
    from curation.sources.beir import read_beir

    return read_beir(folder)


def _leetcode(file: Path) -> Iterator[Converted]:
    from curation.sources.problems import read_leetcode

    return read_leetcode(file)


def _math(file: Path) -> Iterator[Converted]:
    from curation.sources.problems import read_math

    return read_math(file)


SOURCES = Registry(
    "source",
    "inf_studio.sources",
    SourceKind,
    {
        "msmarco": SourceKind(
            "MS MARCO v2.1 rows: a JSONL or Parquet file, or hub:NAME[:CONFIG[:SPLIT]].",
            (SourceInput("place", is_file=False),),
            _msmarco,
        ),
        "trec": SourceKind(
            "TREC topics, documents and qrels, in Robust04's format.",
            (
                SourceInput("topics", "NIST topics, or JSONL."),
                SourceInput("documents", "SGML, also .gz.", multiple=True),
                SourceInput("qrels", "topic iteration document grade."),
            ),
            _trec,
        ),
        "beir": SourceKind(
            "A BEIR folder: corpus.jsonl, queries.jsonl and qrels/test.tsv (else dev, train).",
            (SourceInput("folder"),),
            _beir,
        ),
        "leetcode": SourceKind(
            "Programming tasks with solutions, the language known.",
            (SourceInput("file"),),
            _leetcode,
        ),
        "math": SourceKind(
            "Word problems with worked solutions (MetaMath, GSM8K).",
            (SourceInput("file"),),
            _math,
        ),
    },
)
