"""Aspects: what an instruction asks of a passage, so that a rule can check it on the text.

An aspect is a kind and a value: it mentions a term, it shows a facet, or it is short or long. The
value is always an object in its phrases, never their subject: no verb has to agree with it.
"""

from dataclasses import dataclass

from analysis.text.words import mentions, words
from curation.offline.facets import BY_NAME
from curation.offline.terms import NAME, PLACE, TERM, YEAR

FACET = "facet"
SHORTER = "shorter"
LONGER = "longer"

_MENTION = (
    "Only show me passages that mention {v}.",
    "It should mention {v} as well.",
    "I'm looking for a text that also refers to {v}.",
    "Please skip anything that doesn't mention {v}.",
    "The one I need also says something about {v}.",
    "The answer has to bring up {v} too.",
)
_PHRASES = {
    NAME: _MENTION,
    PLACE: _MENTION,
    YEAR: (
        "Only show me passages that mention the year {v}.",
        "It should mention the year {v} as well.",
        "I'm looking for a text that also refers to the year {v}.",
        "Please skip anything that doesn't mention the year {v}.",
    ),
    TERM: _MENTION,
    FACET: (
        "I'd like to read about {v}.",
        "It should also cover {v}.",
        "I'm mostly interested in {v}.",
        "Please skip anything that says nothing about {v}.",
    ),
    SHORTER: (
        "Keep it short: fewer than {v} words, please.",
        "I only have time for a text of fewer than {v} words.",
    ),
    LONGER: (
        "Take your time: at least {v} words, please.",
        "I'd like a text of at least {v} words.",
    ),
}


@dataclass(frozen=True)
class Aspect:
    """The request of an instruction; `holds` checks it on a text.

    `article`: what stands before the value in a sentence, as the text it comes from has it.
    """

    kind: str
    value: str
    article: str = ""

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
        return ways[variant % len(ways)].format(v=f"{self.article} {value}".strip())
