"""The audit of the notes as a study from a file: 64 rows, two people, three questions per row."""

import io
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import audit_by_hand as by_hand
import pytest
from asked_study import KINDS, QUERY_OK, ROLE, make_asked_study, record, write_records
from audit_by_hand import Row
from conftest import Ran
from leases import lease_items
from sqlalchemy import func, select
from starlette.testclient import TestClient

from analysis.study.audit import AuditAnswer, audit_report, kind_of
from app.operations.judging.outbox import store_outbox
from app.server.web import app as server
from db.assignment.standing import standing
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.tables import Account, Judge, StudyItem, StudyJudge

PASSAGE_OK = {"key": "passage_ok", "type": "yes_no", "about": "item", "text": "Are they fluent?"}
PEOPLE = ("ann", "ben")
RECORDS = 64
MAX_LINES = 10
PASSWORD = "correct horse battery"
DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "questions.md"


def answer_all(store: Store, study_id: int, person: str, chance: random.Random) -> list[Row]:
    """Let a person answer every card, now and then otherwise than expected; what they answered."""
    rows: list[Row] = []
    with store.write() as session:
        account = session.scalar(select(Account.id).where(Account.name == person))
        judge_id = get_or_create_judge(session, person, kind="person", account_id=account).id
        session.commit()
    while True:
        with store.write() as session:
            items = lease_items(session, study_id, judge_id, 5)
            entries = []
            for item in items:
                kind = ""
                if isinstance(item.about, int):
                    text = item.candidates[item.about]
                    kind = next(one for one in KINDS if text.endswith(f"{one}."))
                    usual = by_hand.ROLES[kind]
                    answer = usual if chance.random() < 0.8 else chance.choice(["0", "1", "2"])
                else:
                    answer = "yes" if chance.random() < 0.85 else "no"
                if chance.random() < 0.03:
                    answer = "ambiguous"
                entries.append(
                    {
                        "event": item.token,
                        "kind": "pick",
                        "study": study_id,
                        "token": item.token,
                        "position": answer,
                    }
                )
                rows.append((item.query, person, item.question.name, kind, answer))
            here = standing(session, study_id, judge_id)
            assert set(store_outbox(session, {study_id: here}, entries).values()) <= {""}
            session.commit()
        if not items:
            return rows


