"""INGF: how evenly n-grams are used (DQI component 2, term 1; Mishra et al. 2020); higher is more
diverse.

    INGF_n = U / std(c)

c(g) counts n-gram g over all texts, U is the number of different n-grams, std the sample standard
deviation (ddof 1). A text loses `'`, `.` and `,`, is lower-cased and split on single spaces (two
spaces in a row make an empty token, as in the published code); n-grams do not cross texts.
Undefined with fewer than two different n-grams and where all counts are equal (std 0).

Note: it grows with the number of texts, and even the order of two corpora can flip:
compare samples of equal size only. Exact at any size: tokens are numbered and n-grams packed into
64-bit numbers, no hash that could collide.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.figures.numbers import Measure, undefined

TEXTS_AT_ONCE = 20_000
FEW = "fewer than two different {n}-grams"
EVEN = "every {n}-gram occurs equally often: the standard deviation is zero"


def inverse_ngram_frequency(texts: Iterable[str]) -> list[Measure]:
    """INGF of the texts for n-grams of two and of three words."""
    return inverse_frequency_of_tokens(*number_tokens(texts))


def inverse_frequency_of_tokens(
    tokens: np.ndarray, lengths: np.ndarray, sizes: tuple[int, ...] = (2, 3)
) -> list[Measure]:
    """The same of numbered tokens, shape (tokens,), and the texts' lengths, shape (texts,)."""
    words = int(tokens.max()) + 1 if len(tokens) else 0
    keys, found = tokens.astype(np.uint64), []
    distinct, size = words, 1
    for wanted in sizes:
        while size < wanted:
            keys, distinct = _one_longer(keys, distinct, tokens, words, size)
            size += 1
        starts = keys[_starts_inside(lengths, size, len(tokens))]
        found.append(_measure(starts, size))
    return found


def clean(text: str) -> str:
    """The text as DQI counts it: without apostrophes, full stops and commas, in lower case."""
    return text.replace("'", "").replace(".", "").replace(",", "").lower()


def number_tokens(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """All tokens as numbers, text after text (int32), and how many each text has (int64)."""
    vocabulary: dict[str, int] = {}
    parts: list[np.ndarray] = []
    lengths: list[np.ndarray] = []
    for block in _blocks(texts):
        split = pc.split_pattern(pa.array([clean(text) for text in block], pa.large_string()), " ")
        encoded = pc.dictionary_encode(split.flatten())
        numbers = np.array(
            [
                vocabulary.setdefault(word, len(vocabulary))
                for word in encoded.dictionary.to_pylist()
            ],
            dtype=np.int32,
        )
        parts.append(numbers[encoded.indices.to_numpy()])
        lengths.append(pc.list_value_length(split).to_numpy().astype(np.int64))
    if not parts:
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    return np.concatenate(parts), np.concatenate(lengths)


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while block := list(islice(stream, TEXTS_AT_ONCE)):
        yield block


def _one_longer(
    keys: np.ndarray, distinct: int, tokens: np.ndarray, words: int, size: int
) -> tuple[np.ndarray, int]:
    """The n-grams one token longer, still one per token place (those past the end are unused).

    A key is key × words + next token; where that would not fit into 64 bits, keys are first
    replaced by their rank among the different ones.
    """
    if distinct * words >= 2**63:
        different, keys = np.unique(keys, return_inverse=True)
        keys, distinct = keys.astype(np.uint64), len(different)
    following = np.zeros(len(tokens), dtype=np.uint64)
    following[: len(tokens) - size] = tokens[size:]
    return keys * np.uint64(words) + following, distinct * words


def _starts_inside(lengths: np.ndarray, size: int, total: int) -> np.ndarray:
    """Which token places begin an n-gram that ends within its text: bool per token."""
    inside = np.ones(total, dtype=bool)
    ends = np.cumsum(lengths)
    for back in range(1, size):
        inside[ends[lengths >= back] - back] = False
    return inside


def _measure(keys: np.ndarray, size: int) -> Measure:
    keys.sort()
    edges = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    counts = np.diff(np.concatenate([[0], edges, [len(keys)]])) if len(keys) else np.zeros(0)
    if len(counts) < 2:
        return undefined(FEW.format(n=size))
    if counts.min() == counts.max():
        return undefined(EVEN.format(n=size))
    return Measure(float(len(counts) / counts.std(ddof=1)))
