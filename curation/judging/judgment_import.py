"""Import of existing annotations: exports of Label Studio and Argilla become judgments of a study.

A task (a record) names its item in `item` (`item_id`), in its data or metadata; an answer is the
label of a candidate, "none", or the number of a candidate from 1 if the record has the order shown
as `order_shown`. The annotator becomes a person named after the tool: `argilla:USER`.

Note: without an order shown, the judgment keeps the canonical order and its detail records that the
order is unknown. Importing again adds nothing.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.files.rows import BadValue, require_storable
from db.errors import BadInput, BadRow, BadRows
from db.store.store import Store
from db.study.judgments import find_judgment, get_or_create_judge, record_judgment
from db.study.studies import get_study
from db.tables import Item, StudyItem
from db.values import AMBIGUOUS, NONE


@dataclass(frozen=True)
class Answer:
    """One person's answer to one task."""

    item: int
    judge: str
    choice: str
    order_shown: list[str]
    event_id: str
    decided_at: datetime | None


@dataclass
class JudgmentImport:
    """The result of an import of judgments."""

    study_id: int
    imported: int = 0
    unchanged: int = 0
    judges: set[str] = field(default_factory=set)
    skipped: list[BadRow] = field(default_factory=list)


def import_judgments(
    store: Store, path: Path, *, study_id: int, tool: str | None = None, skip_bad: bool = False
) -> JudgmentImport:
    """Import a Label Studio or Argilla export (JSON, or JSON lines) into a study.

    The tool is detected if not given. Raises BadRows, unless `skip_bad`, with the place of each
    task in the file; BadInput for a file that is neither; NotFound for the study.
    """
    tasks = _tasks(path)
    tool = tool or _recognise(path, tasks)
    report = JudgmentImport(study_id)
    with store.write() as session:
        get_study(session, study_id)
        items = _items(session, study_id)
        for number, task in enumerate(tasks, start=1):
            try:
                for answer in _answers(tool, task, items):
                    _record(session, report, answer)
            except BadValue as bad:
                report.skipped.append(BadRow(path.name, number, str(bad)))
        if report.skipped and not skip_bad:
            raise BadRows(
                report.skipped,
                "nothing was imported; correct the tasks, or skip them with --skip-bad",
            )
        session.commit()
    return report


def _tasks(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path.name} cannot be read as UTF-8 text: {error}") from error
    try:
        parsed = json.loads(text)
    except ValueError:
        try:
            parsed = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise BadInput(f"{path.name} is neither JSON nor JSON lines: {error}") from error
    tasks = parsed if isinstance(parsed, list) else parsed.get("records", [parsed])
    if not tasks:
        raise BadInput(f"{path.name} holds no tasks")
    return list(tasks)


def _recognise(path: Path, tasks: list[Any]) -> str:
    first = tasks[0] if isinstance(tasks[0], dict) else {}
    if "annotations" in first or "completions" in first:
        return "labelstudio"
    if "responses" in first or any(str(name).endswith(".responses") for name in first):
        return "argilla"
    raise BadInput(
        f"{path.name} is not an export of Label Studio (tasks with `annotations`) or Argilla "
        "(records with `responses`)"
    )


def _items(session: Session, study_id: int) -> dict[int, list[str]]:
    """The labels of each item of the study, in canonical order."""
    query = (
        select(Item.id, Item.candidates)
        .join(StudyItem, StudyItem.item_id == Item.id)
        .where(StudyItem.study_id == study_id)
    )
    return {row[0]: [entry["label"] for entry in row[1]] for row in session.execute(query)}


def _answers(tool: str, task: Any, items: dict[int, list[str]]) -> list[Answer]:
    if not isinstance(task, dict):
        raise BadValue("not an object {…}")
    require_storable(task, "the task")
    given = {**_part(task, "metadata"), **_part(task, "meta"), **_part(task, "data"), **task}
    item = given.get("item", given.get("item_id"))
    if not str(item).isdigit():
        raise BadValue("no `item`: the number of the item in the study")
    labels = items.get(int(str(item)))
    if labels is None:
        raise BadValue(f"item {item} is not in the study")
    order = given.get("order_shown") or []
    if isinstance(order, str):
        order = [label.strip() for label in order.split(",")]
    if order and sorted(order) != sorted(labels):
        raise BadValue(f"`order_shown` is not an order of the candidates of item {item}")
    read = _label_studio if tool == "labelstudio" else _argilla
    return [
        Answer(
            item=int(str(item)),
            judge=f"{tool}:{who}",
            choice=_choice(answer_text, labels, order),
            order_shown=order,
            event_id=f"{tool}:{key}:{who}:{item}",
            decided_at=when,
        )
        for key, who, answer_text, when in read(task)
    ]


def _label_studio(task: dict[str, Any]) -> Iterator[tuple[str, str, Any, datetime | None]]:
    for annotation in task.get("annotations") or task.get("completions") or []:
        if annotation.get("was_cancelled"):
            continue
        who = annotation.get("completed_by")
        if isinstance(who, dict):
            who = who.get("email") or who.get("id")
        answer_text = [
            choice
            for result in annotation.get("result", [])
            for choice in _part(result, "value").get("choices", [])
        ]
        if len(answer_text) != 1:
            raise BadValue(
                f"annotation {annotation.get('id')} has {len(answer_text)} choices, not one"
            )
        key = f"{task.get('id')}:{annotation.get('id')}"
        yield key, str(who), answer_text[0], _moment(annotation.get("created_at"))


def _argilla(record: dict[str, Any]) -> Iterator[tuple[str, str, Any, datetime | None]]:
    flat = {
        name.removesuffix(".responses"): [
            {"value": value, "user_id": user}
            for value, user in zip(
                answer_text or [], record.get(f"{name}.users") or [], strict=False
            )
        ]
        for name, answer_text in record.items()
        if name.endswith(".responses")
    }
    responses = record.get("responses") if isinstance(record.get("responses"), dict) else flat
    for question, answers in (responses or {}).items():
        for answer in answers or []:
            if answer.get("status") in ("discarded", "draft"):
                continue
            who = answer.get("user_id") or answer.get("user")
            yield f"{record.get('id')}:{question}", str(who), answer.get("value"), None


def _choice(answer_text: Any, labels: list[str], order: list[str]) -> str:
    text = str(answer_text).strip()
    if text in (*labels, NONE, AMBIGUOUS):
        return text
    if text.isdigit() and order and 1 <= int(text) <= len(order):
        return order[int(text) - 1]
    if text.isdigit() and not order:
        raise BadValue(f"the answer {text} is a position, but there is no `order_shown`")
    raise BadValue(f"the answer {text!r} is not a candidate: one of {', '.join(labels)} or {NONE}")


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise BadValue(f"`created_at` {value!r} is not a time") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _part(values: dict[str, Any], name: str) -> dict[str, Any]:
    part = values.get(name)
    return part if isinstance(part, dict) else {}


def _record(session: Session, report: JudgmentImport, answer: Answer) -> None:
    report.judges.add(answer.judge)
    if find_judgment(session, answer.event_id) is not None:
        report.unchanged += 1
        return
    judge = get_or_create_judge(session, answer.judge, kind="person")
    item = session.get_one(Item, answer.item)
    canonical = [entry["label"] for entry in item.candidates]
    record_judgment(
        session,
        judge_id=judge.id,
        item_id=answer.item,
        choice=answer.choice,
        order_shown=answer.order_shown or canonical,
        event_id=answer.event_id,
        study_id=report.study_id,
        decided_at=answer.decided_at,
        detail={"imported": True, "order_unknown": not answer.order_shown},
    )
    report.imported += 1