@pytest.mark.long
def test_the_audit_of_the_notes_has_the_measures_of_an_independent_script(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    questions = [QUERY_OK, PASSAGE_OK, ROLE]
    study_id = make_asked_study(
        sqlite_store, tmp_path, [record(n) for n in range(RECORDS)], questions
    )
    rows: list[Row] = []
    for number, person in enumerate(PEOPLE):
        rows += answer_all(sqlite_store, study_id, person, random.Random(number))
    assert len(rows) == RECORDS * 2 * 6
    report = inf("analyze", "agreement", "--study", study_id, "--json").json
    audit = report["audit"]
    assert audit["records"] == RECORDS
    validity = audit["validity"]["role"]
    negatives = ("instruction_negative", "hard_negative")
    expected = [
        (audit["acceptability"]["query_ok"], partial(by_hand.acceptability, question="query_ok")),
        (
            audit["acceptability"]["passage_ok"],
            partial(by_hand.acceptability, question="passage_ok"),
        ),
        (validity["positives"], partial(by_hand.validity, question="role", kinds=["positive"])),
        (validity["negatives"], partial(by_hand.validity, question="role", kinds=negatives)),
        *(
            (validity["by_kind"][kind], partial(by_hand.validity, question="role", kinds=[kind]))
            for kind in by_hand.ROLES
        ),
        (validity["strict_record_validity"], partial(by_hand.strict, question="role")),
    ]
    for found, measure in expected:
        assert found["value"] == pytest.approx(measure(rows))
        low, high = by_hand.interval(rows, measure)
        assert found["interval"] == pytest.approx([low, high], abs=0.02)
        assert low < found["value"] < high
    assert validity["strict_record_validity"]["of"] == 2 * RECORDS
    for key in ("query_ok", "passage_ok"):
        answers: dict[str, dict[str, str]] = defaultdict(dict)
        for query, person, question, _, answer in rows:
            if question == key:
                answers[query][person] = answer
        pairs = [(each["ann"], each["ben"]) for each in answers.values()]
        found = report["questions"][key]
        assert found["cohen_kappa"]["value"] == pytest.approx(by_hand.kappa(pairs))
        same = sum(one == other for one, other in pairs) / len(pairs)
        assert found["agreement"]["value"] == pytest.approx(same)
        assert found["items"] == RECORDS
    assert report["questions"]["role"]["items"] == 4 * RECORDS
    shown = inf("analyze", "agreement", "--study", study_id, "--resamples", 200).out
    assert "role: records valid in every passage: " in shown


@pytest.mark.long
def test_the_audit_is_set_up_by_the_lines_of_the_docs(
    sqlite_store: Store,
    inf: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    section = DOCS.read_text(encoding="utf-8").partition("## The audit")[2]
    lines = re.findall("^inf (.+)$", section, re.MULTILINE)
    assert lines.pop() == "serve" and len(lines) < MAX_LINES
    file = write_records(tmp_path / "audit.jsonl", [record(n) for n in range(RECORDS)])
    links = []
    for line in lines:
        monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD))
        ran = inf(*(file if word == "audit.jsonl" else word for word in line.split()))
        assert ran.code == 0, ran.err
        links += re.findall(r"/invitation/\S+", ran.out)
    for person, link in zip(PEOPLE, links, strict=True):
        browser = TestClient(server, follow_redirects=False)
        joined = browser.post(link, data={"name": person, "password": PASSWORD})
        assert joined.headers["location"] == "/judge?study=1"
    with sqlite_store.read() as session:
        assert session.scalar(select(func.count(StudyItem.item_id))) == RECORDS * 6
        names = select(Judge.name).join(StudyJudge, StudyJudge.judge_id == Judge.id)
        assert set(session.scalars(names)) == set(PEOPLE)
    for number, person in enumerate(PEOPLE):
        answer_all(sqlite_store, 1, person, random.Random(number))
    audit = inf("analyze", "agreement", "--study", 1, "--json", "--resamples", 200).json["audit"]
    assert audit["records"] == RECORDS
    assert audit["validity"]["role"]["strict_record_validity"]["of"] == 2 * RECORDS


def test_an_audit_worked_by_hand() -> None:
    def about(record: int, judge: str, label: str, answer: str) -> AuditAnswer:
        expected = {"positive": "2", "instruction_negative": "1"}[kind_of(label)]
        return AuditAnswer(record, "role", "grade", label, expected, judge, answer)

    rows = [
        *(about(1, judge, "positive", "2") for judge in PEOPLE),
        *(about(1, judge, f"instruction_negative_{n}", "1") for judge in PEOPLE for n in (1, 2)),
        about(2, "ann", "positive", "2"),
        about(2, "ann", "instruction_negative_1", "2"),
        about(2, "ben", "positive", "ambiguous"),  # ben did not answer the negative
        AuditAnswer(2, "query_ok", "yes_no", "", None, "ann", "yes"),
        AuditAnswer(2, "query_ok", "yes_no", "", None, "ben", "ambiguous"),
    ]
    found = audit_report(rows, resamples=500)
    validity = found["validity"]["role"]
    assert found["acceptability"]["query_ok"]["value"] == 1 / 2
    assert validity["positives"]["value"] == 3 / 4
    assert (
        validity["negatives"]["value"]
        == validity["by_kind"]["instruction_negative"]["value"]
        == 4 / 5
    )
    assert (
        validity["strict_record_validity"]["value"],
        validity["strict_record_validity"]["of"],
    ) == (
        2 / 3,
        3,
    )
    assert validity["strict_record_validity"]["interval"] == [0.0, 1.0]  # of two records
    assert audit_report([])["validity"] == {}
