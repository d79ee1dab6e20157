"""Which evaluations may be compared with another one, by their records."""

from collections.abc import Sequence

from db.tables import Evaluation
from trainer.records.likeness import differences, library_differences


def unlike(base: Evaluation, others: Sequence[Evaluation]) -> dict[int, list[str]]:
    """By evaluation id what differs from the base, for those that may not be compared with it.

    Where the base itself has no record, every other one is refused.
    """
    found = {
        each.id: differences(base.record, each.record) + _queries(base, each)
        for each in others
        if each is not base
    }
    return {key: texts for key, texts in found.items() if texts}


def library_notes(base: Evaluation, others: Sequence[Evaluation]) -> dict[int, list[str]]:
    """By evaluation id the libraries whose versions differ from the base's."""
    found = {each.id: library_differences(base.record, each.record) for each in others}
    return {key: texts for key, texts in found.items() if texts}


def _queries(base: Evaluation, other: Evaluation) -> list[str]:
    """Whether values of other queries are stored: the record alone could be of a newer file."""
    here, there = set(base.per_query), set(other.per_query)
    return [] if here == there else [f"values of other queries ({len(here & there):,} in common)"]
