"""Judgments: each operation asks for its right, and what it shows is blind."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select
from study_world import make_world, sampled_study

from app.access.identity import Actor
from app.operations.judging import judgments
from db.errors import Refused
from db.people.rights import Rights
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.study.studies import set_status
from db.tables import AdjudicationView, Event, Item, StudyItem

NAMES = ("judge-x1", "judge-x2")
PAGE = {"open_only": False, "include_agreed": True, "start": 0, "count": 9}
OPERATIONS: dict[str, tuple[str, Callable[[Actor], Any]]] = {
    "fast_answers": ("judge", lambda actor: judgments.fast_answers(actor, 1)),
    "gold": ("adjudicate", lambda actor: judgments.gold(actor, 1)),
    "to_adjudicate": ("curate", lambda actor: judgments.to_adjudicate(actor, 1, **PAGE)),
    "decide": ("curate", lambda actor: judgments.decide(actor, 1, "token", 0)),
    "reveal": ("curate", lambda actor: judgments.reveal(actor, 1, "token")),
    "threads": ("judge", lambda actor: judgments.threads(actor, 1)),
    "open_thread": ("judge", lambda actor: judgments.open_thread(actor, 1, 1, 1)),
    "thread": ("judge", lambda actor: judgments.thread(actor, 1, 1, 1)),
    "answer_thread": (
        "judge",
        lambda actor: judgments.answer_thread(actor, 1, 1, 1, "x", written=0),
    ),
}


def with_right(*rights: str) -> Actor:
    return Actor("eve", rights=Rights(everywhere=frozenset(rights)))


@pytest.fixture
def world(sqlite_store: Store) -> Store:
    """A study on whose first item two judges disagree."""
    run_id = make_world(sqlite_store, 6)
    with sqlite_store.write() as session:
        study = sampled_study(session, run_id=run_id, items=4, overlap=2)
        item = session.scalars(
            select(Item).join(StudyItem).where(StudyItem.study_id == study.id)
        ).first()
        assert item is not None
        labels = [each["label"] for each in item.candidates]
        for name, choice in zip(NAMES, labels[:2], strict=True):
            record_judgment(
                session,
                judge_id=get_or_create_judge(session, name, kind="person").id,
                item_id=item.id,
                choice=choice,
                order_shown=labels,
                event_id=name,
                study_id=study.id,
            )
        session.commit()
    return sqlite_store


def test_every_operation_on_judgments_is_among_them() -> None:
    own = {name for name, each in vars(judgments).items() if callable(each) and name[0].islower()}
    assert OPERATIONS.keys() == {
        name for name in own if getattr(judgments, name).__module__ == judgments.__name__
    }


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_judgments_without_the_right_changes_nothing(
    world: Store, name: str
) -> None:
    right, call = OPERATIONS[name]
    with pytest.raises(Refused, match="lacks a right"):
        call(with_right(right))
    with world.read() as session:
        for table in (Event, AdjudicationView):
            assert session.scalar(select(func.count()).select_from(table)) == 0


def test_a_disputed_item_shows_roles_and_names_only_after_a_recorded_reveal(world: Store) -> None:
    eve = with_right("adjudicate")
    (item,), total = judgments.to_adjudicate(eve, 1, **PAGE | {"include_agreed": False})
    assert total == 1 and item.revealed is None and not item.labels
    assert not any(name in repr(item) for name in NAMES)
    judgments.decide(eve, 1, item.token, None, "none fits")
    with world.read() as session:
        (event,) = session.scalars(select(Event)).all()
        assert (event.name, event.actor, event.data["choice"]) == (
            "study.adjudicate",
            "eve",
            "none",
        )
    judgments.reveal(eve, 1, item.token)
    (item,), _ = judgments.to_adjudicate(eve, 1, **PAGE | {"include_agreed": False})
    assert item.revealed is not None
    assert {one.judge for one in item.revealed.answers} == set(NAMES)


def test_who_may_be_given_an_item_sees_neither_its_answer_nor_its_gold(world: Store) -> None:
    from db.review.reviews import approve_group
    from db.study.gold_items import sample_gold_items
    from db.tables import Group

    with world.write() as session:
        for group_id in session.scalars(select(Group.id)).all():
            approve_group(session, group_id, reviewed_by="rob")
        sample_gold_items(session, 1, "gold", 2)
        get_or_create_judge(session, "eve", kind="person")
        session.commit()
    shown = judgments.gold(with_right("curate", "judge"), 1)
    assert [one.right for one in shown] == ["", ""]
    assert {one.instruction for one in shown} == {judgments.HIDDEN_ITEM}
    with world.write() as session:
        set_status(session, 1, "closed")
        session.commit()
    assert all(one.right for one in judgments.gold(with_right("curate", "judge"), 1))
