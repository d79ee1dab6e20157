"""What the paper's Table 1 counts: texts by kind, how many differ, words on average. Streaming."""

from array import array
from collections.abc import Mapping
from typing import Any

from curation.release_rows import KINDS

WORD_BITS = 2**64 - 1


class TextCounts:
    """Counts of instructions, queries and passages, every text of every group.

    Different texts are told apart by a 64-bit hash of this process: a million different texts are
    miscounted with a probability below 1e-7.
    """

    def __init__(self) -> None:
        self._words = dict.fromkeys(KINDS, 0)
        self._hashes = {kind: array("Q") for kind in KINDS}

    def add(self, row: Mapping[str, Any]) -> None:
        """Count the texts of one group."""
        for kind, columns in KINDS.items():
            hashes = self._hashes[kind]
            for column in columns:
                text = row[column]
                self._words[kind] += len(text.split())
                hashes.append(hash(text) & WORD_BITS)

    def summary(self) -> dict[str, dict[str, Any]]:
        """By kind: number, different, mean_words (None where there is no text)."""
        import numpy as np

        return {
            kind: {
                "number": len(hashes),
                "different": int(np.unique(np.frombuffer(hashes, dtype=np.uint64)).size)
                if hashes
                else 0,
                "mean_words": self._words[kind] / len(hashes) if hashes else None,
            }
            for kind, hashes in self._hashes.items()
        }
