"""Coverage: one map of the texts of one or more corpora (Figure 3a), as points to keep and draw.

Beside the picture stand numbers (see `analysis.map.manifold`), per field: how much of the map a
corpus occupies, how large its hull is, and how much of each corpus another one covers.

Note: every share grows with the number of texts (a random 200 of 900 texts "cover"
0.302 of their map), so two corpora are compared by as many texts of each, sampled with the seed, at
most half of the smaller one. Beside each share stands what the same corpus has when its one half is
compared with its other half of that size: the value of two corpora that differ in nothing.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass
from io import BytesIO
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from analysis.figures.numbers import Measure, undefined
from analysis.files.corpora import Corpus
from analysis.found.texts import CoverageNumbers, CoveredBy, FieldCovered
from analysis.map.manifold import (
    AT_ONCE,
    NEAREST,
    covered_share,
    hull_volume,
    occupied_share,
    principal_components,
)
from analysis.text.near_duplicates import firsts_of, text_hashes
from db.corpus.datasets import text_sha256
from db.corpus.texts import CorpusText
from db.errors import BadInput
from db.shape import INF_IR

if TYPE_CHECKING:
    import pandas as pd

VERSION = 6
EXCERPT = 160
POINT_BYTES = 60  # of a point without its excerpt, at least
MAX_BYTES = 1_000_000_000  # a value of SQLite, and about one of PostgreSQL
COMPARED, REPEATS = 5000, 5  # vectors of a corpus and field at most, sampled with the seed


def require_storable(corpora: Sequence[Corpus]) -> None:
    """Raise BadInput for more points than a store takes in one row, before they are computed."""
    points = sum(len(corpus.texts) for corpus in corpora)
    if points * (POINT_BYTES + 4 * EXCERPT) <= MAX_BYTES:  # a character has up to four bytes
        return
    texts = (row.text[:EXCERPT] for corpus in corpora for row in corpus.texts)
    if (size := sum(POINT_BYTES + len(text.encode()) for text in texts)) > MAX_BYTES:
        raise BadInput(
            f"a map of {points:,} points takes at least {size / 1e9:.1f} GB, and a store keeps up "
            f"to {MAX_BYTES / 1e9:.0f} GB of one",
            f"draw a sample of {int(points * MAX_BYTES / size * 0.7):,} texts",
            code="map_too_large",
        )


def points_table(
    corpora: Sequence[Corpus], places: Mapping[str, np.ndarray], fitted: Set[str]
) -> pa.Table:
    """A row per text of a corpus: x, y, fitted (the map was fitted on it; else it was placed),
    corpus, field, role, how it is drawn (`db.shape.Mark`: sign, shade, beside), verdict, source,
    group_id, pair_id, sha256, and text (its start).

    `places` are the points by text, `fitted` the texts that the map was fitted on.
    """
    every = ((corpus, row) for corpus in corpora for row in corpus.texts)
    tables, by_text = [], ByText.of(places)
    while rows := list(islice(every, AT_ONCE)):  # a million rows of Python objects take 2 GB
        tables.append(_points(rows, by_text, fitted))
    return pa.concat_tables(tables or [_points([], by_text, fitted)]).unify_dictionaries()


def _points(
    chosen: Sequence[tuple[Corpus, CorpusText]],
    places: "ByText",
    fitted: Set[str],
) -> pa.Table:
    rows = [(corpus.name, row) for corpus, row in chosen]
    marks = [corpus.shape.mark(row.field, row.role) for corpus, row in chosen]
    xy = places.rows[places.numbers_of(row.text for _, row in rows)].astype(np.float32)
    columns: dict[str, Any] = {
        "x": xy[:, 0],
        "y": xy[:, 1],
        "fitted": pa.array([row.text in fitted for _, row in rows], pa.bool_()),
        "corpus": _dictionary([name for name, _ in rows]),
        "field": _dictionary([row.field for _, row in rows]),
        "role": _dictionary([row.role for _, row in rows]),
        "sign": _dictionary([mark.sign for mark in marks]),
        "shade": pa.array([mark.shade for mark in marks], pa.int8()),
        "beside": _dictionary(["\n".join(mark.beside) for mark in marks]),
        "verdict": _dictionary([row.verdict for _, row in rows]),
        "source": _dictionary([row.source for _, row in rows]),
        "group_id": pa.array([row.group_id for _, row in rows], pa.int64()),
        "pair_id": pa.array([row.pair_id for _, row in rows], pa.int64()),
        "sha256": pa.array([bytes.fromhex(text_sha256(row.text)) for _, row in rows], pa.binary()),
        "text": pa.array([row.text[:EXCERPT] for _, row in rows], pa.large_string()),
    }
    return pa.table(columns)


def add_points(before: pa.Table, table: pa.Table) -> pa.Table:
    """A stored map and the points placed on it; a column that one of them lacks is empty there."""
    both = [before.drop_columns(["cluster"]) if "cluster" in before.column_names else before, table]
    plain = [_without_dictionaries(each) for each in both]
    return pa.concat_tables(plain, promote_options="default")


def _without_dictionaries(table: pa.Table) -> pa.Table:
    fields = [
        field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def to_bytes(table: pa.Table) -> bytes:
    """The table as an Arrow file in memory."""
    sink = BytesIO()  # its value is no copy
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def read_table(payload: bytes) -> pa.Table:
    """The points of a stored coverage analysis."""
    return pa.ipc.open_file(pa.BufferReader(payload)).read_all()


def points_frame(payload: bytes) -> "pd.DataFrame":
    """The points of a stored coverage analysis as a frame, as the page draws them."""
    table = read_table(payload)
    unshown = [name for name in ("sha256", "fitted") if name in table.column_names]
    return with_marks(table.drop_columns(unshown).to_pandas())


def with_marks(points: "pd.DataFrame") -> "pd.DataFrame":
    """The points with how each is drawn; those stored before there were shapes are InF-IR's."""
    bare = points["sign"].isna() if "sign" in points else np.ones(len(points), dtype=bool)
    if not bare.any():
        return points
    found = {
        name: points[name].to_numpy(object) if name in points else np.empty(len(points), object)
        for name in ("sign", "shade", "beside")
    }
    kinds: dict[Any, Any] = points[bare].groupby(["field", "role"], observed=True).indices
    for kind, rows in kinds.items():
        mark = INF_IR.mark(*map(str, kind))
        places = np.flatnonzero(bare)[rows]
        for name, value in zip(found, (mark.sign, mark.shade, "\n".join(mark.beside)), strict=True):
            found[name][places] = value
    return points.assign(**found).astype(
        {"shade": np.int8, "sign": "category", "beside": "category"}
    )


