"""Diversity of corpora (Figure 3b) and their row of Table 1, by field and role.

Per field and role: how many texts and how many different ones, their mean length in words (split
at white space), APS and INGF of 2- and 3-grams. Every text counts, duplicates too: a corpus that
repeats itself is less diverse.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from analysis.aps import average_pairwise_similarity
from analysis.corpora import Corpus
from analysis.ingf import inverse_ngram_frequency
from db.corpus_texts import CorpusText

VERSION = 1  # of the definitions here: a change makes stored results another analysis
METRICS = ("aps", "ingf_2", "ingf_3")


def describe_corpus(
    corpus: Corpus, vectors: Callable[[Sequence[str]], np.ndarray]
) -> dict[str, Any]:
    """The numbers of a corpus as `--json` prints them.

    `vectors` gives the vectors of texts, shape (texts, dimensions).
    """
    return {
        "corpus": corpus.name,
        "kind": corpus.kind,
        "run_id": corpus.run_id,
        "offline": corpus.offline,
        "groups": len({row.group_id for row in corpus.texts if row.group_id is not None}),
        "fields": {
            field: {
                **describe_texts(_texts(list(chain.from_iterable(roles.values()))), vectors),
                "by_role": {
                    role: describe_texts(_texts(rows), vectors) for role, rows in roles.items()
                },
            }
            for field, roles in corpus.by_field().items()
        },
    }


def describe_texts(
    texts: Sequence[str], vectors: Callable[[Sequence[str]], np.ndarray]
) -> dict[str, Any]:
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
    return {**numbers, "reason": reasons} if reasons else numbers


def _texts(rows: Sequence[CorpusText]) -> list[str]:
    return [row.text for row in rows]
