"""Leakage: can negatives be recognised without seeing the query or the instruction?

A group's texts leak where its own writing gives them away: a model can then learn that "passages
that sound like this are wrong" instead of following instructions. A linear classifier that sees one
text alone (word 1- and 2-grams, character 2- to 4-grams, length) is trained to tell P1- and P2-
from P+, and I- from I+; its AUC is the measure (0.5: chance, 1: every negative is recognisable).

- Cross-validation: pairs are the units. All texts of one pair are in one fold (several groups of a
  pair share P+, and its variants share their subject), and a text is scored by a classifier that
  saw no text of its pair; vocabularies are made from the training folds alone.
- AUC: only texts of the same fold are compared, since scores of two classifiers have no common
  scale; folds are weighted by their number of comparisons. Ties count one half.
- Interval: 95 % percentile bootstrap over pairs, within folds. It has the variation from which
  pairs there are, not that of training again.
- Length alone: the AUC of the number of characters, turned to the side on which it separates (so it
  is at least 0.5); nothing is trained for it.

A text that is there twice in a pair on the same side counts once. A text that stands on both sides
stays on both.
"""

import importlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from db.extras import missing_extra

VERSION = 1  # of the definitions here: a change makes stored results another analysis
WARN_ABOVE = 0.8
MIN_PAIRS = 20
MAX_PAIRS = 400  # a minute or so; the interval is then about ±0.03
FOLDS = 5
RESAMPLES = 1000
FEATURES_SHOWN = 8
MAX_FEATURES = 20_000


@dataclass(frozen=True)
class LabelledText:
    """A text of a pair; `negative`: it was written to be wrong for the pair's (I+, Q+)."""

    pair: str
    text: str
    negative: bool


def lacking_package() -> str:
    """What to install where scikit-learn is missing, "" where it is there."""
    try:
        importlib.import_module("sklearn.linear_model")
    except ModuleNotFoundError as error:
        if message := missing_extra(error):
            return message
        raise
    return ""


