"""Facets: what a passage may do for its subject (explain a cause, warn, compare, …).

Each facet has marks by which a rule recognises it in a text, and a description for an instruction.
What shows it in a written passage is a sentence of the dataset's own (`vocabulary.py`): sentences
of ours would stand in hundreds of negatives and in no positive.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Facet:
    """A facet: its marks in a text, and its description in instructions."""

    name: str
    marks: re.Pattern[str]
    description: str

    def holds(self, text: str) -> bool:
        """Whether the text shows the facet."""
        return self.marks.search(text) is not None


def _marks(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


FACETS = (
    Facet(
        "cause",
        _marks("because|due to|owing to|as a result|caused by|the reason|therefore|consequently"),
        "the reasons behind it",
    ),
    Facet(
        "price",
        _marks("prices?|costs?|dollars|expensive|cheap|cheaper|fees?|paid|euros|budget"),
        "prices and costs",
    ),
    Facet(
        "warning",
        _marks("do not|don't|avoid|never|danger|dangerous|risks?|warn(?:ed|ing|s)?|hazards?"),
        "dangers and what to avoid",
    ),
    Facet(
        "example",
        _marks("for example|for instance|such as|e\\.g|examples?"),
        "concrete examples",
    ),
    Facet(
        "comparison",
        _marks("unlike|compared|in contrast|whereas|similar to|versus|differs?|than"),
        "how it compares with something similar",
    ),
    Facet(
        "origin",
        _marks(
            "founded|invented|originally|origins?|originated|centur(?:y|ies)|established|ancient"
            "|first (?:used|appeared|published|released|described|introduced)"
        ),
        "how it began and where it comes from",
    ),
    Facet(
        "law",
        _marks("laws?|legal|illegal|courts?|acts?|regulations?|statutes?|constitution(?:al)?"),
        "the legal side of it",
    ),
    Facet(
        "health",
        _marks("health|doctors?|diseases?|medical|patients?|symptoms?|treatments?|medicine"),
        "health and medical matters",
    ),
    Facet(
        "awards",
        _marks("records?|awards?|championships?|prizes?|winners?|medals?|trophy"),
        "awards and records",
    ),
    Facet(
        "weather",
        _marks("weather|rain|storms?|snow|temperatures?|winter|summer|climate|drought"),
        "the weather and the seasons",
    ),
    Facet(
        "children",
        _marks("child(?:ren)?|school|pupils?|teachers?|toddlers?|classrooms?|kids"),
        "children and schools",
    ),
    Facet(
        "music",
        _marks("music|songs?|albums?|singers?|bands?|orchestra|musicians?|concerts?"),
        "music and musicians",
    ),
)
BY_NAME = {facet.name: facet for facet in FACETS}
