"""Import of existing annotations: exports of annotation tools become judgments of a study.

A task (a record) names its item in `item` (`item_id`), in its data or metadata. Where it names
several in `items`, by control (`curation.questions.tasks` writes such tasks), each control's answer
is that of its item. Else one question of the file is the judgment: the one whose answers are those
of the item, or the one named. An answer is one of the item's question; of a pick the label of a
candidate, or its number from 1 if the record has the order shown as `order_shown`: labels, or
digests of the passages' texts. The annotator becomes a person named after the tool: `argilla:USER`.

Note: without an order shown, the judgment keeps the canonical order and its detail records that the
order is unknown. Importing again adds nothing; an answer that was changed in the tool replaces the
one imported before. The formats are in `judgment_formats`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.files.opening import encoding_notice
from analysis.files.rows import BadValue, Row, format_of, read_rows, shown
from curation.questions.judgment_formats import FORMATS, TREC, Given, JudgmentFormat
from curation.questions.qrels import is_trec, read_trec, with_items
from curation.questions.tasks import text_digest
from db.assignment.places import lock_study, take_place
from db.corpus.texts import passage_texts
from db.errors import BadInput, BadRow, BadRows
from db.events import record_event
from db.question import NO, YES, Question, score
from db.run.new_items import questions_of
from db.store.store import Store
from db.study.judgments import find_judgment, get_or_create_judge, record_judgment
from db.tables import Item, StudyItem
from db.values import AMBIGUOUS, NONE, SEVERAL

OTHERS = (NONE, SEVERAL, AMBIGUOUS)  # of a pick, besides its candidates
BATCH = 500
REMEDY = "nothing was imported; correct the tasks, or skip them with `skip_bad=`"


@dataclass(frozen=True)
class Known:
    """An item of the study: its candidates' labels in canonical order, the digests of their texts,
    and its question."""

    labels: list[str]
    digests: list[str]
    question: Question

    def order(self, given: list[Any]) -> list[str]:
        """The labels in an order given as labels or as digests. Raises ValueError for no order."""
        given = [str(one) for one in given]
        if sorted(given) == sorted(self.labels):
            return given
        left = list(zip(self.digests, self.labels, strict=True))
        found = []
        for one in given:
            digests = [digest for digest, _ in left]
            found.append(left.pop(digests.index(one))[1])
        if left:
            raise ValueError("passages are missing")
        return found


@dataclass(frozen=True)
class Task:
    """A task with its place in the file, its items, the order shown, and what was answered.

    `items` by control; "" is the item of a task that names one alone.
    """

    number: int
    items: Mapping[str, int]
    order: list[str]
    given: list[Given]

    @property
    def is_card(self) -> bool:
        """Whether its items are named by control."""
        return "" not in self.items

    def item_of(self, control: str) -> int | None:
        """The item that a control answers; None for a comment, or a column of the task's texts."""
        if not self.is_card or (not control and len(self.items) == 1):  # a tool with one question
            return next(iter(self.items.values()))
        return self.items.get(control)


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

    `not_judged` counts what a tool keeps that is no judgment (drafts, skipped tasks), by reason;
    `by_question` what was imported, by the name of the study's question.
    """

    study_id: int
    imported: int = 0
    unchanged: int = 0
    question: str = ""
    by_question: dict[str, int] = field(default_factory=dict)
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
        lock_study(session, study_id)
        if kind is TREC:
            found, unknown = with_items(session, study_id, found, question, path.name)
            report.skipped += unknown
            question = None
        known = _items(session, study_id)
        tasks = list(_tasks(kind, path, found, known, report, not_judged))
        report.question = _question(path, tasks, known, question)
        for task in tasks:
            try:
                # all of a task before any is stored: a bad answer refuses the whole task
                for answer in list(_answers(kind.tool, task, known, report.question)):
                    _record(session, report, known[answer.item], answer)
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
    if is_trec(path):
        found += read_trec(path)
    for number, row in enumerate(() if found else read_rows(path), 1):
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


def _items(session: Session, study_id: int) -> dict[int, Known]:
    """The items of the study."""
    query = (
        select(Item)
        .join(StudyItem, StudyItem.item_id == Item.id)
        .where(StudyItem.study_id == study_id)
    )
    items = list(session.scalars(query))
    questions = questions_of(session, items)
    digests: dict[int, str] = {}
    found = {}
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        ids = {entry["passage_id"] for item in batch for entry in item.candidates} - digests.keys()
        texts = passage_texts(session, ids)
        digests |= {passage_id: text_digest(text) for passage_id, text in texts.items()}
        for item in batch:
            found[item.id] = Known(
                [str(entry["label"]) for entry in item.candidates],
                [digests[entry["passage_id"]] for entry in item.candidates],
                questions[item.question_id],
            )
    return found


def _tasks(
    kind: JudgmentFormat,
    path: Path,
    rows: list[tuple[int, Row]],
    known: Mapping[int, Known],
    report: JudgmentImport,
    not_judged: Counter[str],
) -> Iterator[Task]:
    stem = path.name.partition(".")[0]
    for number, row in rows:
        try:
            items, order = _items_of(row, known)
            found = list(kind.read(row, stem))
        except BadValue as reason:
            report.skipped.append(BadRow(path.name, number, str(reason)))
            continue
        not_judged.update(each.reason for each in found if not isinstance(each, Given))
        given = [each for each in found if isinstance(each, Given)]
        yield Task(number, items, order, given)


def _items_of(row: Row, known: Mapping[int, Known]) -> tuple[dict[str, int], list[str]]:
    """The task's items by control, and the order their candidates were shown in. BadValue."""
    given = {**_part(row, "metadata"), **_part(row, "meta"), **_part(row, "data"), **row}
    named = given.get("items")
    pairs = [one.rpartition("=") for one in named.split()] if isinstance(named, str) else []
    items = {control: _item(item, known) for control, _, item in pairs}
    if not items or "" in items:
        items = {"": _item(given.get("item", given.get("item_id")), known)}
    order = given.get("order_shown") or []
    if isinstance(order, str):
        order = [label.strip() for label in order.split(",")]
    first = next(iter(items.values()))
    try:
        return items, known[first].order(order) if order else []
    except (ValueError, TypeError) as error:
        raise BadValue(
            f"`order_shown` is not an order of the candidates of item {first}"
        ) from error


