"""Tasks for other tools, answered as each exports them, come back equal to answers on the card."""

import csv
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asked_study import PER_RECORD, make_asked_study, record
from conftest import Ran
from records_world import make_run
from sqlalchemy import select
from study_world import sampled_study

from curation.questions.tasks import study_tasks, text_digest
from db.corpus.texts import passage_texts
from db.question import about_of
from db.store.store import Store
from db.study.judgments import get_or_create_judge, judgment_frame, record_judgment
from db.tables import Item, Judgment, StudyItem
from db.values import AMBIGUOUS, NONE, SEVERAL

Inf = Callable[..., Ran]
Rows = list[dict[str, Any]]
RECORDS = 12
PEOPLE = ("ada", "ben")


def answer_of(who: str, item: Item, question: str) -> str:
    """What a person answers to an item, in its stored form: they disagree now and then."""
    number = sum(map(ord, f"{item.query} {item.scenario}")) + (who == "ben") * (item.id % 3)
    if question == "query_ok":
        return ("yes", "no", AMBIGUOUS)[number % 3]
    if question == "role":
        return ("0", "1", "2", AMBIGUOUS)[number % 4]
    if question == "fluency":
        return ("0", "0.3", "0.7", "1", AMBIGUOUS)[number % 5]
    labels = [entry["label"] for entry in item.candidates]
    return (*labels, NONE, SEVERAL, AMBIGUOUS)[number % (len(labels) + 3)]


def items_of(store: Store, study_id: int) -> dict[int, tuple[Item, str]]:
    """The items of a study with the names of their questions."""
    with store.read() as session:
        query = select(Item).join(StudyItem, StudyItem.item_id == Item.id)
        found = list(session.scalars(query.where(StudyItem.study_id == study_id)))
        session.expunge_all()
    return {item.id: (item, item.scenario.partition(":")[0]) for item in found}


def shown_answer(who: str, item: Item, question: str, order: list[str]) -> str:
    """The same answer as a tool has it: a pick's candidate by its place in the order shown."""
    answer = answer_of(who, item, question)
    labels = {label_text(item, entry["label"]): entry["label"] for entry in item.candidates}
    by_digest = [labels[digest] for digest in order]
    return str(by_digest.index(answer) + 1) if answer in by_digest else answer


def label_text(item: Item, label: str) -> str:
    """The digest of a candidate's text, by what `asked_study.record` wrote for its place."""
    place = [entry["label"] for entry in item.candidates].index(label)
    row = next(row for row in map(record, range(RECORDS)) if row["query"] == item.query)
    return text_digest(row["passages"][place]["text"])


def controls(names: dict[str, Any]) -> dict[str, int]:
    return {c: int(i) for c, _, i in (one.rpartition("=") for one in names["items"].split())}


def label_studio(
    files: dict[str, str], items: dict[int, tuple[Item, str]]
) -> Iterator[tuple[dict[str, Any], str, dict[str, str]]]:
    """(task, person, answers by control), with what the config's aliases allow."""
    config = ET.fromstring(files["config.xml"])
    offered = {
        one.attrib["name"]: [choice.attrib["alias"] for choice in one]
        for one in config.iter("Choices")
    }
    for number, task in enumerate(json.loads(files["tasks.json"]), 1):
        order = task["data"]["order_shown"].split(",")
        for who in PEOPLE:
            answers = {
                control: shown_answer(who, *items[item], order)
                for control, item in controls(task["data"]).items()
            }
            for control, answer in answers.items():
                assert answer in offered[control]
            yield {"id": number, **task}, who, answers


def json_of(files: dict[str, str], items: dict[int, tuple[Item, str]], folder: Path) -> Path:
    """Label Studio's JSON, with a cancelled annotation and a draft in each task."""
    tasks: dict[int, dict[str, Any]] = {}
    for number, (task, who, answers) in enumerate(label_studio(files, items), 1):
        result = [
            {"id": f"r{number}{control}", "from_name": control, "to_name": "query",
             "type": "choices", "origin": "manual", "value": {"choices": [answer]}}
            for control, answer in answers.items()
        ]  # fmt: skip
        annotation = {"id": number, "completed_by": {"id": 1, "email": who}, "result": result}
        annotation |= {"was_cancelled": False, "created_at": "2026-03-01T10:00:00.5Z"}
        skipped = annotation | {"id": 1000 + number, "was_cancelled": True, "completed_by": 9}
        entry = tasks.setdefault(
            task["id"], task | {"annotations": [], "drafts": [{"user": "ada", "result": result}]}
        )
        entry["annotations"] += [annotation, skipped]
    file = folder / "export.json"
    file.write_text(json.dumps(list(tasks.values())))
    return file


