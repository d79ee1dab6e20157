"""The offline writer: from <Q+, P+> to I+, I-, Q-, P1- and P2- by rules alone.

A pair gets an aspect that P+ holds (I+), one of the same kind that it does not hold (I-), the key
term of Q+ and another of its kind (Q-). P1- is P+ rewritten so that it holds the aspect of I-
and no longer that of I+; P2- is P+ rewritten to be about the key term of Q-, the aspect of I+
kept. So of the three passages each is right for exactly one of the three questions, and that can be
checked on the texts. What is added is a sentence of another passage of the dataset, its subject
replaced: a sentence of ours would tell negatives from real passages. Everything follows from the
texts, the vocabulary and the seed.
"""

import hashlib
import random
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from analysis.text.words import mentions, sentences, words
from curation.offline.aspects import FACET, LANGUAGES, LONGER, SHORTER, Aspect
from curation.offline.facets import BY_NAME, FACETS, Facet
from curation.offline.grammar import swapped
from curation.offline.terms import NAME, PLACE, TERM, YEAR, Term, subject_in, terms_of
from curation.offline.vocabulary import Source, Vocabulary
from curation.rules.language import language_name, language_of, language_of_pair

MAX_WORDS = 90
WEIGHTS = {NAME: 6.0, PLACE: 6.0, YEAR: 1.5, TERM: 7.0, FACET: 1.0, SHORTER: 0.02}


@dataclass(frozen=True)
class Plan:
    """The aspects and the swapped terms for one pair.

    `shown`: a sentence about the key term that shows the aspect of I-; "" where none is needed.
    `language`: what I+ and I- are written in, the pair's; English where that is unclear.
    """

    positive: Aspect
    negative: Aspect
    key: Term
    other: Source
    variant: int
    shown: str = ""
    language: str = "en"

    @property
    def other_key(self) -> str:
        """The key term of Q-."""
        return self.other.term.text


class CannotWrite(Exception):
    """No rule fits the pair; the message becomes the answer and the drop reason's detail."""

    reason = "no_rule_fits"


class OtherLanguage(CannotWrite):
    """The pair is in a language that the rules do not write."""

    reason = "language_without_rules"


