"""The judging card's operations: who acts is read from the cookies in their own transaction."""

from collections.abc import Iterator, Sequence

import pytest
from app_pages import cookies_of
from sqlalchemy import func, select
from study_world import make_world, sampled_study

from app.access.identity import COOKIE, CookieHolder
from app.operations.acting import reading
from app.operations.judging import answers
from app.operations.judging.card import acknowledge, answer_and_lease
from curation.judging.request import AnswerChange, JudgeMessage
from db.errors import NotFound, Refused
from db.people.rights import set_rights
from db.store import settings
from db.store.scope import unscoped
from db.store.store import Store
from db.tables import Account, Assignment, Judge, Judgment


def changed(token: str, position: int | None) -> AnswerChange:
    return AnswerChange(study_id=1, token=token, position=position)


@pytest.fixture
def server(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A study of two items, in a process that nobody owns: as in the server."""
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=2, overlap=1)
        session.commit()
    settings.owners_process(False)
    yield sqlite_store
    settings.owners_process(True)


def holder(store: Store, role: str) -> CookieHolder:
    """Whoever signs in with a new account of the role."""
    with unscoped():
        return CookieHolder("", cookies=cookies_of(store, role))


def give_rights(store: Store, rights: Sequence[str], **place: int) -> None:
    """Give the only account exactly these rights at a place."""
    with unscoped(), store.write() as session:
        account = session.scalars(select(Account)).one()
        set_rights(session, account, rights, actor="root", **place)
        session.commit()


def stored(store: Store) -> list[int | None]:
    with unscoped(), store.read() as session:
        return [
            session.scalar(select(func.count()).select_from(table))
            for table in (Judge, Assignment, Judgment)
        ]


def test_a_decision_is_stored_for_whom_the_cookie_names(server: Store) -> None:
    ann = holder(server, "annotator")
    first = answer_and_lease(ann, 1, [])
    token = first.items[0].token
    event = {"event": "one", "kind": "pick", "study": 1, "token": token, "position": 0}
    for _ in range(2):  # sent twice, stored once
        card = answer_and_lease(ann, 1, [event])
        assert card.acknowledged == {"one": ""} and card.done == 1
    found, total = answers.list_some(ann, 1)
    assert total == 1 and found[0].position == 0
    assert not answers.change(ann, changed(token, 0)) and answers.change(ann, changed(token, None))
    assert answers.list_some(ann, 1)[0][0].position is None


def test_nobody_and_a_forged_cookie_are_signed_out(server: Store) -> None:
    holder(server, "admin")
    for cookies in ({}, {COOKIE: "forged"}):
        before = stored(server)
        with pytest.raises(Refused) as refused:
            answer_and_lease(CookieHolder("admin", cookies=cookies), 1, [])
        assert refused.value.code == "signed_out" and stored(server) == before


def test_a_right_that_was_withdrawn_a_moment_ago_is_none(server: Store) -> None:
    ann = holder(server, "annotator")
    token = answer_and_lease(ann, 1, []).items[0].token
    give_rights(server, ["train"])
    before = stored(server)
    event = {"event": "one", "kind": "pick", "study": 1, "token": token, "position": 0}
    for refused in (
        lambda: answer_and_lease(ann, 1, [event]),
        lambda: acknowledge(ann, 1, 1),
        lambda: answers.change(ann, changed(token, 0)),
        lambda: answers.write(
            ann, JudgeMessage(study_id=1, token=token, body="Is it tea?", written=0)
        ),
        lambda: answers.list_some(ann, 1),
        lambda: answers.count_replies(ann, 1),
    ):
        with pytest.raises(Refused) as error:
            refused()
        assert error.value.code == "no_right"
    assert stored(server) == before


def test_a_study_of_another_dataset_is_not_there(server: Store) -> None:
    ann = holder(server, "annotator")
    give_rights(server, [])
    give_rights(server, ["judge"], dataset_id=1)
    assert answer_and_lease(ann, 1, []).items
    with unscoped(), server.write() as session:
        run_id = make_world(server, 2, name="other")
        study_id = sampled_study(session, run_id=run_id, items=1, overlap=1).id
        session.commit()
    with pytest.raises(NotFound):
        answer_and_lease(ann, study_id, [])


def test_a_cookie_holder_reads_nothing_before_the_cookies_are_read(server: Store) -> None:
    with pytest.raises(Refused) as refused, reading(holder(server, "admin"), "judge"):
        pass
    assert refused.value.code == "no_right"
