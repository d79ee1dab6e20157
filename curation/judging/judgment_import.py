"""Import of existing annotations: exports of annotation tools become judgments of a study.

A task (a record) names its item in `item` (`item_id`), in its data or metadata; an answer is the
label of a candidate, "none", or the number of a candidate from 1 if the record has the order shown
as `order_shown`. The annotator becomes a person named after the tool: `argilla:USER`. Of several
questions in a file, one is the judgment: the one whose answers are candidates, or the one named.

Note: without an order shown, the judgment keeps the canonical order and its detail records that the
order is unknown. Importing again adds nothing. The formats are in `judgment_formats`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.files.opening import encoding_notice
from analysis.files.rows import BadValue, Row, format_of, read_rows, shown
from curation.judging.judgment_formats import FORMATS, Given, JudgmentFormat
from db.errors import BadInput, BadRow, BadRows
from db.events import record_event
from db.store.store import Store
from db.study.judgments import find_judgment, get_or_create_judge, record_judgment
from db.study.studies import get_study
from db.tables import Item, StudyItem
from db.values import AMBIGUOUS, NONE

REMEDY = "nothing was imported; correct the tasks, or skip them with `skip_bad=`"


@dataclass(frozen=True)
class Task:
    """A task with its place in the file, its item and the item's labels, and what was answered."""

    number: int
    item: int
    labels: list[str]
    order: list[str]
    given: list[Given]


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
    """The result of an import of judgments.

    `not_judged` counts what a tool keeps that is no judgment (drafts, skipped tasks), by reason.
    """

    study_id: int
    imported: int = 0
    unchanged: int = 0
    question: str = ""
    judges: set[str] = field(default_factory=set)
    skipped: list[BadRow] = field(default_factory=list)
    not_judged: dict[str, int] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def import_judgments(
    store: Store,
    path: Path,
    *,
    study_id: int,
    question: str | None = None,
    skip_bad: bool = False,
    by: str = "",
) -> JudgmentImport:
    """Import an export of a tool of `judgment_formats` (JSON, JSON lines, CSV) into a study.

    `question` names one of several questions. Raises BadRows, unless `skip_bad`, with the place of
    each task in the file; BadInput for a file of no known tool; NotFound for the study. All answers
    of a file are one event of the study, `by` who imports them: as of a model's call, not of each.
    """
    found, bad = _rows(path)
    kind = _recognise(path, found)
    report = JudgmentImport(study_id, skipped=bad)
    if notice := encoding_notice(path):
        report.notices.append(notice)
    not_judged: Counter[str] = Counter()
    with store.write() as session:
        get_study(session, study_id)
        tasks = list(_tasks(kind, path, found, _items(session, study_id), report, not_judged))
        report.question = _question(path, tasks, question)
        for task in tasks:
            try:
                # all of a task before any is stored: a bad answer refuses the whole task
                for answer in list(_answers(kind.tool, task, report.question)):
                    _record(session, report, answer)
            except BadValue as reason:
                report.skipped.append(BadRow(path.name, task.number, str(reason)))
        report.skipped.sort(key=lambda row: row.line)
        if report.skipped and not skip_bad:
            raise BadRows(report.skipped, REMEDY, code="rows_invalid")
        if report.imported:
            of = ("study", study_id)
            record_event(session, by, "judgment.stored", of, judgments=report.imported)
        session.commit()
    report.not_judged = dict(not_judged)
    return report


def _rows(path: Path) -> tuple[list[tuple[int, Row]], list[BadRow]]:
    """The tasks by their place in the file, and the rows that cannot be read."""
    found: list[tuple[int, Row]] = []
    bad: list[BadRow] = []
    for number, row in enumerate(read_rows(path), 1):
        if row.reason is None:
            found.append((number, row.values))
        else:
            bad.append(BadRow(path.name, number, _not_an_object(row.reason)))
    if bad and not found:
        is_json = format_of(path) in (".json", ".jsonl")
        what = "is neither JSON nor JSON lines of tasks" if is_json else "cannot be read"
        raise BadInput(
            f"{path.name} {what}: {bad[0].reason}",
            "correct it, or skip such tasks with `skip_bad=yes`",
            code="task_invalid",
        )
    if not found:
        raise BadInput(
            f"{path.name} holds no tasks", "export the annotations again", code="tasks_missing"
        )
    return found, bad


def _not_an_object(reason: str) -> str:
    return "not an object {…}" if "is not an object" in reason else reason


def _recognise(path: Path, tasks: list[tuple[int, Row]]) -> JudgmentFormat:
    """The format of the first task that is of any."""
    for _, task in tasks:
        for kind in FORMATS:
            if kind.recognises(task):
                return kind
    raise BadInput(
        f"{path.name} is not an export of {', '.join(kind.names for kind in FORMATS[:-1])} or "
        f"{FORMATS[-1].names}; its first row has {', '.join(list(tasks[0][1])[:12]) or 'nothing'}",
        "export the annotations again in one of these formats",
        code="export_format_unknown",
    )


