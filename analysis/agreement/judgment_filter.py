"""Which judgments of a study are compared: by role, source, recipe, judge and date. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date

from analysis.agreement.answers import Decision
from db.study.items import ItemPlace
from db.study.judgments import JudgmentRow


@dataclass(frozen=True)
class JudgmentFilter:
    """What counts; an empty tuple or None lets everything through.

    `scenarios` are the roles of the items (positive, instruction_negative, query_negative),
    `sources` those of their pairs, `recipes` the names of what grew them; `since` and `until` are
    days (UTC), both included, of the decision.
    """

    scenarios: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None

    def takes_item(self, place: ItemPlace) -> bool:
        """Whether items of that place count."""
        return (
            (not self.scenarios or place.scenario in self.scenarios)
            and (not self.sources or place.source in self.sources)
            and (not self.recipes or place.recipe in self.recipes)
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


def decisions_of(rows: Iterable[JudgmentRow]) -> list[Decision]:
    """Stored judgments as the measures of agreement take them."""
    return [
        Decision(row.item_id, row.judge, row.label, row.kind, row.simulated, row.offline)
        for row in rows
    ]
