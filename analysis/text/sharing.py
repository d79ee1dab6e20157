"""What corpora repeat: near-duplicates inside and between them, overlap with evaluation sets."""

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from analysis.embed.model_source import DEFAULT_MODEL
from analysis.figures.numbers import Cells
from analysis.files.corpora import Chosen, Corpus
from analysis.found.texts import (
    Cluster,
    ContaminationFound,
    CorpusTexts,
    DuplicatesFound,
    FieldClusters,
    OverlapPair,
    ParaphrasedBy,
    TextPlace,
)
from analysis.parts import Compute, Keep, computed
from analysis.text.folding import letters
from analysis.text.near_duplicates import near_duplicate_keys, text_hashes
from analysis.text.overlap import ASKING, HOW, Overlap, overlaps
from analysis.text.paraphrases import THRESHOLD, paraphrase_pairs
from db.corpus.texts import CorpusText

VERSION = 1  # of near-duplicates
CONTAMINATION_VERSION = 2
MAX_LISTED = 500  # clusters or pairs in a result; the counts are of all


class Measured(NamedTuple):
    """recall: of 1,000 real texts changed so (300 paraphrases), those whose original was found;
    precision: of all texts reported, these and 1,000 clean ones, those found rightly."""

    texts: str
    recall: float
    precision: float


# By the thresholds of overlap.py and paraphrases.py: `bench/contamination.py heavy`. A test
# measures them again.
MEASURED = (
    Measured("passages with every fourth word changed", 0.984, 0.998),
    Measured("questions with every fourth word changed", 0.975, 0.980),
    Measured("30 words in a row inside another passage", 0.999, 0.998),
)
MEASURED_PARAPHRASES = Measured("paraphrased questions", 0.960, 0.847)
NOT_FOUND = (
    "passages that were paraphrased, translated or summarised",
    "passages of which every third word is another",
    "excerpts of fewer than about 19 words",
    "questions inside passages",
)


def describe_duplicates(corpora: Sequence[Corpus], keep: Keep = computed) -> DuplicatesFound:
    """Clusters of near-duplicates per field, largest first, and how many texts repeat another.

    A text that is used in several groups counts once per corpus: only different texts are compared.
    `keep`: of `Parts`, to go on after a kill.
    """
    fields = list(dict.fromkeys(row.field for corpus in corpora for row in corpus.texts))
    found = {
        field: _clusters(_different(corpora, field), partial(_of_field, keep, number))
        for number, field in enumerate(fields)
    }
    return DuplicatesFound(
        corpora=tuple(_corpus_facts(corpus) for corpus in corpora),
        fields={
            field: FieldClusters(
                clusters=len(clusters),
                texts=sum(len(cluster) for cluster in clusters),
                repeated=sum(len(cluster) - 1 for cluster in clusters),
                between=sum(len({name for name, _ in each}) > 1 for each in clusters),
            )
            for field, clusters in found.items()
        },
        clusters=tuple(
            Cluster(field=field, texts=tuple(_place(*row) for row in cluster))
            for field, cluster in islice(
                ((field, each) for field, clusters in found.items() for each in clusters),
                MAX_LISTED,
            )
        ),
    )


@dataclass(frozen=True)
class Paraphrases:
    """How paraphrased questions are found: by the vectors of a model, above a threshold."""

    vectors: Callable[[Sequence[str]], Any]
    model: str
    threshold: float = THRESHOLD


def describe_contamination(
    corpora: Sequence[Corpus], against: Sequence[Corpus], paraphrases: Paraphrases | None = None
) -> ContaminationFound:
    """Every text of the corpora that overlaps with one of the evaluation sets, and how.

    `groups` are the ids of the groups a release would have to leave out. Paraphrases are looked for
    where `paraphrases` says how, among questions and among instructions.
    """
    ours, theirs = _different(corpora), _different(against)
    found = overlaps(ours.rows, theirs.rows)
    if paraphrases is not None:
        known = {(each.one, each.other) for each in found}
        more = _paraphrased(ours, theirs, paraphrases)
        found += [each for each in more if (each.one, each.other) not in known]
    groups_of = _groups_of(corpora, ours, {each.one for each in found})
    ordered = sorted(found, key=lambda each: (HOW.index(each.how), -each.share, each.one))
    return ContaminationFound(
        corpora=tuple(_corpus_facts(corpus) for corpus in corpora),
        against=tuple(_corpus_facts(corpus) for corpus in against),
        overlapping=len(found),
        texts=len({each.one for each in found}),
        how=dict(Counter(each.how for each in found)),
        groups=tuple(sorted(set[int]().union(*groups_of.values()))),
        paraphrases=None
        if paraphrases is None
        else ParaphrasedBy(model=paraphrases.model, threshold=paraphrases.threshold),
        pairs=tuple(
            OverlapPair(
                how=each.how,
                share=each.share,
                **vars(_place(*ours.row(each.one))),
                groups=tuple(sorted(groups_of[each.one])),
                against=_place(*theirs.row(each.other)),
            )
            for each in ordered[:MAX_LISTED]
        ),
    )