def fitted_places(table: pa.Table) -> dict[str, np.ndarray]:
    """The points that a stored map was fitted on, by the sha256 of their texts."""
    if "fitted" in table.column_names:
        table = table.filter(table["fitted"])
    xy = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    return {
        sha256.hex(): point for sha256, point in zip(table["sha256"].to_pylist(), xy, strict=True)
    }


@dataclass(frozen=True)
class _Field:
    """The texts of a field as points of the map and as vectors, by corpus."""

    points: Mapping[str, np.ndarray]
    vectors: "Mapping[str, VectorRows]"
    grid: np.ndarray  # every point of the field: the cells are the same for all shares


class ByText(Mapping[str, np.ndarray]):
    """Rows by text, of an array or of a file; of the texts hashes are kept alone."""

    def __init__(self, texts: Sequence[str], rows: Any) -> None:
        self.texts, self.rows = texts, rows
        hashes = text_hashes(texts)
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    @classmethod
    def of(cls, rows: Mapping[str, np.ndarray]) -> "ByText":
        """Those of a mapping."""
        return rows if isinstance(rows, cls) else cls(list(rows), np.stack(list(rows.values())))

    def placed(self, points: np.ndarray) -> "ByText":
        """Other rows of the same texts."""
        found = copy(self)
        found.rows = points
        return found

    def numbers_of(self, texts: Iterable[str]) -> np.ndarray:
        """The number of each text's row. Raises KeyError."""
        hashes = text_hashes(texts)
        at = np.searchsorted(self._hashes, hashes)
        if len(hashes) and (at.max() == len(self) or (self._hashes[at] != hashes).any()):
            raise KeyError("a text without a row")
        return self._order[at]

    def __getitem__(self, text: str) -> np.ndarray:
        row: np.ndarray = self.rows[self.numbers_of([text])][0]
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class VectorRows:
    """The vectors of some texts, read when they are needed."""

    of: Any
    numbers: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, some: slice | np.ndarray) -> np.ndarray:
        found: np.ndarray = self.of[self.numbers[some]]
        return found