def _item(given: Any, known: Mapping[int, Known]) -> int:
    named = str(given)
    if not (named.isascii() and named.isdecimal() and len(named) < 19):
        raise BadValue("no `item`: the number of the item in the study")
    if int(named) not in known:
        raise BadValue(f"item {named} is not in the study")
    return int(named)


def _question(path: Path, tasks: list[Task], known: Mapping[int, Known], named: str | None) -> str:
    """The question that is the judgment, "" for those of cards. Raises BadInput where several may
    be."""
    singles = [task for task in tasks if not task.is_card]
    questions = list(dict.fromkeys(each.question for task in singles for each in task.given))
    of_cards = {
        name
        for task in tasks
        if task.is_card
        for control, item in task.items.items()
        for name in (control, known[item].question.name)
    }
    if named is not None:
        if named not in (*questions, *of_cards):
            raise BadInput(
                f"{path.name} has no question {named!r}",
                f"one of {', '.join((*questions, *sorted(of_cards))) or 'none'}",
                code="question_unknown",
            )
        return named
    for by_position in (False, True):
        able = [
            question
            for question in questions
            if any(
                _is_choice(each.value, task, known, by_position=by_position)
                for task in singles
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


def _is_choice(value: Any, task: Task, known: Mapping[int, Known], *, by_position: bool) -> bool:
    item = known[task.items[""]]
    try:
        choice = _choice(value, item, task.order if by_position else [])
    except BadValue:
        return False
    return by_position or item.question.kind != "pick" or str(choice) in (*item.labels, *OTHERS)


def _answers(tool: str, task: Task, known: Mapping[int, Known], question: str) -> Iterator[Answer]:
    for each in task.given:
        item = task.item_of(each.question)
        if item is None:
            continue
        names = ("", known[item].question.name) if task.is_card else ()
        if question not in (each.question, *names):
            continue
        yield Answer(
            item=item,
            judge=f"{tool}:{each.who}",
            choice=_choice(each.value, known[item], task.order),
            order_shown=task.order,
            event_id=f"{tool}:{each.key}:{each.who}:{item}",
            decided_at=each.when,
        )


def _choice(value: Any, item: Known, order: list[str]) -> str:
    """The answer to an item's question, as it is stored. Raises BadValue."""
    if isinstance(value, list | tuple):
        if len(value) != 1:
            raise BadValue(f"{len(value)} choices, not one: {shown(list(value))}")
        value = value[0]
    text = str(value).strip()
    if item.question.kind == "pick":
        return _picked(text, item.labels, order)
    if isinstance(value, bool):
        text = YES if value else NO
    meanings = {meaning.casefold(): label for label, meaning in item.question.labels.items()}
    folded = text.casefold()
    candidates = (text, folded, text.removesuffix(".0"), meanings.get(folded), score(text))
    for one in candidates:
        if one is not None:
            try:
                item.question.check(one)
            except BadInput:
                continue
            return one
    answers = ", ".join(item.question.answers) or "a number from 0 to 1"
    raise BadValue(
        f"the answer {shown(text)} is none to the question {item.question.name}: {answers} or "
        f"{AMBIGUOUS}"
    )


def _picked(text: str, labels: list[str], order: list[str]) -> str:
    if text in (*labels, *OTHERS):
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


def _record(session: Session, report: JudgmentImport, item: Known, answer: Answer) -> None:
    report.judges.add(answer.judge)
    event_id = answer.event_id
    stored = find_judgment(session, event_id)
    is_new = stored is None
    if stored is not None and stored.choice != answer.choice:  # changed in the tool since
        event_id = f"{event_id}:{answer.choice}"
        stored = find_judgment(session, event_id)
    if stored is not None:
        report.unchanged += 1
        return
    judge = get_or_create_judge(session, answer.judge, kind="person")
    record_judgment(
        session,
        judge_id=judge.id,
        item_id=answer.item,
        choice=answer.choice,
        order_shown=answer.order_shown or item.labels,
        event_id=event_id,
        study_id=report.study_id,
        decided_at=answer.decided_at,
        detail={"imported": True, "order_unknown": not answer.order_shown},
    )
    if is_new:  # nobody is given an item whose answers are all there
        take_place(session, report.study_id, answer.item)
    report.imported += 1
    name = item.question.name
    report.by_question[name] = report.by_question.get(name, 0) + 1
