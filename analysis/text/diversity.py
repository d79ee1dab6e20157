"""Diversity of corpora (Figure 3b) and their row of Table 1, by field and role.

Per field and role: how many texts and how many different ones, their mean length in words (split
at white space), APS and INGF of 2- and 3-grams. Every text counts, duplicates too: a corpus that
repeats itself is less diverse.

APS is the mean cosine similarity over all unordered pairs of texts; lower is more diverse:

    APS = sum_{i<j} u_i · u_j / (n (n - 1) / 2) = (‖sum u_i‖² - n) / (n (n - 1)),  ‖u_i‖ = 1

The closed form is exact and needs one pass and one vector of memory, no n² anywhere. Computed in
float64 over blocks; vectors are normalised here whatever they come as. [1,0], [0,1], [1,1] give
(2 + 2 · 0.7071…)/… = 0.4714045. Undefined for fewer than two vectors and where a vector is zero
(it has no direction).

Note: INGF grows with the number of texts, so corpora are compared on samples of one
size (`sampled`: mean and standard deviation over repeats, taken without replacement), at most half
of the smallest corpus, so that two disjoint samples of every corpus (`halves`) have that size, too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from analysis.figures.numbers import Measure, undefined
from analysis.files.corpora import Corpus
from analysis.found.texts import (
    CorpusDiversity,
    FieldNumbers,
    Halves,
    Sampled,
    Spread,
    TextNumbers,
)
from analysis.text.ingf import inverse_ngram_frequency
from db.corpus.texts import CorpusText
from db.shape import INF_IR

VERSION = 5  # of the definitions here: a change makes stored results another analysis
BLOCK = 8192  # vectors
METRICS = ("aps", "ingf_2", "ingf_3")
Vectors = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class Sampling:
    """How samples are taken: `size` per field (None: the field is not sampled)."""

    size: Mapping[str, int | None]
    repeats: int
    seed: int


def sample_sizes(corpora: Sequence[Corpus], size: int | None) -> dict[str, int | None]:
    """The sample size of each field: the given one, else half of the smallest corpus that has it.

    Without a given size, a field that only one corpus has is not sampled.
    """
    counts: dict[str, list[int]] = {}
    for corpus in corpora:
        for field, roles in corpus.by_field().items():
            counts.setdefault(field, []).append(sum(len(rows) for rows in roles.values()))
    if size is not None:
        return dict.fromkeys(counts, size)
    return {
        field: max(1, min(each) // 2) if len(each) > 1 else None for field, each in counts.items()
    }


def describe_corpus(
    corpus: Corpus, vectors: Vectors, sampling: Sampling | None = None
) -> CorpusDiversity:
    """The numbers of a corpus.

    `vectors` gives the vectors of texts, shape (texts, dimensions).
    """
    return CorpusDiversity(
        corpus=corpus.name,
        kind=corpus.kind,
        run_id=corpus.run_id,
        offline=corpus.offline,
        dropped=None if corpus.dropped is None else dict(corpus.dropped),
        groups=len({row.group_id for row in corpus.texts if row.group_id is not None}),
        fields={
            field: FieldNumbers(
                **_whole_and_sampled(
                    field, _texts(list(chain.from_iterable(roles.values()))), vectors, sampling
                ),
                by_role={
                    role: _signed(describe_texts(_texts(rows), vectors), corpus, field, role)
                    for role, rows in roles.items()
                },
            )
            for field, roles in corpus.by_field().items()
        },
    )


def _signed(found: TextNumbers, corpus: Corpus, field: str, role: str) -> TextNumbers:
    """With the sign of its texts, where it is not the one that InF-IR has for field and role."""
    sign = corpus.shape.mark(field, role).sign
    is_known = sign == INF_IR.mark(field, role).sign
    return found if is_known else found.model_copy(update={"sign": sign})


def describe_sample(
    texts: Sequence[str], vectors: Vectors, *, size: int, repeats: int, seed: int
) -> Sampled:
    """APS and INGF of samples of one size: mean and standard deviation (ddof 1) over the repeats.

    Undefined, with a reason, where there are fewer texts than the sample asks for.
    """
    sampled: dict[str, Any] = {"size": size, "repeats": repeats, "seed": seed}
    if len(texts) < size:
        reason = f"{len(texts)} texts are fewer than the sample of {size}"
        nothing: dict[str, Any] = dict.fromkeys(METRICS)
        return Sampled(**sampled, **nothing, reason=dict.fromkeys(METRICS, reason))
    found: dict[str, list[float]] = {name: [] for name in METRICS}
    reasons: dict[str, str] = {}
    for repeat in range(repeats if size < len(texts) else 1):
        places = np.random.default_rng([seed, repeat]).choice(len(texts), size, replace=False)
        numbers = describe_texts([texts[place] for place in np.sort(places)], vectors)
        reasons |= numbers.reason
        for name in METRICS:
            if (value := getattr(numbers, name)) is not None:
                found[name].append(value)
    for name, values in found.items():
        if name in reasons:
            sampled[name] = None
        else:
            # one draw (asked for, or as the sample is the whole corpus) has no spread, not one of 0
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
            sampled[name] = Spread(mean=float(np.mean(values)), sd=spread, draws=len(values))
    return Sampled(**sampled | ({"reason": reasons} if reasons else {}))


def describe_halves(
    texts: Sequence[str], vectors: Vectors, *, size: int, repeats: int, seed: int
) -> Halves:
    """How far two disjoint samples of one corpus differ: the mean absolute difference per metric.

    `size` texts each, as the samples of `describe_sample`: INGF of other sizes is another measure.
    What two corpora differ by says nothing where it is no more than this. None, with a reason,
    where a corpus is smaller than two samples; None where a metric is undefined in a half.
    """
    if len(texts) < 2 * size:
        reason = f"{len(texts)} texts are fewer than two samples of {size}"
        return Halves(size=size, repeats=repeats, aps=None, ingf_2=None, ingf_3=None, reason=reason)
    found: dict[str, list[float | None]] = {name: [] for name in METRICS}
    for repeat in range(repeats):
        places = np.random.default_rng([seed, repeat, 1]).permutation(len(texts))
        one, other = (
            describe_texts([texts[place] for place in np.sort(part)], vectors)
            for part in (places[:size], places[size : 2 * size])
        )
        for name, values in found.items():
            both = getattr(one, name), getattr(other, name)
            values.append(None if None in both else abs(both[0] - both[1]))
    means: dict[str, Any] = {
        name: None
        if not values or None in values
        else float(np.mean([v for v in values if v is not None]))
        for name, values in found.items()
    }
    return Halves(size=size, repeats=repeats, **means)


def describe_texts(texts: Sequence[str], vectors: Vectors) -> TextNumbers:
    """Counts, mean length, APS and INGF; an undefined metric is None, with a `reason` by name."""
    two, three = inverse_ngram_frequency(texts)
    measures = dict(
        zip(METRICS, (average_pairwise_similarity(vectors(texts)), two, three), strict=True)
    )
    numbers: dict[str, Any] = {
        "texts": len(texts),
        "different": len(set(texts)),
        "mean_words": sum(len(text.split()) for text in texts) / len(texts) if texts else None,
        **{name: measure.value for name, measure in measures.items()},
    }
    reasons = {name: measure.reason for name, measure in measures.items() if measure.reason}
    return TextNumbers(**numbers | ({"reason": reasons} if reasons else {}))


def _whole_and_sampled(
    field: str, texts: Sequence[str], vectors: Vectors, sampling: Sampling | None
) -> dict[str, Any]:
    whole = describe_texts(texts, vectors).as_json()
    size = sampling.size.get(field) if sampling else None
    if sampling is None or size is None:
        return whole
    sampled = describe_sample(
        texts, vectors, size=size, repeats=sampling.repeats, seed=sampling.seed
    )
    halves = describe_halves(
        texts, vectors, size=size, repeats=sampling.repeats, seed=sampling.seed
    )
    return {**whole, "sampled": sampled, "halves": halves}


def _texts(rows: Sequence[CorpusText]) -> list[str]:
    return [row.text for row in rows]


class ApsSum:
    """APS of a stream of vectors in constant memory: add blocks, then measure."""

    def __init__(self) -> None:
        self.count = 0
        self.zeros = 0
        self._sum: np.ndarray | None = None

    def add(self, vectors: np.ndarray) -> None:
        """Add vectors, shape (texts, dimensions)."""
        for start in range(0, len(vectors), BLOCK):
            block = np.asarray(vectors[start : start + BLOCK], dtype=np.float64)
            norms = np.sqrt(np.einsum("nd,nd->n", block, block))
            self.zeros += int((norms == 0).sum())
            norms[norms == 0] = 1.0
            # sum of block / norm as one product: no second block in memory
            part = (1.0 / norms) @ block
            self._sum = part if self._sum is None else self._sum + part
            self.count += len(block)

    def measure(self) -> Measure:
        """APS of what was added."""
        if self.count < 2:
            return undefined("fewer than two texts")
        if self.zeros:
            return undefined(f"{self.zeros} texts have a vector of length zero")
        assert self._sum is not None
        squared = float(self._sum @ self._sum)
        return Measure((squared - self.count) / (self.count * (self.count - 1)))


def average_pairwise_similarity(vectors: np.ndarray | Iterable[np.ndarray]) -> Measure:
    """APS of vectors, shape (texts, dimensions), or of a stream of such blocks."""
    total = ApsSum()
    for block in [vectors] if isinstance(vectors, np.ndarray) else vectors:
        total.add(block)
    return total.measure()
