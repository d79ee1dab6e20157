"""The written texts of groups by field (`Shape.fields`): reading, which are missing, writing them.

A group that was dropped early lacks texts: a person may write them by hand, all that are missing at
once, since a scenario is stored only as a whole.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from db.corpus.datasets import text_sha256
from db.corpus.texts import text_row, texts_of
from db.question import about_of
from db.run.new_items import insert_items, is_pick
from db.run.runs import shape_of, shapes_of_groups
from db.run.versions import reason_in_use
from db.shape import INSTEAD, TAKEN_OUT, GroupText, ListText, Shape, text_name
from db.store.bulk import insert_rows
from db.tables import Group, Item, Pair, Passage, Recipe, Run, SlotText, utc_now

BY_HAND = 2  # the first revision of a scenario is what a run's validator judged; here it never did


def group_texts(session: Session, group_ids: Sequence[int]) -> dict[int, dict[str, str]]:
    """The written texts of each group by field, without those that are not there.

    Where a shape has lists the pair's passage is there too, in whose place another may stand:
    groups that differ in it, or in a list, are not of the same texts.
    """
    shapes, found = shapes_of_groups(session, group_ids), dict[int, dict[str, str]]()
    for group_id, texts in texts_of(session, group_ids).items():
        shape = shapes[group_id]
        names = {field: text_name(of.sign, number) for field, (of, number) in shape.fields.items()}
        if shape.lists:
            names[shape.first.passage.column] = shape.first.passage.sign
        found[group_id] = {field: texts[name] for field, name in names.items() if name in texts}
    return found


def missing_texts(shape: Shape, texts: Mapping[str, str]) -> list[GroupText]:
    """The written texts of the shape that are not among these, which are by column."""
    return [text for text in shape.written if not texts.get(text.column)]


def write_texts(session: Session, group: Group, name: str, texts: Mapping[str, str]) -> None:
    """Write texts by field into the group's slots, and its items' next revision.

    Of a group that lacks texts `texts` must hold all that is missing. `name` is the beginning of
    the ids of new passages.
    """
    shape = shape_of(session, group.run_id)
    slots = {
        text_name(each.slot, each.ordinal): each
        for each in session.scalars(
            select(SlotText).where(SlotText.group_id == group.id).with_for_update()
        )
    }
    were_missing = [text for text in shape.all_texts if text.sign not in slots]
    known = texts_of(session, [group.id])[group.id]
    replaced: dict[int, int] = {}
    added: dict[str, int] = {}
    changed: dict[tuple[str, str], str] = {}
    for field, (text, number) in shape.fields.items():
        sign = text_name(text.sign, number)
        slot, value = slots.get(sign), texts.get(field, known.get(sign))
        if value is None or value == known.get(sign, ""):
            continue
        if isinstance(text, ListText):
            old_id = None if slot is None else slot.passage_id
            new_id = _write_listed(session, group, name, (text.sign, number), slot, value)
            if old_id is None:
                added[sign] = new_id
            elif new_id != old_id:
                replaced[old_id] = new_id
        elif slot is None:
            continue  # `_complete` writes it
        elif slot.passage_id is None:
            changed[text.field, str(slot.text)] = slot.text = value
        else:
            old = session.get_one(Passage, slot.passage_id)
            passage = _new_passage(session, group, f"{name}-{text.introduced_by}", old, value)
            replaced[old.id] = slot.passage_id = passage.id
    session.flush()
    if were_missing:
        _complete(session, group, name, shape, were_missing, texts)
    _renew_items(session, group.id, shape, replaced, completed=bool(were_missing))
    _renew_checks(session, group.id, replaced, changed)
    if added:
        _ask_about(session, group, shape, added)


def _write_listed(
    session: Session,
    group: Group,
    name: str,
    place: tuple[str, int],
    slot: SlotText | None,
    value: str,
) -> int:
    """Write a text of a list, or take it out where the value is empty; returns the passage's id.

    One that a person wrote where another was dropped, or where none was, leaves the place as it
    was before: which is known from its passage.
    """
    old = None if slot is None else session.get_one(Passage, slot.passage_id)
    if not value:
        assert slot is not None and old is not None
        instead = old.meta.get(INSTEAD)
        if instead is None:
            slot.dropped_reason = TAKEN_OUT
        elif not instead:
            session.delete(slot)
        else:
            slot.passage_id = instead["passage_id"]
            slot.dropped_reason = reason_in_use(session, slot, group.run_id, instead["reason"])
            return int(instead["passage_id"])
        return old.id
    if slot is not None and old is not None:
        if slot.dropped_reason == TAKEN_OUT and old.text == value:
            slot.dropped_reason = reason_in_use(session, slot, group.run_id, None)  # it comes back
            return old.id
        instead = old.meta.get(INSTEAD)
        if slot.dropped_reason is not None:
            instead = {"passage_id": old.id, "reason": slot.dropped_reason}
    else:
        instead = {}
    passage = _new_passage(session, group, f"{name}-{text_name(*place)}", old, value)
    if instead is not None:
        passage.meta = {**passage.meta, INSTEAD: instead}
    if slot is None:
        row = SlotText(group_id=group.id, slot=place[0], ordinal=place[1], passage_id=passage.id)
        session.add(row)
    else:
        slot.passage_id, slot.dropped_reason = passage.id, None
    return passage.id


def _ask_about(session: Session, group: Group, shape: Shape, added: Mapping[str, int]) -> None:
    """The items of the checks that ask about a list's texts, for those that the run never wrote (by
    name, their passages): as those about another text of the list, of this group or of its run."""
    texts, newest = texts_of(session, [group.id])[group.id], _newest(session, group.id, ~is_pick())
    recipe = session.scalars(
        select(Recipe.body).join(Run, Run.recipe_id == Recipe.id).where(Run.id == group.run_id)
    ).one()
    own = _passages_of(session, group.id)
    questions = [
        (check["name"], text, sign)
        for text in shape.lists
        for sign in text.names
        if sign in added
        for check in recipe.get("checks", ())
        if text.sign in check["over"]
    ]
    rows = []
    for check, text, sign in questions:
        scenario = shape.scenarios[text.introduced_by]
        places = [f"{check}:{name}" for name in text.names]
        template = next((newest[place] for place in places if place in newest), None)
        template = template or session.scalar(
            select(Item)
            .join(Group, Group.id == Item.group_id)
            .where(Group.run_id == group.run_id, Item.scenario.in_(places))
            .limit(1)
        )
        if template is None:
            continue
        about, place = about_of(template.scenario), f"{check}:{sign}"
        rows.append(
            {
                "group_id": group.id,
                "scenario": place,
                "question_id": template.question_id,
                "expected": template.expected,
                "revision": newest[place].revision + 1 if place in newest else BY_HAND,
                "instruction": texts[scenario.instruction.sign] if template.instruction else "",
                "query": texts[scenario.query.sign] if template.query else "",
                "candidates": [
                    {"passage_id": added[sign], "label": sign}
                    if each["label"] == about
                    else {
                        "passage_id": own[shape.scenarios[each["label"]].passage.sign],
                        "label": each["label"],
                    }
                    for each in template.candidates
                ],
                "created_at": utc_now(),
            }
        )
    if rows:
        insert_items(session, rows)


def _complete(
    session: Session,
    group: Group,
    name: str,
    shape: Shape,
    missing: Sequence[GroupText],
    texts: Mapping[str, str],
) -> None:
    pair = session.get_one(Pair, group.pair_id)
    rows = []
    for text in missing:
        value = pair.query if text.from_source else texts[text.column]
        passage_id = None
        if text.is_passage and text.from_source:
            passage_id = pair.passage_id
        elif text.is_passage:
            of = f"{name}-{text.introduced_by}"
            passage_id = _new_passage(session, group, of, None, value).id
        rows.append(text_row(group.id, text.sign, value, passage_id))
    insert_rows(session, SlotText, rows)


def _new_passage(
    session: Session, group: Group, external_id: str, old: Passage | None, text: str
) -> Passage:
    dataset_id = session.scalars(select(Run.dataset_id).where(Run.id == group.run_id)).one()
    passage = Passage(
        dataset_id=dataset_id,
        external_id=external_id,
        title=old.title if old else "",
        text=text,
        sha256=text_sha256(text),
        origin="generated",
        meta={"edited_from": old.external_id} if old else {"written_by_hand": True},
    )
    session.add(passage)
    session.flush()
    return passage


def _renew_items(
    session: Session, group_id: int, shape: Shape, replaced: Mapping[int, int], *, completed: bool
) -> None:
    """The next revision of the group's picks, with its texts and passages.

    Of all of them: each shows every passage of the group.

    `completed`: of a group whose missing texts were written just now, there may be none yet.
    """
    newest = _newest(session, group_id, is_pick())
    candidates = {role: _replaced(item, replaced) for role, item in newest.items()}
    if completed and not newest:
        passage_of = _passages_of(session, group_id)
        own = [
            {"passage_id": passage_of[scenario.passage.sign], "label": role}
            for role, scenario in shape.scenarios.items()
        ]
        candidates = dict.fromkeys(shape.roles, own)
    texts = texts_of(session, [group_id])[group_id]
    rows = [
        {
            "group_id": group_id,
            "scenario": role,
            "expected": newest[role].expected if role in newest else role,
            "revision": newest[role].revision + 1 if role in newest else BY_HAND,
            "instruction": texts[shape.scenarios[role].instruction.sign],
            "query": texts[shape.scenarios[role].query.sign],
            "candidates": entries,
            "created_at": utc_now(),
        }
        for role, entries in candidates.items()
    ]
    insert_items(session, rows)


def _renew_checks(
    session: Session,
    group_id: int,
    replaced: Mapping[int, int],
    changed: Mapping[tuple[str, str], str],
) -> None:
    """The next revision of those of the group's checks that were shown a text which is another
    now: `replaced` passages by id, `changed` texts by (field, text)."""
    rows = []
    for place, item in _newest(session, group_id, ~is_pick()).items():
        candidates = _replaced(item, replaced)
        shown = {"instruction": item.instruction, "query": item.query}
        texts = {field: changed.get((field, text), text) for field, text in shown.items()}
        if candidates == item.candidates and texts == shown:
            continue
        rows.append(
            {
                "group_id": group_id,
                "scenario": place,
                "question_id": item.question_id,
                "expected": item.expected,
                "revision": item.revision + 1,
                **texts,
                "candidates": candidates,
                "created_at": utc_now(),
            }
        )
    if rows:
        insert_items(session, rows)


def _passages_of(session: Session, group_id: int) -> dict[str, int]:
    """The passages of a group's scenarios, by the sign of their text."""
    query = select(SlotText.slot, SlotText.passage_id).where(SlotText.group_id == group_id)
    return {slot: passage for slot, passage in session.execute(query) if passage is not None}


def _newest(session: Session, group_id: int, which: ColumnElement[bool]) -> dict[str, Item]:
    """The last revision of the group's items of this kind, by scenario or place of a check."""
    query = select(Item).where(Item.group_id == group_id, which).order_by(Item.revision)
    return {item.scenario: item for item in session.scalars(query)}


def _replaced(item: Item, replaced: Mapping[int, int]) -> list[dict[str, Any]]:
    """The candidates of an item with other passages in place of those that were `replaced`."""
    return [
        {**entry, "passage_id": replaced.get(entry["passage_id"], entry["passage_id"])}
        for entry in item.candidates
    ]
