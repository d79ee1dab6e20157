"""Items by disagreement: counts and comments, of nothing that the reader has yet to decide."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page, words
from asked_study import QUERY_OK, ROLE, make_asked_study, record
from conftest import Ran
from disputed_world import card, disputed_study, entry
from sqlalchemy import select
from statement_count import statements_counted

from app.access.identity import Actor, SessionUser, owner
from app.api.routes import by_name
from app.operations.judging.disagreements import DisagreementRow, disagreements
from curation.judging.request import DisagreementList
from db.errors import BadInput, Refused
from db.people.rights import Rights
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.study.studies import set_status
from db.tables import Item, Study

KINDS = ("positive", "negative", "distractor")
CORA = SessionUser("cora", rights=Rights(everywhere=frozenset({"adjudicate", "curate"})))


def rows(actor: Actor, study_id: int, **wanted: Any) -> tuple[DisagreementRow, ...]:
    return disagreements(actor, DisagreementList(study_id=study_id, **wanted)).data


def asked_study(store: Store, folder: Path) -> int:
    """Two records of five items; people differ on some: 1 to 2 of three, or 1 to 1 of two."""
    study_id = make_asked_study(store, folder, [record(1), record(2)], [QUERY_OK, ROLE], overlap=3)
    with store.write() as session:
        items = session.scalars(select(Item).order_by(Item.id)).all()
        for name, others in (("ann", 9), ("ben", 9), ("dan", 3)):
            judge = get_or_create_judge(session, name, kind="person").id
            for place, item in enumerate(items[:others]):
                no = "no" if item.scenario.startswith("query_ok") else "0"
                yes = "yes" if item.scenario.startswith("query_ok") else "2"
                record_judgment(
                    session,
                    judge_id=judge,
                    item_id=item.id,
                    choice=no if name == "ann" and place < 5 else yes,
                    order_shown=[each["label"] for each in item.candidates],
                    event_id=f"{name}{item.id}",
                    study_id=study_id,
                    note=f"{name} doubts" if place == 0 else "",
                )
        session.commit()
    return study_id


def test_nobody_reads_answers_before_they_were_shown_the_item(store: Store) -> None:
    study_id = disputed_study(store)
    before = rows(CORA, study_id)
    assert len(before) == 3
    for row in before:
        assert (row.is_shown, row.answers, row.comments, row.kind) == (False, {}, (), "")
        assert row.n_comments == 2 and row.judges == 2
    token = card(study_id).items[0].token  # cora's card shows the items: she judges them no more
    after = rows(CORA, study_id)
    assert all(row.is_shown and sum(row.answers.values()) == 2 for row in after)
    said = json.dumps([row.as_json() | {"query": ""} for row in after])
    assert not [one for one in (*KINDS, "ann", "ben", "model M") if one in said]
    assert after[0].comments == ("hard to say",) * 2
    card(study_id, entry(study_id, token, "a"))
    assert sum(row.is_decided for row in rows(CORA, study_id)) == 1
    with pytest.raises(Refused, match="kind"):  # the kind tells which passage is right
        rows(CORA, study_id, kind="positive")


def test_items_of_an_own_card_are_not_listed_until_the_study_is_closed(store: Store) -> None:
    study_id = disputed_study(store)
    ann = SessionUser("ann", rights=CORA.rights)
    assert rows(ann, study_id) == ()
    with store.write() as session:
        set_status(session, study_id, "closed")
        session.commit()
    assert len(rows(ann, study_id)) == 3
    assert all(row.is_shown and row.kind for row in rows(CORA, study_id))
    blind = SessionUser("dan", rights=Rights(everywhere=frozenset({"adjudicate"})))
    assert not any(row.is_shown for row in rows(blind, study_id))
    with pytest.raises(Refused):
        rows(SessionUser("dan", rights=Rights(everywhere=frozenset({"judge"}))), study_id)


def test_the_list_is_by_disagreement_and_filtered(store: Store, tmp_path: Path) -> None:
    study_id = asked_study(store, tmp_path)
    found = rows(owner("cora"), study_id)
    assert [row.disagreement for row in found] == [0.5, 0.5, 0.333, 0.333, 0.333]
    assert sum("ann doubts" in row.comments for row in found) == 1
    assert rows(owner("cora"), study_id, limit=2, offset=3) == found[3:]
    assert rows(owner("cora"), study_id, judges=3) == found[2:]
    questions = {row.question for row in found}
    for name in questions:
        wanted = tuple(row for row in found if row.question == name)
        assert rows(owner("cora"), study_id, question=name) == wanted
    kind = found[0].kind
    assert kind and all(row.kind == kind for row in rows(owner("cora"), study_id, kind=kind))
    with pytest.raises(BadInput, match="nope"):
        rows(owner("cora"), study_id, question="nope")
    with pytest.raises(BadInput, match="nope"):
        rows(owner("cora"), study_id, kind="nope")


def test_answers_without_assignments_are_adjudicated_on_the_page(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imported answers have none: the page took a study of them for one that nobody judged."""
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    study_id = asked_study(sqlite_store, tmp_path)
    with sqlite_store.write() as session:
        run_id = session.get_one(Study, study_id).run_id
        dataset_id = session.get_one(Study, study_id).dataset_id
        session.add(Study(dataset_id=dataset_id, run_id=run_id, name="newer", overlap=1))
        session.commit()
    page = open_page("adjudicate")
    assert not page.exception
    assert page.selectbox(key="adjudicate.study").value == str(study_id), "where people disagree"
    assert len([one for one in page.dataframe if "Open" in one.value]) == 1


