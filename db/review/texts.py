"""The written texts of groups by release column: reading them, which are missing, writing them.

A group that was dropped early lacks texts: a person may write them by hand, all that are missing at
once, since a scenario is stored only as a whole.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.corpus.datasets import text_sha256
from db.run.new_items import insert_items, is_pick
from db.run.runs import shape_of, shapes_of_groups
from db.shape import GroupText, Role, Shape
from db.tables import Group, Item, Pair, Passage, Run, Triplet, utc_now

BATCH = 500
BY_HAND = 2  # the first revision of a scenario is what a run's validator judged; here it never did


def group_texts(session: Session, group_ids: Sequence[int]) -> dict[int, dict[str, str]]:
    """The written texts of each group by column, without those that are not there."""
    found: dict[int, dict[str, str]] = {group_id: {} for group_id in group_ids}
    shapes = shapes_of_groups(session, group_ids)
    for start in range(0, len(group_ids), BATCH):
        rows = session.execute(
            select(Triplet.group_id, Triplet.role, Triplet.instruction, Triplet.query, Passage.text)
            .join(Passage, Passage.id == Triplet.passage_id)
            .where(Triplet.group_id.in_(group_ids[start : start + BATCH]))
        )
        for group_id, role, instruction, query, passage in rows:
            fields = {"instruction": instruction, "query": query, "passage": passage}
            found[group_id] |= {
                text.column: fields[text.field]
                for text in shapes[group_id].written
                if text.introduced_by == role
            }
    return found


def missing_texts(shape: Shape, texts: Mapping[str, str]) -> list[GroupText]:
    """The written texts of the shape that are not among these, which are by column."""
    return [text for text in shape.written if not texts.get(text.column)]


def write_texts(session: Session, group: Group, name: str, texts: Mapping[str, str]) -> None:
    """Write texts by column into the group's triplets, and its items' next revision.

    Triplets that are not there are created: `texts` must then hold all that is missing. `name` is
    the beginning of the ids of new passages.
    """
    triplets = {
        triplet.role: triplet
        for triplet in session.scalars(
            select(Triplet).where(Triplet.group_id == group.id).with_for_update()
        )
    }
    shape = shape_of(session, group.run_id)
    were_missing = [role for role in shape.roles if role not in triplets]
    known = group_texts(session, [group.id])[group.id]
    new = {each: text for each, text in texts.items() if text != known.get(each)}
    replaced: dict[int, int] = {}
    for changed, text in new.items():
        for role, column in shape.editable[changed]:
            if role not in triplets:
                continue
            triplet = triplets[role]
            if column == "passage":
                old = session.get_one(Passage, triplet.passage_id)
                passage = _new_passage(session, group, name, role, old, text)
                replaced[triplet.passage_id] = triplet.passage_id = passage.id
            else:
                setattr(triplet, column, text)
    if were_missing:
        _create(session, group, name, shape, were_missing, known | new, triplets)
    session.flush()
    completed = shape.roles if were_missing else ()
    _renew_items(session, group.id, triplets, replaced, completed)


def _create(
    session: Session,
    group: Group,
    name: str,
    shape: Shape,
    roles: Sequence[Role],
    texts: Mapping[str, str],
    triplets: dict[str, Triplet],
) -> None:
    pair = session.get_one(Pair, group.pair_id)
    known = {**texts, shape.first.query.column: pair.query}
    for role in roles:
        instruction, query, passage = shape.scenarios[role].texts
        passage_id = (
            pair.passage_id
            if passage.from_source
            else _new_passage(session, group, name, role, None, known[passage.column]).id
        )
        triplets[role] = Triplet(
            group_id=group.id,
            role=role,
            instruction=known[instruction.column],
            query=known[query.column],
            passage_id=passage_id,
        )
        session.add(triplets[role])


def _new_passage(
    session: Session, group: Group, name: str, role: Role, old: Passage | None, text: str
) -> Passage:
    dataset_id = session.scalars(select(Run.dataset_id).where(Run.id == group.run_id)).one()
    passage = Passage(
        dataset_id=dataset_id,
        external_id=f"{name}-{role}",
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
    session: Session,
    group_id: int,
    triplets: Mapping[str, Triplet],
    replaced: Mapping[int, int],
    completed: Sequence[Role],
) -> None:
    """The next revision of the group's picks, with the triplets' texts and passages.

    `completed`: all roles of a group whose missing texts were written just now.
    """
    newest: dict[str, Item] = {}
    query = select(Item).where(Item.group_id == group_id, is_pick()).order_by(Item.revision)
    for item in session.scalars(query):
        newest[item.scenario] = item
    candidates = {
        scenario: [
            {**entry, "passage_id": replaced.get(entry["passage_id"], entry["passage_id"])}
            for entry in item.candidates
        ]
        for scenario, item in newest.items()
    }
    if completed and not newest:
        own = [{"passage_id": triplets[role].passage_id, "label": role} for role in completed]
        candidates = dict.fromkeys(completed, own)
    rows = [
        {
            "group_id": group_id,
            "scenario": scenario,
            "expected": newest[scenario].expected if scenario in newest else scenario,
            "revision": newest[scenario].revision + 1 if scenario in newest else BY_HAND,
            "instruction": triplets[scenario].instruction,
            "query": triplets[scenario].query,
            "candidates": entries,
            "created_at": utc_now(),
        }
        for scenario, entries in candidates.items()
    ]
    insert_items(session, rows)
