"""The offline writer: from <Q+, P+> to I+, I-, Q-, P1- and P2- by rules alone.

A pair gets an aspect that P+ holds (I+), one of the same kind that it does not hold (I-), the key
term of Q+ and another of its kind (Q-). P1- is P+ rewritten so that it holds the aspect of I-
and no longer that of I+; P2- is P+ rewritten to be about the key term of Q-, the aspect of I+
kept. So of the three passages each is right for exactly one of the three questions, and that can be
checked on the texts. Everything follows from the texts, the vocabulary and the seed.
"""

import hashlib
import random
from dataclasses import dataclass
from functools import lru_cache

from analysis.text.words import capital, mentions, replace_phrase, sentences, words
from curation.offline.aspects import FACET, LONGER, SHORTER, Aspect
from curation.offline.facets import BY_NAME, FACETS
from curation.offline.terms import NAME, PLACE, TERM, YEAR, Term, terms_of
from curation.offline.vocabulary import Vocabulary

MAX_WORDS = 90
WEIGHTS = {NAME: 6.0, PLACE: 6.0, YEAR: 1.5, TERM: 7.0, FACET: 4.0, SHORTER: 0.5}
_CLOSING = {
    NAME: (
        "Later accounts tie all of this closely to {y}.",
        "{Y} comes into the story more than once.",
        "Nobody writing on {k} can pass over {y}.",
    ),
    PLACE: (
        "The same is told all over {y}.",
        "{Y} in particular is known for it.",
        "In {y} people have their own view of {k}.",
    ),
    YEAR: (
        "The year {y} was the turning point.",
        "By {y} all of this had changed.",
    ),
    TERM: (
        "There is always some {y} involved.",
        "Here {y} matters just as much.",
        "The {y} deserves a closer look, as ever with {k}.",
    ),
}
_OPENING = (
    "This is about {k}.",
    "{K} is a subject of its own.",
    "As for {k}, the facts are soon told.",
    "Here is what is known about {k}.",
)
_PADDING = (
    "More could be said about {k}, and others have done so at length.",
    "{K} has been described from several sides, each with a point of its own.",
    "Whoever looks into {k} a second time will find further details to weigh.",
    "The whole subject of {k} deserves patience and an open mind.",
)


@dataclass(frozen=True)
class Plan:
    """The aspects and the swapped terms for one pair."""

    positive: Aspect
    negative: Aspect
    key: Term
    other_key: str
    variant: int


class CannotWrite(Exception):
    """No rule fits the pair; the message becomes the answer and the drop reason's detail."""