def leakage_report(
    comparisons: Mapping[str, Sequence[LabelledText]],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> dict[str, Any]:
    """The report over comparisons by name ("P1- / P+"), as `--json` prints it.

    `leaks` names those whose AUC is above WARN_ABOVE.
    """
    found = {
        name: compare_texts(texts, seed=seed, resamples=resamples)
        for name, texts in comparisons.items()
    }
    leaks = [name for name, one in found.items() if (one["auc"] or 0.0) > WARN_ABOVE]
    return {"version": VERSION, "seed": seed, "warn_above": WARN_ABOVE, "comparisons": found} | {
        "leaks": leaks
    }


def compare_texts(
    texts: Sequence[LabelledText], *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """AUC with its interval, n, AUC of length alone, and the strongest features of both sides.

    `auc` is None with a `reason` where fewer than MIN_PAIRS pairs have both sides, or the extra
    [analyze] is missing.
    """
    texts = sampled_pairs(list(dict.fromkeys(texts)), seed)
    pairs = sorted({one.pair for one in texts})
    counts = {
        "pairs": len(pairs),
        "negatives": sum(one.negative for one in texts),
        "positives": sum(not one.negative for one in texts),
    }
    if len(pairs) < MIN_PAIRS:
        reason = f"{len(pairs)} pairs with both texts: at least {MIN_PAIRS} are needed"
        return {**counts, "auc": None, "interval": None, "length_auc": None, "reason": reason}
    if reason := lacking_package():
        return {**counts, "auc": None, "interval": None, "length_auc": None, "reason": reason}
    labels = np.array([one.negative for one in texts])
    fold_of = assign_folds(pairs, seed)
    folds = np.array([fold_of[one.pair] for one in texts])
    scores = np.zeros(len(texts))
    counted = _Counted.of([one.text for one in texts])
    for fold in range(FOLDS):
        inside = folds == fold
        fitted, _, features = _fit(counted, labels, np.flatnonzero(~inside))
        scores[inside] = fitted.decision_function(features(np.flatnonzero(inside)))
    place = {pair: number for number, pair in enumerate(pairs)}
    clusters = np.array([place[one.pair] for one in texts])
    lengths = np.array([float(len(one.text)) for one in texts])
    length_auc = within_fold_auc(lengths, labels, np.zeros_like(folds))
    return {
        **counts,
        "auc": within_fold_auc(scores, labels, folds),
        "interval": _interval(scores, labels, folds, clusters, seed, resamples),
        "length_auc": max(length_auc, 1.0 - length_auc),
        "features": _strongest(counted, labels),
    }


def sampled_pairs(texts: Sequence[LabelledText], seed: int) -> list[LabelledText]:
    """The texts of at most MAX_PAIRS pairs that have both a positive and a negative."""
    sides: dict[str, set[bool]] = {}
    for one in texts:
        sides.setdefault(one.pair, set()).add(one.negative)
    both = sorted(pair for pair, found in sides.items() if len(found) == 2)
    if len(both) > MAX_PAIRS:
        both = random.Random(seed).sample(both, MAX_PAIRS)
    chosen = set(both)
    return [one for one in texts if one.pair in chosen]


def assign_folds(pairs: Sequence[str], seed: int) -> dict[str, int]:
    """A fold for every pair, evenly many, by the seed."""
    order = sorted(set(pairs))
    random.Random(seed).shuffle(order)
    return {pair: number % FOLDS for number, pair in enumerate(order)}


def within_fold_auc(
    scores: np.ndarray, labels: np.ndarray, folds: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """P(score of a negative > score of a positive) over pairs of texts of the same fold.

    scores, labels (True: negative), folds, weights: (n,). NaN where there is nothing to compare.
    """
    weights = np.ones(len(scores)) if weights is None else weights
    won = compared = 0.0
    for fold in np.unique(folds):
        inside = folds == fold
        _, rank = np.unique(scores[inside], return_inverse=True)
        size = int(rank.max()) + 1
        here, mine = labels[inside], weights[inside]
        negative = np.bincount(rank[here], mine[here], size)
        positive = np.bincount(rank[~here], mine[~here], size)
        below = np.cumsum(positive) - positive
        won += float(np.sum(negative * (below + 0.5 * positive)))
        compared += float(negative.sum() * positive.sum())
    return won / compared if compared else float("nan")


def _interval(
    scores: np.ndarray,
    labels: np.ndarray,
    folds: np.ndarray,
    clusters: np.ndarray,
    seed: int,
    resamples: int,
) -> list[float] | None:
    if not resamples:
        return None
    chance = np.random.default_rng(seed)
    number = int(clusters.max()) + 1
    fold_of = np.zeros(number, dtype=int)
    fold_of[clusters] = folds
    members = [np.flatnonzero(fold_of == fold) for fold in np.unique(folds)]
    found = []
    for _ in range(resamples):
        resampled = np.concatenate([chance.choice(each, len(each)) for each in members])
        times = np.bincount(resampled, minlength=number).astype(float)
        found.append(within_fold_auc(scores, labels, folds, times[clusters]))
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return [float(low), float(high)]


@dataclass(frozen=True)
class _Counted:
    """N-grams of all texts, counted once; columns are sorted by their n-gram.

    words, characters: (n, n-grams) sparse counts; names: of the words' columns; lengths: (n, 2).
    """

    words: Any
    characters: Any
    names: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str]) -> "_Counted":
        from sklearn.feature_extraction.text import CountVectorizer

        words = CountVectorizer(ngram_range=(1, 2))
        characters = CountVectorizer(analyzer="char_wb", ngram_range=(2, 4))
        return cls(
            words.fit_transform(texts),
            characters.fit_transform(texts),
            words.get_feature_names_out(),
            _lengths(texts),
        )


def _lengths(texts: Sequence[str]) -> np.ndarray:
    """(n, 2): logarithms of the numbers of characters and of words."""
    counts = np.array([[len(text), len(text.split())] for text in texts], dtype=float)
    logs: np.ndarray = np.log1p(counts)
    return logs


def _vocabulary(counts: Any, rows: np.ndarray) -> np.ndarray:
    """The columns that these rows have, at most MAX_FEATURES by frequency; as TfidfVectorizer."""
    frequency = np.asarray(counts[rows].sum(axis=0)).ravel()
    columns = np.flatnonzero(frequency)
    if len(columns) > MAX_FEATURES:
        columns = np.sort(columns[(-frequency[columns]).argsort()[:MAX_FEATURES]])
    return columns


def _fit(
    counted: _Counted, labels: np.ndarray, rows: np.ndarray
) -> tuple[Any, np.ndarray, Callable[[np.ndarray], Any]]:
    """The classifier trained on these rows, the columns of its words, and its features of rows.

    Vocabularies, weights of n-grams and scales come from the rows of the training alone.
    """
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    weighted = []
    for counts in (counted.words, counted.characters):
        columns = _vocabulary(counts, rows)
        tfidf = TfidfTransformer(sublinear_tf=True).fit(counts[rows][:, columns])
        weighted.append((counts, columns, tfidf))
    scaler = StandardScaler().fit(counted.lengths[rows])

    def features(wanted: np.ndarray) -> Any:
        parts = [tfidf.transform(counts[wanted][:, columns]) for counts, columns, tfidf in weighted]
        lengths = sparse.csr_matrix(scaler.transform(counted.lengths[wanted]))
        return sparse.hstack([*parts, lengths], format="csr")

    model = LogisticRegression(
        C=1.0, class_weight="balanced", solver="liblinear", random_state=0
    ).fit(features(rows), labels[rows])
    return model, weighted[0][1], features


def _strongest(counted: _Counted, labels: np.ndarray) -> dict[str, list[str]]:
    """The words and word pairs with the largest weights for each side, over all texts."""
    model, columns, _ = _fit(counted, labels, np.arange(len(labels)))
    words = counted.names[columns]
    weights = model.coef_[0][: len(words)]
    order = np.argsort(weights)
    return {
        "negative": [str(words[place]) for place in order[::-1][:FEATURES_SHOWN]],
        "positive": [str(words[place]) for place in order[:FEATURES_SHOWN]],
    }
