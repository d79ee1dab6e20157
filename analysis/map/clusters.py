"""Clusters of the map, named by their own words.

k-means on the points of the map (scikit-learn, seeded): k = sqrt(points / 2), 2 to 24. A cluster's
name is its three words of highest c-TF-IDF (Grootendorst 2022): tf(w, c) · ln(1 + A / f(w)), where
tf is how often the word stands in the cluster's texts over the cluster's words, f how often in all
texts, and A the mean number of words per cluster. Function words, numbers and words of one or two
letters do not name; a cluster without any other word is "cluster 3". Function words of a language
other than English count as such in clusters in that language, where they are at least 15 % of the
words: German "die" and "war" name English texts.

k-means loads scikit-learn when it is called: for jobs only.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from math import log, sqrt
from typing import Final

import numpy as np
import pyarrow as pa

from analysis.text.bm25 import LANGUAGES

MIN_CLUSTERS, MAX_CLUSTERS, NAMING, MAX_FITTED = 2, 24, 3, 50_000
OF_LANGUAGE = 0.15  # 25 to 40 % of German, French and Spanish texts, under 6 % of English ones
_WORD = re.compile(r"[^\W\d_]{3,}")
FUNCTION_WORDS: Final = """
    about above after again against all also among and any are around because been before being
    between both but came can could did does doing down during each either even ever every few for
    from further get given had has have having her here him his how into its itself just less like
    many may might more most much must near nor not now off often once one only onto other our out
    over own per rather same several shall she should since some such than that the their them then
    there these they this those through too two under until upon use used using very via was way
    were what when where whether which while who whom whose why will with within without would you
    your passage passages document documents relevant text texts mention mentions mentioned answer
    answers include includes
"""
STOP: Final = frozenset(FUNCTION_WORDS.split())


def with_clusters(table: pa.Table, *, seed: int) -> pa.Table:
    """The points of a map with a column `cluster`: its name."""
    points = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    labels = cluster_points(points, seed=seed)
    names = cluster_names(table["text"].to_pylist(), labels)
    column = pa.array([names[label] for label in labels], pa.string()).dictionary_encode()
    return table.append_column("cluster", column)


def cluster_points(points: np.ndarray, *, seed: int) -> np.ndarray:
    """The number of each point's cluster, largest cluster first; shape (points,)."""
    different = np.unique(points, axis=0)
    k = min(max(MIN_CLUSTERS, min(MAX_CLUSTERS, round(sqrt(len(points) / 2)))), len(different))
    if k < MIN_CLUSTERS:
        return np.zeros(len(points), dtype=np.int64)
    from sklearn.cluster import KMeans

    generator = np.random.default_rng(seed)
    fitted = points
    if len(points) > MAX_FITTED:
        fitted = points[np.sort(generator.choice(len(points), MAX_FITTED, replace=False))]
    found = KMeans(n_clusters=k, n_init=3, random_state=seed).fit(fitted).predict(points)
    sizes = np.bincount(found, minlength=k)
    rank = np.empty(k, dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(k)
    labels: np.ndarray = rank[found]
    return labels


def cluster_names(texts: Sequence[str], labels: np.ndarray) -> list[str]:
    """A name per cluster; names that come out the same are numbered."""
    counts = [Counter[str]() for _ in range(int(labels.max()) + 1 if len(labels) else 0)]
    for text, label in zip(texts, labels, strict=True):
        counts[int(label)].update(_WORD.findall(text.casefold()))
    counts = [_without_function_words(mine) for mine in counts]
    whole = sum(counts, Counter[str]())
    mean = whole.total() / max(1, len(counts))
    names: list[str] = []
    for number, mine in enumerate(counts, start=1):
        total = max(1, mine.total())
        score = {word: n / total * log(1 + mean / whole[word]) for word, n in mine.items()}
        best = sorted(score, key=lambda word: (-score[word], word))[:NAMING]
        name = ", ".join(best) or f"cluster {number}"
        names.append(f"{name} ({number})" if name in names else name)
    return names


def _without_function_words(counts: Counter[str]) -> Counter[str]:
    """The words of a cluster that may name it."""
    total = counts.total()
    left = Counter({word: n for word, n in counts.items() if word not in STOP})
    for words in function_words().values():
        share = sum(n for word, n in counts.items() if word in words) / max(1, total)
        if share >= OF_LANGUAGE:
            left = Counter({word: n for word, n in left.items() if word not in words})
    return left


@cache
def function_words() -> dict[str, frozenset[str]]:
    """The function words of every language but English for which bm25s has a list."""
    from bm25s import stopwords

    lists = {
        language: f"STOPWORDS_{language.stop_words.upper()}" for language in LANGUAGES.values()
    }
    return {
        language.stop_words: frozenset(getattr(stopwords, name))
        for language, name in lists.items()
        if language.stop_words != "english"
    }