def test_command_route_and_page_have_the_same_rows(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    study_id = disputed_study(sqlite_store)
    printed = inf("studies", "disagreements", study_id, "--json").json
    route = by_name()["studies disagreements"]
    called = route.call(owner("cora"), route.request.read({"study_id": study_id})).as_json()
    assert printed["data"] == called["data"] and printed["total"] == 3
    page = open_page("adjudicate", study=str(study_id))
    assert not page.exception
    (table,) = [one for one in page.dataframe if "Open" in one.value]
    links = [f"adjudicate?study={study_id}&item={row['item_id']}" for row in called["data"]]
    assert list(table.value["Open"]) == links and table.value["People"].tolist() == [2, 2, 2]
    assert list(table.value["Comments"]) == ["hard to say / hard to say"] * 3
    page.number_input("disagreements.judges_1").set_value(3).run()
    assert not page.exception and "0 items" in words(page)


def test_the_store_owner_alone_reads_names_and_the_former_command_has_its_keys(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    study_id = disputed_study(sqlite_store)
    card(study_id)  # cora is shown the items
    assert not any(row.judgments or row.candidates for row in rows(CORA, study_id))
    (first, *_), after = rows(owner("cora"), study_id), inf("study", "adjudicate", "--study", 1)
    assert {"ann", "ben", "model M"} <= {one.judge for one in first.judgments}
    assert "model M positive" in after.out, after.out
    former = inf("study", "adjudicate", "--study", study_id, "--json").json["items"][0]
    assert {one["judge"] for one in former["answers"]} == {"ann", "ben", "model M"}
    assert {"instruction", "query", "candidates", "decision", "decided_by"} <= former.keys()


def test_a_list_of_many_items_asks_for_all_at_once(sqlite_store: Store) -> None:
    """Each row was asked for apart: 50 rows were 350 statements at every run of the page."""
    study_id = disputed_study(sqlite_store, items=12)
    for actor in (CORA, owner("cora")):
        card(study_id)
        with statements_counted() as one:
            assert len(rows(actor, study_id, limit=1)) == 1
        with statements_counted() as many:
            assert len(rows(actor, study_id)) == 12
        assert many.total == one.total


def test_an_item_that_is_named_is_looked_up_with_the_others(sqlite_store: Store) -> None:
    study_id = disputed_study(sqlite_store)
    with sqlite_store.read() as session:
        item_id = session.scalars(select(Item.id)).first()
    card(study_id)
    with statements_counted() as without:
        card(study_id)
    with statements_counted() as named:
        assert card(study_id, first=item_id).items[0].votes
    place = "db/study/adjudication.py:disputed_ids"
    assert named.statements[place] == without.statements[place] > 0, named
