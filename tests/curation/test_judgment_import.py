"""Annotations made in other tools become judgments of a study."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import count_rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from records_world import make_run
from sqlalchemy import select
from study_world import sampled_study

from curation.questions.judgment_import import import_judgments
from db.errors import BadInput, BadRows, InfError, NotFound
from db.store.store import Store
from db.study.judgments import judgment_frame
from db.study.studies import summarise_study
from db.tables import Event, Judgment, StudyItem


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
    first = import_judgments(store, file, study_id=study_id, by="ada")
    assert (first.imported, first.unchanged, len(first.judges)) == (3, 0, 2)
    again = import_judgments(store, file, study_id=study_id, by="ada")
    assert (again.imported, again.unchanged) == (0, 3)
    with store.read() as session:  # their places are taken: nobody is given them again
        assert summarise_study(session, study_id).done == 3
        taken = session.scalars(
            select(StudyItem.item_id).where(StudyItem.study_id == study_id, StudyItem.taken == 1)
        )
        assert set(taken) == set(items[:3])
    assert sorted(people(store, study_id)) == [
        (items[0], "labelstudio:7", "positive"),
        (items[1], "labelstudio:a@example.org", "query_negative"),
        (items[2], "labelstudio:7", "none"),
    ]
    with store.read() as session:
        (event,) = session.scalars(select(Event).where(Event.name == "judgment.stored"))
        assert (event.actor, event.noun, event.noun_id) == ("ada", "study", str(study_id))
        assert event.data == {"judgments": 3}  # the second import stored none
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
    before, events = count_rows(store, "judgment"), count_rows(store, "event")
    with pytest.raises(BadRows) as caught:
        import_judgments(store, file, study_id=study_id)
    told = {row.line: row.reason for row in caught.value.rows}
    assert told[2] == "item 9999 is not in the study"
    assert told[3].startswith("the answer 'the second' is not a candidate")
    assert told[4] == "the answer 2 is a position, but there is no `order_shown`"
    assert "is not an order" in told[5] and told[6].startswith("no `item`")
    assert told[7] == "not an object {…}"
    assert count_rows(store, "judgment") == before and count_rows(store, "event") == events
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


def of_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    return path


def test_a_line_separator_within_a_text_ends_no_task(
    store: Store, study: tuple[int, list[int]], tmp_path: Path
) -> None:
    study_id, items = study
    tasks = [
        label_studio(item, n, "positive", text="a\u2028b\x85c") for n, item in enumerate(items)
    ]
    file = of_lines(tmp_path / "export.jsonl", tasks)
    assert "\u2028" in file.read_text(encoding="utf-8")
    assert import_judgments(store, file, study_id=study_id).imported == 3


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('"5"', "neither JSON nor JSON lines of tasks.*not an object"),
        ("5", "not an object"),
        ('[{"annotations": ["x"], "item": ITEM}]', "annotation 1 is 'x', not an object"),
        ('[{"annotations": "x", "item": ITEM}]', "`annotations` is 'x', not a list"),
        (
            '[{"annotations": [{"id": 4, "completed_by": null, "result": []}], "item": ITEM}]',
            "annotation 4 names no annotator: `completed_by` is None",
        ),
        (
            '[{"annotations": [{"completed_by": 1, "result": ["x"]}], "item": ITEM}]',
            "a result of annotation None is 'x'",
        ),
        (
            '[{"annotations": [{"completed_by": 1, "result": [{"value": {"choices": 3}}]}], '
            '"item": ITEM}]',
            "`choices` is 3, not a list",
        ),
        ('[{"responses": {"choice": ["x"]}, "item": ITEM}]', "a response to 'choice' is 'x'"),
        ('[{"responses": ["x"], "item": ITEM}]', "a response is 'x'"),
        ('[{"a.responses": {"x": 1}, "item": ITEM}]', "`a.responses` is .*, not a list"),
        ('[{"responses": {}, "item": "²"}]', "no `item`: the number"),
        ('[{"responses": {}, "item": ITEM, "order_shown": 7}]', "is not an order of"),
    ],
)
def test_what_cannot_be_read_gets_a_sentence(
    sqlite_store: Store, tmp_path: Path, content: str, sentence: str
) -> None:
    study_id, items = small_study(sqlite_store)
    file = tmp_path / "export.json"
    file.write_text(content.replace("ITEM", str(items[0])))
    with pytest.raises(BadInput, match=sentence):
        import_judgments(sqlite_store, file, study_id=study_id)


def small_study(store: Store) -> tuple[int, list[int]]:
    run_id = make_run(store)
    with store.write() as session:
        found = sampled_study(session, run_id=run_id, items=3, overlap=2)
        items = list(session.scalars(select(StudyItem.item_id).order_by(StudyItem.item_id)))
        session.commit()
        return found.id, items


def argilla_drafts(item: int) -> list[dict[str, Any]]:
    """A record with a draft, a discarded and a submitted response, as each version exports it."""
    people_ = (("u1", "submitted"), ("u2", "draft"), ("u3", "discarded"))
    return [
        {
            "id": "r",
            "metadata": {"item": item},
            "responses": {
                "choice": [
                    {"value": "positive", "user_id": who, "status": state} for who, state in people_
                ]
            },
        },
        {
            "id": "r",
            "item": item,
            "choice.responses": ["positive"] * 3,
            "choice.responses.users": [who for who, _ in people_],
            "choice.responses.status": [state for _, state in people_],
        },
        {
            "id": "r",
            "metadata": {"item": item},
            "responses": [
                {"user_id": who, "status": state, "values": {"choice": {"value": "positive"}}}
                for who, state in people_
            ],
        },
    ]


@pytest.mark.parametrize("form", range(3), ids=["nested", "flat", "version 1"])
def test_drafts_and_discarded_responses_are_no_judgments(
    sqlite_store: Store, tmp_path: Path, form: int
) -> None:
    study_id, items = small_study(sqlite_store)
    file = write(tmp_path / "records.json", [argilla_drafts(items[0])[form]])
    done = import_judgments(sqlite_store, file, study_id=study_id)
    assert (done.imported, done.not_judged) == (1, {"draft": 1, "discarded": 1})
    assert people(sqlite_store, study_id) == [(items[0], "argilla:u1", "positive")]


def test_a_second_question_does_not_refuse_the_first(sqlite_store: Store, tmp_path: Path) -> None:
    study_id, items = small_study(sqlite_store)
    responses = {
        "comment": [{"value": "hard to read", "user_id": "u1"}],
        "choice": [{"value": "none", "user_id": "u1"}],
        "confidence": [{"value": 2, "user_id": "u1"}],
    }
    order = ["query_negative", "positive", "instruction_negative"]
    argilla = {"id": "r", "item": items[0], "order_shown": order, "responses": responses}
    done = import_judgments(sqlite_store, write(tmp_path / "a.json", [argilla]), study_id=study_id)
    assert (done.question, done.imported) == ("choice", 1)
    task = label_studio(items[1], 1, "positive")
    task["annotations"][0]["result"].append(
        {"from_name": "sure", "value": {"choices": ["very sure"]}}
    )
    done = import_judgments(sqlite_store, write(tmp_path / "b.json", [task]), study_id=study_id)
    assert (done.question, done.imported) == ("c", 1)
    assert [row[2] for row in sorted(people(sqlite_store, study_id))] == ["none", "positive"]


def test_of_two_questions_about_candidates_one_is_named(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    study_id, items = small_study(sqlite_store)
    answers = {
        name: [{"value": value, "user_id": "u"}]
        for name, value in (("best", "positive"), ("worst", "none"))
    }
    file = write(tmp_path / "a.json", [{"id": 1, "item": items[0], "responses": answers}])
    refused = inf("import", "--judgments", file, "--study", study_id, "--json")
    assert refused.code == 1 and "(best, worst)" in refused.json["error"]
    done = inf("import", "--judgments", file, "--study", study_id, "--question", "worst", "--json")
    assert (done.code, done.json["imported"], done.json["question"]) == (0, 1, "worst"), done.out
    assert [row[2] for row in people(sqlite_store, study_id)] == ["none"]


def tools(items: list[int]) -> dict[str, tuple[str, list[Any], list[tuple[int, str, str]]]]:
    """Small exports of each tool: the file's name, its rows, and the judgments to expect."""
    first, second, third = items
    return {
        "Label Studio JSON_MIN": (
            "min.json",
            [
                {"item": first, "id": 1, "choice": "positive", "annotator": 7, "annotation_id": 3,
                 "text": "a", "created_at": "2026-03-01T10:00:00Z", "lead_time": 4.2},
                {"item": second, "id": 2, "choice": {"choices": ["none"]}, "annotation_id": 4,
                 "annotator": {"email": "a@example.org"}, "sure": "no"},
            ],
            [(first, "labelstudio:7", "positive"), (second, "labelstudio:a@example.org", "none")],
        ),
        "doccano": (
            "ada.jsonl",
            [
                {"id": 1, "text": "a", "label": ["positive"], "item": first, "Comments": []},
                {"id": 2, "text": "b", "labels": ["none"], "meta": {"item": second},
                 "username": "bo"},
                {"id": 3, "text": "c", "label": [], "item": third},
            ],
            [(first, "doccano:ada", "positive"), (second, "doccano:bo", "none")],
        ),
        "Prodigy": (
            "choices.jsonl",
            [
                {"text": "a", "options": [{"id": "positive", "text": "A"}], "accept": ["positive"],
                 "answer": "accept", "meta": {"item": first}, "_annotator_id": "inf-ada",
                 "_input_hash": 1, "_task_hash": 11, "_timestamp": 1767225600},
                {"text": "b", "label": "none", "answer": "accept", "item": second,
                 "_session_id": "inf-bo", "_input_hash": 2, "_task_hash": 22},
                {"text": "c", "accept": ["none"], "answer": "reject", "item": third},
                {"text": "c", "accept": [], "answer": "ignore", "item": third},
            ],
            [(first, "prodigy:inf-ada", "positive"), (second, "prodigy:inf-bo", "none")],
        ),
    }  # fmt: skip


