"""The first card of a study that is not made yet, of its file and questions. Pure."""

import random
from collections.abc import Sequence
from pathlib import Path

from curation.questions.questions_file import StudyQuestion
from curation.questions.study_file import Record, ShownPassage, read_records
from db.assignment.shown_items import ShownItem, place_in_card
from db.question import about_shown

EXAMPLE = Record(
    id="example",
    query="how does tea affect sleep",
    instruction="Only what was measured in people.",
    passages=tuple(
        ShownPassage(f"example_{number}", "", f"example_{number}", text)
        for number, text in enumerate(
            (
                "In a trial, 40 adults who drank two cups at night fell asleep 20 minutes later.",
                "Rats that were given an extract of tea slept less than those that were not.",
                "Tea was first planted in India in the nineteenth century.",
            )
        )
    ),
)


def card_of_file(entries: Sequence[StudyQuestion], file: Path | None) -> list[ShownItem]:
    """The items of the file's first row, or of an example, in the order in which a card has them.

    Passages are in an order by chance, the same at each call. Raises as `read_records` does of
    that row: the others are read when the study is made.
    """
    record = EXAMPLE if file is None else read_records(file, entries, 1)[0]
    order = [one.label for one in record.passages]
    random.Random(record.id).shuffle(order)
    texts = {one.label: one.text for one in record.passages}
    found = [
        ShownItem(
            study_id=0,
            item_id=0,
            token=place,
            instruction=record.instruction,
            query=record.query,
            candidates=tuple(texts[label] for label in order),
            group_id=0,
            question=entry.question,
            about=about_shown(place, order),
        )
        for entry in entries
        for place, _ in record.items(entry)
    ]
    names = [entry.key for entry in entries]
    return sorted(found, key=lambda one: place_in_card(names, one.question, one.about))
