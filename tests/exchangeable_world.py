"""Studies whose texts are exchangeable between roles: every text is made before a coin decides its
role, so that whatever tells roles apart in what a judge receives was added by the product.
"""

import secrets
from pathlib import Path

from asked_study import ROLE, make_asked_study
from finished_run import finished_run
from slot_rows import slot_rows
from sqlalchemy import select
from sqlalchemy.orm import Session
from study_world import sampled_study

from db.run.new_items import insert_items
from db.shape import INF_IR
from db.store.bulk import insert_for_ids, insert_rows
from db.store.store import Store
from db.study.gold_items import add_gold_item
from db.study.sampling import sample_items
from db.study.studies import judged_groups
from db.tables import (
    Group,
    Item,
    Pair,
    Passage,
    Run,
    SlotText,
    StudyItem,
    utc_now,
)

LABELS = (*INF_IR.roles, "distractor_1", "distractor_2")
CHANCE = secrets.SystemRandom()


def make_exchangeable_study(
    store: Store,
    *,
    name: str,
    items: int,
    gold: int,
    ids_in_turn: bool = False,
    in_order_of_sample: bool = False,
) -> int:
    """A study with one judgment per item, and gold items of other groups of its run.

    Two old leaks: `ids_in_turn`, items get their ids group by group in the order of the roles;
    `in_order_of_sample`, judges get the items in the order in which the seed sampled them.
    """
    with store.write() as session:
        run_id = finished_run(session, name).id
        _groups(session, run_id, items, ids_in_turn=ids_in_turn)
        study_id = sampled_study(session, run_id=run_id, items=items, overlap=1, name=name).id
        if in_order_of_sample:
            sample = sample_items(judged_groups(session, run_id), items, 0)
            for position, item_id in enumerate(sample):
                session.get_one(StudyItem, (study_id, item_id)).position = position
        for group_id in _groups(session, run_id, gold, ids_in_turn=ids_in_turn):
            scenario = CHANCE.choice(INF_IR.roles)
            query = select(Item.id).where(Item.group_id == group_id, Item.scenario == scenario)
            item_id = session.scalars(query).one()
            add_gold_item(session, study_id, item_id, "gold", scenario, "")
        session.commit()
    return study_id


def make_exchangeable_cards(
    store: Store, folder: Path, *, name: str, records: int, gold: int
) -> int:
    """A study of records of Promptriever's shape, as a file has them: the positive, one to three
    instruction negatives and a hard negative, in this order, each to be graded on one card."""
    rows = []
    for number in range(records + gold):
        kinds = ("positive", *["instruction_negative"] * CHANCE.randint(1, 3), "hard_negative")
        texts = [{"id": secrets.token_hex(8), "text": _text()} for _ in kinds]
        CHANCE.shuffle(texts)
        row = {"id": secrets.token_hex(8), "query": _text(), "instruction": _text()}
        passages = [{**text, "kind": kind} for text, kind in zip(texts, kinds, strict=True)]
        rows.append(row | {"passages": passages, "part": "main" if number < records else "gold"})
    CHANCE.shuffle(rows)
    (folder / name).mkdir()
    return make_asked_study(store, folder / name, rows, [ROLE], overlap=1)


def _text() -> str:
    """A text that occurs nowhere else, of random length."""
    return " ".join(secrets.token_hex(4) for _ in range(CHANCE.randint(3, 9)))


def _groups(session: Session, run_id: int, count: int, *, ids_in_turn: bool) -> list[int]:
    """Groups of random texts whose roles are decided last."""
    dataset_id = session.get_one(Run, run_id).dataset_id
    texts = [_text() for _ in range(count * len(LABELS))]
    CHANCE.shuffle(texts)
    passages = insert_for_ids(
        session,
        Passage,
        [
            {
                "dataset_id": dataset_id,
                "external_id": secrets.token_hex(8),
                "title": "",
                "text": text,
                "sha256": secrets.token_hex(8),
                "origin": "generated",
                "meta": {},
            }
            for text in texts
        ],
    )
    of_group = [passages[5 * n : 5 * n + 5] for n in range(count)]
    queries = [_text() for _ in range(count)]
    pairs = insert_for_ids(
        session,
        Pair,
        [
            {
                "dataset_id": dataset_id,
                "external_id": secrets.token_hex(8),
                "query": query,
                "passage_id": ids[0],
                "meta": {},
            }
            for query, ids in zip(queries, of_group, strict=True)
        ],
    )
    rows = []
    for pair in pairs:
        verdict = CHANCE.choice(("kept", "dropped"))
        rows.append(
            Group(
                run_id=run_id,
                pair_id=pair,
                state="done",
                stage="validation",
                verdict=verdict,
                drop_reason="validation_positive" if verdict == "dropped" else None,
            )
        )
    session.add_all(rows)
    session.flush()
    groups = [row.id for row in rows]
    items, texts = [], []
    for group_id, query, ids in zip(groups, queries, of_group, strict=True):
        label_of = list(LABELS)
        CHANCE.shuffle(label_of)
        passage_of = dict(zip(label_of, ids, strict=True))
        triplets = {}
        for role in INF_IR.roles:
            shared = {"group_id": group_id, "instruction": _text(), "query": query}
            triplets[role] = shared["instruction"], query, passage_of[role]
            items.append(
                {
                    **shared,
                    "scenario": role,
                    "expected": role,
                    "revision": 1,
                    "candidates": [
                        {"passage_id": passage_of[label], "label": label} for label in LABELS
                    ],
                    "created_at": utc_now(),
                }
            )
        texts += slot_rows(group_id, triplets)
    insert_rows(session, SlotText, texts)
    if ids_in_turn:
        insert_for_ids(session, Item, items)
    else:
        insert_items(session, items)
    return groups
