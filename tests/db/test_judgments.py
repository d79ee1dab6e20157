from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from study_world import LABELS, make_world

from db.errors import BadInput, NotFound, Refused
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.tables import Item, Judgment

ORDER = list(reversed(LABELS))


def first_item(store: Store) -> int:
    make_world(store, 1)
    with store.read() as session:
        return session.scalars(select(Item.id).order_by(Item.id)).first() or 0


def test_a_decision_told_twice_is_one_judgment(store: Store) -> None:
    item_id = first_item(store)
    with store.write() as session:
        judge = get_or_create_judge(session, "ann", kind="person")
        result = [
            record_judgment(
                session,
                judge_id=judge.id,
                item_id=item_id,
                choice="positive",
                order_shown=ORDER,
                event_id="e1",
                decided_at=datetime(2026, 1, 1, tzinfo=UTC),
            )
            for _ in range(2)
        ]
        session.commit()
    assert result[0].id == result[1].id
    with store.read() as session:
        assert len(session.scalars(select(Judgment)).all()) == 1


def test_a_changed_answer_keeps_the_earlier_one(store: Store) -> None:
    item_id = first_item(store)
    with store.write() as session:
        judge = get_or_create_judge(session, "ann", kind="person")
        for event, choice in (("e1", "positive"), ("e2", "none")):
            record_judgment(
                session,
                judge_id=judge.id,
                item_id=item_id,
                choice=choice,
                order_shown=ORDER,
                event_id=event,
            )
        session.commit()
    with store.read() as session:
        old, new = session.scalars(select(Judgment).order_by(Judgment.id)).all()
    assert (old.choice, old.is_current) == ("positive", False)
    assert (new.choice, new.is_current, new.replaces_id) == ("none", True, old.id)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"choice": "distractor_9"}, BadInput),
        ({"order_shown": ["positive"]}, BadInput),
        ({"order_shown": [*ORDER[:-1], ORDER[0]]}, BadInput),
        ({"item_id": 999}, NotFound),
    ],
)
def test_what_does_not_fit_the_item_is_refused(
    store: Store, changed: dict[str, object], error: type[Exception]
) -> None:
    item_id = first_item(store)
    with store.write() as session:
        judge = get_or_create_judge(session, "ann", kind="person")
        result = {
            "judge_id": judge.id,
            "item_id": item_id,
            "choice": "positive",
            "order_shown": ORDER,
            "event_id": "e1",
        }
        with pytest.raises(error):
            record_judgment(session, **(result | changed))  # type: ignore[arg-type]


def test_an_event_of_another_judge_is_refused(store: Store) -> None:
    item_id = first_item(store)
    with store.write() as session:
        for name in ("ann", "bob"):
            judge = get_or_create_judge(session, name, kind="person")
            result = {"judge_id": judge.id, "item_id": item_id, "choice": "none"}
            if name == "ann":
                record_judgment(session, **result, order_shown=ORDER, event_id="e1")  # type: ignore[arg-type]
            else:
                with pytest.raises(Refused):
                    record_judgment(session, **result, order_shown=ORDER, event_id="e1")  # type: ignore[arg-type]


def test_nobody_answers_under_the_name_of_a_model(store: Store) -> None:
    with store.write() as session:
        get_or_create_judge(session, "offline:embedding", kind="model", offline=True)
        with pytest.raises(Refused, match="taken"):
            get_or_create_judge(session, "offline:embedding", kind="person")