class Writer:
    """Writes the five texts of a group. `plan` is computed once per pair and remembered."""

    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        self.vocabulary, self.seed = vocabulary, seed
        self.plan = lru_cache(maxsize=4096)(self._plan)

    def instruction_positive(self, query: str, passage: str) -> str:
        """I+: asks for an aspect that P+ holds."""
        plan = self.plan(query, passage)
        return plan.positive.instruction(plan.variant, plan.language)

    def instruction_negative(self, query: str, passage: str) -> str:
        """I-: asks for another aspect of the same kind, which P+ does not hold."""
        plan = self.plan(query, passage)
        return plan.negative.instruction(plan.variant, plan.language)

    def query_negative(self, query: str, passage: str) -> str:
        """Q-: the query with its key term swapped."""
        plan = self.plan(query, passage)
        other = plan.other_key.lower() if plan.language == "en" else plan.other_key
        return swapped(query, plan.key.text, other, plan.language)

    def passage_instruction_negative(self, query: str, passage: str) -> str:
        """P1-: still about Q+, holds the aspect of I-, no longer that of I+."""
        return self._with_other_aspect(self.plan(query, passage), query, passage)

    def passage_query_negative(self, query: str, passage: str) -> str:
        """P2-: about the key term of Q-, with the aspect of I+ kept."""
        return self._with_other_key(self.plan(query, passage), query, passage)

    def passages_violating(self, query: str, passage: str, count: int) -> list[str]:
        """Up to `count` passages about Q+ without the aspect of I+, each with another one of its
        kind: as many as there are such aspects."""
        plan = self.plan(query, passage)
        found = [self._with_other_aspect(plan, query, passage)]
        for number in range(4 * count):
            if len(found) == count:
                break
            chance = self._chance(query, passage, f"n{number}")
            other = self._opposite(plan.positive, query, passage, plan.key, plan.other, chance)
            if other is None:
                continue
            with suppress(CannotWrite):
                again = replace(plan, negative=other[0], shown=other[1])
                text = self._with_other_aspect(again, query, passage)
                found += [text] if text not in found else []
        return found

    def passage_again(self, query: str, passage: str) -> str:
        """P+ with a sentence less or one of another passage more, its aspect kept."""
        plan = self.plan(query, passage)
        chance, parts = self._chance(query, passage, "again"), sentences(passage)
        more = self.vocabulary.more_about(plan.key, passage, chance)
        for text in (_thinned(parts, plan, chance, keeps=True), *([*parts, one] for one in more)):
            joined = " ".join(text)
            fits = plan.positive.holds(joined) and not plan.negative.holds(joined)
            if text != parts and fits and mentions(joined, plan.key.text):
                return joined
        raise CannotWrite("no other passage shows what the instruction asks for")

    def _with_other_aspect(self, plan: Plan, query: str, passage: str) -> str:
        chance, parts = self._chance(query, passage, "p1"), sentences(passage)
        if plan.positive.kind == SHORTER:
            return _longer(parts, plan, self.vocabulary.more_about(plan.key, passage, chance))
        parts = _shortened(_thinned(parts, plan, chance, keeps=False), plan)
        return _turned(parts, plan)

    def _with_other_key(self, plan: Plan, query: str, passage: str) -> str:
        chance = self._chance(query, passage, "p2")
        parts, borrowed = _shortened(sentences(passage), plan), plan.other.sentence
        if plan.negative.holds(borrowed) or not plan.other.speaks(language_of(passage)):
            borrowed = ""
        if borrowed:
            parts = _thinned(parts, plan, chance, keeps=True)
        parts = [swapped(part, plan.key.text, plan.other_key, plan.language) for part in parts]
        text = " ".join([borrowed, *parts]) if borrowed else " ".join(parts)
        if not plan.positive.holds(text):  # the sentence made it too long
            text = " ".join(parts)
        if not plan.positive.holds(text) or plan.negative.holds(text):
            raise CannotWrite("the passage for Q- lost what the instruction asks for")
        return text

    def _plan(self, query: str, passage: str) -> Plan:
        chance = self._chance(query, passage, "plan")
        language = language_of_pair(query, passage) or "en"
        if language not in LANGUAGES:
            raise OtherLanguage(
                f"the offline rules write {', '.join(LANGUAGES)}; the pair is in "
                f"{language_name(query, passage)} ({language.lower()})"
            )
        key = self.vocabulary.key_term(query, passage)
        if key is None:
            raise CannotWrite("query and passage share no key term")
        other = self.vocabulary.other_key(key, passage, query, chance)
        if other is None:
            raise CannotWrite(f"the dataset has no other {key.kind} to swap {key.text!r} for")
        for positive in self._aspects(query, passage, key, chance):
            found = self._opposite(positive, query, passage, key, other, chance)
            if found is None:
                continue
            variant = chance.randrange(1000)
            plan = Plan(positive, found[0], key, other, variant, found[1], language)
            with suppress(CannotWrite):  # then with the next aspect
                self._with_other_aspect(plan, query, passage)
                self._with_other_key(plan, query, passage)
                return plan
        raise CannotWrite("the passage holds nothing that an instruction could ask for")

    def _aspects(self, query: str, passage: str, key: Term, chance: random.Random) -> list[Aspect]:
        """Aspects that P+ holds and that are not about the query itself, in a random order."""
        by_kind: dict[str, list[Aspect]] = {}
        for term in [*terms_of(passage), *self.vocabulary.plain_terms(passage)]:
            near = set(words(term.text)) & set(words(query)) or mentions(key.text, term.text)
            if not near:
                by_kind.setdefault(term.kind, []).append(Aspect(*term))
        if (language_of_pair(query, passage) or "en") == "en":  # of which the marks are
            by_kind[FACET] = [Aspect(FACET, facet.name) for facet in FACETS if facet.holds(passage)]
        length = len(words(passage))
        by_kind[SHORTER] = [Aspect(SHORTER, str(10 * (length // 10 + 2)))]
        order = sorted(
            (kind for kind, found in by_kind.items() if found),
            key=lambda kind: chance.random() ** (1 / WEIGHTS[kind]),
            reverse=True,
        )
        return [
            aspect for kind in order for aspect in chance.sample(by_kind[kind], len(by_kind[kind]))
        ]

    def _opposite(
        self,
        positive: Aspect,
        query: str,
        passage: str,
        key: Term,
        other_key: Source,
        chance: random.Random,
    ) -> tuple[Aspect, str] | None:
        """An aspect of the same kind that P+ does not hold, and a sentence that shows it."""
        if positive.kind == SHORTER:
            return Aspect(LONGER, positive.value), ""
        if positive.kind == FACET:
            return self._other_facet(BY_NAME[positive.value], passage, key, chance)
        term = Term(positive.kind, positive.value)
        other = self.vocabulary.other_term(term, passage, query, chance)
        if other is None or set(words(other.term.text)) & set(words(other_key.term.text)):
            return None
        shown = other.about(subject_in(passage, key))
        negative = Aspect(*other.term)
        fits = negative.holds(shown) and not positive.holds(shown)
        return negative, shown if fits and other.speaks(language_of(passage)) else ""

    def _other_facet(
        self, positive: Facet, passage: str, key: Term, chance: random.Random
    ) -> tuple[Aspect, str] | None:
        for facet in chance.sample(FACETS, len(FACETS)):
            if facet.holds(passage):
                continue
            shown = self.vocabulary.showing(facet, key, passage, positive, chance)
            if shown is not None:
                return Aspect(FACET, facet.name), shown
        return None

    def _chance(self, query: str, passage: str, what: str) -> random.Random:
        text = f"{self.seed}\0{what}\0{query}\0{passage}"
        return random.Random(hashlib.sha256(text.encode()).digest())


def _thinned(parts: list[str], plan: Plan, chance: random.Random, *, keeps: bool) -> list[str]:
    """The sentences without one that does not name the key term, if there are several.

    `keeps`: nor one that shows the aspect of I+.
    """
    idle = [
        place
        for place, part in enumerate(parts)
        if place and not mentions(part, plan.key.text) and not (keeps and plan.positive.holds(part))
    ]
    if len(parts) < 3 or not idle:
        return parts
    out = chance.choice(idle)
    return [part for place, part in enumerate(parts) if place != out]


def _shortened(parts: list[str], plan: Plan) -> list[str]:
    """The sentences that name the key term or show the aspect, and others up to `MAX_WORDS`."""
    needed = [mentions(part, plan.key.text) or plan.positive.holds(part) for part in parts]
    room = MAX_WORDS - sum(
        len(words(part)) for part, need in zip(parts, needed, strict=True) if need
    )
    kept = []
    for part, need in zip(parts, needed, strict=True):
        if not need:
            room -= len(words(part))
        if need or room >= 0:
            kept.append(part)
    return kept


def _longer(parts: list[str], plan: Plan, more: list[str]) -> str:
    """The sentences and as many more as the aspect of I- asks for."""
    for sentence in more:
        if plan.negative.holds(" ".join(parts)):
            break
        parts = [*parts, sentence]
    text = " ".join(parts)
    if not plan.negative.holds(text):
        raise CannotWrite("the dataset has too few sentences to make the passage longer")
    return text


def _named(part: str, old: Aspect, new: Aspect, language: str) -> str:
    """The sentence with a term in the other's place; names take their article along."""
    if language != "en" or old.kind not in (NAME, PLACE) or old.article == new.article:
        return swapped(part, old.value, new.value, language)
    if old.article:
        return swapped(swapped(part, f"the {old.value}", new.value), old.value, new.value)
    return swapped(part, old.value, f"the {new.value}").replace("the the ", "the ")


def _turned(parts: list[str], plan: Plan) -> str:
    """The sentences with the aspect of I+ gone and that of I- there."""
    positive, negative = plan.positive, plan.negative
    if positive.kind == FACET:
        kept = [part for part in parts if not positive.holds(part)]
        text = " ".join([*kept[:1], plan.shown, *kept[1:]])
    else:
        kept = [_named(part, positive, negative, plan.language) for part in parts]
        text = " ".join([*kept, plan.shown] if plan.shown else kept)
    if positive.holds(text) or not negative.holds(text):
        raise CannotWrite("the passage for I- shows what the instruction for Q+ asks for")
    if not mentions(text, plan.key.text):
        raise CannotWrite("the passage for I- lost the subject of the query")
    return text
