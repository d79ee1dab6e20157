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
- Interval: Wilson's at n_eff values, 1 / n_eff = B / (A (1 - A)) + 4 T. A is the AUC, B its
  variance from which pairs were scored (influence of each pair, the classifiers as they are), T the
  variance that training adds. Where labels mean nothing, the two are about equal, so that B alone
  holds 0.5 in 80 to 90 % of sets: T is the variance of the AUC over permutations of the labels
  within pairs, with training again, less the mean B of these permutations. It shrinks with
  A (1 - A), as a classifier that separates everything cannot do so by chance. Where this interval
  excludes 0.5, labels mean something, and training varies less: T exp(-z^2) in place of
  4 A (1 - A) T, z the normal quantile of A (delta method: the same change of direction moves the
  AUC by the normal density at z, not at 0). Coverage by simulation: bench/leakage_coverage.py,
  docs/intervals.md.
- The same texts give the same figures, whatever their order and the ids of their groups: pairs are
  sampled and put into folds by a hash of their name, so that leaving out a few moves no other.
- Length alone: the AUC of the number of characters, turned to the side on which it separates (so it
  is at least 0.5); nothing is trained for it.

A text that is there twice in a pair on the same side counts once. A text that stands on both sides
stays on both.
"""

import hashlib
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from analysis.figures.means import share_interval
from analysis.text.words import TOKEN
from db.extras import missing_extra

VERSION = 3  # of the definitions here: a change makes stored results another analysis
WARN_ABOVE = 0.8
MIN_PAIRS = 20
MAX_PAIRS = 400  # a minute or so; the interval is then about ±0.03
FOLDS = 5
PERMUTATIONS = 200
CONVERGED = 1e-5  # of a score, which is of the order of 1
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
        if found := missing_extra(error):
            return str(found)
        raise
    return ""


def leakage_report(
    comparisons: Mapping[str, Sequence[LabelledText]],
    *,
    seed: int = 0,
    permutations: int = PERMUTATIONS,
) -> dict[str, Any]:
    """The report over comparisons by name ("P1- / P+"), as `--json` prints it.

    `leaks` names those whose AUC is above WARN_ABOVE.
    """
    found = {
        name: compare_texts(texts, seed=seed, permutations=permutations)
        for name, texts in comparisons.items()
    }
    leaks = [name for name, one in found.items() if (one["auc"] or 0.0) > WARN_ABOVE]
    return {"version": VERSION, "seed": seed, "warn_above": WARN_ABOVE, "comparisons": found} | {
        "leaks": leaks
    }


def compare_texts(
    texts: Sequence[LabelledText], *, seed: int = 0, permutations: int = PERMUTATIONS
) -> dict[str, Any]:
    """AUC with its interval, n, AUC of length alone, and the strongest features of both sides.

    `auc` is None with a `reason` where fewer than MIN_PAIRS pairs have both sides, or the extra
    [analyze] is missing.
    """
    texts = sampled_pairs(texts, seed)
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
    place = {pair: number for number, pair in enumerate(pairs)}
    clusters = np.array([place[one.pair] for one in texts])
    folds = np.array([fold_of(pair, seed) for pair in pairs])[clusters]
    scores = np.zeros(len(texts))
    counted = _Counted.of([one.text for one in texts])
    again = permuted_labels(labels, clusters, permutations, seed)  # (permutations, n)
    scores_again = np.zeros(again.shape)
    for fold in np.unique(folds):
        inside, rows = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        fitted, _, features = _fit(counted, labels, rows)
        learned, held_out = features(rows), features(inside)
        scores[inside] = fitted.decision_function(held_out)
        if permutations:
            # 1 is liblinear's constant feature, whose weight is shrunk like the others'
            kernel, across = (learned @ learned.T).toarray() + 1, held_out @ learned.T
            weights = kernel_logistic(kernel, again[:, rows])
            scores_again[:, inside] = weights @ (across.toarray().T + 1)
    lengths = np.array([float(len(one.text)) for one in texts])
    length_auc, _ = clustered_auc(lengths, labels, np.zeros_like(folds), clusters)
    auc, variance = clustered_auc(scores, labels, folds, clusters)
    found = [
        clustered_auc(scored, given, folds, clusters)
        for scored, given in zip(scores_again, again, strict=True)
    ]
    return {
        **counts,
        "auc": auc,
        "interval": _interval(auc, variance, np.array(found), len(pairs)) if found else None,
        "length_auc": max(length_auc, 1.0 - length_auc),
        "features": _strongest(counted, labels),
    }


def sampled_pairs(texts: Sequence[LabelledText], seed: int) -> list[LabelledText]:
    """The texts, each once and in order, of at most MAX_PAIRS pairs that have both a positive and a
    negative: those with the smallest hashes, so that one left out brings one other in."""
    sides: dict[str, set[bool]] = {}
    for one in texts:
        sides.setdefault(one.pair, set()).add(one.negative)
    both = (pair for pair, found in sides.items() if len(found) == 2)
    chosen = set(sorted(both, key=lambda pair: _hash(pair, seed))[:MAX_PAIRS])
    kept = {one for one in texts if one.pair in chosen}
    return sorted(kept, key=lambda one: (one.pair, one.negative, one.text))


def fold_of(pair: str, seed: int) -> int:
    """The fold of a pair: the same whichever other pairs there are."""
    return _hash(f"fold {pair}", seed) % FOLDS


def _hash(name: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big")


def permuted_labels(
    labels: np.ndarray, clusters: np.ndarray, permutations: int, seed: int
) -> np.ndarray:
    """The labels (n,), permuted within each cluster: (permutations, n)."""
    chance = np.random.default_rng(seed)
    order = np.argsort(clusters, kind="stable")
    found = np.empty((permutations, len(labels)), dtype=bool)
    for row in found:
        # random keys sort each cluster's texts anew, and clusters stay in their places
        row[order] = labels[np.lexsort((chance.random(len(labels)), clusters))]
    return found


def kernel_logistic(kernel: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Weights of training texts whose sums with a kernel are the scores of logistic regression.

    kernel: (n, n); labels: (fits, n), each with as many of both sides; returns (fits, n). Minimises
    what `_fit` does, f K^-1 f / 2 + sum c log(1 + exp(-y f)) with balanced c, for all labellings at
    once: the logistic loss is replaced by its quadratic upper bound at the last scores (Böhning and
    Lindsay 1988), so that one matrix serves every step.
    """
    signs = np.where(labels, 1.0, -1.0)
    negatives = labels.sum(axis=1, keepdims=True)
    size = labels.shape[1]
    costs = np.where(labels, size / (2 * negatives), size / (2 * (size - negatives)))
    bound = 4 / costs.max()
    solved = np.linalg.inv(kernel + bound * np.eye(size))
    step = solved @ kernel
    scores = np.zeros_like(signs)
    targets = scores
    for _ in range(1000):
        targets = scores + bound * costs * signs / (1 + np.exp(signs * scores))
        before, scores = scores, targets @ step
        if np.abs(scores - before).max() < CONVERGED:
            break
    return np.asarray(targets @ solved)


