"""Agreement: page, command and operation give the same; who judges reads it without own items."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from app_pages import open_page
from conftest import Ran
from judged_study import judged
from sqlalchemy import select

from analysis.agreement.agreement import report_of
from analysis.agreement.answers import Decision, number_decisions
from analysis.agreement.judgment_filter import JudgmentFilter
from app.access.identity import Actor, SessionUser, owner
from app.cli.kit.formerly import with_former_ends
from app.operations.acting import queued
from app.operations.judging import agreement, studies
from app.operations.judging.figures import AgreementReport
from app.text.remedies import in_commands
from curation.judging.job import work_on_study
from curation.judging.request import (
    AgreementShow,
    AgreementStart,
    PlanStudy,
    StudyExport,
    ValidatorsCompare,
)
from db.assignment import members
from db.errors import NotFound, Refused
from db.events import record_event
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.people.rights import Rights
from db.store.scope import unscoped
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.study.studies import set_status
from db.tables import Event, Job

ADA, ALL = owner("ada"), JudgmentFilter()
SHOWN = AgreementShow(study_id=1, resamples=0)
PEOPLE = ("ann", "bob", "cy", "dee")
NEEDING: dict[str, Callable[[Actor], Any]] = {
    "agreement": lambda actor: agreement.agreement(actor, SHOWN),
    "validators": lambda actor: agreement.validators(actor, ValidatorsCompare(dataset="a")),
    "answers": lambda actor: agreement.answers(actor, 1),
    "judges": lambda actor: agreement.judges(actor, 1, None),
    "state_now": lambda actor: agreement.state_now(actor, 1),
    "seen": lambda actor: agreement.seen(actor, 1),
    "study_to_show": lambda actor: agreement.study_to_show(actor, [1]),
    "judged": lambda actor: agreement.judged(actor, 1),
    "version": lambda actor: agreement.version(actor, 1, agreement.seen(ADA, 1)),
    "figures": lambda actor: agreement.figures(actor, 1, ALL),
    "export": lambda actor: agreement.export(actor, StudyExport(study_id=1)),
    "estimates": lambda actor: agreement.estimates(actor, 1),
    "thresholds": lambda actor: agreement.thresholds(actor, 1),
    "consensus": lambda actor: agreement.consensus(actor, 1),
    "stored": lambda actor: agreement.stored(actor, 1),
    "confusion": lambda actor: agreement.confusion(actor, 1, "ann", "bob"),
    "plan": lambda actor: agreement.plan(actor, PlanStudy(study_id=1, reach=10)),
    "compute": lambda actor: agreement.compute(actor, AgreementStart(study_id=1), queued),
}


@pytest.fixture
def world(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    monkeypatch.setattr("app.jobs.supervisors.ensure_supervisor", lambda store: None)
    judged(sqlite_store, {"ann": "pppp....", "bob": "ppnn...."})
    return sqlite_store


@pytest.mark.parametrize("name", NEEDING)
def test_an_operation_on_agreement_is_refused_without_the_right(world: Store, name: str) -> None:
    eve = Actor("eve", rights=Rights(everywhere=frozenset(("judge", "train", "release", "review"))))
    with pytest.raises(Refused, match="lacks a right"):
        NEEDING[name](eve)
    with world.read() as session:
        assert session.scalars(select(Job)).all() == []


def test_every_operation_on_agreement_is_among_them() -> None:
    found = {
        name
        for name, each in vars(agreement).items()
        if callable(each) and getattr(each, "__module__", "") == agreement.__name__
        if name[0] != "_" and name[0].islower()
    }
    assert found - {"filtered", "joining"} == set(NEEDING)  # these two are pure


def test_a_curator_of_another_dataset_neither_reads_nor_queues_it(world: Store) -> None:
    eve = Actor("eve", rights=Rights(on_datasets={99: frozenset({"curate"})}))
    for read in (NEEDING["figures"], NEEDING["compute"]):
        with pytest.raises(NotFound):
            read(eve)
    with world.read() as session:
        assert session.scalars(select(Job)).all() == []


def test_a_job_computes_for_its_starter_as_a_reader_and_old_configs_are_read(world: Store) -> None:
    with world.write() as session:
        members.add_member(session, 1, get_or_create_judge(session, "ann", kind="person").id)
        session.commit()
    ann = SessionUser("ann", rights=Rights(is_admin=True))
    agreement.compute(ann, AgreementStart(study_id=1), queued)
    agreement.compute(ADA, AgreementStart(study_id=1), queued)
    with world.read() as session:
        configs = [each.config for each in session.scalars(select(Job).order_by(Job.id))]
    assert [each["reader"] for each in configs] == ["ann", ""]
    for old in ({"study": 1}, {"study": 1, "reader": None}, {"study": 1, "reader": ""}):
        assert AgreementStart.read({"what": "agreement", **old}).config() == configs[1]


def test_who_judges_a_study_reads_none_of_its_figures_with_own_items(world: Store) -> None:
    with world.write() as session:
        members.add_member(session, 1, get_or_create_judge(session, "ann", kind="person").id)
        session.commit()
    ann = SessionUser("ann", rights=Rights(is_admin=True))
    assert agreement.figures(ADA, 1, ALL).report.items > 0
    assert agreement.figures(ann, 1, ALL).report.items == 0
    assert agreement.consensus(ADA, 1).items and not agreement.consensus(ann, 1).items


@pytest.mark.parametrize("is_open", [True, False])
def test_one_model_judge_alone_is_described_with_how_people_join(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, is_open: bool
) -> None:
    """The report has a key; command and page each word it."""
    judged(sqlite_store, {"GPT": "ppnn...."})
    if not is_open:
        with sqlite_store.write() as session:
            set_status(session, 1, "closed")
            session.commit()
    found = inf("analyze", "agreement", "--study", 1, "--json").json
    assert found["answered"] == {"GPT": {"positive": 2, "none": 2}}
    assert found["joining"] == ("invite" if is_open else "open_study")
    shown = inf("analyze", "agreement", "--study", 1).out
    assert "GPT chose: none 2 · positive 2" in shown
    assert in_commands(agreement.JOINING[found["joining"]]) in shown
    assert ("`inf people invite --role annotator --study ID`" in shown) == is_open
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    assert (
        agreement.agreement(ADA, SHOWN).as_json()
        == inf("analyze", "agreement", "--study", 1, "--resamples", 0, "--json").json
    )
    page = " ".join(str(each.value) for each in open_page("agreement").info)
    assert "GPT answered 4 items" in page, page
    assert ("the Accounts page" in page) == is_open and "inf people" not in page


def test_with_a_person_nothing_is_said_of_joining(sqlite_store: Store, inf: Any) -> None:
    judged(sqlite_store, {"GPT": "ppnn....", "ann": "ppnn...."})
    found = inf("analyze", "agreement", "--study", 1, "--json").json
    assert found["judgments"] == 8 and "joining" not in found and "answered" not in found


def test_who_judges_a_study_sees_no_flags_and_no_profiles_of_it(sqlite_store: Store) -> None:
    """Profiles know gold: asked after each answer they would say which item was gold."""
    judged(sqlite_store, {"ann": "pppp....", "bob": "ppnn...."})
    with sqlite_store.write() as session:
        members.add_member(session, 1, get_or_create_judge(session, "ann", kind="person").id)
        session.commit()
    user = SessionUser("ann", rights=Rights(is_admin=True))
    wanted = AgreementShow(study_id=1, resamples=0, by_judge=True)
    mine = agreement.agreement(user, wanted).as_json()
    everyone = agreement.agreement(owner("eve"), wanted)
    all_of_it = everyone.as_json()
    assert "by_judge" not in mine and not mine["flagged"]
    assert all_of_it["by_judge"]
    assert mine["items"] < all_of_it["items"]


def test_page_command_and_job_have_the_same_figures(world: Store, inf: Callable[..., Ran]) -> None:
    words_given = ("--study", 1, "--over-time", "--by-judge", "--json")
    printed = inf("analyze", "agreement", *words_given).json
    figures = json.loads(json.dumps(agreement.figures(ADA, 1, ALL).as_json()))
    assert {name: printed[name] for name in figures["report"]} == figures["report"]
    assert printed["over_time"] == [
        each | {"from": each["since"], "to": each["until"]} for each in figures["over_time"]
    ]
    assert printed["by_judge"] == figures["by_judge"] != []
    agreement.compute(ADA, AgreementStart(study_id=1), queued)
    with world.write() as session:
        job = session.scalars(select(Job)).one()
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
    work_on_study(JobHandle(world, claimed.id, claimed.attempt))
    stored = agreement.stored(ADA, 1)
    assert stored is not None
    assert {name: stored.found.result[name] for name in figures} == figures
    only = JudgmentFilter(judges=("ann",))
    wanted = AgreementShow(study_id=1, resamples=0, judges=("ann",))
    assert wanted.chosen == only
    filtered = agreement.agreement(ADA, wanted).as_json()
    assert filtered["judges"] == agreement.figures(ADA, 1, only).as_json()["report"]["judges"]


def test_who_may_still_judge_reads_nothing_about_the_run_through_any_operation(
    world: Store,
) -> None:
    """They count every item: asked before and after an answer, they would say how another judged
    an item that one is given next. The page shows none of them either."""
    with world.write() as session:
        members.add_member(session, 1, get_or_create_judge(session, "ann", kind="person").id)
        session.commit()
    ann = SessionUser("ann", rights=Rights(is_admin=True))
    about_run: dict[str, Callable[[Actor], Any]] = {
        "export": lambda actor: agreement.export(actor, StudyExport(study_id=1)),
        "estimates": lambda actor: agreement.estimates(actor, 1),
        "thresholds": lambda actor: agreement.thresholds(actor, 1),
        "plan": lambda actor: agreement.plan(actor, PlanStudy(study_id=1, items=3)),
        "planned items": lambda actor: agreement.plan(
            actor, PlanStudy(study_id=1, items=3, add=True)
        ),
    }
    for name, read in about_run.items():
        with pytest.raises(Refused) as refused:
            read(ann)
        assert refused.value.code == "study_judged_by_reader", name
    assert not hasattr(studies, "report")  # which took any reader of the session
    with world.read() as session:
        assert not session.scalars(select(Event.name).where(Event.name == "study.extend")).all()
    with world.write() as session:
        set_status(session, 1, "closed")
        session.commit()
    assert agreement.estimates(ann, 1).study_id == 1


def test_the_command_and_the_page_read_the_same_reports(
    world: Store, inf: Callable[..., Ran]
) -> None:
    for name, read in (
        ("estimate", agreement.estimates),
        ("thresholds", agreement.thresholds),
        ("consensus", agreement.consensus),
    ):
        printed = inf("studies", name, 1, "--json").json
        found = read(ADA, 1).as_json()
        assert printed == (found if name != "estimate" else with_former_ends(found, "low", "high"))


@pytest.mark.parametrize("seed", range(16))
def test_a_report_of_any_judgments_is_its_row(seed: int) -> None:
    """Of no judgments and many, in an order and in none, with flagged people and intervals."""
    chance = random.Random(seed)
    people, models = (PEOPLE[: chance.randrange(5)], ("GPT", "Llama")[: chance.randrange(3)])
    labels, ordered = ("0", "1", "2"), bool(seed % 2)
    decisions = [
        Decision(item, judge, chance.choice(labels[: chance.randrange(1, 4)]), kind)
        for item in range(chance.choice((1, 4, 12, 40)))
        for kind, judges in (("person", people), ("model", models))
        for judge in judges
        if chance.random() < 0.9
    ]
    flagged = {name: "too fast" for name in people if chance.random() < 0.4}
    record_of = {item: item // 2 for item in range(40)} if seed % 3 == 0 else None
    answers = number_decisions(decisions, is_ordered=ordered, record_of=record_of)
    report = report_of(answers, flagged, (0, 60)[seed % 4 > 0])
    assert AgreementReport(**report).as_json() == json.loads(json.dumps(report))


def test_judgments_are_counted_again_only_where_an_event_came(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(sqlite_store, {"ann": "pppp....", "bob": "ppnn...."})
    counts, count = [], agreement.judgment_state
    monkeypatch.setattr(agreement, "judgment_state", lambda *of: counts.append(of) or count(*of))
    first = agreement.state_now(ADA, 1)
    assert agreement.state_now(ADA, 1, first) is first and len(counts) == 1
    with unscoped(), sqlite_store.write() as session:
        record_event(session, "ann", "judgment.stored", ("study", 1))
        session.commit()
    second = agreement.state_now(ADA, 1, first)
    assert (second.state, len(counts)) == (first.state, 2) and second.newest > first.newest
    agreement.state_now(ADA, 1, second._replace(at=second.at - 3600))  # as one of an hour ago
    assert len(counts) == 3