@pytest.mark.parametrize("tool", ["Label Studio JSON_MIN", "doccano", "Prodigy"])
def test_the_exports_of_other_tools_become_judgments_once(
    store: Store, study: tuple[int, list[int]], tmp_path: Path, tool: str
) -> None:
    study_id, items = study
    name, rows, expected = tools(items)[tool]
    for file in (
        write(tmp_path / name, rows) if name.endswith(".json") else of_lines(tmp_path / name, rows),
    ):
        assert import_judgments(store, file, study_id=study_id).imported == len(expected)
        again = import_judgments(store, file, study_id=study_id)
        assert (again.imported, again.unchanged) == (0, len(expected))
    assert sorted(people(store, study_id)) == sorted(expected)


def test_label_studios_csv_is_its_json_min_in_columns(sqlite_store: Store, tmp_path: Path) -> None:
    study_id, items = small_study(sqlite_store)
    file = tmp_path / "export.csv"
    file.write_text(
        "annotation_id,annotator,choice,created_at,id,item,lead_time,text\n"
        f'3,ada,positive,2026-03-01T10:00:00Z,1,{items[0]},4.2,"a, b"\n'
    )
    assert import_judgments(sqlite_store, file, study_id=study_id).imported == 1
    assert people(sqlite_store, study_id) == [(items[0], "labelstudio:ada", "positive")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
KEYS = (
    *("annotations", "completions", "responses", "choice.responses", "choice.responses.users"),
    *("annotator", "annotation_id", "choice", "label", "labels", "answer", "accept", "created_at"),
    *("completed_by", "result", "value", "values", "choices", "user_id", "status", "order_shown"),
    *("id", "_task_hash", "_timestamp", "meta", "data", "metadata", "was_cancelled", "text"),
)
NODES = st.recursive(
    JSON | st.sampled_from(("positive", "none", "1")),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.long
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(st.sampled_from(KEYS), NODES, max_size=5) | JSON, max_size=3),
    st.binary(max_size=80),
    st.booleans(),
)
def test_any_export_gives_judgments_or_one_of_our_errors(
    sqlite_store: Store, tmp_path: Path, tasks: list[Any], raw: bytes, is_json: bool
) -> None:
    study_id, item = FUZZED.get(str(tmp_path)) or (0, 0)
    if not study_id:
        study_id, (item, *_) = small_study(sqlite_store)
        FUZZED[str(tmp_path)] = study_id, item
    file = tmp_path / ("any.json" if is_json else "any.jsonl")
    for each in tasks:
        if isinstance(each, dict):
            each["item"] = item
    if raw[:1] > b"\x80":
        file.write_bytes(raw)
    elif is_json:
        file.write_text(json.dumps(tasks), encoding="utf-8")
    else:
        of_lines(file, [json.loads(json.dumps(each)) for each in tasks])
    try:
        done = import_judgments(sqlite_store, file, study_id=study_id, skip_bad=bool(raw))
        assert done.imported >= 0
    except InfError as error:
        assert str(error)


FUZZED: dict[str, tuple[int, int]] = {}