def coverage_numbers(
    corpora: Sequence[Corpus],
    places: Mapping[str, np.ndarray],
    vectors: Mapping[str, np.ndarray],
    *,
    seed: int,
) -> CoverageNumbers:
    """Per corpus and field the shares of the whole, per field and two corpora those compared."""
    by_text = ByText.of(vectors)
    point_of = ByText.of(places)
    texts = {
        (corpus.name, field): found
        for corpus in corpora
        for field, found in _different(corpus, by_text).items()
    }
    at = point_of.rows  # by the numbers of the vectors
    if point_of.texts is not by_text.texts:
        at = at[point_of.numbers_of(by_text.texts)]
    fields = list(dict.fromkeys(field for _, field in texts))
    shares: dict[str, dict[str, FieldCovered]] = {}
    covered: list[CoveredBy] = []
    for field in fields:
        holding = [corpus.name for corpus in corpora if (corpus.name, field) in texts]
        points = {name: at[texts[name, field]] for name in holding}
        rows = {name: VectorRows(by_text.rows, texts[name, field]) for name in holding}
        every = np.concatenate([texts[name, field] for name in holding])
        every = every[firsts_of(every)]
        about = _Field(points, rows, at[every])
        whole = VectorRows(by_text.rows, every)
        components = principal_components(whole)
        largest = hull_volume(components.of(whole))
        hulls = {name: _share(hull_volume(components.of(rows[name])), largest) for name in holding}
        shares[field] = {
            name: FieldCovered(
                different=len(points[name]),
                occupied_share=occupied_share(points[name], about.grid),
                hull_share=hull.value,
                **({} if hull.reason is None else {"reason": hull.reason}),
            )
            for name, hull in hulls.items()
        }
        for one, other in permutations(holding, 2):
            row = {"field": field, "corpus": one, "by": other, "k": NEAREST, "repeats": REPEATS}
            covered.append(CoveredBy.model_validate(row | _compared(about, one, other, seed)))
    return CoverageNumbers(fields=shares, covered=tuple(covered))


def _compared(field: _Field, one: str, other: str, seed: int) -> dict[str, Any]:
    """Mean and standard deviation of each share over the repeats, and its mean for halves of one.

    `size`: texts of each side, at most half of the smaller corpus.
    """
    size = min(COMPARED, len(field.points[one]) // 2, len(field.points[other]) // 2)
    found: dict[str, list[Measure]] = {}
    for repeat in range(REPEATS):
        generator = np.random.default_rng([seed, repeat])
        first = generator.permutation(len(field.points[one]))
        second = generator.permutation(len(field.points[other]))
        sides = (one, first[:size]), (other, second[:size])
        halves = (one, first[:size]), (one, first[size : 2 * size])
        for suffix, (ours, theirs) in (("", sides), ("_halves", halves)):
            for name, measure in _shares(field, ours, theirs).items():
                found.setdefault(name + suffix, []).append(measure)
    row: dict[str, Any] = {"size": size}
    for name, measures in found.items():
        values = [each.value for each in measures if each.value is not None]
        row[name] = float(np.mean(values)) if len(values) == len(measures) else None
        if not name.endswith("_halves"):
            row[f"{name}_sd"] = None if row[name] is None else float(np.std(values, ddof=1))
        if row[name] is None:
            row["reason"] = next(each.reason for each in measures if each.reason)
    return row


def _shares(
    field: _Field, ours: tuple[str, np.ndarray], theirs: tuple[str, np.ndarray]
) -> dict[str, Measure]:
    """The shares of our rows (corpus, places) next to theirs."""
    if not len(ours[1]) or not len(theirs[1]):
        return dict.fromkeys(("share", "map", "hull"), undefined("one text: it has no halves"))
    points = [field.points[name][rows] for name, rows in (ours, theirs)]
    vectors = [field.vectors[name][rows] for name, rows in (ours, theirs)]
    both = np.concatenate(vectors)
    components = principal_components(both)
    hulls = [hull_volume(components.of(each)) for each in (vectors[0], both)]
    return {
        "share": covered_share(vectors[0], vectors[1]),
        "map": Measure(occupied_share(points[0], np.concatenate(points), field.grid)),
        "hull": _share(*hulls),
    }


def _share(part: Measure, whole: Measure) -> Measure:
    if part.value is None or whole.value is None:
        return undefined(part.reason or whole.reason or "")
    return Measure(part.value / whole.value)


def _different(corpus: Corpus, vectors: ByText) -> dict[str, np.ndarray]:
    """Of each field the numbers of its different texts, role by role as they first appear."""
    kinds: dict[str, dict[str, array[int]]] = {}
    numbers = vectors.numbers_of(row.text for row in corpus.texts)
    for place, row in enumerate(corpus.texts):
        kinds.setdefault(row.field, {}).setdefault(row.role, array("q")).append(place)
    found = {}
    for field, roles in kinds.items():
        mine = numbers[np.concatenate([np.array(each) for each in roles.values()])]
        found[field] = mine[firsts_of(mine)]
    return found


def _dictionary(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode()
