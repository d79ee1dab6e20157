from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran, count_rows
from openai_server import Server
from sqlalchemy import select
from study_world import make_world

from db.store.store import Store
from db.study.judgments import judgment_frame
from db.tables import Assignment, Item, Judgment


@pytest.mark.long
def test_a_study_is_made_judged_and_shown_from_the_command_line(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    run_id = make_world(sqlite_store, 8)
    made = inf("study", "create", "--dataset", "world", "--items", 6, "--overlap", 2, "--json")
    assert made.json | {"name": ""} == {
        "id": 1,
        "study_id": 1,
        "name": "",
        "dataset": "world",
        "run_id": run_id,
        "items": 6,
        "overlap": 2,
        "seed": 0,
        "sampling": {
            "sampling": "stratified",
            "strata": ["scenario"],
            "sources": {"made for a test": 6},
        },
        "scenarios": {"positive": 2, "instruction_negative": 2, "query_negative": 2},
        "verdicts": made.json["verdicts"],
        "qualification": 0,
        "gold": 0,
    }
    judged = inf("study", "judge", "--study", 1, "--judge", "simulated:1", "--json")
    assert (judged.json["judged"], judged.json["simulated"]) == (6, True)
    again = inf("study", "judge", "--study", 1, "--judge", "simulated:1", "--json")
    assert (again.json["judged"], again.json["judged_before"]) == (0, 6)
    shown = inf("study", "show", "--study", 1, "--json").json
    assert [judge["judge"] for judge in shown["judges"]] == ["simulated:1"]
    assert shown["judges"][0]["simulated"]
    assert (shown["done"], shown["places"]) == (0, 12)
    with sqlite_store.read() as session:
        assert len(judgment_frame(session, 1)) == 6
        assert session.scalars(select(Assignment)).all() == []
        for judgment in session.scalars(select(Judgment)):
            labels = [c["label"] for c in session.get_one(Item, judgment.item_id).candidates]
            assert sorted(judgment.order_shown) == sorted(labels)
    listed = inf("study", "list")
    assert "6 items × 2" in listed.out


def test_too_many_items_are_refused_with_how_many_there_are(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    make_world(sqlite_store, 4)
    ran = inf("study", "create", "--dataset", "world", "--items", 9, "--overlap", 1, "--json")
    assert ran.code == 1
    assert "4 groups" in ran.json["error"]


@pytest.mark.parametrize("judge", ["oracle", "simulated:0"])
def test_an_unknown_judge_fails_with_the_names_there_are(
    sqlite_store: Store, inf: Callable[..., Ran], judge: str
) -> None:
    make_world(sqlite_store, 4)
    inf("study", "create", "--dataset", "world", "--items", 3, "--overlap", 1)
    ran = inf("study", "judge", "--study", 1, "--judge", judge)
    assert ran.code == 1
    assert "simulated:N" in ran.err


@pytest.mark.long
def test_a_language_model_judges_a_study_and_is_never_paid_twice(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    make_world(sqlite_store, 4)
    inf("study", "create", "--dataset", "world", "--items", 4, "--overlap", 1)
    with Server() as server:
        environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "test"}
        ran = inf(
            "study", "judge", "--study", 1, "--judge", "openai:judge", "--json", **environment
        )
        assert ran.code == 0, ran.err
        assert (ran.json["judged"], ran.json["offline"], ran.json["unusable"]) == (4, False, {})
        assert count_rows(sqlite_store, "call") == 4
        asked = sum(server.asked.values())
        again = inf(
            "study", "judge", "--study", 1, "--judge", "openai:judge", "--json", **environment
        )
        assert again.json["judged_before"] == 4
        assert sum(server.asked.values()) == asked
        assert not any("instruction_negative" in str(body) for body in server.bodies)


@pytest.mark.long
def test_a_model_that_the_server_does_not_have_is_refused(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    make_world(sqlite_store, 4)
    inf("study", "create", "--dataset", "world", "--items", 3, "--overlap", 1)
    with Server() as server:
        ran = inf(
            *("study", "judge", "--study", 1, "--judge", "openai:gone", "--json"),
            OPENAI_BASE_URL=server.url,
            OPENAI_API_KEY="test",
        )
    assert ran.code == 1
    assert "gone" in ran.json["error"]


def test_a_study_is_paused_extended_and_given_new_guidelines(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    make_world(sqlite_store, 4)
    inf("study", "create", "--dataset", "world", "--items", 3, "--overlap", 1)
    words = tmp_path / "guidelines.md"
    words.write_text("Read all of it.")
    changed = inf(
        *("study", "set", "--study", 1, "--status", "paused", "--overlap", 2),
        *("--guidelines", words, "--json"),
    )
    assert changed.json == {
        "id": 1,
        "name": "world, run 1",
        "study_id": 1,
        "status": "paused",
        "overlap": 2,
        "guideline_version": 2,
    }
    fewer = inf("study", "set", "--study", 1, "--overlap", 1)
    assert fewer.code == 1
    assert "can only be raised" in fewer.err