def _items(session: Session, study_id: int) -> dict[int, list[str]]:
    """The labels of each item of the study, in canonical order."""
    query = (
        select(Item.id, Item.candidates)
        .join(StudyItem, StudyItem.item_id == Item.id)
        .where(StudyItem.study_id == study_id)
    )
    return {row[0]: [entry["label"] for entry in row[1]] for row in session.execute(query)}


def _tasks(
    kind: JudgmentFormat,
    path: Path,
    rows: list[tuple[int, Row]],
    items: dict[int, list[str]],
    report: JudgmentImport,
    not_judged: Counter[str],
) -> Iterator[Task]:
    stem = path.name.partition(".")[0]
    for number, row in rows:
        try:
            item, order = _item_of(row, items)
            found = list(kind.read(row, stem))
        except BadValue as reason:
            report.skipped.append(BadRow(path.name, number, str(reason)))
            continue
        not_judged.update(each.reason for each in found if not isinstance(each, Given))
        given = [each for each in found if isinstance(each, Given)]
        yield Task(number, item, items[item], order, given)


def _item_of(row: Row, items: dict[int, list[str]]) -> tuple[int, list[str]]:
    """The task's item, and the order its candidates were shown in. Raises BadValue."""
    given = {**_part(row, "metadata"), **_part(row, "meta"), **_part(row, "data"), **row}
    named = str(given.get("item", given.get("item_id")))
    if not (named.isascii() and named.isdecimal() and len(named) < 19):
        raise BadValue("no `item`: the number of the item in the study")
    item = int(named)
    if item not in items:
        raise BadValue(f"item {item} is not in the study")
    order = given.get("order_shown") or []
    if isinstance(order, str):
        order = [label.strip() for label in order.split(",")]
    if order and (not isinstance(order, list) or sorted(map(str, order)) != sorted(items[item])):
        raise BadValue(f"`order_shown` is not an order of the candidates of item {item}")
    return item, order


def _question(path: Path, tasks: list[Task], named: str | None) -> str:
    """The question that is the judgment. Raises BadInput where several may be."""
    questions = list(dict.fromkeys(each.question for task in tasks for each in task.given))
    if named is not None:
        if named not in questions:
            raise BadInput(
                f"{path.name} has no question {named!r}",
                f"one of {', '.join(questions) or 'none'}",
                code="question_unknown",
            )
        return named
    for by_position in (False, True):
        able = [
            question
            for question in questions
            if any(
                _is_choice(each.value, task, by_position=by_position)
                for task in tasks
                for each in task.given
                if each.question == question
            )
        ]
        if len(able) > 1:
            raise BadInput(
                f"{path.name} has several questions whose answers are candidates "
                f"({', '.join(able)})",
                "name the one to import with `question=`",
                code="question_ambiguous",
            )
        if able:
            return able[0]
    if len(questions) > 1:
        raise BadInput(
            f"{path.name}: no answer to {', '.join(questions)} is a candidate of its item",
            "name the question to import with `question=` to see why",
            code="answers_not_candidates",
        )
    return questions[0] if questions else ""


def _is_choice(value: Any, task: Task, *, by_position: bool) -> bool:
    try:
        choice = _choice(value, task.labels, task.order if by_position else [])
    except BadValue:
        return False
    return by_position or str(choice) in (*task.labels, NONE, AMBIGUOUS)


def _answers(tool: str, task: Task, question: str) -> Iterator[Answer]:
    for each in [one for one in task.given if one.question == question]:
        yield Answer(
            item=task.item,
            judge=f"{tool}:{each.who}",
            choice=_choice(each.value, task.labels, task.order),
            order_shown=task.order,
            event_id=f"{tool}:{each.key}:{each.who}:{task.item}",
            decided_at=each.when,
        )


def _choice(value: Any, labels: list[str], order: list[str]) -> str:
    if isinstance(value, list | tuple):
        if len(value) != 1:
            raise BadValue(f"{len(value)} choices, not one: {shown(list(value))}")
        value = value[0]
    text = str(value).strip()
    if text in (*labels, NONE, AMBIGUOUS):
        return text
    is_position = text.isascii() and text.isdecimal() and len(text) < 10
    if is_position and order and 1 <= int(text) <= len(order):
        return order[int(text) - 1]
    if is_position and not order:
        raise BadValue(f"the answer {text} is a position, but there is no `order_shown`")
    raise BadValue(
        f"the answer {shown(text)} is not a candidate: one of {', '.join(labels)} or {NONE}"
    )


def _part(values: Row, name: str) -> Row:
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