def min_rows(files: dict[str, str], items: dict[int, tuple[Item, str]]) -> Rows:
    return [
        {**task["data"], "id": task["id"], **answers, "annotator": who, "annotation_id": number,
         "created_at": "2026-03-01T10:00:00.5Z", "updated_at": "2026-03-01T10:00:00.5Z",
         "lead_time": 4.2}
        for number, (task, who, answers) in enumerate(label_studio(files, items), 1)
    ]  # fmt: skip


def json_min_of(files: dict[str, str], items: dict[int, tuple[Item, str]], folder: Path) -> Path:
    file = folder / "min.json"
    file.write_text(json.dumps(min_rows(files, items)))
    return file


def csv_of(files: dict[str, str], items: dict[int, tuple[Item, str]], folder: Path) -> Path:
    file, rows = folder / "min.csv", min_rows(files, items)
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


def argilla_of(files: dict[str, str], items: dict[int, tuple[Item, str]], folder: Path) -> Path:
    """Records with each person's responses; a third person's are a draft and one is discarded."""
    settings = json.loads(files["settings.json"])
    offered = {
        one["name"]: [option["value"] for option in one["settings"]["options"]]
        for one in settings["questions"]
    }
    assert not any(one["visible_for_annotators"] for one in settings["metadata"])
    records = json.loads(files["records.json"])
    for entry in records:
        order = entry["metadata"]["order_shown"].split(",")
        responses: dict[str, Any] = {}
        for control, item in controls(entry["metadata"]).items():
            found = [
                {"value": shown_answer(who, *items[item], order), "user_id": who,
                 "status": "submitted"}
                for who in PEOPLE
            ]  # fmt: skip
            assert all(one["value"] in offered[control] for one in found)
            found.append({"value": offered[control][0], "user_id": "cy", "status": "draft"})
            found.append({"value": offered[control][0], "user_id": "di", "status": "discarded"})
            responses[control] = found
        entry |= {"responses": responses, "suggestions": {}, "status": "completed", "vectors": {}}
    file = folder / "records.json"
    file.write_text(json.dumps(records))
    return file


def argilla_flat_of(
    files: dict[str, str], items: dict[int, tuple[Item, str]], folder: Path
) -> Path:
    """The same records as a dataset's columns, as `to_datasets` of Argilla exports them."""
    rows = []
    for entry in json.loads(argilla_of(files, items, folder).read_text()):
        row = {"id": entry["id"], **entry["fields"], **entry["metadata"]}
        for control, found in entry["responses"].items():
            row[f"{control}.responses"] = [one["value"] for one in found]
            row[f"{control}.responses.users"] = [one["user_id"] for one in found]
            row[f"{control}.responses.status"] = [one["status"] for one in found]
        rows.append(row)
    return lines_of(folder / "flat.jsonl", rows)


def one_by_one(
    files: dict[str, str], items: dict[int, tuple[Item, str]]
) -> Iterator[tuple[dict[str, Any], str, str]]:
    for line in files["tasks.jsonl"].splitlines():
        task = json.loads(line)
        for who in PEOPLE:
            yield task, who, shown_answer(who, *items[task["item"]], task["order_shown"].split(","))


