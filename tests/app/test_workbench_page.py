"""The Groups page: what a role sees, its filters and addresses, many at once, hidden groups."""

import hashlib
import re
from typing import Any

import pytest
from app_pages import card_data, open_page, redraw_fragments, sign_in, words
from records_world import group_ids, make_run
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import sampled_study

from app.operations import groups
from curation.judging.request import JudgeStart
from db.people.renaming import rename_account
from db.review.reviews import approve_group, count_reviews, edit_group
from db.store.store import Store
from db.tables import Item, Job, Pair, Review, Run, StudyItem

VERDICT = re.compile(r'"(kept|dropped)"')  # a word of the card's JSON


def sent(page: AppTest) -> str:
    """Everything that went to the browser, but for the card's own code."""
    return " ".join(
        element.proto.json if hasattr(element.proto, "json") else str(element.proto)
        for element in page.main
    )


def keys(page: AppTest, start: str) -> list[str]:
    return [each.key for each in page.button if (each.key or "").startswith(start)]


def rows(page: AppTest) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = card_data(page)["rows"]
    return found


def test_a_renamed_reviewer_has_the_outbox_of_before(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store)
    local = card_data(open_page("groups"))
    sign_in(sqlite_store, monkeypatch, "curator")
    first = card_data(open_page("groups"))
    assert first["scope"] not in (first["formerly"], local["scope"])
    with sqlite_store.write() as session:
        made = session.get_one(Run, run_id).created_at
        old = hashlib.sha256(f"a curator {run_id} {made}".encode())
        assert first["formerly"] == old.hexdigest()[:16]
        rename_account(session, "a curator", "Hannah", actor="root")
        session.commit()
    assert card_data(open_page("groups"))["scope"] == first["scope"]


def test_an_annotator_reviews_blind_until_a_curator_allows_verdicts(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store, kept=2, dropped=2, unwritten=2)
    sign_in(sqlite_store, monkeypatch, "annotator")
    page = open_page("groups", verdict="dropped", reason="validation", stage="negatives")
    told = sent(page)
    assert "offline:embedding" not in told and "validation" not in told
    assert "Dropped, to review" not in told
    assert not VERDICT.search(told)
    assert not keys(page, "review.many") and f"review.verdicts_{run_id}" not in told
    data = card_data(page)
    assert (data["total"], data["may_review"], data["may_validate"]) == (4, True, False)
    assert all(row["is_complete"] for row in data["rows"]) and data["reasons"] == {}
    private = ("verdict", "drop_reason", "stage", "state")  # a blind row has the keys, no values
    assert {tuple(row[key] for key in private) for row in rows(page)} == {(None, None, "", "")}
    with sqlite_store.write() as session:
        session.get_one(Run, run_id).verdicts_shown = True
        session.commit()
    page = open_page("groups")
    assert "offline:embedding" in sent(page) and VERDICT.search(sent(page))
    assert card_data(page)["total"] == 6 and not card_data(page)["may_validate"]


def test_a_curator_sees_verdicts_and_lets_annotators(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store)
    sign_in(sqlite_store, monkeypatch, "curator")
    page = open_page("groups")
    assert "offline:embedding chose" in sent(page)
    assert rows(page)[0]["verdict"] == "kept"
    page.toggle(key=f"review.verdicts_{run_id}").set_value(True).run()
    assert not page.exception
    with sqlite_store.read() as session:
        assert session.get_one(Run, run_id).verdicts_shown


def test_an_address_is_a_saved_view(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store)
    kept, dropped = group_ids(sqlite_store, run_id), group_ids(sqlite_store, run_id, "dropped")
    page = open_page("groups", verdict="dropped", review="none", search="book 5")
    assert [row["id"] for row in rows(page)] == dropped[1:2]
    page.text_input(key="groups.search").set_value("").run()
    assert [row["id"] for row in rows(page)] == dropped
    page.button(key="groups.view-2").click().run()
    assert [row["id"] for row in rows(page)] == kept
    assert page.query_params["verdict"] in ("kept", ["kept"])
    page.selectbox(key="groups.review").select("approve").run()
    assert card_data(page)["total"] == 0 and "approve" in page.query_params["review"]
    page = open_page("groups", search="printed by printer 3", **{"in": "passages"})
    assert [row["id"] for row in rows(page)] == [kept[3]]
    page = open_page("groups", run=str(run_id), groups=f"{kept[1]},{dropped[0]},x,99999999999")
    assert [row["id"] for row in rows(page)] == [kept[1], dropped[0]]
    page.button(key="groups.all_ids").click().run()
    assert len(rows(page)) == len(kept) + len(dropped)


def test_the_counts_above_the_list_follow_each_decision_without_the_page(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store, kept=3, dropped=1, unwritten=0)
    page = open_page("groups")
    assert "0 of 4 groups reviewed" in words(page)
    for done, group_id in enumerate(group_ids(sqlite_store, run_id), 1):
        with sqlite_store.write() as session:
            approve_group(session, group_id, reviewed_by="ann")
            session.commit()
        redraw_fragments(page, monkeypatch)  # as the workbench does when it has stored a decision
        assert f"{done} of 4 groups reviewed · {done} approved" in words(page)


def test_a_group_of_the_address_is_opened_where_it_stands_in_the_list(sqlite_store: Store) -> None:
    make_run(sqlite_store, kept=1, dropped=0, unwritten=0, name="other")
    run_id = make_run(sqlite_store, kept=70, dropped=0, unwritten=0)
    wanted = group_ids(sqlite_store, run_id)[60]
    data = card_data(open_page("groups", group=str(wanted)))
    assert (data["run"], data["at"], data["offset"]) == (run_id, wanted, 50)
    assert data["groups"][0]["group"]["id"] == wanted and len(data["rows"]) == 20


