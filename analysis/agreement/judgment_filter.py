"""Which judgments of a study are compared: by role, source, recipe, judge and date."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date

from sqlalchemy.orm import Session

from analysis.agreement.answers import Decision
from db.study.items import ItemPlace, study_item_places
from db.study.judgments import JudgmentRow, stream_judgments


@dataclass(frozen=True)
class JudgmentFilter:
    """What counts; an empty tuple or None lets everything through.

    `scenarios` are the roles of the items (positive, instruction_negative, query_negative),
    `sources` those of their pairs, `recipes` the names of what grew them, `questions` the names of
    what they ask; `since` and `until` are days (UTC), both included, of the decision.
    """

    scenarios: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    questions: tuple[str, ...] = ()

    def takes_item(self, place: ItemPlace) -> bool:
        """Whether items of that place count."""
        return (
            (not self.scenarios or place.scenario in self.scenarios)
            and (not self.sources or place.source in self.sources)
            and (not self.recipes or place.recipe in self.recipes)
            and (not self.questions or place.question in self.questions)
        )

    def takes_judgment(self, row: JudgmentRow) -> bool:
        """Whether the judgment counts, whatever its item."""
        if self.judges and row.judge not in self.judges:
            return False
        if self.since is None and self.until is None:
            return True
        day = row.decided_at.astimezone(UTC).date()
        return (self.since is None or self.since <= day) and (
            self.until is None or day <= self.until
        )

    def options(self) -> list[str]:
        """The same filter as options of `inf analyze agreement`."""
        named = (
            ("--role", self.scenarios),
            ("--source", self.sources),
            ("--recipe", self.recipes),
            ("--judge", self.judges),
            ("--question", self.questions),
        )
        words = [word for option, values in named for value in values for word in (option, value)]
        for option, day in (("--since", self.since), ("--until", self.until)):
            if day is not None:
                words += [option, day.isoformat()]
        return words


def chosen_rows(
    rows: Iterable[JudgmentRow], places: Mapping[int, ItemPlace], chosen: JudgmentFilter
) -> list[JudgmentRow]:
    """The judgments that pass, in their order."""
    items = {item_id for item_id, place in places.items() if chosen.takes_item(place)}
    return [row for row in rows if row.item_id in items and chosen.takes_judgment(row)]


def study_decisions(
    session: Session, study_id: int, chosen: JudgmentFilter | None = None
) -> Iterator[Decision]:
    """The judgments of a study that pass the filter, read one by one while they are used."""
    chosen = chosen or JudgmentFilter()
    items: set[int] | None = None
    if chosen.scenarios or chosen.sources or chosen.recipes or chosen.questions:
        places = study_item_places(session, study_id)
        items = {item_id for item_id, place in places.items() if chosen.takes_item(place)}
    for row in stream_judgments(session, study_id):
        if (items is None or row.item_id in items) and chosen.takes_judgment(row):
            yield decision_of(row)


def decisions_of(rows: Iterable[JudgmentRow]) -> list[Decision]:
    """Stored judgments as the measures of agreement take them."""
    return [decision_of(row) for row in rows]


def decision_of(row: JudgmentRow) -> Decision:
    """A stored judgment as the measures of agreement take it."""
    return Decision(
        row.item_id, row.judge, row.label, row.kind, row.simulated, row.offline, row.decided_at
    )
