"""A small world for tests of studies: a run whose groups reached validation, and their items."""

from datetime import timedelta

from finished_run import finished_run
from slot_rows import slot_rows
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.run.runs import keep_count
from db.shape import INF_IR
from db.store.bulk import insert_rows
from db.store.store import Store
from db.study.sampling import sample_items
from db.study.studies import add_study, judged_groups
from db.tables import (
    Assignment,
    Group,
    Item,
    Judgment,
    Pair,
    Passage,
    Review,
    SlotText,
    Study,
    utc_now,
)

LABELS = (*INF_IR.roles, "distractor_1", "distractor_2")
TOPICS = ("tea", "rain", "trains", "bread", "glass", "owls", "salt", "paper")


def make_world(
    store: Store, groups: int = 6, *, name: str = "world", dropped_every: int = 3
) -> int:
    """A dataset with `groups` judged groups, three items each; returns the id of the run."""
    with store.write() as session:
        run_id = _make(session, groups, name, dropped_every)
        keep_count(session, run_id)
        session.commit()
    return run_id


def sampled_study(
    session: Session, *, run_id: int, items: int, overlap: int, seed: int = 0, **about: str
) -> Study:
    """A study of `items` items of a run, sampled as the product does; does not commit."""
    chosen = sample_items(judged_groups(session, run_id), items, seed)
    return add_study(session, run_id=run_id, item_ids=chosen, overlap=overlap, seed=seed, **about)


def list_reviews(session: Session, group_id: int) -> list[Review]:
    """All reviews of a group, newest first."""
    query = select(Review).where(Review.group_id == group_id).order_by(Review.id.desc())
    return list(session.scalars(query))


def judgments(store: Store, study_id: int) -> list[Judgment]:
    """All judgments made in a study, as they were stored."""
    with store.read() as session:
        query = select(Judgment).where(Judgment.study_id == study_id).order_by(Judgment.id)
        return list(session.scalars(query))


def backdate_leases(session: Session, *, minutes: float) -> None:
    """Let all items have been given that long ago: no answer takes longer than since then."""
    moment = utc_now() - timedelta(minutes=minutes)
    session.execute(update(Assignment).values(created_at=moment))


def item_of_token(store: Store, token: str | None) -> int:
    """The item that was given to a judge under this token."""
    with store.read() as session:
        return session.scalars(
            select(Assignment.item_id).where(Assignment.token == (token or ""))
        ).one()


def _make(session: Session, groups: int, name: str, dropped_every: int) -> int:
    run = finished_run(session, name)
    for number in range(groups):
        _make_group(session, run.dataset_id, run.id, number, dropped=number % dropped_every == 1)
    return run.id


def _make_group(
    session: Session, dataset_id: int, run_id: int, number: int, *, dropped: bool
) -> None:
    topic = f"{TOPICS[number % len(TOPICS)]} {number}"
    passages = [
        Passage(
            dataset_id=dataset_id,
            external_id=f"{number}-{label}",
            text=f"The {label.replace('_', ' ')} text about {topic}, in full.",
            sha256=f"{number}-{label}",
            origin="seed" if label == "positive" else "generated",
        )
        for label in LABELS
    ]
    session.add_all(passages)
    session.flush()
    pair = Pair(
        dataset_id=dataset_id,
        external_id=str(number),
        query=f"what is {topic}",
        passage_id=passages[0].id,
    )
    session.add(pair)
    session.flush()
    group = Group(
        run_id=run_id,
        pair_id=pair.id,
        state="done",
        stage="validation",
        verdict="dropped" if dropped else "kept",
        drop_reason="validation_positive" if dropped else None,
    )
    session.add(group)
    session.flush()
    candidates = [
        {"passage_id": passage.id, "label": label}
        for passage, label in zip(passages, LABELS, strict=True)
    ]
    written = dict(zip(LABELS, passages, strict=True))
    triplets = {}
    for role in INF_IR.roles:
        texts = {
            "group_id": group.id,
            "instruction": f"Find the {role.replace('_', ' ')} text.",
            "query": pair.query,
        }
        triplets[role] = texts["instruction"], texts["query"], written[role].id
        session.add(Item(**texts, scenario=role, expected=role, candidates=candidates))
    session.flush()
    insert_rows(session, SlotText, slot_rows(group.id, triplets))