def prodigy_of(files: dict[str, str], items: dict[int, tuple[Item, str]], folder: Path) -> Path:
    rows = []
    for number, (task, who, answer) in enumerate(one_by_one(files, items)):
        assert answer in [option["id"] for option in task["options"]]
        hashes = {"_input_hash": number // 2, "_task_hash": -(number // 2)}
        row = task | hashes | {"_session_id": f"inf-{who}", "_annotator_id": f"inf-{who}"}
        rows.append(row | {"accept": [answer], "answer": "accept", "_timestamp": 1767225600})
        rows.append(row | {"_annotator_id": "inf-cy", "accept": [answer], "answer": "reject"})
        rows.append(row | {"_annotator_id": "inf-cy", "accept": [], "answer": "ignore"})
    return lines_of(folder / "export.jsonl", rows)


def doccano_of(files: dict[str, str], items: dict[int, tuple[Item, str]], folder: Path) -> Path:
    rows = []
    for number, (task, who, answer) in enumerate(one_by_one(files, items)):
        rows.append({**task, "id": number, "label": [answer], "username": who, "Comments": []})
        rows.append({**task, "id": number, "label": [], "username": "cy"})
    return lines_of(folder / "all.jsonl", rows)


def lines_of(file: Path, rows: Rows) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


TOOLS: dict[str, tuple[str, Callable[..., Path], set[str]]] = {
    "Label Studio": ("labelstudio", json_of, {"skipped", "draft"}),
    "Label Studio JSON_MIN": ("labelstudio", json_min_of, set()),
    "Label Studio CSV": ("labelstudio", csv_of, set()),
    "Argilla": ("argilla", argilla_of, {"draft", "discarded"}),
    "Argilla, flat": ("argilla", argilla_flat_of, {"draft", "discarded"}),
    "Prodigy": ("prodigy", prodigy_of, {"rejected", "ignored"}),
    "doccano": ("doccano", doccano_of, {"not annotated"}),
}


def on_the_card(store: Store, study_id: int) -> None:
    """Both people's answers, stored as the card stores them."""
    items = items_of(store, study_id)
    with store.write() as session:
        for who in PEOPLE:
            judge = get_or_create_judge(session, who, kind="person")
            for item, question in items.values():
                record_judgment(
                    session,
                    judge_id=judge.id,
                    item_id=item.id,
                    choice=answer_of(who, item, question),
                    order_shown=[entry["label"] for entry in item.candidates],
                    event_id=f"{who}:{item.id}",
                    study_id=study_id,
                )
        session.commit()


@pytest.fixture
def study(sqlite_store: Store, tmp_path: Path) -> int:
    return make_asked_study(sqlite_store, tmp_path, [record(n) for n in range(RECORDS)])


@pytest.mark.long
@pytest.mark.parametrize("name", TOOLS)
def test_answers_in_a_tool_are_what_the_card_would_have_stored(
    sqlite_store: Store, inf: Inf, tmp_path: Path, study: int, name: str
) -> None:
    tool, answer, not_judged = TOOLS[name]
    made = inf("studies", "tasks", study, "--for", tool, "--out", tmp_path / "tasks", "--json").json
    files = {one: (tmp_path / "tasks" / one).read_text("utf-8") for one in made["files"]}
    assert not any("positive" in one or "negative" in one for one in hidden_of(files))
    items = items_of(sqlite_store, study)
    export = answer(files, items, tmp_path)
    done = inf("import", "--study", study, "--judgments", export, "--json").json
    assert done["imported"] == len(PEOPLE) * RECORDS * PER_RECORD
    counts = {"query_ok": 1, "role": 4, "best": 1, "fluency": 1}
    assert done["by_question"] == {key: 2 * RECORDS * n for key, n in counts.items()}
    assert set(done["not_judged"]) == not_judged and not done["bad_rows"]
    again = inf("import", "--study", study, "--judgments", export, "--json").json
    assert (again["imported"], again["unchanged"]) == (0, done["imported"])
    with sqlite_store.read() as session:
        for row in judgment_frame(session, study):
            who = row.judge.rpartition(":")[2].removeprefix("inf-")
            assert row.label == answer_of(who, *items[row.item_id])
        shown = session.scalars(select(Judgment.order_shown)).all()
    assert len({tuple(order) for order in shown}) > 1  # shuffled, and kept
    command = ("analyze", "agreement", "--study", study, "--resamples", 200, "--json")
    in_the_tool = named(inf(*command).json["questions"])
    assert in_the_tool["query_ok"]["cohen_kappa"]["value"] is not None
    with sqlite_store.write() as session:
        for judgment in session.scalars(select(Judgment)):
            session.delete(judgment)
        session.commit()
    on_the_card(sqlite_store, study)
    assert named(inf(*command).json["questions"]) == in_the_tool


def named(report: Any) -> Any:
    """A report with people by their own names, whichever tool they used."""
    return json.loads(
        re.sub(r"(labelstudio|argilla|doccano|prodigy):(inf-)?", "", json.dumps(report))
    )


def hidden_of(files: dict[str, str]) -> Iterator[str]:
    """Everything of the tasks but the texts, which in these records name their kind."""
    for name, text in files.items():
        rows = text.splitlines() if name.endswith("l") and "json" in name else [text]
        for row in rows:
            if name.endswith("xml"):
                yield row
                continue
            found = json.loads(row)
            for one in found if isinstance(found, list) else [found]:
                inner = one.get("data") or one.get("metadata") or one
                if isinstance(inner, dict):
                    yield str([inner.get(key) for key in ("item", "items", "order_shown")])


def test_an_answer_changed_in_the_tool_replaces_the_one_imported_before(
    sqlite_store: Store, inf: Inf, tmp_path: Path, study: int
) -> None:
    with sqlite_store.read() as session:
        files = study_tasks(session, study, "labelstudio")
    [task, *_] = json.loads(files["tasks.json"])
    item = controls(task["data"])["query_ok"]
    seen = []
    for number, answer in enumerate(("Yes", "no", "no", "maybe")):
        value = {"from_name": "query_ok", "value": {"choices": [answer]}}
        annotation = {"id": 4, "completed_by": 1, "result": [value]}
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps([{"id": 1, **task, "annotations": [annotation]}]))
        done = inf("import", "--study", study, "--judgments", file, "--json")
        with sqlite_store.read() as session:
            rows = [row.label for row in judgment_frame(session, study) if row.item_id == item]
        seen.append((done.code, rows))
    assert seen == [(0, ["yes"]), (0, ["no"]), (0, ["no"]), (1, ["no"])]
    assert (
        "none to the question query_ok: yes, no or ambiguous" in done.json["bad_rows"][0]["reason"]
        or "none to the question query_ok" in done.out
    )


