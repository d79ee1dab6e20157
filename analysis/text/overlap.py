"""Texts that two corpora share: exactly, up to writing, nearly, or in runs of words.

How two texts overlap, the strongest that holds:
    exact        the same text
    normalised   the same letters and digits (case, spacing and punctuation aside)
    near         Jaccard similarity of 5-character shingles ≥ 0.7
    ngram        at least half of the shorter one's 8-word runs stand in the other; a text of 5 to
                 7 words counts as one run and is looked for whole

`ngram` compares like with like only: questions and instructions with each other, passages and
free texts with each other. A five-word question inside an encyclopedia's passage shows nothing.
Runs that stand in more than 100 texts of the other side are boilerplate and do not count.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.text.near_duplicates import near_pairs, normal_form
from db.corpus.texts import CorpusText

RUN, MIN_WORDS, SHARE, BOILERPLATE = 8, 5, 0.5, 100
ASKING = ("query", "instruction")
HOW = ("exact", "normalised", "near", "ngram")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Overlap:
    """Two texts, by their places in the two lists, and how they overlap (`share` of 1)."""

    one: int
    other: int
    how: str
    share: float


def overlaps(ours: Sequence[CorpusText], theirs: Sequence[CorpusText]) -> list[Overlap]:
    """Every two texts of the two lists that overlap, by place; each once, the strongest way."""
    found: dict[tuple[int, int], Overlap] = {}
    for overlap in (*_same(ours, theirs), *_near(ours, theirs), *_runs(ours, theirs)):
        found.setdefault((overlap.one, overlap.other), overlap)
    return [found[key] for key in sorted(found)]


def words(text: str) -> list[str]:
    """The words of a text as runs compare them."""
    return _WORD.findall(text.casefold())


def _same(ours: Sequence[CorpusText], theirs: Sequence[CorpusText]) -> Iterable[Overlap]:
    by_form: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(theirs):
        by_form[normal_form(row.text)].append(place)
    for place, row in enumerate(ours):
        for other in by_form.get(normal_form(row.text), ()):
            how = "exact" if theirs[other].text == row.text else "normalised"
            yield Overlap(place, other, how, 1.0)


def _near(ours: Sequence[CorpusText], theirs: Sequence[CorpusText]) -> Iterable[Overlap]:
    by_form: dict[str, tuple[list[int], list[int]]] = {}
    for side, rows in enumerate((ours, theirs)):
        for place, row in enumerate(rows):
            by_form.setdefault(normal_form(row.text), ([], []))[side].append(place)
    forms = list(by_form)
    for a, b, share in near_pairs(forms):
        for one, other in ((forms[a], forms[b]), (forms[b], forms[a])):
            for place in by_form[one][0]:
                for there in by_form[other][1]:
                    yield Overlap(place, there, "near", share)


def _runs(ours: Sequence[CorpusText], theirs: Sequence[CorpusText]) -> Iterable[Overlap]:
    for asking in (True, False):
        mine = _kind(ours, asking)
        there = _kind(theirs, asking)
        index: dict[int, list[int]] = defaultdict(list)
        for other, runs in there.items():
            for run in runs:
                index[run].append(other)
        short = _short(theirs, there)
        for place, runs in mine.items():
            shared: dict[int, int] = defaultdict(int)
            for run in runs:
                holders = index.get(run, ())
                if len(holders) <= BOILERPLATE:
                    for other in holders:
                        shared[other] += 1
            for other, count in shared.items():
                share = count / min(len(runs), len(there[other]))
                if share >= SHARE:
                    yield Overlap(place, other, "ngram", share)
            yield from _contained(place, words(ours[place].text), short)
        backwards = _short(ours, mine)
        for other in there:
            for overlap in _contained(other, words(theirs[other].text), backwards):
                yield Overlap(overlap.other, other, overlap.how, overlap.share)


def _kind(rows: Sequence[CorpusText], asking: bool) -> dict[int, set[int]]:
    """The runs of the texts of that kind, as hashes, by place."""
    return {
        place: _hashes(words(row.text), RUN)
        for place, row in enumerate(rows)
        if (row.field in ASKING) == asking
    }


def _short(rows: Sequence[CorpusText], places: Iterable[int]) -> dict[int, dict[int, list[int]]]:
    """Texts of fewer words than a run: by length, then by the hash of the whole text."""
    found: dict[int, dict[int, list[int]]] = {
        length: defaultdict(list) for length in range(MIN_WORDS, RUN)
    }
    for place in places:
        tokens = words(rows[place].text)
        if len(tokens) in found:
            found[len(tokens)][hash(tuple(tokens))].append(place)
    return found


def _contained(
    place: int, tokens: list[str], short: dict[int, dict[int, list[int]]]
) -> Iterable[Overlap]:
    for length, by_hash in short.items():
        if by_hash:
            for run in _hashes(tokens, length):
                for other in by_hash.get(run, ()):
                    yield Overlap(place, other, "ngram", 1.0)


def _hashes(tokens: list[str], length: int) -> set[int]:
    return {
        hash(tuple(tokens[start : start + length])) for start in range(len(tokens) - length + 1)
    }
