"""Which evaluations may be compared with another one, by their records."""

from collections.abc import Sequence

from db.tables import Evaluation
from trainer.records.likeness import Record, differences, library_differences
from trainer.report.compared.measures import model_name

DAGGER = "†"


def unlike_the_others(records: Sequence[Record]) -> dict[int, list[str]]:
    """By place what differs, for records unlike the others of the list.

    The others are those like the one that most are like; where none is like another, all differ.
    """
    if len(records) < 2:
        return {}
    apart = [
        [differences(base, other) for number, other in enumerate(records) if number != place]
        for place, base in enumerate(records)
    ]
    like = [sum(not reasons for reasons in of) for of in apart]
    place = like.index(max(like))
    base = records[place]
    found = {
        number: reasons
        for number, record in enumerate(records)
        if number != place and (reasons := differences(base, record))
    }
    if not max(like):
        found[place] = differences(records[1], base)  # place is 0: its own instead of another's
    return dict(sorted(found.items()))


def marked(evaluations: Sequence[Evaluation]) -> tuple[list[str], list[str]]:
    """The models' names, with a dagger where an evaluation is unlike the others of the table, and
    a line for every dagger: what differs."""
    unlike = unlike_the_others([each.record for each in evaluations])
    names = [model_name(each.model) for each in evaluations]
    lines = [
        f"{DAGGER} {names[place]}, evaluation {evaluations[place].id}, is not comparable with the "
        f"others: {', '.join(reasons)}"
        for place, reasons in unlike.items()
    ]
    return [f"{name} {DAGGER}" if n in unlike else name for n, name in enumerate(names)], lines


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
