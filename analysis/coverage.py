"""Coverage: one map of the texts of one or more corpora (Figure 3a), as points to keep and draw."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from analysis.corpora import Corpus

if TYPE_CHECKING:
    import pandas as pd

VERSION = 1
EXCERPT = 160


def points_table(corpora: Sequence[Corpus], places: dict[str, np.ndarray]) -> pa.Table:
    """A row per text of a corpus: x, y, corpus, field, role, verdict, group_id, text (its start).

    `places` are the points by text.
    """
    rows = [(corpus.name, row) for corpus in corpora for row in corpus.texts]
    xy = np.array([places[row.text] for _, row in rows], dtype=np.float32).reshape(-1, 2)
    columns: dict[str, Any] = {
        "x": xy[:, 0],
        "y": xy[:, 1],
        "corpus": _words([name for name, _ in rows]),
        "field": _words([row.field for _, row in rows]),
        "role": _words([row.role for _, row in rows]),
        "verdict": _words([row.verdict for _, row in rows]),
        "group_id": pa.array([row.group_id for _, row in rows], pa.int64()),
        "text": pa.array([row.text[:EXCERPT] for _, row in rows], pa.large_string()),
    }
    return pa.table(columns)


def to_bytes(table: pa.Table) -> bytes:
    """The table as an Arrow file in memory."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def points_frame(payload: bytes) -> "pd.DataFrame":
    """The points of a stored coverage analysis as a frame."""
    frame: pd.DataFrame = pa.ipc.open_file(pa.BufferReader(payload)).read_all().to_pandas()
    return frame


def _words(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode()
