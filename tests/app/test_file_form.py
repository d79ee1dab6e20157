"""The form of a study from a file: its table of questions, and the preview of the card."""

import json
from pathlib import Path

import pytest
from app_pages import open_page
from asked_study import PER_RECORD, QUESTIONS, record, write_records

from app.access.identity import SessionUser, owner
from app.operations.judging import studies
from app.studies.file_form import as_questions, as_row
from curation.judging.request import StudyFilePlan
from curation.questions.questions_file import read_questions
from curation.questions.templates import TEMPLATES, template_text
from db.errors import BadInput, BadRows, Refused
from db.people.rights import Rights
from db.store.store import Store


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_the_same_through_the_table(name: str) -> None:
    rows = [as_row(one) for one in TEMPLATES[name]["questions"]]
    through = read_questions(as_questions(str(TEMPLATES[name]["name"]), rows), "x")
    assert through == read_questions(template_text(name), "x")


def test_cells_that_are_left_empty_are_no_keys() -> None:
    rows = [{"key": "ok", "type": "yes_no", "about": None, "text": "Is it?", "labels": ""}]
    assert json.loads(as_questions("n", rows)) == {
        "name": "n",
        "questions": [{"key": "ok", "type": "yes_no", "text": "Is it?"}],
    }


def test_the_preview_is_blind_and_creates_nothing(sqlite_store: Store, tmp_path: Path) -> None:
    questions = json.dumps({"questions": QUESTIONS})
    file = write_records(tmp_path / "items.jsonl", [record(1), record(2)])
    cora = SessionUser("cora", rights=Rights(everywhere=frozenset({"curate"})))
    items = studies.preview(cora, questions, (file.name, file.read_bytes()))
    assert len(items) == PER_RECORD and items[0].query == "what is tea 1"
    assert [one.query for one in items[1:]] == [""] * 6  # the texts of a card are sent once
    assert [one.question and one.question.name for one in items][:2] == ["query_ok", "role"]
    assert [one.about for one in items[1:5]] == [0, 1, 2, 3]
    assert sorted(items[0].candidates) == sorted(p["text"] for p in record(1)["passages"])
    said = json.dumps([one.as_json() | {"candidates": []} for one in items])
    assert "positive" not in said.replace("role:positive", "")
    rest = b"{broken\n" * 1000  # read when the study is made, not at every drawing
    first = file.read_bytes().partition(b"\n")[0] + b"\n"
    assert studies.preview(cora, questions, (file.name, first + rest)) == items
    assert studies.preview(cora, questions)[0].candidates  # an example without a file
    assert studies.list_all(owner("cora")).total == 0
    with pytest.raises(BadInput, match="question 1"):
        studies.preview(cora, json.dumps({"questions": [{"key": "X"}]}))
    with pytest.raises(BadRows):
        studies.preview(cora, questions, ("items.jsonl", b'{"id": "a"}\n'))
    with pytest.raises(Refused, match="lacks a right"):
        studies.preview(SessionUser("eve", rights=Rights(everywhere=frozenset({"judge"}))), "")


def test_an_upload_needs_no_folder_of_the_server(sqlite_store: Store, tmp_path: Path) -> None:
    file = write_records(tmp_path / "items.jsonl", [record(1)])
    wanted = StudyFilePlan(
        items_file=str(file), questions=json.dumps({"questions": QUESTIONS}), overlap=2
    )
    cora = SessionUser("cora", rights=Rights(everywhere=frozenset({"curate"})))
    with pytest.raises(Refused):
        studies.create_from_file(cora, wanted)
    made = studies.create_from_file(cora, wanted, upload=("../x.jsonl", file.read_bytes()))
    assert (made.items, made.answers) == (1, PER_RECORD)
    assert studies.show(cora, made.id).items == PER_RECORD


def test_the_page_of_an_empty_store_makes_a_study_of_a_file(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page("studies")
    assert not page.exception and page.button("studies.create_of_file").disabled
    page.selectbox("studies.template").select("audit").run()
    assert not page.exception
