"""Facets: what a passage may do for its subject (explain a cause, warn, compare, …).

Each facet has marks by which a rule recognises it in a text, a description for an instruction, and
sentences that write it about any subject. The sentences hold the marks of their own facet only.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Facet:
    """A facet: its marks in a text, its description in instructions, and sentences that show it."""

    name: str
    marks: re.Pattern[str]
    description: str
    written: tuple[str, ...]

    def holds(self, text: str) -> bool:
        """Whether the text shows the facet."""
        return self.marks.search(text) is not None


def _marks(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


FACETS = (
    Facet(
        "cause",
        _marks("because|due to|owing to|as a result|caused by|the reason|therefore|consequently"),
        "the cause or reason behind it",
        (
            "Behind {k} stands a single cause: one change set off the next, and the reason "
            "became clear only later.",
            "Much of this came about because of {k}, and the causes have been argued over since.",
        ),
    ),
    Facet(
        "price",
        _marks("prices?|costs?|dollars|expensive|cheap|cheaper|fees?|paid|euros|budget"),
        "prices and what it costs",
        (
            "The price of {k} went up to about 60 dollars within a few seasons.",
            "Buyers found {k} expensive, and cheaper offers soon drove the costs down again.",
        ),
    ),
    Facet(
        "warning",
        _marks("do not|don't|avoid|never|danger|dangerous|risks?|warn(?:ed|ing|s)?|hazards?"),
        "warnings, risks and dangers to avoid",
        (
            "There is a real danger in {k}, and careless people have been hurt.",
            "Warnings about {k} are worth heeding: avoid the risk altogether when in doubt.",
        ),
    ),
    Facet(
        "example",
        _marks("for example|for instance|such as|e\\.g|examples?"),
        "concrete examples",
        (
            "Examples of {k} are easy to come by, for instance the one shown to every visitor.",
            "Take, for example, the best known case of {k}, which illustrates all the others.",
        ),
    ),
    Facet(
        "comparison",
        _marks("unlike|compared|in contrast|whereas|similar to|versus|differs?|than"),
        "a comparison with something similar",
        (
            "Compared with its closest rival, {k} comes out slightly ahead.",
            "In contrast to what is often set beside it, {k} differs in shape and in scale.",
        ),
    ),
    Facet(
        "origin",
        _marks(
            "founded|invented|originally|origins?|originated|centur(?:y|ies)|established|ancient"
            "|first (?:used|appeared|published|released|described|introduced)"
        ),
        "its history and where it originally came from",
        (
            "The history of {k} goes back to the seventeenth century, to a small workshop.",
            "{K} originated among travelling traders and was established in its ancient form "
            "long before it had a name.",
        ),
    ),
    Facet(
        "law",
        _marks("laws?|legal|illegal|courts?|acts?|regulations?|statutes?|constitution(?:al)?"),
        "laws, courts and what is legal",
        (
            "A court ruling later settled what the law has to say about {k}.",
            "Under present regulations {k} is legal, although a new statute is being debated.",
        ),
    ),
    Facet(
        "health",
        _marks("health|doctors?|diseases?|medical|patients?|symptoms?|treatments?|medicine"),
        "effects on health and medical advice",
        (
            "Doctors have looked at how {k} affects the health of patients.",
            "Medical advice on {k} mentions mild symptoms and a simple treatment.",
        ),
    ),
    Facet(
        "awards",
        _marks("records?|awards?|championships?|prizes?|winners?|medals?|trophy"),
        "awards, prizes and records",
        (
            "{K} won a national prize and was given a medal at the ceremony.",
            "An award for {k} followed, and with it a record that stood for years.",
        ),
    ),
    Facet(
        "weather",
        _marks("weather|rain|storms?|snow|temperatures?|winter|summer|climate|drought"),
        "weather, seasons and climate",
        (
            "Heavy rain and winter storms decide how {k} turns out.",
            "In a dry summer with high temperatures {k} suffers, as in any harsh climate.",
        ),
    ),
    Facet(
        "children",
        _marks("child(?:ren)?|school|pupils?|teachers?|toddlers?|classrooms?|kids"),
        "children, schools and teaching",
        (
            "Teachers bring {k} into the classroom, and pupils write about it.",
            "Children meet {k} early, most of them at school.",
        ),
    ),
    Facet(
        "music",
        _marks("music|songs?|albums?|singers?|bands?|orchestra|musicians?|concerts?"),
        "music, songs and musicians",
        (
            "A folk song about {k} became popular with singers and bands.",
            "At concerts {k} still gives its name to an album that musicians admire.",
        ),
    ),
)
BY_NAME = {facet.name: facet for facet in FACETS}
