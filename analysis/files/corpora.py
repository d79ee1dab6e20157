"""What is compared: datasets of the store and files of texts, loaded the same way."""

import hashlib
import json
from array import array
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.files.published import read_published, shape_of_corpus
from analysis.files.row import text_in
from analysis.files.rows import BadValue, read_rows
from db.corpus.datasets import get_dataset, text_sha256
from db.corpus.texts import CorpusText, pair_sources, pair_texts, run_texts
from db.errors import BadInput, BadRow, BadRows, NotFound, Refused
from db.home import home, scratch_file, space_in
from db.run.runs import funnel, get_run, latest_run, shape_of
from db.shape import INF_IR, Shape
from db.tables import Dataset, Release
from db.values import VERDICTS

FILTERS: Final[dict[str, list[tuple[str, Sequence[str]]]]] = {
    "kept": [("", ("kept",))],
    "all": [("", VERDICTS)],
    "both": [(", filtered", ("kept",)), (", unfiltered", VERDICTS)],
}


READ_ROWS = 1_000


class RowsOnDisk(Sequence[CorpusText]):
    """The texts of a corpus in a file that ends with them, read when they are needed: as rows in
    memory a million passages take 600 MB."""

    def __init__(self, rows: Iterable[CorpusText]) -> None:
        self._file, self._ends, end = scratch_file(self), array("q", [0]), 0
        self._kinds: dict[tuple[str, str, str | None, str | None], int] = {}
        self._kind, self._groups, self._pairs = array("l"), array("q"), array("q")
        with space_in(home(), lambda: f"texts, at least {end:,} bytes of them"):
            for row in rows:
                text = row.text.encode()
                end += len(text)
                self._file.write(text)
                self._ends.append(end)
                kind = (row.field, row.role, row.verdict, row.source)
                self._kind.append(self._kinds.setdefault(kind, len(self._kinds)))
                self._groups.append(-1 if row.group_id is None else row.group_id)
                self._pairs.append(-1 if row.pair_id is None else row.pair_id)
            self._file.flush()
        self._known = list(self._kinds)

    def __len__(self) -> int:
        return len(self._kind)

    def __iter__(self) -> Iterator[CorpusText]:
        for start in range(0, len(self), READ_ROWS):
            yield from self[start : start + READ_ROWS]

    def __getitem__(self, some: Any) -> Any:
        if not isinstance(some, slice):
            place = range(len(self))[some]
            return self[place : place + 1][0]
        chosen = range(len(self))[some]
        if not chosen:
            return []
        low, high = min(chosen), max(chosen) + 1
        start = self._ends[low]
        self._file.seek(start)
        whole = self._file.read(self._ends[high] - start)
        return [
            self._row(each, whole[self._ends[each] - start : self._ends[each + 1] - start])
            for each in chosen
        ]

    def _row(self, place: int, text: bytes) -> CorpusText:
        field, role, verdict, source = self._known[self._kind[place]]
        group, pair = self._groups[place], self._pairs[place]
        ids = [None if each < 0 else each for each in (group, pair)]
        return CorpusText(field, role, text.decode(), ids[0], verdict, source, ids[1])


@dataclass(frozen=True)
class Corpus:
    """A named list of texts; `offline` where the offline provider wrote them.

    `dropped` counts the groups that its whole run dropped, by reason. `shape` is its run's; texts
    of no run have InF-IR's fields and roles.
    """

    name: str
    kind: str
    texts: Sequence[CorpusText]
    shape: Shape
    dataset_id: int | None = None
    run_id: int | None = None
    offline: bool = False
    dropped: Mapping[str, int] | None = None

    def by_field(self) -> dict[str, dict[str, list[CorpusText]]]:
        """Texts by field and role, in the order of their first appearance."""
        fields: dict[str, dict[str, list[CorpusText]]] = {}
        for row in self.texts:
            fields.setdefault(row.field, {}).setdefault(row.role, []).append(row)
        return fields