def test_many_are_reviewed_after_a_preview_and_undone(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store, kept=2, dropped=3, unwritten=1)
    with sqlite_store.write() as session:
        approve_group(session, group_ids(sqlite_store, run_id)[0], reviewed_by="ada")
        session.commit()
    page = open_page("groups")
    page.button(key="review.many_approve").click().run()
    told = words(page)
    assert "Approve 5 groups of run" in told and "4 not reviewed, 1 approved" in told
    assert "Rescues 3 groups that the filter dropped" in told
    assert "1 group lacks texts and cannot be approved" in told
    page.button(key="review.many_no").click().run()
    page.button(key="groups.view-1").click().run()
    assert page.button(key="review.many_reject").disabled
    page.text_input(key="review.many_reason").set_value("all were dropped").run()
    page.button(key="review.many_reject").click().run()
    assert "Reject 4 groups of run" in words(page)
    page.button(key="review.many_yes").click().run()
    assert not page.exception
    with sqlite_store.read() as session:
        assert count_reviews(session, run_id) == {"approve": 1, "reject": 4}
    page.button(key="review.many_undo").click().run()
    with sqlite_store.read() as session:
        assert count_reviews(session, run_id) == {"approve": 1}
        assert len(session.scalars(select(Review)).all()) == 5


def test_edits_wait_for_the_validator_until_it_is_asked(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.jobs import supervisors

    run_id = make_run(sqlite_store)
    group_id = group_ids(sqlite_store, run_id)[0]
    with sqlite_store.write() as session:
        edit_group(session, group_id, {"query_negative": "who sold it"}, reviewed_by="ann")
        session.commit()
    monkeypatch.setattr(supervisors, "ensure_supervisor", lambda store: None)  # starts a process
    page = open_page("groups", review="edit")
    column = card_data(page)["groups"][0]["columns"][0]
    assert (column["says"], column["validating"]) == ("not yet validated", False)
    page.button(key="review.revalidate").click().run()
    with sqlite_store.read() as session:
        job = session.scalars(select(Job)).one()
    assert (job.kind, job.config) == ("judge", JudgeStart(run_id=run_id).config())
    assert card_data(page)["groups"][0]["columns"][0]["validating"] is True


def test_what_the_validator_left_unanswered_has_its_reason_until_it_is_asked_again(
    sqlite_store: Store,
) -> None:
    run_id = make_run(sqlite_store)
    group_id = group_ids(sqlite_store, run_id)[0]

    def ended(config: dict[str, object], status: str, **how: object) -> None:
        with sqlite_store.write() as session:
            job = Job(kind="judge", config={"run_id": run_id, **config}, status=status, **how)
            session.add(job)
            session.commit()

    def notes() -> str:
        return " ".join(card_data(open_page("groups", review="edit"))["groups"][0]["notes"])

    unusable = {"judge": "recorded:A", "unusable": {"not_recorded": 2}}
    ended({}, "done", result=unusable)  # of the texts before the edit
    with sqlite_store.write() as session:
        edit_group(session, group_id, {"query_negative": "who sold it"}, reviewed_by="ann")
        session.commit()
    assert "Not validated" not in notes()
    ended({"group_id": group_id}, "done", result=unusable)
    assert "recorded:A has no usable answer (the recording has no answer for this pair" in notes()
    ended({"group_id": group_id + 1}, "failed", error="of another group")
    ended({"judge": "openai:other"}, "failed", error="a second judge's")
    assert "another group" not in notes() and "second judge" not in notes()
    ended({}, "failed", error="no key for openai")
    assert "failed: no key for openai" in notes() and "recorded:A" not in notes()
    ended({"group_id": group_id}, "queued")
    assert "Not validated" not in notes(), "it is at work again"


def test_the_filter_of_sources_follows_an_import(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store, kept=4)
    before = open_page("groups").selectbox(key="groups.source").options
    with sqlite_store.write() as session:
        one = session.scalars(select(Pair)).first()
        assert one is not None
        later = Pair(
            dataset_id=session.get_one(Run, run_id).dataset_id,
            external_id="later",
            query="q",
            passage_id=one.passage_id,
            meta={"source": "a new one"},
        )
        session.add(later)
        session.commit()
    after = open_page("groups").selectbox(key="groups.source").options
    assert "a new one" not in before and set(after) - set(before) == {"a new one"}


def test_the_funnel_is_counted_once_it_is_opened(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store, kept=2, dropped=1)
    counted: list[int] = []
    true_funnel = groups.funnel
    monkeypatch.setattr(groups, "funnel", lambda *of: counted.append(of[1]) or true_funnel(*of))
    page = open_page("groups")
    assert not counted
    page.session_state["groups.funnel"] = True
    page.run()
    assert not page.exception
    assert counted == [run_id] and "Drop reasons" in words(page)


def test_hidden_groups_are_neither_listed_nor_opened_without_a_warning(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store, kept=3, dropped=0, unwritten=0)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=1, overlap=1)
        session.commit()
        studied = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        group_id = session.scalars(studied).one()
    page = open_page("groups", group=str(group_id))
    assert any(f"judge items of group {group_id}" in each.value for each in page.warning)
    assert group_id not in [row["id"] for row in rows(page)] and len(rows(page)) == 2
    assert group_id not in [one["group"]["id"] for one in card_data(page)["groups"]]
    assert "1 group of the run hidden: you may judge them" in sent(page)
    sign_in(sqlite_store, monkeypatch, "annotator")
    blind = open_page("groups", group=str(group_id))
    assert f"{group_id} is not in your queue" in blind.error[0].value
    assert "1 group of the run hidden" in words(open_page("groups"))
    assert len(rows(open_page("groups"))) == 2
