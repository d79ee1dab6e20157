"""The scenarios of a group and the texts they are made of: one table of facts.

A group of InF-IR has seven texts, each with a sign (I+, P1-, …) and a column of releases. A
scenario is an instruction and a query of the group with the passage that is right for them; it is
stored as a triplet, and judged as an item whose right answer has the scenario's role as its label.
Columns, joins, cards, figures and pages are made from these two tables.

Order matters: of TEXTS, for the columns of a release (as InF-IR publishes them); of SCENARIOS, for
items, samples and pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["positive", "instruction_negative", "query_negative"]
Field = Literal["instruction", "query", "passage"]
FIELDS: Final[tuple[Field, ...]] = ("instruction", "query", "passage")


@dataclass(frozen=True)
class GroupText:
    """One text of a group.

    `introduced_by`: the role of the scenario under which it is counted; others may use it again.
    `from_source`: it comes with the pair and is never edited. `meaning` is the card's wording.
    """

    sign: str
    field: Field
    column: str
    introduced_by: Role
    meaning: str
    from_source: bool = False

    @property
    def label(self) -> str:
        """As pages name it: "Instruction I-"."""
        return f"{self.field.capitalize()} {self.sign}"

    @property
    def task(self) -> str:
        """The task of a run that writes it: its column, or `passage_ROLE`."""
        return f"passage_{self.introduced_by}" if self.field == "passage" else self.column

    @property
    def counterpart(self) -> "GroupText | None":
        """The first text of its field, from which it must differ (I+ of I-); None for itself."""
        first = next(text for text in TEXTS.values() if text.field == self.field)
        return None if first is self else first


TEXTS: Final[dict[str, GroupText]] = {
    text.sign: text
    for text in (
        GroupText("Q+", "query", "query_positive", "positive", "Q+, the real query", True),
        GroupText("I+", "instruction", "instruction_positive", "positive", "I+, the instruction"),
        GroupText(
            "P+",
            "passage",
            "document_positive",
            "positive",
            "P+, the real passage that answers (I+, Q+)",
            True,
        ),
        GroupText("Q-", "query", "query_negative", "query_negative", "Q-, the poisoned query"),
        GroupText(
            "I-",
            "instruction",
            "instruction_negative",
            "instruction_negative",
            "I-, the poisoned instruction",
        ),
        GroupText(
            "P1-",
            "passage",
            "hard_negative_document_1",
            "instruction_negative",
            "P1-, written for (I-, Q+)",
        ),
        GroupText(
            "P2-",
            "passage",
            "hard_negative_document_2",
            "query_negative",
            "P2-, written for (I+, Q-)",
        ),
    )
}
COLUMNS: Final = tuple(text.column for text in TEXTS.values())


@dataclass(frozen=True)
class Scenario:
    """An instruction and a query by their signs, and the passage that is right for them."""

    role: Role
    title: str
    instruction: str
    query: str
    passage: str

    @property
    def label(self) -> str:
        """(I-, Q+) → P1-"""
        return f"({self.instruction}, {self.query}) → {self.passage}"

    @property
    def signs(self) -> tuple[str, str, str]:
        """The signs of instruction, query and passage."""
        return self.instruction, self.query, self.passage

    @property
    def texts(self) -> tuple[GroupText, GroupText, GroupText]:
        """Instruction, query and passage."""
        return TEXTS[self.instruction], TEXTS[self.query], TEXTS[self.passage]

    @property
    def columns(self) -> tuple[str, str, str]:
        """The release's columns of instruction, query and passage."""
        instruction, query, passage = self.texts
        return instruction.column, query.column, passage.column


SCENARIOS: Final[dict[Role, Scenario]] = {
    scenario.role: scenario
    for scenario in (
        Scenario("positive", "Positive", "I+", "Q+", "P+"),
        Scenario("instruction_negative", "Instruction negative", "I-", "Q+", "P1-"),
        Scenario("query_negative", "Query negative", "I+", "Q-", "P2-"),
    )
}
ROLES: Final[tuple[Role, ...]] = tuple(SCENARIOS)
FIRST_ROLE, LAST_ROLE = ROLES[0], ROLES[-1]
LABELS: Final[dict[Role, str]] = {role: each.label for role, each in SCENARIOS.items()}
SCENARIO_BITS: Final[dict[Role, int]] = {role: 1 << place for place, role in enumerate(ROLES)}
ALL_SCENARIOS: Final = (1 << len(ROLES)) - 1
SIGNS: Final[dict[tuple[str, str], str]] = {
    (text.field, text.introduced_by): text.sign for text in TEXTS.values()
}


def introduced(role: Role) -> tuple[GroupText, ...]:
    """The texts that come into a group with this scenario: instruction, query, passage."""
    return tuple(text for text in SCENARIOS[role].texts if text.introduced_by == role)


def places(text: GroupText) -> tuple[tuple[Role, Field], ...]:
    """The triplets that hold a text: (role, field), the scenario that introduces it first."""
    found = [
        (role, text.field) for role, scenario in SCENARIOS.items() if text.sign in scenario.signs
    ]
    return tuple(sorted(found, key=lambda place: place[0] != text.introduced_by))


def complete(texts: Mapping[str, str]) -> tuple[Scenario, ...]:
    """The scenarios of which all texts are there; `texts` by sign."""
    return tuple(each for each in SCENARIOS.values() if texts.keys() >= set(each.signs))


def shaded(shades: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """A colour for every sign, field by field: the n-th text of a field has its n-th shade."""
    found: dict[str, str] = {}
    for field, family in shades.items():
        signs = [text.sign for text in TEXTS.values() if text.field == field]
        found |= dict(zip(signs, family, strict=False))
    return found