def clustered_auc(
    scores: np.ndarray, labels: np.ndarray, folds: np.ndarray, clusters: np.ndarray
) -> tuple[float, float]:
    """P(score of a negative > score of a positive) over texts of the same fold, and its variance.

    scores, labels (True: negative), folds, clusters: (n,). The variance is the sum of squares of
    the clusters' influences, the scores as they are. NaN where there is nothing to compare.
    """
    won, compared = np.zeros(len(scores)), np.zeros(len(scores))  # by text, of its comparisons
    for fold in np.unique(folds):
        for side in (True, False):
            mine = np.flatnonzero((folds == fold) & (labels == side))
            others = np.sort(scores[(folds == fold) & (labels != side)])
            below = np.searchsorted(others, scores[mine], "left")
            upto = np.searchsorted(others, scores[mine], "right")
            wins = (below + upto) / 2
            won[mine] = wins if side else len(others) - wins
            compared[mine] = len(others)
    total = compared.sum()  # each comparison twice: by its negative and by its positive
    if not total:
        return float("nan"), float("nan")
    auc = float(won.sum() / total)
    influence = 2 * np.bincount(clusters, won - auc * compared) / total
    count = len(influence)
    return auc, float((influence**2).sum()) * count / max(count - 1, 1)


def _interval(auc: float, variance: float, again: np.ndarray, pairs: int) -> list[float]:
    """The 95 % interval; again: AUC and variance of permuted labels, (permutations, 2)."""
    training = max(0.0, float(again[:, 0].var(ddof=1) - again[:, 1].mean()))
    spread = auc * (1 - auc)
    # where hardly a comparison is lost (or won), the variance among them says nothing
    own = variance / spread if spread > 1 / (2 * pairs) else 1 / pairs
    low, high = share_interval(auc, 1 / (own + 4 * training))
    if not low <= 0.5 <= high:
        less = math.exp(-(NormalDist().inv_cdf(auc) ** 2)) / spread if 0 < auc < 1 else 0.0
        low, high = share_interval(auc, 1 / (own + less * training))
    return [min(low, auc), max(high, auc)]  # at 0 and 1 the formula rounds to beside it


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

        words = CountVectorizer(ngram_range=(1, 2), token_pattern=TOKEN)
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
