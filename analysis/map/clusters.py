"""Clusters of the map, named by their own words.

k-means on the points of the map (scikit-learn, seeded): k = sqrt(points / 2), 2 to 24. A cluster's
name is its three words of highest c-TF-IDF (Grootendorst 2022): tf(w, c) · ln(1 + A / f(w)), where
tf is how often the word stands in the cluster's texts over the cluster's words, f how often in all
texts, and A the mean number of words per cluster. Function words, numbers and words of one or two
letters do not name; a cluster without any other word is "German texts" or "cluster 3". What is a
function word depends on the language of the text (`function_words`): "die" may name English texts.

Words fail where they are hardly more frequent in the cluster than in the other texts of its
language: "bitte, minuten, euro" sets German texts apart from English ones and says nothing. Such a
cluster is named by the beginnings of the three instructions nearest to its middle on the map.

k-means loads scikit-learn when it is called: for jobs only.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log, sqrt
from textwrap import shorten
from typing import Any, Final

import numpy as np
import pyarrow as pa

from analysis.map.function_words import LANGUAGE_NAMES, function_words, languages_of
from analysis.text.words import FUNCTION_WORDS

MIN_CLUSTERS, MAX_CLUSTERS, NAMING, MAX_FITTED = 2, 24, 3, 50_000
AT_ONCE = 50_000
MIN_LIFT: Final = 5.0  # of the middle one of the naming words, else the words say nothing
BEGINNING, APART = 32, " / "  # characters of an instruction that names; what stands between them
WORD = re.compile(r"[^\W\d_]{3,}")
# English words that name no topic; stopwordsiso's list has words that do: computer, fire, research.
_NAMELESS = """
    please passage passages document documents relevant text texts mention mentions mentioned
    answer answers include includes further near via way
    don doesn didn isn wasn aren weren hasn haven hadn couldn wouldn shouldn won
"""
STOP: Final = FUNCTION_WORDS | frozenset(_NAMELESS.split())


def with_clusters(table: pa.Table, *, seed: int) -> pa.Table:
    """The points of a map with a column `cluster`: its name."""
    points = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    labels = cluster_points(points, seed=seed)
    texts = Column(table["text"])
    nearest: list[list[str]] = []
    if "field" in table.column_names:
        among = table["field"].to_numpy(zero_copy_only=False) == "instruction"
        nearest = nearest_texts(texts, points, labels, among)
    names = cluster_names(texts, labels, nearest)
    column = pa.array([names[label] for label in labels], pa.string()).dictionary_encode()
    return table.append_column("cluster", column)


class Column(Sequence[str]):
    """The texts of a column, made when they are needed."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, place: Any) -> Any:
        return self._column[int(place)].as_py()

    def __iter__(self) -> Iterator[str]:
        for batch in self._column.chunks:
            for start in range(0, len(batch), AT_ONCE):
                yield from batch[start : start + AT_ONCE].to_pylist()


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


def nearest_texts(
    texts: Sequence[str], points: np.ndarray, labels: np.ndarray, among: np.ndarray
) -> list[list[str]]:
    """Per cluster the NAMING different texts nearest to its middle, of those that `among` marks."""
    found = []
    for number in range(int(labels.max()) + 1 if len(labels) else 0):
        rows = np.flatnonzero((labels == number) & among)
        middle = points[labels == number].mean(axis=0)
        far = np.square(points[rows] - middle).sum(axis=1)
        ordered = dict[str, None]()
        for row in rows[np.argsort(far, kind="stable")]:
            ordered[texts[row]] = None
            if len(ordered) == NAMING:
                break
        found.append(list(ordered))
    return found


def cluster_names(
    texts: Sequence[str], labels: np.ndarray, nearest: Sequence[Sequence[str]] = ()
) -> list[str]:
    """A name per cluster; names that come out the same are numbered.

    nearest: what names a cluster whose words say nothing; without it they do.
    """
    clusters = [_Words() for _ in range(int(labels.max()) + 1 if len(labels) else 0)]
    for text, label in zip(texts, labels, strict=True):
        clusters[int(label)].add(WORD.findall(text.casefold()))
    mains = [most_common(cluster.languages) for cluster in clusters]
    counts = [cluster.names(main) for cluster, main in zip(clusters, mains, strict=True)]
    whole = sum(counts, Counter[str]())
    known = [(cluster.by_text, cluster.texts) for cluster in clusters]
    mean = whole.total() / max(1, len(counts))
    names: list[str] = []
    for number, (mine, main) in enumerate(zip(counts, mains, strict=True), start=1):
        total = max(1, mine.total())
        score = {word: n / total * log(1 + mean / whole[word]) for word, n in mine.items()}
        best = sorted(score, key=lambda word: (-score[word], word))[:NAMING]
        name = ", ".join(best) or _without_words(main, number)
        if nearest and nearest[number - 1]:
            others = [found for found, other in zip(known, mains, strict=True) if other == main]
            if _lift(best, known[number - 1], others) < MIN_LIFT:
                name = APART.join(map(beginning, nearest[number - 1]))
        names.append(f"{name} ({number})" if name in names else name)
    return names


def beginning(text: str) -> str:
    """The first words of a text, at most BEGINNING characters."""
    return shorten(text, BEGINNING, placeholder="…")


class _Words:
    """The words of a cluster, counted text by text: of a million texts they would take 2 GB."""

    def __init__(self) -> None:
        self.texts, self.by_text, self.languages = 0, Counter[str](), Counter[tuple[str, ...]]()
        self._naming, self._unclear = Counter[str](), Counter[str]()

    def add(self, words: Sequence[str]) -> None:
        self.texts += 1
        self.by_text.update(set(words))
        naming = [word for word in words if word not in STOP]
        if languages := languages_of(words):
            self.languages[languages] += 1
            listed = function_words(languages)
            self._naming.update(word for word in naming if word not in listed)
        else:
            self._unclear.update(naming)

    def names(self, main: tuple[str, ...]) -> Counter[str]:
        """The words that may name it; a text too short for a language has `main`."""
        listed = function_words(main)
        kept = {word: count for word, count in self._unclear.items() if word not in listed}
        return self._naming + Counter(kept)


def _lift(
    words: Sequence[str],
    mine: tuple[Counter[str], int],
    language: Sequence[tuple[Counter[str], int]],
) -> float:
    """How much likelier a text of the cluster has a naming word than one of its language: of the
    middle word, 0 without one."""
    found = []
    for word in words:
        here = mine[0][word] / mine[1]
        everywhere = sum(count[word] for count, _ in language) / sum(n for _, n in language)
        found.append(here / everywhere)
    return sorted(found)[len(found) // 2] if found else 0.0


def most_common(languages: Counter[tuple[str, ...]]) -> tuple[str, ...]:
    """That of most texts; () without one."""
    return languages.most_common(1)[0][0] if languages else ()


def _without_words(languages: tuple[str, ...], number: int) -> str:
    """The name of a cluster of function words and numbers."""
    return f"{LANGUAGE_NAMES[languages[0]]} texts" if languages else f"cluster {number}"
