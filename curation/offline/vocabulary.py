"""The offline rules' vocabulary of a dataset: word frequencies, and terms to swap in, by kind.

Each term comes with a sentence of the passage it was met in: written passages borrow it, so that
they are made of the dataset's own prose and share no stock phrase.

Built from at most `MAX_PAIRS` pairs, spread evenly, in the order of ids, so that the same dataset
always gives the same vocabulary; its sha256 goes into the content key of every offline call.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from analysis.text.words import content_words, mentions, sentences, words
from curation.offline.facets import FACETS, Facet
from curation.offline.grammar import is_plural, swapped
from curation.offline.terms import (
    KINDS,
    TERM,
    YEAR,
    Term,
    key_term,
    overlap,
    subject_in,
    terms_of,
    written_in,
)
from curation.offline.terms import plain_terms_of as _plain
from curation.rules.language import language_of

MAX_PAIRS = 20_000
TRIED = 200
MIN_BORROWED, MAX_BORROWED = 5, 40  # words of a sentence that is borrowed


@dataclass(frozen=True)
class Source:
    """A term with the content words of the passage it was met in, and a sentence from there.

    `key`: the subject that the sentence names, "" where it names none; `sentence`: "" where none
    of a fitting length has the term; `language`: the passage's, None where unclear.
    """

    term: Term
    context: frozenset[str]
    key: str
    sentence: str
    language: str | None

    def about(self, subject: str) -> str:
        """The sentence with its subject replaced by another."""
        both = self.key and subject
        if not both:
            return self.sentence
        return swapped(self.sentence, self.key, subject, self.language or "en")

    def speaks(self, language: str | None) -> bool:
        """Whether the sentence may stand in a text of this language."""
        return None in (language, self.language) or language == self.language


@dataclass(frozen=True)
class Vocabulary:
    """Word frequencies over the passages, and terms by kind with where they were met."""

    frequencies: dict[str, int]
    passages: int
    terms: dict[str, list[Source]]
    keys: dict[str, list[Source]]
    shows: dict[str, list[Source]]  # by facet: key terms with a sentence that shows the facet

    @cached_property
    def sha256(self) -> str:
        """The identity of the vocabulary."""
        whole = hashlib.sha256()
        for word, count in sorted(self.frequencies.items()):
            whole.update(f"{word}\t{count}\n".encode())
        for pool in (self.terms, self.keys, self.shows):
            for kind, sources in sorted(pool.items()):
                for source in sources:
                    about = (kind, *source.term, source.key, source.sentence)
                    whole.update(("\t".join(about) + "\n").encode())
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

    def other_term(
        self, term: Term, passage: str, query: str, chance: random.Random
    ) -> Source | None:
        """Another term of the same kind that is in neither text, from a similar passage."""
        return _other(self.terms.get(term.kind, []), term, passage, query, chance)

    def other_key(
        self, term: Term, passage: str, query: str, chance: random.Random
    ) -> Source | None:
        """Another query's key term of the same kind that is in neither text."""
        return _other(self.keys.get(term.kind, []), term, passage, query, chance)

    def showing(
        self, facet: Facet, key: Term, passage: str, without: Facet, chance: random.Random
    ) -> str | None:
        """A sentence about the key term that shows a facet and not another; None without one.

        It is another passage's about its own key term, which ours replaces; of a few sampled ones
        that of the most similar passage.
        """
        sources = self.shows.get(facet.name, [])
        context, language, best = content_words(passage), language_of(passage), None
        for source in chance.sample(sources, min(TRIED, len(sources))):
            text = source.about(subject_in(passage, key))
            if text in passage or without.holds(text) or not facet.holds(text):
                continue
            if not source.speaks(language):
                continue
            rank = (
                is_plural(source.term.text) == is_plural(key.text),
                overlap(source.context, context),
            )
            if best is None or rank > best[0]:
                best = (rank, text)
        return None if best is None else best[1]

    def more_about(self, key: Term, passage: str, chance: random.Random) -> list[str]:
        """Sentences of other passages about their key terms, which this one replaces."""
        language = language_of(passage)
        sources = [
            source
            for source in self.keys.get(key.kind, [])
            if source.key and source.speaks(language)
        ]
        sampled = chance.sample(sources, min(TRIED, len(sources)))
        texts = (source.about(subject_in(passage, key)) for source in sampled)
        return [text for text in texts if text not in passage]


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
        frequencies=dict(frequencies),
        passages=len(contexts),
        terms={kind: [] for kind in KINDS},
        keys={kind: [] for kind in KINDS},
        shows={facet.name: [] for facet in FACETS},
    )
    subjects: dict[str, Term] = {}
    for query, passage in rows:
        if (key := vocabulary.key_term(query, passage)) is not None:
            subjects.setdefault(passage, key)
    met: set[tuple[str, str]] = set()
    for passage, context in contexts.items():
        about = subjects.get(passage)
        for term in [*terms_of(passage), *vocabulary.plain_terms(passage)]:
            if (term.kind, term.text) not in met:
                met.add((term.kind, term.text))
                source = _source(term, passage, context, about)
                vocabulary.terms[term.kind].append(source)
    met.clear()
    for passage, key in subjects.items():
        for facet in FACETS:
            sentence = _sentence(passage, key.text, facet)
            if sentence:
                subject = subject_in(passage, key)
                language = language_of(passage)
                source = Source(key, contexts[passage], subject, sentence, language)
                vocabulary.shows[facet.name].append(source)
        if (key.kind, key.text) not in met:
            met.add((key.kind, key.text))
            written = key._replace(text=written_in(passage, key.text))
            vocabulary.keys[key.kind].append(_source(written, passage, contexts[passage], key))
    return vocabulary


def _source(term: Term, passage: str, context: frozenset[str], subject: Term | None) -> Source:
    sentence = _sentence(passage, term.text)
    key = ""
    if subject is not None and mentions(sentence, subject.text):
        key = subject_in(passage, subject)
    return Source(term, context, key, sentence, language_of(passage))


def _sentence(passage: str, phrase: str, facet: Facet | None = None) -> str:
    """The passage's first sentence of a fitting length that has the phrase, and shows the facet."""
    for sentence in sentences(passage):
        fits = MIN_BORROWED <= len(words(sentence)) <= MAX_BORROWED and sentence[-1] in ".!?"
        if fits and mentions(sentence, phrase) and (facet is None or facet.holds(sentence)):
            return sentence
    return ""


def _other(
    sources: list[Source], term: Term, passage: str, query: str, chance: random.Random
) -> Source | None:
    """Of a few sampled sources, the one whose passage is nearest to ours, in number like `term`."""
    context = content_words(passage)
    own = set(words(term.text))
    sampled = chance.sample(sources, min(TRIED, len(sources)))
    language = language_of(passage)
    sampled = [each for each in sampled if each.speaks(language)] or sampled
    if term.kind == TERM:
        alike = [each for each in sampled if is_plural(each.term.text) == is_plural(term.text)]
        sampled = alike or sampled
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
    return max(
        fitting,
        key=lambda source: (
            is_plural(source.term.text) == is_plural(term.text),
            len(source.term.text.split()) == len(term.text.split()),
            overlap(source.context, context),
        ),
    )
