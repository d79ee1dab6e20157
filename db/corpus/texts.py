"""The texts of a dataset as analysis counts them: each under its field and its role.

A field is instruction, query or passage. Texts of a run occur once per group, under the role of
the scenario that introduced them, those of a list under its own (`db.shape`). Without a run: the
queries and passages of the pairs, under `positive`. `texts_of` gives a group's texts by name,
whatever its shape.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVarTuple

from sqlalchemy import ColumnElement, Select, case, exists, func, select
from sqlalchemy.orm import Session

from db.shape import Shape, text_name
from db.tables import Dataset, Group, Pair, Passage, SlotText

Columns = TypeVarTuple("Columns")
BATCH = 500


class CorpusText(NamedTuple):
    """A text in its role.

    `group_id` is None for texts of a pair or a file; `source` (its pair's) and `pair_id` are None
    for those of a file.
    """

    field: str
    role: str
    text: str
    group_id: int | None = None
    verdict: str | None = None
    source: str | None = None
    pair_id: int | None = None


def passage_texts(session: Session, ids: Iterable[int]) -> dict[int, str]:
    """The texts of passages by id."""
    rows = session.execute(select(Passage.id, Passage.text).where(Passage.id.in_(list(ids))))
    return dict(rows.all())


def texts_of(session: Session, group_ids: Sequence[int]) -> dict[int, dict[str, str]]:
    """The texts of each of these groups by name: the slot, with a number after its first (`N[1]`).

    A group that was dropped early lacks some, or all. Texts that were dropped alone are left out.
    """
    found: dict[int, dict[str, str]] = {group_id: {} for group_id in group_ids}
    query = (
        select(SlotText.group_id, SlotText.slot, SlotText.ordinal, slot_text())
        .outerjoin(Passage, Passage.id == SlotText.passage_id)
        .order_by(SlotText.group_id, SlotText.slot, SlotText.ordinal)
    )
    for start in range(0, len(group_ids), BATCH):
        ids = group_ids[start : start + BATCH]
        for group_id, slot, ordinal, text in session.execute(
            query.where(SlotText.group_id.in_(ids), SlotText.dropped_reason.is_(None))
        ):
            found[group_id][text_name(slot, ordinal)] = text
    return found


def lost_texts(session: Session, group_id: int) -> dict[str, tuple[str, str]]:
    """The texts of a group that were dropped alone, by name, each with the reason."""
    rows = session.execute(
        select(SlotText.slot, SlotText.ordinal, slot_text(), SlotText.dropped_reason)
        .outerjoin(Passage, Passage.id == SlotText.passage_id)
        .where(SlotText.group_id == group_id, SlotText.dropped_reason.is_not(None))
        .order_by(SlotText.slot, SlotText.ordinal)
    )
    return {text_name(slot, place): (text, str(reason)) for slot, place, text, reason in rows}


def text_row(group_id: int, slot: str, text: str, passage_id: int | None = None) -> dict[str, Any]:
    """The row of a group's text in a slot: a passage's by its id."""
    return {
        "group_id": group_id,
        "slot": slot,
        "ordinal": 0,
        "text": None if passage_id else text,
        "passage_id": passage_id,
        "dropped_reason": None,
    }


def slot_text() -> ColumnElement[str]:
    """The text of a slot, for a query that joins `SlotText` and, outer, its `Passage`."""
    return func.coalesce(SlotText.text, Passage.text)


def pair_source() -> ColumnElement[str]:
    """The source of a pair: its column `source`, or its dataset's if it has none.

    For a query that joins `Pair` and `Dataset`.
    """
    return func.coalesce(func.nullif(Pair.meta["source"].as_string(), ""), Dataset.source)


def pair_sources(session: Session, dataset_id: int) -> list[str]:
    """The distinct sources of a dataset's pairs, sorted."""
    query = select(pair_source()).select_from(Pair).join(Dataset, Dataset.id == Pair.dataset_id)
    return sorted(session.scalars(query.where(Pair.dataset_id == dataset_id).distinct()))


def pair_languages(session: Session, dataset_id: int) -> list[str]:
    """The distinct values of `language` in the pairs, sorted."""
    language = Pair.meta["language"].as_string()
    query = select(language).where(Pair.dataset_id == dataset_id, language.is_not(None))
    return sorted(found for found in session.scalars(query.distinct()) if found)


def run_texts(
    session: Session,
    run_id: int,
    shape: Shape,
    *,
    verdicts: Sequence[str],
    source: str | None = None,
) -> list[CorpusText]:
    """The texts of a run's groups of that shape with these verdicts, by group and role; of one
    source or all."""
    introduced = [text for role in shape.roles for text in shape.introduced(role)]
    introduced += shape.lists
    places = {text.sign: place for place, text in enumerate(introduced)}
    query = (
        select(SlotText.slot, slot_text(), Group.id, Group.verdict, pair_source(), Group.pair_id)
        .join(Group, Group.id == SlotText.group_id)
        .outerjoin(Passage, Passage.id == SlotText.passage_id)
        .where(
            Group.run_id == run_id, Group.verdict.in_(verdicts), SlotText.dropped_reason.is_(None)
        )
        .order_by(Group.id, case(places, value=SlotText.slot), SlotText.ordinal)
    )
    query = query.join(Pair, Pair.id == Group.pair_id)
    rows = session.execute(_of_source(query, source))
    found = []
    for slot, text, group_id, verdict, of, pair_id in rows:
        of_slot = shape.slots[slot]
        row = CorpusText(of_slot.field, of_slot.role, text, group_id, verdict, of, pair_id)
        found.append(row)
    return found


def pair_texts(
    session: Session, dataset_id: int, *, source: str | None = None, without_kept: bool = False
) -> list[CorpusText]:
    """The queries of a dataset's pairs and the passages that answer them (each passage once).

    Of one source, or all; `without_kept`: only of pairs of which no run has a kept group.
    """
    mine = Pair.dataset_id == dataset_id
    if without_kept:
        mine &= ~exists().where(Group.pair_id == Pair.id, Group.verdict == "kept")
    queries = session.execute(
        _of_source(select(Pair.query, pair_source(), Pair.id).where(mine).order_by(Pair.id), source)
    )
    passages = session.execute(
        _of_source(
            select(Passage.text, func.min(pair_source()), func.min(Pair.id))
            .join(Pair, Pair.passage_id == Passage.id)
            .where(mine)
            .group_by(Passage.id, Passage.text)
            .order_by(Passage.id),
            source,
        )
    )
    return [
        CorpusText(field, "positive", text, source=of, pair_id=pair_id)
        for field, rows in (("query", queries), ("passage", passages))
        for text, of, pair_id in rows
    ]


def _of_source(query: Select[*Columns], source: str | None) -> Select[*Columns]:
    joined = query.join(Dataset, Dataset.id == Pair.dataset_id)
    return joined if source is None else joined.where(pair_source() == source)
