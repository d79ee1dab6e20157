"""Aspects: what an instruction asks of a passage, so that a rule can check it on the text.

An aspect is a kind and a value: it mentions a term, it shows a facet, or it is short or long.
"""

from dataclasses import dataclass

from analysis.text.words import mentions, words
from curation.offline.facets import BY_NAME
from curation.offline.terms import NAME, PLACE, TERM, YEAR

FACET = "facet"
SHORTER = "shorter"
LONGER = "longer"

_PHRASES = {
    NAME: (
        "Only passages that bring up {v} are relevant.",
        "The passage has to name {v}.",
        "I need a text in which {v} plays a part.",
        "Relevant documents say something about {v} as well.",
        "Prefer the document where {v} is named explicitly.",
        "Leave out every text that keeps silent about {v}.",
    ),
    PLACE: (
        "Only passages connected with {v} are relevant.",
        "The passage should have to do with {v}.",
        "I am looking for a text that refers to {v}.",
        "Documents that do not touch on {v} are of no use to me.",
        "Focus on material which places things in {v}.",
        "A good answer refers to {v} by name.",
    ),
    YEAR: (
        "Only passages that date something to {v} are relevant.",
        "The passage must refer to the year {v}.",
        "I am interested in what is said about {v}.",
        "Relevant documents give {v} as a date.",
    ),
    TERM: (
        "Only passages that speak of {v} are relevant.",
        "The passage has to say something about {v}.",
        "I need a text that deals with {v} too.",
        "Relevant documents use the word {v}.",
        "Pick the document in which {v} comes up.",
        "Without {v} in it a text is no help to me.",
    ),
    FACET: (
        "Only passages that tell me about {v} are relevant.",
        "The passage has to cover {v}.",
        "What I want to read about is {v}.",
        "Relevant documents go into {v}.",
    ),
    SHORTER: (
        "Give me a brief text of fewer than {v} words.",
        "The passage must stay below {v} words.",
    ),
    LONGER: (
        "Give me a detailed text of at least {v} words.",
        "The passage must run to {v} words or more.",
    ),
}


@dataclass(frozen=True)
class Aspect:
    """The request of an instruction; `holds` checks it on a text."""

    kind: str
    value: str

    def holds(self, text: str) -> bool:
        """Whether the text satisfies the instruction."""
        if self.kind == FACET:
            return BY_NAME[self.value].holds(text)
        if self.kind == SHORTER:
            return len(words(text)) < int(self.value)
        if self.kind == LONGER:
            return len(words(text)) >= int(self.value)
        return mentions(text, self.value)

    def instruction(self, variant: int) -> str:
        """The instruction as a sentence, in one of several variants."""
        ways = _PHRASES[self.kind]
        value = BY_NAME[self.value].description if self.kind == FACET else self.value
        return ways[variant % len(ways)].format(v=value)