class Writer:
    """Writes the five texts of a group. `plan` is computed once per pair and remembered."""

    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        self.vocabulary, self.seed = vocabulary, seed
        self.plan = lru_cache(maxsize=4096)(self._plan)

    def instruction_positive(self, query: str, passage: str) -> str:
        """I+: asks for an aspect that P+ holds."""
        plan = self.plan(query, passage)
        return plan.positive.instruction(plan.variant)

    def instruction_negative(self, query: str, passage: str) -> str:
        """I-: asks for another aspect of the same kind, which P+ does not hold."""
        plan = self.plan(query, passage)
        return plan.negative.instruction(plan.variant)

    def query_negative(self, query: str, passage: str) -> str:
        """Q-: the query with its key term swapped."""
        plan = self.plan(query, passage)
        return replace_phrase(query, plan.key.text, plan.other_key.lower())

    def passage_instruction_negative(self, query: str, passage: str) -> str:
        """P1-: still about Q+, holds the aspect of I-, no longer that of I+."""
        plan, chance = self.plan(query, passage), self._chance(query, passage, "p1")
        parts = sentences(passage)
        if plan.positive.kind != SHORTER:
            parts = _shortened(_thinned(parts, plan.key.text, chance), plan)
        return " ".join(_turned(parts, plan, chance))

    def passage_query_negative(self, query: str, passage: str) -> str:
        """P2-: about the key term of Q-, with the aspect of I+ kept."""
        plan, chance = self.plan(query, passage), self._chance(query, passage, "p2")
        parts = [
            replace_phrase(part, plan.key.text, plan.other_key)
            for part in _shortened(sentences(passage), plan)
        ]
        opening = _filled(chance.choice(_OPENING), plan.other_key)
        text = " ".join([opening, *parts])
        if not plan.positive.holds(text):  # the opening made it too long
            text = " ".join(parts)
        if not plan.positive.holds(text):
            raise CannotWrite("the passage for Q- lost what the instruction asks for")
        return text

    def _plan(self, query: str, passage: str) -> Plan:
        chance = self._chance(query, passage, "plan")
        key = self.vocabulary.key_term(query, passage)
        if key is None:
            raise CannotWrite("query and passage share no key term")
        other_key = self.vocabulary.other_key(key, passage, query, chance)
        if other_key is None:
            raise CannotWrite(f"the dataset has no other {key.kind} to swap {key.text!r} for")
        for positive in self._aspects(query, passage, key, chance):
            negative = self._opposite(positive, query, passage, other_key, chance)
            if negative is not None:
                return Plan(positive, negative, key, other_key, chance.randrange(1000))
        raise CannotWrite("the passage holds nothing that an instruction could ask for")

    def _aspects(self, query: str, passage: str, key: Term, chance: random.Random) -> list[Aspect]:
        """Aspects that P+ holds and that are not about the query itself, in a random order."""
        by_kind: dict[str, list[Aspect]] = {}
        for term in [*terms_of(passage), *self.vocabulary.plain_terms(passage)]:
            near = set(words(term.text)) & set(words(query)) or mentions(key.text, term.text)
            if not near:
                by_kind.setdefault(term.kind, []).append(Aspect(term.kind, term.text))
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
        self, positive: Aspect, query: str, passage: str, other_key: str, chance: random.Random
    ) -> Aspect | None:
        """An aspect of the same kind that P+ does not hold; None if there is none."""
        if positive.kind == SHORTER:
            return Aspect(LONGER, positive.value)
        if positive.kind == FACET:
            others = [facet for facet in FACETS if not facet.holds(passage)]
            return Aspect(FACET, chance.choice(others).name) if others else None
        term = Term(positive.kind, positive.value)
        other = self.vocabulary.other_term(term, passage, query, chance)
        if other is None or set(words(other)) & set(words(other_key)):
            return None
        return Aspect(positive.kind, other)

    def _chance(self, query: str, passage: str, what: str) -> random.Random:
        text = f"{self.seed}\0{what}\0{query}\0{passage}"
        return random.Random(hashlib.sha256(text.encode()).digest())


def _thinned(parts: list[str], key: str, chance: random.Random) -> list[str]:
    """The sentences without one that does not name the key term, if there are several."""
    idle = [place for place, part in enumerate(parts) if place and not mentions(part, key)]
    if len(parts) < 3 or not idle:
        return parts
    out = chance.choice(idle)
    return [part for place, part in enumerate(parts) if place != out]


def _shortened(parts: list[str], plan: Plan) -> list[str]:
    """The sentences that name the key term or show the aspect, and others up to `MOST_WORDS`."""
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


def _turned(parts: list[str], plan: Plan, chance: random.Random) -> list[str]:
    """The sentences with the aspect of I+ gone and that of I- there."""
    positive, negative, key = plan.positive, plan.negative, plan.key.text
    if positive.kind == SHORTER:
        padding = list(_PADDING)
        chance.shuffle(padding)
        while not negative.holds(" ".join(parts)):
            parts = [*parts, _filled(padding[len(parts) % len(padding)], key)]
        return parts
    if positive.kind == FACET:
        kept = [part for part in parts if not positive.holds(part)]
        written = [_filled(sentence, key) for sentence in BY_NAME[negative.value].written]
        if any(positive.holds(sentence) for sentence in written):
            written = [sentence for sentence in written if not positive.holds(sentence)]
        if not written:
            raise CannotWrite("no sentence shows the other facet without the first")
        return [*kept[:1], *written, *kept[1:]]
    swapped = [replace_phrase(part, positive.value, negative.value) for part in parts]
    closing = chance.choice(_CLOSING[positive.kind]).format(
        k=key, K=capital(key), y=negative.value, Y=capital(negative.value)
    )
    return [*swapped, closing]


def _filled(sentence: str, key: str) -> str:
    return sentence.format(k=key, K=capital(key))
