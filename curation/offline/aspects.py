"""Aspects: what an instruction asks of a passage, so that a rule can check it on the text.

An aspect is a kind and a value: it mentions a term, it shows a facet, or it is short or long. The
value is always an object in its phrases, never their subject: no verb has to agree with it.
"""

import re
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
_ENGLISH = {
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


def _phrases(mention: tuple[str, ...], shorter: str, longer: str) -> dict[str, tuple[str, ...]]:
    kinds = dict.fromkeys((NAME, PLACE, YEAR, TERM), mention)
    return kinds | {SHORTER: (shorter,), LONGER: (longer,)}


# Values stand in quotation marks, as the text writes them: no case or article has to agree. Facets
# have marks for English alone.
_PHRASES = {
    "en": _ENGLISH,
    "de": _phrases(
        (
            "Zeige mir nur Texte, in denen „{v}“ vorkommt.",
            "Es soll darin auch um „{v}“ gehen.",
            "Ich suche einen Text, der auch „{v}“ nennt.",
            "Bitte nichts, worin „{v}“ nicht erwähnt wird.",
        ),
        "Bitte kurz: weniger als {v} Wörter.",
        "Bitte ausführlich: mindestens {v} Wörter.",
    ),
    "fr": _phrases(
        (
            "Montre-moi seulement des textes qui mentionnent « {v} ».",
            "Il faut aussi qu'il y soit question de « {v} ».",
            "Je cherche un texte où l'on parle aussi de « {v} ».",
            "Laisse de côté tout ce qui ne dit rien de « {v} ».",
        ),
        "Un texte court, s'il te plaît : moins de {v} mots.",
        "Un texte détaillé, s'il te plaît : au moins {v} mots.",
    ),
    "es": _phrases(
        (
            "Muéstrame solo textos que mencionen «{v}».",
            "También debe tratar de «{v}».",
            "Busco un texto que hable además de «{v}».",
            "Omite, por favor, todo lo que no diga nada de «{v}».",
        ),
        "Que sea corto, por favor: menos de {v} palabras.",
        "Que sea detallado, por favor: al menos {v} palabras.",
    ),
}
LANGUAGES = tuple(_PHRASES)


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

    def instruction(self, variant: int, language: str = "en") -> str:
        """The instruction as a sentence of one of LANGUAGES, in one of several variants."""
        ways = _PHRASES[language][self.kind]
        value = BY_NAME[self.value].description if self.kind == FACET else self.value
        return ways[variant % len(ways)].format(v=f"{self.article} {value}".strip())


def aspect_of(instruction: str) -> Aspect | None:
    """What an instruction asks for, read from its words; None for one that no rule writes."""
    for kind, pattern in _READ:
        if found := pattern.fullmatch(instruction):
            return Aspect(kind, BY_DESCRIPTION[found[1]].name if kind == FACET else found[1])
    return None


BY_DESCRIPTION = {facet.description: facet for facet in BY_NAME.values()}
_VALUES = {SHORTER: r"(\d+)", LONGER: r"(\d+)", FACET: f"({'|'.join(BY_DESCRIPTION)})"}
_READ = tuple(
    (
        kind,
        re.compile(
            _VALUES.get(kind, "(?:(?:an?|the) )?(.+)").join(map(re.escape, way.split("{v}")))
        ),
    )
    for phrases in _PHRASES.values()
    for kind in (SHORTER, LONGER, FACET, YEAR, TERM)  # a name's and a place's are a term's
    for way in phrases.get(kind, ())
)
