"""The report of a study has what the operations say, for whom they may say it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page, words
from asked_study import make_asked_study, record
from conftest import Ran
from desk_world import make_team

from analysis.files.document import Document, Table
from app.access.identity import SessionUser, owner
from app.api.routes import by_name
from app.operations.judging import agreement, studies
from app.operations.judging.disagreements import disagreements
from app.operations.judging.report import report
from curation.judging.request import (
    Adjudication,
    AgreementShow,
    DisagreementList,
    StudyChange,
    StudyReport,
)
from db.errors import Refused
from db.people.rights import Rights
from db.store.store import Store

ADMIN = SessionUser("root", rights=Rights(is_admin=True))
TITLES = ["Design", "Judges", "Agreement", "Validity", "Disagreements", "Adjudication", "Limits"]


@pytest.fixture
def team(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    return make_team(sqlite_store, people=5, items=30, overlap=2)


def section(document: Document, title: str) -> Any:
    return next(one for one in document.sections if one.title == title)


def cells(table: Table) -> dict[str, tuple[str, ...]]:
    return {row[1]: row for row in table.rows}


def test_figures_are_those_of_agreement_and_people_those_of_the_desk(team: int) -> None:
    found = report(owner("cora"), StudyReport(study_id=team))
    assert [one.title for one in found.sections] == TITLES
    figure = agreement.agreement(owner("cora"), AgreementShow(study_id=team))
    alpha = figure.people["krippendorff_alpha"]
    assert alpha.value is not None and alpha.interval is not None
    row = cells(section(found, "Agreement").tables[0])["Krippendorff's alpha"]
    low, high = alpha.interval
    assert row[2:] == (f"{alpha.value:.3f}", f"{low:.3f} to {high:.3f}")
    listed = studies.judges(owner("cora"), team).data
    assert [row[0] for row in section(found, "Judges").tables[0].rows] == [n.name for n in listed]
    assert any("judgments are missing" in one for one in section(found, "Limits").sentences)


def test_who_may_still_judge_has_no_report_and_an_open_study_no_examples(
    team: int, sqlite_store: Store
) -> None:
    with pytest.raises(Refused, match="may still judge"):
        report(SessionUser("ada", rights=Rights(is_admin=True)), StudyReport(study_id=team))
    shown = section(report(ADMIN, StudyReport(study_id=team)), "Disagreements")
    assert shown.tables == () and "closed study" in shown.sentences[1]
    studies.change(owner("cora"), StudyChange(study_id=team, status="closed"))
    shown = section(report(ADMIN, StudyReport(study_id=team, examples=3)), "Disagreements")
    assert len(shown.tables) == 3
    assert any(row[0] == "ada" for table in shown.tables for row in table.rows)


def test_decisions_are_counted_by_what_they_decide_for(team: int) -> None:
    nothing = section(report(owner("cora"), StudyReport(study_id=team)), "Adjudication")
    assert nothing.sentences == ("Nothing was adjudicated.",)
    rows = disagreements(owner("cora"), DisagreementList(study_id=team, limit=3)).data
    for one in rows:
        decision = Adjudication(study_id=team, item_id=one.item_id, choice="none")
        studies.adjudicate(owner("cora"), decision)
    found = section(report(owner("cora"), StudyReport(study_id=team)), "Adjudication")
    assert found.sentences[0].startswith("3 items decided by cora (3)")
    assert sum(int(row[1]) for row in found.tables[0].rows) == 3


@pytest.mark.long
def test_command_route_and_page_have_the_same_report(
    team: int, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    printed = inf("studies", "report", team, "--json").json
    route = by_name()["studies report"]
    called = route.call(owner("cora"), route.request.read({"study_id": team})).as_json()
    del called["lead"], printed["lead"]  # with the time
    assert {key: printed[key] for key in called} == json.loads(json.dumps(called))
    for name, start in (("r.html", b"<!doctype html>"), ("r.pdf", b"%PDF")):
        assert inf("studies", "report", team, "--out", tmp_path / name).code == 0
        assert (tmp_path / name).read_bytes().startswith(start)
    assert inf("studies", "report", team, "--out", tmp_path / "r.doc").code == 2
    page = open_page("studies")
    page.button("studies.report").click().run()
    assert not page.exception
    assert [tab.label for tab in page.tabs] == TITLES and "judgments by people" in words(page)


@pytest.mark.long
def test_a_study_of_grades_has_the_validity_of_its_records(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    study_id = make_asked_study(sqlite_store, tmp_path, [record(n) for n in range(4)])
    for number in (1, 2):
        assert inf("studies", "judge", study_id, "--judge", f"simulated:{number}").code == 0
    found = report(owner("cora"), StudyReport(study_id=study_id))
    audit = inf("analyze", "agreement", "--study", study_id, "--json").json["audit"]
    rows = {row[:2]: row for row in section(found, "Validity").tables[0].rows}
    strict = audit["validity"]["role"]["strict_record_validity"]["value"]
    assert rows["role", "strict record validity"][2] == f"{strict:.3f}"
    assert any("simulated" in one for one in section(found, "Limits").sentences)
    tables = section(found, "Agreement").tables
    assert len(tables) == 4
    for table in tables:  # two and no model: kappa of the two, nothing twice
        assert table.rows[0][:2] == ("simulated judges", "Cohen's kappa")
        assert {row[0] for row in table.rows} == {"simulated judges"}
    captions = [one.caption for one in section(found, "Disagreements").tables]
    assert captions and all(
        re.match(r"Item \d+, (query_ok|role|best|fluency)", one) for one in captions
    )
    assert all(", role of " in one for one in captions if "role" in one)
