"""Studies: command, operation and job are the same; each operation asks for its right."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page
from conftest import Ran
from sqlalchemy import func, select
from study_world import make_world, sampled_study

from app.access.identity import Actor, owner
from app.operations import jobs
from app.operations.acting import queued
from app.operations.judging import studies
from curation.judging.request import (
    Adjudication,
    AnswersRecord,
    GoldChange,
    ItemsLease,
    JudgeChange,
    JudgeStart,
    RulesChange,
    StudyChange,
    StudyExample,
    StudyFilePlan,
    StudyMessage,
    StudyPlan,
    StudyRecruiting,
    StudyTasks,
    WorkReport,
)
from db.errors import BadInput, BadRows, Refused
from db.people.rights import Rights
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.tables import Event, Job, Study

PLAN = StudyPlan(dataset="world", items=3, overlap=1)
FILE_PLAN = StudyFilePlan(items_file="items.jsonl", questions="{}", overlap=2)
OPERATIONS: dict[str, Callable[[Actor], Any]] = {
    "create": lambda actor: studies.create(actor, PLAN),
    "create_from_file": lambda actor: studies.create_from_file(actor, FILE_PLAN),
    "create_as_job": lambda actor: studies.create_as_job(actor, PLAN, queued),
    "list_all": studies.list_all,
    "show": lambda actor: studies.show(actor, 1),
    "judge": lambda actor: studies.judge(
        actor, JudgeStart(study_id=1, judge="simulated:1"), queued
    ),
    "lease_items": lambda actor: studies.lease_items(
        actor, ItemsLease(study_id=1, label="f", model="a" * 64, worker="w")
    ),
    "record_answers": lambda actor: studies.record_answers(actor, AnswersRecord(study_id=1)),
    "change": lambda actor: studies.change(actor, StudyChange(study_id=1, status="closed")),
    "close": lambda actor: studies.close(actor, 1),
    "judges": lambda actor: studies.judges(actor, 1),
    "change_judges": lambda actor: studies.change_judges(
        actor, JudgeChange(study_id=1, action="pause", judges=("ann",), reason="x")
    ),
    "write": lambda actor: studies.write(actor, StudyMessage(study_id=1, body="hello")),
    "messages": lambda actor: studies.messages(actor, 1),
    "recruit": lambda actor: studies.recruit(
        actor,
        StudyRecruiting(study_id=1, platform="mturk", complete="C", screened_out="S", people=1),
    ),
    "change_gold": lambda actor: studies.change_gold(
        actor, GoldChange(study_id=1, part="gold", sample=1)
    ),
    "change_rules": lambda actor: studies.change_rules(
        actor, RulesChange(study_id=1, rules={"pass_mark": 0.5})
    ),
    "rules": lambda actor: studies.rules(actor, 1),
    "guideline": lambda actor: studies.guideline(actor, 1),
    "runs_to_sample": lambda actor: studies.runs_to_sample(actor, 1),
    "sampled_judges": lambda actor: studies.sampled_judges(actor, 1, None),
    "template": lambda actor: studies.template(actor, 1, 1),
    "tasks": lambda actor: studies.tasks(actor, StudyTasks(study_id=1, tool="argilla")),
    "work": lambda actor: studies.work(actor, WorkReport(study_id=1)),
    "add_example": lambda actor: studies.add_example(actor, StudyExample(study_id=1, item_id=1)),
    "preview": lambda actor: studies.preview(actor, FILE_PLAN.questions),
    "adjudicate": lambda actor: studies.adjudicate(
        actor, Adjudication(study_id=1, item_id=1, choice="none")
    ),
}
SHOWS_ROLES = ("adjudicate",)  # and names: not even a curator's


def with_right(*rights: str) -> Actor:
    return Actor("eve", rights=Rights(everywhere=frozenset(rights)))


@pytest.fixture
def world(sqlite_store: Store) -> Store:
    run_id = make_world(sqlite_store, 8)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=4, overlap=2)
        session.commit()
    return sqlite_store


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_studies_without_the_right_changes_nothing(world: Store, name: str) -> None:
    with world.read() as session:
        before = [session.scalar(select(func.count(one.id))) for one in (Study, Event, Job)]
    rights = [("judge",), ("adjudicate", "review"), ("train",)]
    for held in [*rights, ("curate",)] if name in SHOWS_ROLES else rights:
        with pytest.raises(Refused, match="lacks a right"):
            OPERATIONS[name](with_right(*held))
    with world.read() as session:
        after = [session.scalar(select(func.count(one.id))) for one in (Study, Event, Job)]
        assert after == before


def test_every_operation_on_studies_is_among_them() -> None:
    own = {name for name, each in vars(studies).items() if callable(each) and name[0].islower()}
    assert OPERATIONS.keys() == {
        name for name in own if getattr(studies, name).__module__ == studies.__name__
    }


def test_command_and_operation_print_the_same_rows_under_both_names(
    world: Store, inf: Callable[..., Ran]
) -> None:
    rows = studies.list_all(owner("ada")).as_json()
    listed, former = inf("studies", "list", "--json"), inf("study", "list", "--json")
    assert {name: listed.json[name] for name in rows} == rows and former.json == listed.json
    assert former.json["studies"] == [row | {"study_id": row["id"]} for row in rows["data"]]
    assert "`inf studies list`" in former.err
    shown = studies.show(owner("ada"), 1).as_json()
    assert inf("studies", "show", 1, "--json").json == {"study_id": 1, **shown}
    assert {name: shown[name] for name in rows["data"][0]} == rows["data"][0]
    former = inf("study", "show", "--study", 1, "--json")
    assert former.json == {"study_id": 1, **shown} and "inf studies show STUDY_ID" in former.err
    assert inf("study", "show").code == 2 and inf("study", "show", 1).code == 2


def test_a_study_is_the_same_by_operation_and_by_job(world: Store, inf: Callable[..., Ran]) -> None:
    words = ("create", "world", "--items", 3, "--overlap", 1, "--seed", 4, "--json")
    by_command = inf("studies", *words).json
    wanted = StudyPlan(dataset="world", items=3, overlap=1, seed=4)
    old = {"sampling": {"sample": "stratified", "strata": ["scenario"], "only": "", "lines": []}}
    flat = {"dataset": "world", "items": 3, "overlap": 1, "seed": 4, "guidelines": None}
    assert StudyPlan.read(flat | old) == wanted == StudyPlan.read(wanted.config())
    by_operation = studies.create(owner("ada"), wanted).as_json()
    numbers = ("id", "study_id")
    assert [{k: v for k, v in one.items() if k not in numbers} for one in (by_command,)] == [
        {k: v for k, v in by_operation.items() if k not in numbers}
    ]
    with pytest.raises(BadInput, match="did you mean 'overlap'"):
        StudyPlan.read(flat | {"overlaps": 2})


def test_closing_a_study_by_hand_is_its_end_once(world: Store) -> None:
    for _ in range(2):
        studies.change(owner("ada"), StudyChange(study_id=1, status="closed"))
    with pytest.raises(Refused):
        studies.change(owner("ada"), StudyChange(study_id=1, status="open", overlap=9))
    with world.read() as session:
        names = session.scalars(select(Event.name).order_by(Event.id)).all()
        assert [name for name in names if name != "study.create"] == [
            *("study.closed", "study.finished", "study.closed")
        ]


def test_a_curator_who_judges_does_not_see_own_gold_before_the_end(
    world: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from db.study import quality

    with world.write() as session:
        get_or_create_judge(session, "eve", kind="person")
        get_or_create_judge(session, "bob", kind="person")
        session.commit()
    real = quality.judge_quality
    monkeypatch.setattr(
        quality,
        "judge_quality",
        lambda session, study_id: [
            each.model_copy(update={"gold_right": 1, "gold_seen": 2, "doubt": "gold"})
            for each in real(session, study_id)
        ],
    )
    studies.change_judges(owner("ada"), JudgeChange(study_id=1, action="let_in", judges=(1,)))
    studies.change_judges(owner("ada"), JudgeChange(study_id=1, action="let_in", judges=(2,)))
    eve = with_right("curate")
    seen = {row.name: row.gold_seen for row in studies.judges(eve, 1).data}
    assert seen == {"eve": 0, "bob": 2}
    assert {row.name: row.doubt for row in studies.judges(eve, 1).data} == {
        "eve": "",
        "bob": "gold",
    }
    studies.change(owner("ada"), StudyChange(study_id=1, status="closed"))
    assert {row.gold_seen for row in studies.judges(eve, 1).data} == {2}


def test_a_gold_file_of_the_server_is_an_admin_s_and_an_upload_a_curator_s(
    world: Store, tmp_path: Path
) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text('{"item": 1}\n', encoding="utf-8")
    curator = with_right("curate")
    with pytest.raises(Refused, match="requires admin"):
        studies.change_gold(curator, GoldChange(study_id=1, part="gold", file=str(path)))
    upload = ("../gold.jsonl", path.read_bytes())
    with pytest.raises(BadRows) as uploaded:
        studies.change_gold(curator, GoldChange(study_id=1, part="gold"), upload=upload)
    with pytest.raises(BadRows) as of_a_file:
        studies.change_gold(owner("ada"), GoldChange(study_id=1, part="gold", file=str(path)))
    assert str(uploaded.value) == str(of_a_file.value)


@pytest.mark.parametrize("name", ["offline", "offline:other", "openai:", "nobody"])
def test_a_name_of_no_judge_is_refused_before_a_job_is_launched(
    world: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", world.url)
    assert inf("studies", "judge", 1, "--judge", name, "--json").json["code"] == "judge_unknown"
    assert inf("jobs", "list", "--json").json["total"] == 0


def test_page_and_command_show_the_judges_that_the_operation_returns(
    world: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", world.url)
    done = inf("studies", "judge", 1, "--judge", "offline:embedding", "--json").json
    rows = studies.judges(owner("ada"), 1).as_json()
    assert [(row["name"], row["judged"], row["offline"]) for row in rows["data"]] == [
        ("offline:embedding", 4, True)
    ]
    printed = inf("studies", "people", 1, "--json").json
    assert {key: printed[key] for key in rows} == rows
    drawn = next(each for each in open_page("studies").dataframe if "too_fast" in each.value)
    assert json.loads(drawn.value.to_json(orient="records")) == rows["data"]
    stored = jobs.show(owner("ada"), done.pop("job_id")).result
    assert stored == done
    assert {
        row["judge"]: row["judged"] for row in studies.show(owner("ada"), 1).as_json()["judges"]
    } == {"offline:embedding": 4}


def test_page_and_command_show_the_work_that_the_operation_returns(
    world: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", world.url)
    with world.write() as session:
        get_or_create_judge(session, "ann", kind="person")
        session.commit()
    studies.change_judges(owner("ada"), JudgeChange(study_id=1, action="let_in", judges=(1,)))
    rows = studies.work(owner("ada"), WorkReport(study_id=1)).as_json()
    assert rows["total"] == 1 and rows["data"][0]["person"] == "ann"
    assert inf("studies", "work", 1, "--json").json == rows | {"work": rows["data"]}
    head, line = inf("studies", "work", 1).out.splitlines()
    assert head.split()[:3] == ["study", "person", "items"] and " ann " in line
    written = inf("studies", "work", 1, "--csv").out
    assert written.startswith("study_id,study,judge_id,person,")
    former = inf("study", "work", "--study", 1)
    assert former.out == written and "note: " in former.err
    at = open_page("studies")
    at.session_state["studies.work"] = True  # the drawer is opened
    drawn = next(each for each in at.run().dataframe if "active_minutes" in each.value)
    assert json.loads(drawn.value.to_json(orient="records")) == rows["data"]