def what_is_found(paraphrases: ParaphrasedBy | None) -> str:
    """Two sentences: the measured recall and precision of a comparison, and what it cannot find.

    paraphrases: as in its result; measured is the default threshold of the default model alone.
    """
    is_measured = paraphrases == ParaphrasedBy(model=DEFAULT_MODEL, threshold=THRESHOLD)
    rows = [*MEASURED, *([MEASURED_PARAPHRASES] if is_measured else [])]
    found = "; ".join(
        f"{what} {recall:.1%} (precision {precision:.1%})" for what, recall, precision in rows
    )
    missed = [*NOT_FOUND, *(["paraphrased questions"] if paraphrases is None else [])]
    return (
        f"Found in tests on real texts, besides copies and light edits: {found}. Not found: "
        f"{', '.join(missed[:-1])} and {missed[-1]}."
    )


def _paraphrased(ours: Chosen, theirs: Chosen, how: Paraphrases) -> list[Overlap]:
    found = []
    for field in ASKING:
        mine = [place for place, row in enumerate(ours.rows) if row.field == field]
        others = [place for place, row in enumerate(theirs.rows) if row.field == field]
        # a question that stands there twice would be its own neighbour
        keys = text_hashes(letters(text) for text in theirs.some(others))
        there = list(dict(zip(keys.tolist(), others, strict=True)).values())
        if mine and there:
            pairs = paraphrase_pairs(
                how.vectors(ours.some(mine)), how.vectors(theirs.some(there))[:], how.threshold
            )
            found += [Overlap(mine[a], there[b], "paraphrase", score) for a, b, score in pairs]
    return found


def _groups_of(corpora: Sequence[Corpus], ours: Chosen, hits: set[int]) -> dict[int, set[int]]:
    """Of each of these of our texts the groups that use it."""
    places = sorted(hits)
    keys = text_hashes(ours[place] for place in places)
    groups: dict[bytes, set[int]] = {key: set() for key in keys.tolist()}
    for corpus in corpora:
        found = text_hashes(row.text for row in corpus.texts)
        for place in np.flatnonzero(np.isin(found, keys)).tolist():
            if (group_id := corpus.texts[place].group_id) is not None:
                groups[found[place]].add(group_id)
    return {place: groups[key] for place, key in zip(places, keys.tolist(), strict=True)}


def _of_field(keep: Keep, number: int, part: str, compute: Compute) -> np.ndarray:
    return keep(f"{number}-{part}", compute)


def _clusters(chosen: Chosen, keep: Keep) -> list[list[tuple[str, CorpusText]]]:
    keys = np.array(near_duplicate_keys(chosen, keep=keep))
    members: dict[int, list[tuple[str, CorpusText]]] = {}
    for place in np.flatnonzero(np.bincount(keys)[keys] > 1):
        members.setdefault(int(keys[place]), []).append(chosen.row(int(place)))
    return sorted(members.values(), key=len, reverse=True)


def _different(corpora: Sequence[Corpus], field: str | None = None) -> Chosen:
    """The first of each text of a field, or of one field alone, in each corpus; those of a corpus
    by where they stand last."""
    places, start = array("q"), 0
    for corpus in corpora:
        fields = {row.field for row in corpus.texts} if field is None else {field}
        mine = array("q", (n for n, row in enumerate(corpus.texts) if row.field in fields))
        texts = (f"{row.field}\0{row.text}" for row in corpus.texts if row.field in fields)
        hashes = text_hashes(texts)
        firsts = np.unique(hashes, return_index=True)[1]
        lasts = np.unique(hashes[::-1], return_index=True)[1]  # from the end
        places.extend(start + mine[first] for first in firsts[np.argsort(-lasts)])
        start += len(corpus.texts)
    return Chosen(corpora, places)


def _place(corpus: str, row: CorpusText) -> TextPlace:
    return TextPlace(
        corpus=corpus, field=row.field, role=row.role, group_id=row.group_id, text=row.text
    )


def _corpus_facts(corpus: Corpus) -> CorpusTexts:
    return CorpusTexts(
        corpus=corpus.name,
        kind=corpus.kind,
        run_id=corpus.run_id,
        offline=corpus.offline,
        texts=len(corpus.texts),
    )


def repeated_rows(fields: Mapping[str, FieldClusters]) -> list[Cells]:
    """A row per field: how many of its texts are near-duplicates, within and between corpora."""
    return [
        {
            "Texts": field,
            "Clusters": numbers.clusters,
            "Texts in clusters": numbers.texts,
            "Redundant texts": numbers.repeated,
            "Clusters across corpora": numbers.between,
        }
        for field, numbers in fields.items()
    ]


def cluster_rows(clusters: Sequence[Cluster]) -> list[Cells]:
    """A row per text of a cluster of near-duplicates, the largest cluster first."""
    return [
        {
            "Cluster": number,
            "Texts": cluster.field,
            "Corpus": row.corpus,
            "Role": row.role,
            "Text": row.text,
            "Group": row.group_id,
        }
        for number, cluster in enumerate(clusters, start=1)
        for row in cluster.texts
    ]


def overlap_rows(pairs: Sequence[OverlapPair]) -> list[Cells]:
    """A row per text that overlaps with one of an evaluation set."""
    return [
        {
            "Match": pair.how,
            "Share": pair.share,
            "Corpus": pair.corpus,
            "Our text": pair.text,
            "Evaluation set": pair.against.corpus,
            "Evaluation text": pair.against.text,
            "Group": pair.groups[0] if pair.groups else None,
            "Groups": " ".join(map(str, pair.groups)),
        }
        for pair in pairs
    ]
