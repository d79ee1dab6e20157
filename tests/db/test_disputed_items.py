"""Which items adjudication shows, in which order: against the slow way, on both engines."""

import random
from collections import Counter

import pytest
from study_world import make_world, sampled_study

from db.review.reviews import approve_group
from db.store.store import Store
from db.study import adjudication, gold_items, quality, studies
from db.study.judgments import get_or_create_judge, record_judgment
from db.tables import Item, StudyItem
from db.values import NONE

LABELS = ("positive", "instruction_negative", "query_negative", NONE)


def judge_everything(store: Store, seed: int) -> tuple[int, dict[int, list[str]], set[int]]:
    """A study in which people, a model and a simulated judge answered at random, with gold among
    its items. Returns it, what people answered by item, and the items with a note."""
    chance = random.Random(seed)
    run_id = make_world(store, 30)
    labels: dict[int, list[str]] = {}
    noted: set[int] = set()
    with store.write() as session:
        for group_id in studies.judged_groups(session, run_id):
            approve_group(session, group_id, reviewed_by="rita")
        study = sampled_study(session, run_id=run_id, items=20, overlap=3)
        gold_items.sample_gold_items(session, study.id, "gold", 4)
        judges = [
            get_or_create_judge(session, "ann", kind="person"),
            get_or_create_judge(session, "bob", kind="person"),
            get_or_create_judge(session, "simulated:1", kind="person", simulated=True),
            get_or_create_judge(session, "model", kind="model"),
        ]
        rows = session.query(StudyItem).filter_by(study_id=study.id).all()
        for row in rows:
            item = session.get_one(Item, row.item_id)
            easy = chance.random() < 0.5
            for judge in judges:
                if chance.random() < 0.2:
                    continue
                note = "hm" if judge.kind == "person" and chance.random() < 0.15 else ""
                choice = "positive" if easy else chance.choice(LABELS)
                record_judgment(
                    session,
                    judge_id=judge.id,
                    item_id=item.id,
                    choice=choice,
                    order_shown=[entry["label"] for entry in item.candidates],
                    event_id=f"{judge.id}/{item.id}",
                    study_id=study.id,
                    note=note,
                )
                if row.part == "main" and judge.kind == "person":
                    labels.setdefault(item.id, []).append(choice)
                    noted |= {item.id} if note else set()
        session.commit()
        return study.id, labels, noted


@pytest.mark.parametrize("seed", [1, 2])
def test_disputed_items_are_those_of_the_slow_way_in_its_order(store: Store, seed: int) -> None:
    study_id, labels, noted = judge_everything(store, seed)
    share = {item: max(Counter(votes).values()) / len(votes) for item, votes in labels.items()}
    slow = sorted(labels, key=lambda item: (share[item], item not in noted, item))
    with store.read() as session:
        assert adjudication.disputed_ids(session, study_id, include_agreed=True) == slow
        wanted = [item for item in slow if share[item] < 1 or item in noted]
        assert 0 < len(wanted) < len(slow)
        assert adjudication.disputed_ids(session, study_id) == wanted


def test_a_judges_quality_counts_gold_apart(store: Store) -> None:
    study_id, labels, _ = judge_everything(store, 3)
    with store.read() as session:
        found = {row.name: row for row in quality.judge_quality(session, study_id)}
        gold = {
            row.item_id: row.gold_choice
            for row in session.query(StudyItem).filter_by(study_id=study_id, part="gold")
        }
        people = [row for row in found.values() if row.kind == "person"]
        assert sum(row.judged for row in people) == sum(map(len, labels.values()))
        shown = {item_id: adjudication.get_disputed(session, study_id, item_id) for item_id in gold}
    for judge, row in found.items():
        answers = {
            item_id: one.choice for item_id, item in shown.items() for one in item.answers
            if one.judge == judge
        }  # fmt: skip
        assert row.gold_seen == len(answers)
        assert row.gold_right == sum(gold[item_id] == labels for item_id, labels in answers.items())
