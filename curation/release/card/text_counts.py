"""The counts of the paper's Table 1: texts by kind, distinct ones, mean words. Streaming."""

import hashlib
from array import array
from collections.abc import Mapping
from typing import Any

from curation.release.rows import kinds_of
from db.shape import Shape


class TextCounts:
    """Counts of instructions, queries and passages, every text of every group.

    Distinct texts are counted by 64 bits of BLAKE2: a million different texts are miscounted
    with a probability below 1e-7.
    """

    def __init__(self, shape: Shape) -> None:
        self._kinds = kinds_of(shape)
        self.words = dict.fromkeys(self._kinds, 0)
        self._hashes = {kind: array("Q") for kind in self._kinds}

    def add(self, row: Mapping[str, Any]) -> None:
        """Count the texts of one group."""
        for kind, columns in self._kinds.items():
            texts = [text for column in columns for text in _texts(row[column])]
            self.words[kind] += sum(len(text.split()) for text in texts)
            digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts]
            self._hashes[kind].frombytes(b"".join(digests))

    def hashes(self) -> dict[str, Any]:
        """By kind, a uint64 array with the hash of every text."""
        import numpy as np

        return {kind: np.asarray(found, dtype=np.uint64) for kind, found in self._hashes.items()}

    def take(self, words: Mapping[str, int], hashes: Mapping[str, Any]) -> None:
        """Add another's counts: its words and its hashes by kind."""
        for kind in self._kinds:
            self.words[kind] += words[kind]
            self._hashes[kind].frombytes(hashes[kind].tobytes())

    def summary(self) -> dict[str, dict[str, Any]]:
        """By kind: number, different, mean_words (None without texts)."""
        import numpy as np

        return {
            kind: {
                "number": len(hashes),
                "different": int(np.unique(hashes).size),
                "mean_words": self.words[kind] / len(hashes) if len(hashes) else None,
            }
            for kind, hashes in self.hashes().items()
        }


def _texts(value: Any) -> list[str]:
    """The text of a slot, or those of a list, which are named."""
    return [value] if isinstance(value, str) else [text for _, text in value]
