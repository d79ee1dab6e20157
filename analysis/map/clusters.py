"""Clusters of the map, named by their own words.

k-means on the points of the map (scikit-learn, seeded): k = sqrt(points / 2), 2 to 24. A cluster's
name is its three words of highest c-TF-IDF (Grootendorst 2022): tf(w, c) · ln(1 + A / f(w)), where
tf is how often the word stands in the cluster's texts over the cluster's words, f how often in all
texts, and A the mean number of words per cluster. Function words, numbers and words of one or two
letters do not name; a cluster without any other word is "German texts" or "cluster 3". What is a
function word depends on the language of the text (`function_words`): "die" may name English texts.

k-means loads scikit-learn when it is called: for jobs only.
"""

import re
from collections import Counter
from collections.abc import Sequence
from math import log, sqrt
from typing import Final

import numpy as np
import pyarrow as pa

from analysis.map.function_words import LANGUAGE_NAMES, function_words, languages_of
from analysis.text.words import FUNCTION_WORDS

MIN_CLUSTERS, MAX_CLUSTERS, NAMING, MAX_FITTED = 2, 24, 3, 50_000
WORD = re.compile(r"[^\W\d_]{3,}")
# English words that name no topic; stopwordsiso's list has words that do: computer, fire, research.
_NAMELESS = """
    please passage passages document documents relevant text texts mention mentions mentioned
    answer answers include includes further near via way
"""
STOP: Final = FUNCTION_WORDS | frozenset(_NAMELESS.split())


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
    clusters: list[list[list[str]]] = [
        [] for _ in range(int(labels.max()) + 1 if len(labels) else 0)
    ]
    for text, label in zip(texts, labels, strict=True):
        clusters[int(label)].append(WORD.findall(text.casefold()))
    mains = [main_languages(cluster) for cluster in clusters]
    counts = [_naming(cluster, main) for cluster, main in zip(clusters, mains, strict=True)]
    whole = sum(counts, Counter[str]())
    mean = whole.total() / max(1, len(counts))
    names: list[str] = []
    for number, (mine, main) in enumerate(zip(counts, mains, strict=True), start=1):
        total = max(1, mine.total())
        score = {word: n / total * log(1 + mean / whole[word]) for word, n in mine.items()}
        best = sorted(score, key=lambda word: (-score[word], word))[:NAMING]
        name = ", ".join(best) or _without_words(main, number)
        names.append(f"{name} ({number})" if name in names else name)
    return names


def main_languages(cluster: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The languages of most texts of a cluster, of those long enough to recognise it."""
    found = Counter(languages for words in cluster if (languages := languages_of(words)))
    return found.most_common(1)[0][0] if found else ()


def _naming(cluster: Sequence[Sequence[str]], main: tuple[str, ...]) -> Counter[str]:
    """The words that may name a cluster; a text too short for a language has `main`."""
    counts = Counter[str]()
    for words in cluster:
        listed = function_words(languages_of(words) or main)
        counts.update(word for word in words if word not in STOP and word not in listed)
    return counts


def _without_words(languages: tuple[str, ...], number: int) -> str:
    """The name of a cluster of function words and numbers."""
    known = [LANGUAGE_NAMES[code] for code in languages if code in LANGUAGE_NAMES]
    return f"{known[0]} texts" if known else f"cluster {number}"