class Chosen(Sequence[str]):
    """The texts of corpora that stand at some places of all their rows."""

    def __init__(self, corpora: Sequence[Corpus], places: Any) -> None:
        self._corpora, self._places = corpora, places
        self._starts = list(accumulate((len(corpus.texts) for corpus in corpora), initial=0))

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, some: Any) -> Any:
        return self.row(some)[1].text

    def some(self, numbers: Sequence[int]) -> "Chosen":
        """Some of them, by their numbers among them."""
        return Chosen(self._corpora, [self._places[number] for number in numbers])

    @property
    def rows(self) -> "ChosenRows":
        """Their rows."""
        return ChosenRows(self)

    def row(self, number: int) -> tuple[str, CorpusText]:
        """The name of the corpus, and its row."""
        place = int(self._places[number])
        corpus = bisect(self._starts, place) - 1
        found = self._corpora[corpus]
        return found.name, found.texts[place - self._starts[corpus]]


class ChosenRows(Sequence[CorpusText]):
    """The rows of chosen texts, read when they are needed."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen

    def __len__(self) -> int:
        return len(self._chosen)

    def __getitem__(self, number: Any) -> Any:
        return self._chosen.row(number)[1]


def load_corpora(session: Session, config: dict[str, Any]) -> list[Corpus]:
    """The corpora that a job's config names.

    `datasets` are names, `texts` paths of JSONL files with a `text` column, `published` paths of
    releases and corpora in the formats of `analysis.files.published`; each of `runs` (or `run`) is
    a corpus, and a dataset without one of them has its latest finished one (where there is none,
    the pairs); `groups` is
    `kept` (default), `all`, or `both`: the filtered and the unfiltered dataset, two corpora; with
    `sources`, each of them is a corpus of its own in every dataset that has it, and a dataset
    that has none of them stays whole; with `pairs`, the pairs of every dataset of which no run has
    a kept group, and no corpus a dropped one, are a corpus too. Raises NotFound, BadInput.
    """
    names, files = list(config.get("datasets") or []), list(config.get("texts") or [])
    published = [Path(path) for path in config.get("published") or []]
    by_name = _chosen_runs(session, names, config)
    if not by_name and not files and not published:
        raise BadInput(
            "nothing to analyse",
            "name a dataset, a corpus or a file of texts",
            code="texts_missing",
        )
    dataset = partial(_dataset, session)
    corpora = [
        _on_disk(dataset(name, run, filtered, source, is_one_of_several=len(by_name[name]) > 1))
        for name, source in _named(session, list(by_name), config.get("sources") or [])
        for run in by_name[name]
        for filtered in FILTERS[config.get("groups") or "kept"]
    ]
    if config.get("pairs"):
        drawn = {row.pair_id for corpus in corpora for row in corpus.texts}
        ungrown = (_on_disk(_ungrown(session, name, drawn)) for name in by_name)
        corpora += [found for found in ungrown if found.texts]
    corpora += [
        Corpus(path.stem, "texts", RowsOnDisk(texts_of(path)), INF_IR) for path in map(Path, files)
    ]
    corpora += [_on_disk(_published(session, path)) for path in published]
    seen: dict[str, int] = {}
    for place, corpus in enumerate(corpora):
        seen[corpus.name] = seen.get(corpus.name, 0) + 1
        if seen[corpus.name] > 1:
            name = f"{corpus.name} ({seen[corpus.name]})"
            corpora[place] = replace(corpus, name=name)
    return corpora


def _on_disk(corpus: Corpus) -> Corpus:
    return replace(corpus, texts=RowsOnDisk(corpus.texts))


def corpora_sha256(corpora: Sequence[Corpus], settings: dict[str, Any]) -> str:
    """The identity of an analysis: its settings and every text with its place."""
    whole = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for corpus in corpora:
        whole.update(f"\n{corpus.name}\0{corpus.kind}\0{corpus.run_id}".encode())
        for row in corpus.texts:
            whole.update(f"\n{row.field}\0{row.role}\0{row.group_id}\0{row.verdict}\0".encode())
            whole.update(text_sha256(row.text).encode())
    return whole.hexdigest()


def texts_of(path: Path) -> Iterator[CorpusText]:
    """The texts of a file with a `text` column; in the end BadInput, BadRows with each line."""
    bad: list[BadRow] = []
    found = False
    for row in read_rows(path):
        try:
            if row.reason:
                raise BadValue(row.reason)
            yield CorpusText("text", "text", text_in(row.values, "text"))
            found = True
        except BadValue as error:
            bad.append(BadRow(path.name, row.line, str(error)))
    if bad:
        raise BadRows(bad, "nothing was computed: correct these rows", code="rows_invalid")
    if not found:
        raise BadInput(
            f"{path}: holds no text",
            "give a file with a text in a line, in the column `text`",
            code="texts_missing",
        )


def _chosen_runs(
    session: Session, names: Sequence[str], config: Mapping[str, Any]
) -> dict[str, list[int | None]]:
    """The chosen runs of each dataset; None is the latest."""
    wanted = list(config.get("runs") or ())
    if config.get("run") is not None:
        wanted.append(config["run"])
    by_name: dict[str, list[int | None]] = {name: [] for name in names}
    for run_id in dict.fromkeys(wanted):
        name = session.get_one(Dataset, get_run(session, run_id).dataset_id).name
        if names and name not in names:
            raise BadInput(
                f"run {run_id} is not a run of dataset {', '.join(map(repr, names))}",
                "`runs list` has those of the dataset",
                code="run_of_another_dataset",
            )
        by_name.setdefault(name, []).append(run_id)
    return {name: runs or [None] for name, runs in by_name.items()}


def _ungrown(session: Session, name: str, drawn: set[int | None]) -> Corpus:
    """The pairs of a dataset of which no run has a kept group, without those drawn already."""
    dataset_id = get_dataset(session, name).id
    found = pair_texts(session, dataset_id, without_kept=True)
    texts = [row for row in found if row.pair_id not in drawn]
    return Corpus(f"{name}, pairs without a kept group", "pairs", texts, INF_IR, dataset_id)


def _published(session: Session, path: Path) -> Corpus:
    """A release of this store or a file from elsewhere, whose group ids are not of this store."""
    texts = read_published(path)
    known = session.scalar(select(Release.id).where(Release.path == str(path)).limit(1))
    if known is None:
        texts = [row._replace(group_id=None) for row in texts]
    name = path.stem if path.is_file() else path.name
    return Corpus(name, "published", texts, shape_of_corpus(path))


def _dataset(
    session: Session,
    name: str,
    run_id: int | None,
    filtered: tuple[str, Sequence[str]],
    source: str | None,
    *,
    is_one_of_several: bool,
) -> Corpus:
    dataset = get_dataset(session, name)
    label, verdicts = filtered
    title = name if source is None else f"{name}/{source}"
    title += (f", run {run_id}" if is_one_of_several else "") + label
    if run_id is not None:
        run = get_run(session, run_id)
    else:
        try:
            run = latest_run(session, dataset.id)
        except NotFound:
            if label:
                raise
            texts = pair_texts(session, dataset.id, source=source)
            return Corpus(title, "dataset", texts, INF_IR, dataset.id)
    shape = shape_of(session, run.id)
    texts = run_texts(session, run.id, shape, verdicts=verdicts, source=source)
    dropped = funnel(session, run.id).dropped
    if not texts:
        reasons = ", ".join(f"{reason} {number}" for reason, number in dropped.items()) or "none"
        of_source = "" if source is None else f" of source {source!r}"
        raise Refused(
            f"{title}: run {run.id} has no such group{of_source} (dropped: {reasons})",
            "choose another run with `run=`, or another source",
            code="run_without_such_groups",
        )
    return Corpus(title, "dataset", texts, shape, dataset.id, run.id, run.offline, dropped)


def _named(
    session: Session, names: Sequence[str], sources: Sequence[str]
) -> list[tuple[str, str | None]]:
    """Dataset and source of every corpus; no source: the whole dataset."""
    there = {name: pair_sources(session, get_dataset(session, name).id) for name in names}
    missing = [source for source in sources if all(source not in own for own in there.values())]
    if missing:
        known = ", ".join(sorted({source for own in there.values() for source in own})) or "none"
        raise BadInput(
            f"no pairs of source {missing[0]!r}", f"there are: {known}", code="source_unknown"
        )
    named: list[tuple[str, str | None]] = []
    for name in names:
        mine: list[str | None] = [source for source in sources if source in there[name]]
        named += [(name, source) for source in mine or [None]]
    return named
