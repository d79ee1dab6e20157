"""Coverage: one map of the texts of one or more corpora (Figure 3a), as points to keep and draw.

Beside the picture stand numbers (see `analysis.map.manifold`), per field: how much of the map a
corpus occupies, how large its hull is, and how much of each corpus another one covers.

What would surprise: two corpora are compared by as many texts of each (sampled with the seed), as
Kynkäänniemi et al. do. The fewer texts a corpus has, the wider their neighbourhoods are: against a
whole large corpus, a small one would seem to cover most of it.
"""

from collections.abc import Mapping, Sequence, Set
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from analysis.figures.measure import Measure, undefined
from analysis.files.corpora import Corpus
from analysis.map.manifold import (
    NEAREST,
    covered_share,
    hull_volume,
    occupied_share,
    principal_components,
)
from db.corpus.datasets import text_sha256
from db.corpus.texts import CorpusText

if TYPE_CHECKING:
    import pandas as pd

VERSION = 4
EXCERPT = 160
COMPARED = 5000  # vectors of a corpus and field at most, sampled with the seed


def points_table(
    corpora: Sequence[Corpus], places: Mapping[str, np.ndarray], fitted: Set[str]
) -> pa.Table:
    """A row per text of a corpus: x, y, fitted (the map was fitted on it; else it was placed),
    corpus, field, role, verdict, source, group_id, sha256, and text (its start).

    `places` are the points by text, `fitted` the texts that the map was fitted on.
    """
    rows = [(corpus.name, row) for corpus in corpora for row in corpus.texts]
    xy = np.array([places[row.text] for _, row in rows], dtype=np.float32).reshape(-1, 2)
    columns: dict[str, Any] = {
        "x": xy[:, 0],
        "y": xy[:, 1],
        "fitted": pa.array([row.text in fitted for _, row in rows], pa.bool_()),
        "corpus": _dictionary([name for name, _ in rows]),
        "field": _dictionary([row.field for _, row in rows]),
        "role": _dictionary([row.role for _, row in rows]),
        "verdict": _dictionary([row.verdict for _, row in rows]),
        "source": _dictionary([row.source for _, row in rows]),
        "group_id": pa.array([row.group_id for _, row in rows], pa.int64()),
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
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_table(payload: bytes) -> pa.Table:
    """The points of a stored coverage analysis."""
    return pa.ipc.open_file(pa.BufferReader(payload)).read_all()


def points_frame(payload: bytes) -> "pd.DataFrame":
    """The points of a stored coverage analysis as a frame, as the page draws them."""
    table = read_table(payload)
    unshown = [name for name in ("sha256", "fitted") if name in table.column_names]
    frame: pd.DataFrame = table.drop_columns(unshown).to_pandas()
    return frame


def fitted_places(table: pa.Table) -> dict[str, np.ndarray]:
    """The points that a stored map was fitted on, by the sha256 of their texts."""
    if "fitted" in table.column_names:
        table = table.filter(table["fitted"])
    xy = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    return {
        sha256.hex(): point for sha256, point in zip(table["sha256"].to_pylist(), xy, strict=True)
    }


def coverage_numbers(
    corpora: Sequence[Corpus],
    places: Mapping[str, np.ndarray],
    vectors: Mapping[str, np.ndarray],
    *,
    seed: int,
) -> dict[str, Any]:
    """Per corpus and field the shares, per field and two corpora precision and recall."""
    texts = {
        (corpus.name, field): _different(roles.values())
        for corpus in corpora
        for field, roles in corpus.by_field().items()
    }
    fields = list(dict.fromkeys(field for _, field in texts))
    numbers: dict[str, Any] = {"fields": {}, "covered": []}
    for field in fields:
        holding = [corpus.name for corpus in corpora if (corpus.name, field) in texts]
        every = list(dict.fromkeys(t for name in holding for t in texts[name, field]))
        map_ = np.stack([places[text] for text in every])
        whole = np.stack([vectors[text] for text in every])
        components = principal_components(whole)
        largest = hull_volume(components.of(whole))
        numbers["fields"][field] = {
            name: {
                "different": len(texts[name, field]),
                "occupied_share": occupied_share(
                    np.stack([places[text] for text in texts[name, field]]), map_
                ),
                **_measure(
                    "hull_share",
                    _share(
                        hull_volume(
                            components.of(np.stack([vectors[t] for t in texts[name, field]]))
                        ),
                        largest,
                    ),
                ),
            }
            for name in holding
        }
        for one, other in permutations(holding, 2):
            size = min(COMPARED, len(texts[one, field]), len(texts[other, field]))
            ours, theirs = (
                _sampled(texts[name, field], vectors, seed, size) for name in (one, other)
            )
            numbers["covered"].append(
                {
                    "field": field,
                    "corpus": one,
                    "by": other,
                    "k": NEAREST,
                    "size": size,
                    **_measure("share", covered_share(ours, theirs)),
                }
            )
    return numbers


def _share(part: Measure, whole: Measure) -> Measure:
    if part.value is None or whole.value is None:
        return undefined(part.reason or whole.reason or "")
    return Measure(part.value / whole.value)


def _measure(name: str, measure: Measure) -> dict[str, Any]:
    entry: dict[str, Any] = {name: measure.value}
    return entry if measure.reason is None else {**entry, "reason": measure.reason}


def _different(roles: Any) -> list[str]:
    rows: list[CorpusText] = [row for each in roles for row in each]
    return list(dict.fromkeys(row.text for row in rows))


def _sampled(
    texts: Sequence[str], vectors: Mapping[str, np.ndarray], seed: int, size: int
) -> np.ndarray:
    chosen = list(texts)
    if len(texts) > size:
        places = np.random.default_rng(seed).choice(len(texts), size, replace=False)
        chosen = [texts[place] for place in np.sort(places)]
    return np.stack([vectors[text] for text in chosen])


def _dictionary(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode()
