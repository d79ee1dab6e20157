"""An edit before the rules of its run, and its validator again; a second judge of a whole run."""

from collections.abc import Callable

import pytest
from conftest import Ran
from records_world import group_ids, make_run
from sqlalchemy import func, select
from trainer_jobs import claim

from curation.run.revalidation import check_edit, judge, validator_of
from db.errors import BadInput, Refused
from db.release.rows import group_judgments
from db.review.reviews import edit_group
from db.run.revalidations import revalidation_of, waiting_items
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Group, Item, Judge, Judgment, Run


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"query_negative": "word " * 61}, "query_negative has 61 words"),
        ({"query_negative": "Who wrote book 0"}, "is the same as the positive one"),
        ({"instruction_negative": "find the author of book 0"}, "is the same"),
        (
            {"hard_negative_document_1": "Mail ada@lovelace.org about it."},
            "looks like: e-mail address",
        ),
        (
            {
                "instruction_negative": "Name the year in which the first book was printed.",
                "hard_negative_document_1": "It says: name the year in which the first book.",
            },
            "repeats",
        ),
    ],
)
def test_what_the_rules_would_drop_is_no_edit(
    sqlite_store: Store, changes: dict[str, str], told: str
) -> None:
    group_id = group_ids(sqlite_store, make_run(sqlite_store))[0]
    with sqlite_store.read() as session, pytest.raises(BadInput, match=told):
        check_edit(session, group_id, changes)


def test_a_good_edit_passes_and_a_group_without_texts_is_left_to_the_edit(
    sqlite_store: Store,
) -> None:
    run_id = make_run(sqlite_store)
    with sqlite_store.read() as session:
        check_edit(
            session, group_ids(sqlite_store, run_id)[0], {"query_negative": "who sold book 0"}
        )
        check_edit(session, group_ids(sqlite_store, run_id, "dropped")[-1], {"query_negative": "x"})


def test_the_validator_judges_what_was_edited_and_only_that(store: Store) -> None:
    run_id = make_run(store)
    group_id, other = group_ids(store, run_id)[:2]
    with store.write() as session:
        edit_group(
            session,
            group_id,
            {
                "instruction_positive": "Name who wrote it.",
                "hard_negative_document_1": "Cheese is made from milk.",
            },
            reviewed_by="ada",
        )
        session.commit()
        assert revalidation_of(session, other) == {}
        assert set(revalidation_of(session, group_id).values()) == {"waiting"}
        before = session.scalars(select(Judgment.id)).all()
    done = judge(claim(store, {"run_id": run_id}, kind="judge")).as_json()
    # A passage on cheese is no answer to the year of a book: its scenario fails.
    assert (done["items"], done["holds"] + done["fails"], done["offline"]) == (3, 3, True)
    with store.read() as session:
        told = revalidation_of(session, group_id)
        assert told["instruction_negative"] == "fails" and told["positive"] == "holds"
        assert waiting_items(session, run_id) == []
        added = session.scalars(select(Judgment).where(Judgment.id.not_in(before))).all()
        assert {(row.run_id, row.study_id) for row in added} == {(run_id, None)}
        assert session.get_one(Group, group_id).verdict == "kept"  # the run's word stays
    again = judge(claim(store, {"run_id": run_id}, kind="judge")).as_json()
    assert again["items"] == 0


def test_an_imported_run_has_no_validator(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store)
    with sqlite_store.write() as session:
        session.get_one(Run, run_id).provider = "imported"
        session.commit()
    with pytest.raises(Refused, match="has no validator here"):
        validator_of(sqlite_store, run_id)


@pytest.mark.long
def test_the_command_refuses_and_revalidates(sqlite_store: Store, inf: Callable[..., Ran]) -> None:
    run_id = make_run(sqlite_store)
    group_id = group_ids(sqlite_store, run_id)[0]
    bad = inf("review", "--group", group_id, "--edit", "query_negative=who wrote book 0", "--json")
    assert bad.code == 1 and "refuse the edit" in bad.json["error"]
    assert inf("review", "--group", group_id, "--edit", "query_negative=who sold book 0").code == 0
    done = inf("review", "--revalidate", run_id, "--json")
    assert done.code == 0, done.err
    assert (done.json["items"], done.json["judge"]) == (3, "offline:embedding")
    assert inf("review", "--revalidate", run_id, "--group", group_id).code == 2


def test_a_second_judge_answers_every_group_once_and_is_not_the_validator(store: Store) -> None:
    run_id = make_run(store)
    group_id = group_ids(store, run_id)[0]
    with store.write() as session:
        edit_group(
            session, group_id, {"instruction_positive": "Name who wrote it."}, reviewed_by="ada"
        )
        session.commit()
    config = {"run_id": run_id, "judge": "simulated:1"}
    done = judge(claim(store, config, kind="judge")).as_json()
    with store.read() as session:
        newest = select(func.max(Item.revision)).where(Item.group_id == group_id)
        assert session.scalar(newest) == 2
        answered = select(Judgment).join(Judge).where(Judge.name == "simulated:1")
        rows = session.scalars(answered).all()
        items = {row.item_id: session.get_one(Item, row.item_id) for row in rows}
        # of the edited group only the last texts, and what it says decides nothing of the run's
        assert {one.revision for one in items.values() if one.group_id == group_id} == {2}
        groups = {one.group_id for one in items.values()}
        assert len(rows) == len(items) == 3 * len(groups) == done["judged"] == done["items"]
        assert {(row.run_id, row.study_id) for row in rows} == {(None, None)}
        assert set(revalidation_of(session, group_id).values()) == {"waiting"}
        assert group_judgments(session, [group_id], INF_IR)[group_id][
            -1
        ].simulated  # a release has them
    again = judge(claim(store, config, kind="judge")).as_json()
    assert (again["judged"], again["judged_before"]) == (0, done["items"])


def test_the_command_takes_a_study_or_a_run(sqlite_store: Store, inf: Callable[..., Ran]) -> None:
    run_id = make_run(sqlite_store)
    judged = inf("study", "judge", "--run", run_id, "--judge", "simulated:1", "--json").json
    assert (judged["run_id"], judged["judged"] > 0) == (run_id, True)
    for words in ((), ("--run", run_id, "--study", 1)):
        refused = inf("study", "judge", *words, "--judge", "simulated:1")
        assert (refused.code, "either a study or a run" in refused.err) == (2, True)
    assert inf("study", "judge", "--run", 99, "--judge", "simulated:1").code == 1
