"""Reviews: command and operation are the same, blind rules hold, each asks for its right."""

from collections.abc import Callable
from typing import Any

import pytest
from conftest import Ran
from records_world import group_ids, make_run
from sqlalchemy import func, select
from study_world import sampled_study

from app.access.identity import Actor, owner
from app.operations.acting import queued
from app.operations.judging import reviews
from curation.judging.request import JudgeStart, ReviewMany, ReviewSet, VerdictsShown
from db.errors import BadInput, NotFound, Refused
from db.people.rights import Rights
from db.run.runs import get_run
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.tables import Event, Job, Review

OPERATIONS: dict[str, tuple[str, Callable[[Actor], Any]]] = {
    "set_one": (
        "curate",
        lambda actor: reviews.set_one(actor, ReviewSet(group_id=1, action="approve")),
    ),
    "count": ("review", lambda actor: reviews.count(actor, ReviewMany(run_id=1, action="approve"))),
    "bulk": (
        "curate",
        lambda actor: reviews.bulk(actor, ReviewMany(run_id=1, action="approve", expected=4)),
    ),
    "verdicts": ("judge", lambda actor: reviews.verdicts(actor, VerdictsShown(run_id=1))),
    "verdicts shown": (
        "review",
        lambda actor: reviews.verdicts(actor, VerdictsShown(run_id=1, shown=True)),
    ),
    "list_some": ("judge", lambda actor: reviews.list_some(actor, 1)),
    "show": ("train", lambda actor: reviews.show(actor, 1)),
    "validate": ("review", lambda actor: reviews.validate(actor, 1, queued)),
}


def with_right(*rights: str) -> Actor:
    return Actor("eve", rights=Rights(everywhere=frozenset(rights)))


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_review_without_the_right_changes_nothing(sqlite_store: Store, name: str) -> None:
    make_run(sqlite_store)
    right, call = OPERATIONS[name]
    with pytest.raises(Refused, match="lacks a right"):
        call(with_right(right))
    with sqlite_store.read() as session:
        for table in (Review, Event, Job):
            assert session.scalar(select(func.count(table.id))) == 0


def test_the_command_prints_the_operation_s_row_under_both_names(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    run_id = make_run(sqlite_store)
    one, two, *_ = group_ids(sqlite_store, run_id)
    new = inf("reviews", "set", one, "--approve", "--json").json
    former = inf("review", "--group", two, "--approve", "--json")
    assert "`inf reviews set GROUP`" in former.err and former.json.keys() == new.keys()
    with sqlite_store.read() as session:
        stored = session.get_one(Review, new["id"])
        row = reviews.ReviewRow.model_validate(stored).as_json()
    assert new == {"review_id": row["id"], **row}
    wanted = ("--verdict", "kept", "--reject", "--reason", "vague", "--json")
    counted = reviews.count(
        owner("ada"), ReviewMany(run_id=run_id, verdict="kept", action="reject")
    )
    assert inf("reviews", "bulk", run_id, *wanted).json["groups"] == counted == 4
    former = inf("review", "many", "--run", run_id, *wanted, "--yes")
    assert former.json == {"run_id": run_id, "action": "reject", "groups": 4, "done": True}
    assert "`inf reviews bulk RUN`" in former.err
    shown = inf("reviews", "verdicts", run_id, "--show", "--json").json
    assert shown == reviews.verdicts(owner("ada"), VerdictsShown(run_id=run_id)).as_json()
    assert inf("review", "verdicts", "--run", run_id, "--json").json == shown
    assert inf("review", "verdicts").code == 2


def test_who_reviews_blind_or_may_judge_a_group_is_refused_it(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store, kept=3, dropped=2, unwritten=1)
    dropped = group_ids(sqlite_store, run_id, "dropped")
    with sqlite_store.write() as session:
        dataset_id = get_run(session, run_id).dataset_id
        session.commit()
    eve = with_right("review")
    unwritten = dropped[-1]
    with pytest.raises(Refused, match="not in your queue"):
        reviews.set_one(eve, ReviewSet(group_id=unwritten, action="reject", reason="incomplete"))
    kept = group_ids(sqlite_store, run_id)
    assert reviews.set_one(eve, ReviewSet(group_id=kept[0], action="approve")).reviewed_by == "eve"
    with sqlite_store.write() as session:
        study = sampled_study(session, run_id=run_id, items=5, overlap=1)
        get_or_create_judge(session, "eve", kind="person")
        session.commit()
        assert study.dataset_id == dataset_id
    for right in (("review", "judge"), ("review", "judge", "curate")):
        refused = 0
        for group_id in kept:
            try:
                reviews.set_one(with_right(*right), ReviewSet(group_id=group_id, action="approve"))
            except Refused as error:
                refused += error.code == "group_not_in_queue"
        assert refused >= 2


def test_reviews_are_listed_and_shown_as_their_groups_are(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    """Blind reviewers list no review of a group that lacks texts, judges none that they may get."""
    run_id = make_run(sqlite_store, kept=3, dropped=2, unwritten=1)
    unwritten = group_ids(sqlite_store, run_id, "dropped")[-1]
    first, *_ = group_ids(sqlite_store, run_id)
    ada = owner("ada")
    for group_id, action in ((first, "approve"), (first, "reject"), (unwritten, "reject")):
        wanted = {"group_id": group_id, "action": action, "reason": "off" * (action == "reject")}
        reviews.set_one(ada, ReviewSet.read(wanted))
    every = reviews.list_some(ada, run_id)
    assert [(row.group_id, row.action, row.is_current) for row in every.data] == [
        (unwritten, "reject", True),
        (first, "reject", True),
        (first, "approve", False),
    ]
    assert reviews.list_some(ada, run_id, limit=1, offset=1).next == 2
    blind = reviews.list_some(with_right("review"), run_id)
    assert {row.group_id for row in blind.data} == {first} and blind.total == 2
    with pytest.raises(NotFound):
        reviews.show(with_right("review"), every.data[0].id)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=5, overlap=1)
        get_or_create_judge(session, "eve", kind="person")
        session.commit()
    judge = with_right("review", "judge", "curate")
    listed = reviews.list_some(judge, run_id)  # of the group without an item
    assert [row.group_id for row in listed.data] == [unwritten] and listed.total == 1
    with pytest.raises(NotFound):
        reviews.show(judge, every.data[1].id)
    with pytest.raises(NotFound):
        reviews.show(ada, 99)
    assert "off" in inf("reviews", "list", run_id).out
    assert inf("reviews", "list", 99, "--json").json["code"] == "run_unknown"


def test_what_a_job_of_judging_is_asked_for() -> None:
    for old in ({"run_id": 3}, {"run_id": 3, "group_id": 7}, {"study_id": 1, "judge": "a"}):
        read = JudgeStart.read(old)
        assert {name: getattr(read, name) for name in old} == old
        assert JudgeStart.read(read.config()) == read
    for bad in ({}, {"study_id": 1, "run_id": 2, "judge": "a"}, {"study_id": 1}):
        with pytest.raises(BadInput):
            JudgeStart.read(bad)