def test_records_with_fewer_passages_have_fewer_controls_and_one_config(
    sqlite_store: Store, tmp_path: Path
) -> None:
    short = record(1)
    short["passages"] = short["passages"][:2]
    study = make_asked_study(sqlite_store, tmp_path, [record(0), short])
    with sqlite_store.read() as session:
        files = {tool: study_tasks(session, study, tool) for tool in ("labelstudio", "argilla")}
    tasks = [one["data"] for one in json.loads(files["labelstudio"]["tasks.json"])]
    roles = [[c for c in controls(task) if c.startswith("role")] for task in tasks]
    assert sorted(map(len, roles)) == [2, 4]
    assert all({"passage_3", "passage_4"} <= task.keys() for task in tasks)  # the config reads them
    settings = json.loads(files["argilla"]["settings.json"])
    required = {one["name"]: one["required"] for one in settings["questions"]}
    assert required["role-2"] and not required["role-3"]
    assert about_of("role:positive") == "positive"


def test_a_file_is_not_written_over(inf: Inf, tmp_path: Path, study: int) -> None:
    command = ("studies", "tasks", study, "--for", "prodigy", "--out", tmp_path, "--json")
    assert inf(*command).code == 0
    again = inf(*command)
    assert (again.code, again.json["code"]) == (1, "file_exists")


def test_one_question_of_several_is_imported_where_it_is_named(
    sqlite_store: Store, inf: Inf, tmp_path: Path, study: int
) -> None:
    with sqlite_store.read() as session:
        files = study_tasks(session, study, "prodigy")
    export = prodigy_of(files, items_of(sqlite_store, study), tmp_path)
    command = ("import", "--study", study, "--judgments", export, "--question")
    assert inf(*command, "fluency", "--json").json["by_question"] == {"fluency": 2 * RECORDS}
    refused = inf(*command, "colour", "--json")
    assert (refused.code, refused.json["code"]) == (1, "question_unknown")


def test_a_study_of_picks_goes_out_and_comes_back(
    sqlite_store: Store, inf: Inf, tmp_path: Path
) -> None:
    run_id = make_run(sqlite_store)
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=3, overlap=2).id
        session.commit()
    with sqlite_store.read() as session:
        files = study_tasks(session, study_id, "labelstudio")
        candidates = dict(session.execute(select(Item.id, Item.candidates)).all())
    rows = []
    for number, task in enumerate(json.loads(files["tasks.json"])):
        answers = {"passage": str(number + 1), "annotator": "ada", "annotation_id": number}
        rows.append({**task["data"], **answers, "id": number})
    (tmp_path / "min.json").write_text(json.dumps(rows))
    done = inf("import", "--study", study_id, "--judgments", tmp_path / "min.json", "--json").json
    assert (done["imported"], done["by_question"]) == (3, {"passage": 3})
    with sqlite_store.read() as session:
        for number, row in enumerate(rows):
            query = select(Judgment).where(
                Judgment.item_id == row["item"], Judgment.study_id == study_id
            )
            stored = session.scalars(query).one()
            assert stored.order_shown.index(stored.choice) == number
            texts = passage_texts(session, [one["passage_id"] for one in candidates[row["item"]]])
            passages = {one["label"]: texts[one["passage_id"]] for one in candidates[row["item"]]}
            assert passages[stored.choice] == row[f"passage_{number + 1}"]
