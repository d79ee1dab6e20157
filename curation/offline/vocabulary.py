"""The offline rules' vocabulary of a dataset: word frequencies, and terms to swap in, by kind.

Built from at most `MAX_PAIRS` pairs, spread evenly, in the order of ids, so that the same dataset
always gives the same vocabulary; its sha256 goes into the content key of every offline call.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from analysis.text.words import content_words, mentions, words
from curation.offline.terms import KINDS, YEAR, Term, is_plural, key_term, overlap, terms_of
from curation.offline.terms import plain_terms_of as _plain

MAX_PAIRS = 20_000
TRIED = 24


@dataclass(frozen=True)
class Source:
    """A term with the content words of the passage it was met in."""

    term: Term
    context: frozenset[str]


@dataclass(frozen=True)
class Vocabulary:
    """Word frequencies over the passages, and terms by kind with where they were met."""

    frequencies: dict[str, int]
    passages: int
    terms: dict[str, list[Source]]
    keys: dict[str, list[Source]]

    @cached_property
    def sha256(self) -> str:
        """The identity of the vocabulary."""
        whole = hashlib.sha256()
        for word, count in sorted(self.frequencies.items()):
            whole.update(f"{word}\t{count}\n".encode())
        for pool in (self.terms, self.keys):
            for kind, sources in sorted(pool.items()):
                for source in sources:
                    whole.update(f"{kind}\t{source.term.text}\n".encode())
        return whole.hexdigest()

    @property
    def rare_below(self) -> int:
        """The frequency up to which a plain word is distinctive."""
        return max(2, self.passages // 60)

    def plain_terms(self, text: str) -> list[Term]:
        """The distinctive plain words of a text."""
        return _plain(text, self.frequencies, self.rare_below)

    def key_term(self, query: str, passage: str) -> Term | None:
        """The subject of a query, in words that its passage holds too."""
        return key_term(query, passage, self.frequencies)

    def other_term(self, term: Term, passage: str, query: str, chance: random.Random) -> str | None:
        """Another term of the same kind that is in neither text, from a similar passage."""
        return _other(self.terms.get(term.kind, []), term, passage, query, chance)

    def other_key(self, term: Term, passage: str, query: str, chance: random.Random) -> str | None:
        """Another query's key term of the same kind that is in neither text."""
        return _other(self.keys.get(term.kind, []), term, passage, query, chance)


def build_vocabulary(pairs: Iterable[tuple[str, str]]) -> Vocabulary:
    """The vocabulary of <query, passage> pairs."""
    rows = list(pairs)
    frequencies: Counter[str] = Counter()
    contexts: dict[str, frozenset[str]] = {}
    for _, passage in rows:
        if passage not in contexts:
            frequencies.update(set(words(passage)))
            contexts[passage] = frozenset(content_words(passage))
    vocabulary = Vocabulary(
        dict(frequencies), len(contexts), {kind: [] for kind in KINDS}, {kind: [] for kind in KINDS}
    )
    met: set[tuple[str, str]] = set()
    for passage, context in contexts.items():
        for term in [*terms_of(passage), *vocabulary.plain_terms(passage)]:
            if (term.kind, term.text) not in met:
                met.add((term.kind, term.text))
                vocabulary.terms[term.kind].append(Source(term, context))
    met.clear()
    for query, passage in rows:
        key = vocabulary.key_term(query, passage)
        if key is not None and (key.kind, key.text) not in met:
            met.add((key.kind, key.text))
            vocabulary.keys[key.kind].append(Source(key, contexts[passage]))
    return vocabulary


def _other(
    sources: list[Source], term: Term, passage: str, query: str, chance: random.Random
) -> str | None:
    """Of a few sampled sources, the one whose passage is nearest to ours, in number like `term`."""
    context = content_words(passage)
    own = set(words(term.text))
    sampled = chance.sample(sources, min(TRIED, len(sources)))
    fitting = [
        source
        for source in sampled
        if not own & set(words(source.term.text))
        and not mentions(passage, source.term.text)
        and not mentions(query, source.term.text)
    ]
    if term.kind == YEAR:
        fitting = [
            source for source in fitting if abs(int(source.term.text) - int(term.text)) > 20
        ] or fitting
    if not fitting:
        return None
    best = max(
        fitting,
        key=lambda source: (
            is_plural(source.term.text) == is_plural(term.text),
            len(source.term.text.split()) == len(term.text.split()),
            overlap(source.context, context),
        ),
    )
    return best.term.text
