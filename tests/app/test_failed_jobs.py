"""A failed job keeps its error as it was raised: code, message and remedy apart, at every door."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from app_pages import open_page, words
from conftest import Ran
from grown_dataset import grown
from sqlalchemy import select
from study_world import make_world

import inf_studio
from app.access.identity import owner
from app.jobs import launching
from app.operations import jobs as operations
from app.operations.judging import studies
from curation.judging.request import StudyPlan
from db.errors import BadInput, InfError
from db.extras import missing_extra
from db.jobs import jobs
from db.jobs.runner import JobHandle, run
from db.rows import Row
from db.store import schema
from db.store.scope import unscoped
from db.store.store import Store
from db.tables import Event, Job

ADA = owner("ada")
ERROR = BadInput("no column `a`", "name it with `column=a=MINE`", code="column_missing")


def ended(store: Store, handler: Callable[[JobHandle], Row]) -> Job:
    """A job whose handler was this one."""
    with unscoped():
        with store.write() as session:
            job = jobs.enqueue_job(session, "backup", {"to": "x"}, started_by="ada")
            claimed = jobs.claim_job(session, job.id)
            assert claimed is not None
            session.commit()
        run(JobHandle(store, claimed.id, claimed.attempt), handler)
        return launching.job_now(store, claimed.id)


def raising(error: BaseException) -> Callable[[JobHandle], Row]:
    def handler(handle: JobHandle) -> Row:
        raise error

    return handler


@pytest.fixture
def here(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    yield sqlite_store


def test_every_door_shows_the_code_the_message_and_the_remedy_apart(
    here: Store, inf: Callable[..., Ran]
) -> None:
    job = ended(here, raising(ERROR))
    assert (job.status, job.error, job.error_code) == ("failed", ERROR.message, ERROR.code)
    assert job.remedy == ERROR.remedy
    for row in (operations.show(ADA, job.id), operations.list_some(ADA).data[0]):
        assert (row.error, row.code) == ("no column `a`", "column_missing")
        assert row.remedy.startswith("name it with `column=a=MINE`. Resume")
    shown = inf("jobs", "show", job.id, "--json").json
    assert (shown["error"], shown["code"]) == ("no column `a`", "column_missing")
    text = inf("jobs", "show", job.id).out
    assert "no column `a`\n" in text and "name it with --column a=MINE. Resume" in text
    page = words(open_page("jobs", job=str(job.id))).replace("\\", "")
    assert "no column `a`" in page and "`column_missing`" in page
    assert "Name it with “Column” (a=MINE). Resume from" in page
    with pytest.raises(InfError) as raised:
        inf_studio.open().job(job.id).wait()
    assert raised.value.code == "column_missing" and "`column=a=MINE`" in raised.value.remedy
    assert raised.value.message == f"job {job.id}: no column `a`"


def test_who_waits_for_a_job_gets_the_error_that_it_raised(here: Store) -> None:
    with pytest.raises(InfError) as raised:
        launching.ended_well(ended(here, raising(ERROR)))
    assert (raised.value.message, raised.value.code) == (ERROR.message, ERROR.code)
    assert raised.value.remedy.startswith("name it with") and "jobs resume" in raised.value.remedy


def test_the_event_of_a_failed_job_has_its_code_and_remedy(here: Store) -> None:
    job = ended(here, raising(ERROR))
    with unscoped(), here.read() as session:
        event = session.scalars(select(Event).where(Event.name == "job.failed")).one()
    assert event.noun_id == str(job.id)
    wanted = {"error": ERROR.message, "error_code": ERROR.code, "remedy": ERROR.remedy}
    assert wanted.items() <= event.data.items()


def test_a_crash_a_missing_extra_and_a_silent_process_have_codes_too(here: Store) -> None:
    crash = ended(here, raising(ValueError("boom")))
    assert crash.error_code == "unexpected" and crash.error.endswith("ValueError: boom")
    extra = ended(here, raising(ModuleNotFoundError("no torch", name="torch")))
    assert extra.error_code == "extra_missing" and "inf-studio[train]" in (extra.remedy or "")
    assert "pip" not in (extra.error or "")
    with unscoped(), here.write() as session:
        gone = jobs.requeue_job(session, crash.id)
        assert gone.error is gone.error_code is gone.remedy is None
        session.commit()


def test_a_missing_extra_is_an_error_with_its_remedy_apart() -> None:
    found = missing_extra(ModuleNotFoundError("x", name="torch"))
    assert found is not None and found.code == "extra_missing"
    assert found.remedy == "pip install 'inf-studio[train]'" and "pip" not in found.message


def test_a_row_of_before_keeps_its_text_and_a_downgrade_joins_what_is_apart(store: Store) -> None:
    job = ended(store, raising(ERROR))
    schema.downgrade(store, "0045")
    with store.engine.begin() as connection:
        (text,) = connection.execute(sa.text("SELECT error FROM job")).one()
        assert text == "no column `a`: name it with `column=a=MINE`"
    schema.upgrade(store)
    again = launching.job_now(store, job.id)
    assert (again.error, again.error_code, again.remedy) == (text, None, None)
    with pytest.raises(InfError) as raised:
        launching.ended_well(again)
    assert raised.value.code == "job_failed"


def test_an_error_in_json_has_message_code_and_remedy_apart_and_the_former_text(
    here: Store, inf: Callable[..., Ran]
) -> None:
    ran = inf("runs", "show", 77, "--json")
    assert ran.code == 1 and {"message", "code", "remedy", "error"} <= ran.json.keys()
    assert ran.json["message"] == "no run 77; there is none yet" and ran.json["remedy"]
    assert ran.json["error"] == f"{ran.json['message']}: {ran.json['remedy']}"
    wrong = inf("runs", "list", "--statuss", "x", "--json")
    assert (wrong.code, wrong.json["code"]) == (2, "arguments_invalid")
    assert wrong.json["message"] == wrong.json["error"] and "--help" in wrong.json["remedy"]


@pytest.mark.parametrize(
    ("kind", "page", "config"),
    [
        ("evaluate", "evaluations", {}),
        ("project", "coverage", {}),
        ("embed", "diversity", {"what": "diversity"}),
        ("embed", "overlaps", {"what": "near_duplicates"}),
        ("judge", "studies", {"study_id": 1}),
    ],
)
def test_the_page_of_its_results_names_a_failed_job_until_a_later_one_ends_well(
    here: Store, kind: str, page: str, config: dict[str, Any]
) -> None:
    make_world(here, 6)
    studies.create(ADA, StudyPlan(dataset="world", items=2, overlap=1))
    for status, shown in (("failed", True), ("lost", True), ("done", False), ("cancelled", False)):
        with here.write() as session:
            job = jobs.enqueue_job(session, kind, config)
            job.status, job.error, job.remedy = status, "no file `x`", "give `dataset=NAME`"
            session.commit()
            number = job.id
        at = open_page(page)
        told = [each.value.replace("\\", "") for each in at.warning]
        assert not at.exception
        assert [each.startswith(f"Job {number} {status}: no file") for each in told] == [
            True
        ] * shown


def test_a_page_names_no_failed_job_of_another_question_or_study(here: Store) -> None:
    grown(here)
    with here.write() as session:
        for what in ("diversity", "near_duplicates"):
            job = jobs.enqueue_job(session, "embed", {"what": what})
            job.status, job.error = "failed", f"no {what}"
        session.commit()
    at = open_page("overlaps")
    assert ["near" in each.value for each in at.warning] == [True]
    at.button_group(key="overlaps.question").set_value("contamination").run()
    assert not at.exception and not at.warning
