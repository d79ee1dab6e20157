"""The one writer of CSV: no formula reaches a spreadsheet, and a round trip is exact."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import pytest
from conftest import Ran
from hypothesis import given
from sqlalchemy import select
from study_world import make_world, sampled_study

from analysis.files.csv_writer import csv_text, with_formulas, without_formulas
from analysis.files.rows import read_rows
from db.assignment.members import add_member
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.tables import Item, StudyItem

SIGNS = "=+-@\t\r\n＝＋－＠"
FORMULAS = ('=HYPERLINK("http://x","y")', "+1", "-1", "@SUM(A1)", "\t=1", "＝1", "'=1", "''@x")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_in_a_cell_a_list_or_a_head_is_text(text: str) -> None:
    written = csv_text([{"name": text, text: [text, "x"], "number": -1.5, "none": None}])
    for cell in (cell for row in csv.reader(io.StringIO(written, newline="")) for cell in row):
        assert cell[:1] not in SIGNS or cell in ("-1.5", "")
    assert "-1.5" in written


@given(st.text(alphabet=st.sampled_from("'=+-@ab\t\r\n＝")))
def test_the_guard_is_taken_off_exactly(text: str) -> None:
    assert with_formulas(without_formulas(text)) == text
    assert without_formulas(text)[:1] not in SIGNS or not text


def test_texts_of_a_release_in_csv_are_read_as_they_were(tmp_path: Path) -> None:
    rows = [{"query": text, "number": "1"} for text in (*FORMULAS, "plain", "'quoted'")]
    folder = tmp_path / "release" / "data"
    folder.mkdir(parents=True)
    file = folder / "rows.csv"
    file.write_text(csv_text(rows), encoding="utf-8", newline="")
    (tmp_path / "release" / "release.json").write_text(json.dumps({"formula_guard": True}))
    assert [row.values for row in read_rows(file)] == rows
    (tmp_path / "release" / "release.json").unlink()  # a file of others: as it stands there
    assert [row.values["query"] for row in read_rows(file)] == [
        without_formulas(row["query"]) for row in rows
    ]


def test_a_person_s_name_is_no_formula_in_the_work_report(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    name = '=HYPERLINK("http://x","y")'
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.write() as session:
        study = sampled_study(session, run_id=run_id, items=2, overlap=1, name=name)
        judge = get_or_create_judge(session, name, kind="person").id
        add_member(session, study.id, judge)
        item = session.scalars(select(Item).join(StudyItem).limit(1)).one()
        record_judgment(
            session,
            judge_id=judge,
            item_id=item.id,
            choice="none",
            order_shown=[entry["label"] for entry in item.candidates],
            event_id="1",
            study_id=study.id,
        )
        session.commit()
    written = inf("study", "work").out
    rows = list(csv.DictReader(io.StringIO(written)))
    assert rows and {(row["study"], row["person"]) for row in rows} == {(f"'{name}", f"'{name}")}
