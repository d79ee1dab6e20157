"""Which judgments of a study are compared: by role, source, recipe, judge and date."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, date
from typing import Self

from pydantic import model_validator
from sqlalchemy.orm import Session

from analysis.agreement.answers import Answers, Decision, number_decisions
from db.errors import BadInput
from db.requests import Request, option
from db.run.runs import shape_of
from db.study.items import ItemPlace, shared_records, study_item_places
from db.study.judgments import JudgmentRow, stream_judgments
from db.study.studies import get_study

DAY = "YYYY-MM-DD"


class JudgmentFilter(Request):
    """What counts; an empty tuple or None lets everything through."""

    scenarios: tuple[str, ...] = option(
        (),
        "Only items of this scenario of the run's shape (InF-IR's: positive, instruction_negative, "
        "query_negative); repeatable, like the other filters.",
        names=("--role",),
    )
    sources: tuple[str, ...] = option(
        (), "Only items of pairs of this source.", names=("--source",)
    )
    recipes: tuple[str, ...] = option(
        (), "Only items generated with this recipe.", names=("--recipe",)
    )
    judges: tuple[str, ...] = option((), "Only this judge.", names=("--judge",))
    questions: tuple[str, ...] = option(
        (), "Only this question of a study from a file.", names=("--question",)
    )
    since: date | None = option(None, "Only judgments from this day (UTC) on.", metavar=DAY)
    until: date | None = option(None, "Only judgments up to this day (UTC).", metavar=DAY)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.since and self.until and self.since > self.until:
            raise ValueError(f"the first day, {self.since}, is after the last, {self.until}")
        return self

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


def chosen_rows(
    rows: Iterable[JudgmentRow], places: Mapping[int, ItemPlace], chosen: JudgmentFilter
) -> list[JudgmentRow]:
    """The judgments that pass, in their order."""
    items = {item_id for item_id, place in places.items() if chosen.takes_item(place)}
    return [row for row in rows if row.item_id in items and chosen.takes_judgment(row)]


def study_decisions(
    session: Session, study_id: int, chosen: JudgmentFilter | None = None
) -> Iterator[Decision]:
    """The judgments of a study that pass the filter, read one by one while they are used.

    Raises BadInput for a scenario that the shape of its run does not have.
    """
    chosen = chosen or JudgmentFilter()
    items: set[int] | None = None
    if chosen.scenarios or chosen.sources or chosen.recipes or chosen.questions:
        places = study_item_places(session, study_id)
        run_id = get_study(session, study_id).run_id
        known = () if run_id is None else shape_of(session, run_id).roles
        if unknown := next((each for each in chosen.scenarios if each not in known), None):
            raise BadInput(
                f"no scenario {unknown!r} in study {study_id}",
                f"give one of {', '.join(known)}" if known else "leave it out: it has no run",
                code="scenario_unknown",
            )
        items = {item_id for item_id, place in places.items() if chosen.takes_item(place)}
    for row in stream_judgments(session, study_id):
        if (items is None or row.item_id in items) and chosen.takes_judgment(row):
            yield decision_of(row)


def study_answers(
    session: Session,
    study_id: int,
    chosen: JudgmentFilter | None = None,
    *,
    left_out: Collection[int] = (),
    is_ordered: bool = False,
) -> Answers:
    """The judgments of a study that pass the filter as numbers, without those of items left out.

    Items of one group are about one record: intervals take them as dependent.
    """
    decisions = study_decisions(session, study_id, chosen)
    return number_decisions(
        (row for row in decisions if row.item not in left_out),
        is_ordered=is_ordered,
        record_of=shared_records(session, study_id),
    )


def decisions_of(rows: Iterable[JudgmentRow]) -> list[Decision]:
    """Stored judgments as the measures of agreement take them."""
    return [decision_of(row) for row in rows]


def decision_of(row: JudgmentRow) -> Decision:
    """A stored judgment as the measures of agreement take it."""
    return Decision(
        row.item_id, row.judge, row.label, row.kind, row.simulated, row.offline, row.decided_at
    )
