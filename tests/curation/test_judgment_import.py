"""Annotations made in Label Studio or Argilla become judgments of a study."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import count_rows
from records_world import make_run
from sqlalchemy import select
from study_world import sampled_study

from curation.judging.judgment_import import import_judgments
from db.errors import BadInput, BadRows, NotFound
from db.store.store import Store
from db.study.judgments import judgment_frame
from db.tables import Judgment, StudyItem


@pytest.fixture
def study(store: Store) -> tuple[int, list[int]]:
    """A study of three items."""
    run_id = make_run(store)
    with store.write() as session:
        found = sampled_study(session, run_id=run_id, items=3, overlap=2)
        items = list(session.scalars(select(StudyItem.item_id).order_by(StudyItem.item_id)))
        session.commit()
        return found.id, items


def write(path: Path, told: Any) -> Path:
    path.write_text(json.dumps(told))
    return path


def label_studio(item: int, number: int, choice: str, who: Any = 7, **data: Any) -> dict[str, Any]:
    result = {"from_name": "c", "type": "choices", "value": {"choices": [choice]}}
    annotation = {"id": number * 10, "completed_by": who, "result": [result]}
    annotation["created_at"] = "2026-03-01T10:00:00.5Z"
    return {"id": number, "data": {"item": item, **data}, "annotations": [annotation]}


def people(store: Store, study_id: int) -> list[tuple[int, str, str]]:
    with store.read() as session:
        rows = judgment_frame(session, study_id)
        return [(row.item_id, row.judge, row.label) for row in rows if row.kind == "person"]


def test_label_studio_tasks_become_judgments_once(
    store: Store, study: tuple[int, list[int]], tmp_path: Path
) -> None:
    study_id, items = study
    order = ["query_negative", "positive", "instruction_negative"]
    tasks = [
        label_studio(items[0], 1, "positive"),
        label_studio(items[1], 2, "1", who={"id": 3, "email": "a@example.org"}, order_shown=order),
        label_studio(items[2], 3, "none"),
    ]
    tasks[2]["annotations"].append({"id": 99, "was_cancelled": True, "result": []})
    file = write(tmp_path / "export.json", tasks)
    first = import_judgments(store, file, study_id=study_id)
    assert (first.imported, first.unchanged, len(first.judges)) == (3, 0, 2)
    again = import_judgments(store, file, study_id=study_id)
    assert (again.imported, again.unchanged) == (0, 3)
    assert sorted(people(store, study_id)) == [
        (items[0], "labelstudio:7", "positive"),
        (items[1], "labelstudio:a@example.org", "query_negative"),
        (items[2], "labelstudio:7", "none"),
    ]
    with store.read() as session:
        told = session.scalars(select(Judgment).where(Judgment.item_id == items[1])).all()
        (mine,) = [row for row in told if row.study_id == study_id]
        assert mine.order_shown == order and mine.detail["order_unknown"] is False
        assert mine.decided_at.isoformat() == "2026-03-01T10:00:00.500000+00:00"


def test_argilla_records_become_judgments_nested_or_flat(
    store: Store, study: tuple[int, list[int]], tmp_path: Path
) -> None:
    study_id, items = study
    answers = [
        {"value": "positive", "user_id": "u1"},
        {"value": "query_negative", "user_id": "u2", "status": "discarded"},
    ]
    nested = {"id": "r1", "metadata": {"item": items[0]}, "responses": {"choice": answers}}
    flat = {
        "id": "r2",
        "item": str(items[1]),
        "choice.responses": ["none", "positive"],
        "choice.responses.users": ["u1", "u2"],
    }
    for number, record in enumerate((nested, flat)):
        file = write(tmp_path / f"{number}.json", [record])
        assert import_judgments(store, file, study_id=study_id).imported == number + 1
    assert sorted(people(store, study_id)) == [
        (items[0], "argilla:u1", "positive"),
        (items[1], "argilla:u1", "none"),
        (items[1], "argilla:u2", "positive"),
    ]


def test_a_task_that_cannot_be_is_told_with_its_place(
    store: Store, study: tuple[int, list[int]], tmp_path: Path
) -> None:
    study_id, items = study
    tasks = [
        label_studio(items[0], 1, "positive"),
        label_studio(9999, 2, "positive"),
        label_studio(items[1], 3, "the second"),
        label_studio(items[1], 4, "2"),
        label_studio(items[1], 5, "positive", order_shown=["positive"]),
        {"id": 6, "data": {}, "annotations": []},
        "nonsense",
    ]
    file = write(tmp_path / "export.json", tasks)
    before = count_rows(store, "judgment")
    with pytest.raises(BadRows) as caught:
        import_judgments(store, file, study_id=study_id)
    told = {row.line: row.reason for row in caught.value.rows}
    assert told[2] == "item 9999 is not in the study"
    assert told[3].startswith("the answer 'the second' is not a candidate")
    assert told[4] == "the answer 2 is a position, but there is no `order_shown`"
    assert "is not an order" in told[5] and told[6].startswith("no `item`")
    assert told[7] == "not an object {…}"
    assert count_rows(store, "judgment") == before
    assert import_judgments(store, file, study_id=study_id, skip_bad=True).imported == 1


def test_other_files_are_refused(sqlite_store: Store, tmp_path: Path, inf: Any) -> None:
    run_id = make_run(sqlite_store)
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=2, overlap=1).id
        item = session.scalars(select(StudyItem.item_id)).first()
        session.commit()
    for told, words in (([{"a": 1}], "is not an export of"), ([], "holds no tasks")):
        with pytest.raises(BadInput, match=words):
            import_judgments(sqlite_store, write(tmp_path / "x.json", told), study_id=study_id)
    (tmp_path / "x.json").write_text("{]")
    with pytest.raises(BadInput, match="neither JSON nor JSON lines"):
        import_judgments(sqlite_store, tmp_path / "x.json", study_id=study_id)
    assert item is not None
    file = write(tmp_path / "export.json", [label_studio(item, 1, "positive")])
    with pytest.raises(NotFound, match="no study 99"):
        import_judgments(sqlite_store, file, study_id=99)
    done = inf("import", "--judgments", file, "--study", study_id, "--json")
    assert done.code == 0, done.err
    assert (done.json["imported"], done.json["judges"]) == (1, ["labelstudio:7"])
    assert inf("import", "--judgments", file).code == 2
