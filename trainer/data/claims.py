"""Claims as training reads them: which passages serve a query, which do not, and how far.

A row has scenarios (those of its release's shape; one in Promptriever's files), each an
instruction and a query with a passage that satisfies them, and negatives by grade, as many as there
are: 1 answers the query but violates the instruction, 0 does not answer (`db.shape.Claim`). The
terms of the objectives are defined by claims: P contrasts a scenario's passage of grade 2 with
every passage that has not grade 2 under its instruction and query; I and IQ contrast it with
instructions and queries under which it has not, and need a second instruction in the shape
(`Shape.other_instruction`): a release without one is refused before anything loads.

`right_texts` says what P leaves out among all that training reads: what has grade 2 (a passage that
violates an instruction does answer the query alone, and one row's negative may be right in another
row), and within a group what no claim grades (`Group.open_claims`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from db.shape import Shape, shape_from
from trainer.data.groups import Group, Negative, group_key
from trainer.settings.template import Template

INSTRUCTION_NEGATIVE: Final = "instruction_negative"
PROMPTRIEVER_COLUMNS: Final = frozenset({"only_query", "only_instruction", "positive_passages"})
PROMPTRIEVER: Final[Shape] = shape_from(
    {
        "texts": [
            {"sign": "Q", "field": "query", "column": "only_query", "from_source": True},
            {"sign": "I", "field": "instruction", "column": "only_instruction"},
            {"sign": "P", "field": "passage", "column": "positive_passage", "from_source": True},
        ],
        "scenarios": [{"role": "positive", "instruction": "I", "query": "Q", "passage": "P"}],
    },
    "Promptriever's columns",
)


def negatives_of(listed: Mapping[str, str], shape: Shape) -> tuple[Negative, ...]:
    """A group's negatives from the texts of its lists by name (`N`, `N[1]`)."""
    return tuple(
        Negative(text.grade, listed[name], shape.roles.index(text.introduced_by))
        for text in shape.lists
        if text.grade is not None
        for name in text.names
        if name in listed
    )


def promptriever_groups(values: Mapping[str, Any], name: str) -> Iterator[Group]:
    """The groups of a row with Promptriever's columns: one for each positive passage.

    A row without an instruction has "" for it. `new_negatives`, and negatives explained as
    instruction negatives, have grade 1 where the row has an instruction; all others grade 0.
    """
    query = str(values.get("only_query") or "").strip()
    has_one = bool(values.get("has_instruction", values.get("only_instruction")))
    instruction = str(values.get("only_instruction") or "").strip() if has_one else ""
    negatives = [
        *(Negative(1, text) for text, _ in _passages(values.get("new_negatives"))),
        *(
            Negative(int(explanation == INSTRUCTION_NEGATIVE), text)
            for text, explanation in _passages(values.get("negative_passages"))
        ),
    ]
    for number, (passage, _) in enumerate(_passages(values.get("positive_passages"))):
        yield Group(
            f"{name}-{number}" if number else name,
            (query, instruction, passage),
            negatives=tuple(dict.fromkeys(negatives)),
            shape=PROMPTRIEVER,
        )


def _passages(value: Any) -> list[tuple[str, str]]:
    """(text, explanation) of a list of objects with `text`, or of texts; empty ones left out."""
    found = []
    for one in value if isinstance(value, list | tuple) else []:
        entry = one if isinstance(one, Mapping) else {"text": one}
        text = str(entry.get("text") or "").strip()
        if text:
            found.append((text, str(entry.get("explanation") or "")))
    return found


def given_negatives(groups: Iterable[Group]) -> dict[str, list[str]]:
    """The passages of the groups' own negatives by `group_key`, each once."""
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        if group.negatives:
            found.setdefault(group_key(group), {}).update(
                (negative.text, None) for negative in group.negatives
            )
    return {each: list(texts) for each, texts in found.items()}


def right_texts(groups: Sequence[Group], template: Template) -> dict[str, set[str]]:
    """The passages that are no negatives of each text that the template makes, over all groups:
    those with grade 2, and those of a group that no claim grades there.

    Under the query alone grade 2 have the passages of every instruction with this query, and the
    negatives that only violate one.
    """
    found: dict[str, set[str]] = {}
    for group in groups:
        for instruction, query, passage in group.triplets():
            for with_it in (instruction, ""):
                found.setdefault(template.apply(with_it, query), set()).add(passage)
        for negative in group.negatives:
            if negative.grade == 1:
                query = group.triplets()[negative.scenario][1]
                found.setdefault(template.apply("", query), set()).add(negative.text)
        for place, negative in group.open_claims():
            instruction, query, _ = group.triplets()[place]
            found[template.apply(instruction, query)].add(negative.text)
    return found
