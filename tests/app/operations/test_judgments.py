"""Judgments: each operation asks for its right, and what it shows is blind."""

from collections.abc import Callable
from typing import Any

import pytest
from conftest import Ran
from sqlalchemy import func, select
from study_world import make_world, sampled_study

from app.access.identity import Actor, owner
from app.operations.judging import judgments
from curation.judging.request import CuratorMessage
from db.errors import NotFound, Refused
from db.people.rights import Rights
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.study.studies import set_status
from db.tables import AdjudicationView, Event, Item, Job, Judge, StudyItem

NAMES = ("judge-x1", "judge-x2")
OPERATIONS: dict[str, tuple[str, Callable[[Actor], Any]]] = {
    "list_some": ("judge", lambda actor: judgments.list_some(actor, 1)),
    "show": ("adjudicate", lambda actor: judgments.show(actor, 1)),
    "fast_answers": ("judge", lambda actor: judgments.fast_answers(actor, 1)),
    "gold": ("adjudicate", lambda actor: judgments.gold(actor, 1)),
    "threads": ("judge", lambda actor: judgments.threads(actor, 1)),
    "open_thread": ("judge", lambda actor: judgments.open_thread(actor, 1, 1, 1)),
    "thread": ("judge", lambda actor: judgments.thread(actor, 1, 1, 1)),
    "answer_thread": (
        "judge",
        lambda actor: judgments.answer_thread(
            actor, CuratorMessage(study_id=1, item_id=1, judge_id=1, body="x", written=0)
        ),
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


def test_command_and_operation_print_the_same_judgments(
    world: Store, inf: Callable[..., Ran]
) -> None:
    ada = owner("ada")
    listed = judgments.list_some(ada, 1)
    assert [one.judge for one in listed.data] == list(NAMES) and listed.total == 2
    as_printed = inf("judgments", "list", "--study", 1, "--json").json
    assert as_printed == {"study_id": 1, **listed.as_json()} and listed.next is None
    first = judgments.list_some(ada, 1, limit=1)
    assert (first.next, first.total) == (first.data[0].id, 2)
    rest = judgments.list_some(ada, 1, after=first.next or 0)
    assert (*first.data, *rest.data) == listed.data
    shown = judgments.show(ada, listed.data[1].id)
    assert inf("judgments", "show", shown.id, "--json").json == shown.as_json()
    assert shown.as_json().items() >= listed.data[1].as_json().items()
    assert sorted(shown.order_shown) != [] and shown.study_id == 1 and shown.is_current
    assert "--after 1" in inf("judgments", "list", "--study", 1, "--limit", 1).out
    with pytest.raises(NotFound):
        judgments.list_some(ada, 9)
    with pytest.raises(NotFound):
        judgments.show(ada, 99)


def test_judgments_of_an_item_that_one_may_be_given_are_not_listed(world: Store) -> None:
    eve = with_right("curate", "judge")
    assert judgments.list_some(eve, 1).as_json() == {"data": [], "next": None, "total": 0}
    with pytest.raises(NotFound, match="no judgment 1"):
        judgments.show(eve, 1)
    with world.write() as session:
        set_status(session, 1, "closed")
        session.commit()
    assert judgments.list_some(eve, 1).total == 2 and judgments.show(eve, 1).judge == NAMES[0]


def test_a_curator_of_another_dataset_sees_no_judgment(world: Store) -> None:
    other = Actor("eve", rights=Rights(on_datasets={7: frozenset({"curate"})}))
    for call in (judgments.list_some, judgments.show):
        with pytest.raises(NotFound):
            call(other, 1)


def test_the_answers_of_a_model_are_one_event_per_call_of_who_started_it(
    world: Store, inf: Callable[..., Ran]
) -> None:
    name = "offline:embedding"
    inf("studies", "judge", 1, "--judge", name)
    with world.read() as session:
        judge = session.scalars(select(Judge).where(Judge.name == name)).one()
        query = select(Event).where(Event.name == "judgment.stored")
        (event,) = session.scalars(query).all()
        job = session.scalars(select(Job).where(Job.kind == "judge")).one()
        assert (event.actor, event.noun, event.noun_id) == (job.started_by, "study", "1")
        assert event.data == {"judge": judge.id, "judgments": 4}
    inf("studies", "judge", 1, "--judge", name)  # nothing is left: nothing is stored
    with world.read() as session:
        assert len(session.scalars(query).all()) == 1


def test_an_event_is_not_stored_where_the_answers_are_not(world: Store) -> None:
    from curation.judges.registry import judge_named
    from curation.judging.studies import enrol, judge_waiting
    from db.jobs import jobs
    from db.jobs.runner import JobHandle

    def fails(*_: object) -> None:
        raise RuntimeError("the store is gone")

    judge = judge_named("offline:embedding", world)
    with world.write() as session:
        job_id = jobs.enqueue_job(session, "judge", {}, started_by="ada").id
        jobs.claim_job(session, job_id)
        judge_id = enrol(session, judge).id
        items = list(session.scalars(select(StudyItem.item_id)))
        session.commit()
    handle = JobHandle(world, job_id, 1)
    with pytest.raises(RuntimeError):
        judge_waiting(handle, judge, judge_id, items, fails, of=("study", 1))
    with world.read() as session:
        assert session.scalars(select(Event).where(Event.name == "judgment.stored")).all() == []
