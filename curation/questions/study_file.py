"""A study from a file: items with their texts and questions about them, with nothing else there.

A row has `id`, `query`, `instruction` (may be empty) and `passages`: texts, or objects with `text`
and, if wanted, `id` and `kind` (positive, instruction_negative, …: what the passage was made to be;
nobody who judges sees it). `part` is `gold` (hidden among the others) or `training`
(qualification), for which every question needs an expected answer; `expected` gives one by
question, of a pick the kind or number of the passage; `explanation` is shown in the qualification.

What is made of it: a dataset of the file's texts, with rights as any other; a run without models,
of which each row is a group; and of each row an item for each question and text it is about. Items
of a row are one card (docs/decisions/0015). All rows are taken or, with one bad one, none.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from analysis.files.rows import BadValue, read_rows, shown
from curation.importing.groups import run_of_files
from curation.importing.rows import MAX_TEXT_BYTES
from curation.questions.questions_file import QuestionSet, StudyQuestion
from db.corpus.datasets import add_pairs, add_passages, find_dataset, text_sha256
from db.errors import BadInput, BadRow, BadRows
from db.events import record_event
from db.rows import Row
from db.run.new_items import insert_items, store_questions
from db.run.runs import keep_count
from db.shape import INF_IR, TAKEN_ROLES
from db.study.examples import example_texts
from db.study.studies import open_study
from db.tables import Dataset, Group, Pair, Passage, Run, Study, StudyItem, utc_now

PARTS = ("main", "gold", "training")
BATCH = 500
KIND = re.compile(r"[a-z][a-z_]*")
REMEDY = "Nothing was made. Correct the rows and create the study again."


@dataclass(frozen=True)
class ShownPassage:
    """A passage of a row: the label it has in its items, and the id it has in the file."""

    label: str
    kind: str
    external_id: str
    text: str


@dataclass(frozen=True)
class Record:
    """A row of the file: what one card shows, and what is known to be right."""

    id: str
    query: str
    instruction: str
    passages: tuple[ShownPassage, ...]
    part: str = "main"
    expected: Mapping[str, str] = field(default_factory=dict)
    explanation: str = ""

    def items(self, entry: StudyQuestion) -> Iterator[tuple[str, str | None]]:
        """Of each item of a question about this row: its place, and its expected answer."""
        if entry.about == "passage":
            for one in self.passages:
                expected = entry.expected_of(one.kind or one.label)
                yield entry.question.place(one.label), expected
        else:
            about = "" if entry.about == "item" else entry.about
            expected = self.expected.get(entry.key, entry.expected_of(""))
            if entry.question.kind == "pick" and entry.key not in self.expected:
                labels = [one.label for one in self.passages]
                expected = expected if expected in labels else None  # not in every row
            yield entry.question.place(about), expected


class StudyOfFile(Row):
    """A study of a file's items: its questions, and how many answers each judge gives."""

    id: int
    study_id: int
    name: str
    dataset: str
    run_id: int
    items: int
    answers: int
    overlap: int
    questions: tuple[str, ...]
    qualification: int
    gold: int


def study_from_file(
    session: Session,
    path: Path,
    questions: QuestionSet,
    *,
    overlap: int,
    name: str = "",
    guidelines: str | None = None,
    seed: int = 0,
    created_by: str = "",
) -> StudyOfFile:
    """Create the study.

    Raises BadRows with line and remedy of each bad row, BadInput where there is no row. Does not
    commit.
    """
    records = read_records(path, questions.entries, known=example_texts(session))
    name = name or questions.name or path.stem
    dataset = _new_dataset(session, name, path)
    run_id = run_of_files(session, dataset.id, [path], path.name, created_by, shape=INF_IR)
    run = session.get_one(Run, run_id)
    run.status, run.finished_at = "done", utc_now()
    stored = store_questions(session, [each.question for each in questions.entries])
    cards: list[list[int]] = []
    for start in range(0, len(records), BATCH):
        batch = records[start : start + BATCH]
        cards += _add(session, run, batch, questions.entries, stored)
    keep_count(session, run.id)
    study = open_study(
        session,
        run,
        cards,
        overlap=overlap,
        seed=seed,
        name=name,
        guidelines=questions.markdown if guidelines is None else guidelines,
        settings={
            "sampling": "file",
            "file": path.name,
            "questions": [each.key for each in questions.entries],
            "per_card": max(map(len, cards)),
        },
        created_by=created_by,
    )
    _set_parts(session, study, records, cards, questions.entries)
    record_event(session, created_by, "study.create", study.id)
    parts = Counter(record.part for record in records)
    return StudyOfFile(
        id=study.id,
        study_id=study.id,
        name=name,
        dataset=dataset.name,
        run_id=run_id,
        items=len(records),
        answers=sum(len(card) for card in cards),
        overlap=overlap,
        questions=tuple(each.key for each in questions.entries),
        qualification=parts["training"],
        gold=parts["gold"],
    )


def read_records(
    path: Path,
    entries: Sequence[StudyQuestion],
    limit: int | None = None,
    *,
    known: Mapping[tuple[str, str], Collection[str]] = MappingProxyType({}),
) -> list[Record]:
    """The rows of the file, or its first ones.

    `known`: the texts of examples in guidelines, as `example_texts` has them. Raises BadRows,
    BadInput for a file without a row.
    """
    found: list[Record] = []
    bad: list[BadRow] = []
    ids: set[str] = set()
    texts: dict[str, str] = {}
    for row in islice(read_rows(path), limit):
        try:
            if row.reason is not None:
                raise BadValue(row.reason)
            record = _record(row.values, f"{path.stem}-{row.line}", entries)
            if record.id in ids:
                raise BadValue(f"`id` {record.id!r} is that of an earlier row: give it another")
            for one in record.passages:
                if texts.setdefault(one.external_id, one.text) != one.text:
                    raise BadValue(
                        f"the passage `id` {one.external_id!r} had another text in an earlier row: "
                        "give it another id"
                    )
            answered = known.get((record.instruction, record.query), ())
            if record.part != "training" and any(
                text_sha256(one.text) in answered for one in record.passages
            ):
                raise BadValue(
                    "its texts are an example in guidelines, whose readers know the answer: leave "
                    "it out, or make it `training`"
                )
            ids.add(record.id)
            found.append(record)
        except BadValue as reason:
            bad.append(BadRow(path.name, row.line, str(reason)))
    if bad:
        raise BadRows(bad, REMEDY, code="rows_invalid")
    if not found:
        raise BadInput(
            f"{path.name} has no rows", "write one item a line as JSON", code="rows_missing"
        )
    return found


def _record(values: Mapping[str, Any], default_id: str, entries: Sequence[StudyQuestion]) -> Record:
    record_id = str(values.get("id") if values.get("id") not in (None, "") else default_id)
    query, instruction = _text(values, "query"), _text(values, "instruction", required=False)
    passages = _passages(values.get("passages"), record_id)
    part = values.get("part") or "main"
    if part not in PARTS:
        raise BadValue(f"`part` {shown(part)}: one of {', '.join(PARTS)}")
    record = Record(
        id=record_id,
        query=query,
        instruction=instruction,
        passages=passages,
        part=part,
        expected=_expected(values.get("expected"), passages, entries),
        explanation=_text(values, "explanation", required=False),
    )
    labels = [one.label for one in passages]
    for each in entries:
        for place, expected in record.items(each):
            if expected is None and part != "main":
                raise BadValue(
                    f"`part` is {part!r}, and nothing is expected for {place!r}: add it to "
                    "`expected` of the row or of the question"
                )
            if expected is not None and each.question.kind == "pick":
                try:
                    each.question.check_expected(expected, f"`expected`, {each.key}", labels)
                except BadInput as error:
                    raise BadValue(str(error)) from error
    return record


def _text(values: Mapping[str, Any], name: str, *, required: bool = True) -> str:
    value = values.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value.strip()):
        raise BadValue(f"`{name}` {shown(value)}: give a text")
    if len(value.encode()) > MAX_TEXT_BYTES:
        raise BadValue(f"`{name}` has more than {MAX_TEXT_BYTES:,} bytes: shorten it")
    return value


def _passages(given: Any, record_id: str) -> tuple[ShownPassage, ...]:
    if not isinstance(given, list | tuple) or not given:
        raise BadValue(f"`passages` {shown(given)}: give a list of one text or more")
    rows = [one if isinstance(one, Mapping) else {"text": one} for one in given]
    kinds = [one.get("kind") or "" for one in rows]
    for kind in kinds:
        if kind and (not isinstance(kind, str) or not KIND.fullmatch(kind) or kind in TAKEN_ROLES):
            raise BadValue(f"`kind` {shown(kind)}: small letters and _, as instruction_negative")
    named: Counter[str] = Counter()
    found = []
    for number, (one, kind) in enumerate(zip(rows, kinds, strict=True), 1):
        named[kind] += 1
        is_alone = kind and kinds.count(kind) == 1
        label = kind if is_alone else f"{kind or 'passage'}_{named[kind]}"
        external_id = one.get("id")
        found.append(
            ShownPassage(
                label,
                kind,
                f"{record_id}-{number}" if external_id in (None, "") else str(external_id),
                _text(one, "text"),
            )
        )
    ids = [one.external_id for one in found]
    if len(set(ids)) < len(ids):
        raise BadValue("two passages have one `id`: give each its own")
    return tuple(found)


def _expected(
    given: Any, passages: Sequence[ShownPassage], entries: Sequence[StudyQuestion]
) -> dict[str, str]:
    """What a row expects, by question; of a pick a label, or the number of a passage."""
    if given is None:
        return {}
    of = {each.key: each for each in entries if each.about != "passage"}
    if not isinstance(given, Mapping) or any(key not in of for key in given):
        raise BadValue(
            f"`expected` {shown(given)}: by key of a question that is not about each passage: "
            f"{', '.join(of) or 'there is none'}"
        )
    found = {}
    for key, value in given.items():
        text = str(value)
        if of[key].question.kind == "pick":
            is_number = text.isascii() and text.isdecimal()
            if is_number and 1 <= int(text) <= len(passages):
                text = passages[int(text) - 1].label
        else:
            try:
                of[key].question.check_expected(text, f"`expected`, {key}")
            except BadInput as error:
                raise BadValue(str(error)) from error
        found[key] = text
    return found


def _new_dataset(session: Session, name: str, path: Path) -> Dataset:
    """A dataset for the file's texts, named as the study is, or with a number behind it."""
    number, free = 1, name
    while find_dataset(session, free) is not None:
        number += 1
        free = f"{name} {number}"
    dataset = Dataset(name=free, source=path.name)
    session.add(dataset)
    session.flush()
    return dataset


def _add(
    session: Session,
    run: Run,
    records: Sequence[Record],
    entries: Sequence[StudyQuestion],
    stored: Mapping[str, int],
) -> list[list[int]]:
    """Add the texts, groups and items of these rows; the items of each, in the questions' order."""
    texts = {one.external_id: one.text for record in records for one in record.passages}
    add_passages(
        session,
        [
            {
                "dataset_id": run.dataset_id,
                "external_id": external_id,
                "title": "",
                "text": text,
                "sha256": text_sha256(text),
                "origin": "pool",
                "meta": {},
            }
            for external_id, text in texts.items()
        ],
    )
    passages = dict(
        session.execute(
            select(Passage.external_id, Passage.id).where(
                Passage.dataset_id == run.dataset_id, Passage.external_id.in_(texts)
            )
        ).all()
    )
    add_pairs(
        session,
        [
            {
                "dataset_id": run.dataset_id,
                "external_id": record.id,
                "query": record.query,
                "passage_id": passages[record.passages[0].external_id],
                "meta": {},
            }
            for record in records
        ],
    )
    ids = [record.id for record in records]
    mine = (Pair.dataset_id == run.dataset_id, Pair.external_id.in_(ids))
    pairs = dict(session.execute(select(Pair.external_id, Pair.id).where(*mine)).all())
    session.execute(insert(Group), [{"run_id": run.id, "pair_id": pairs[one]} for one in ids])
    groups = dict(
        session.execute(
            select(Pair.external_id, Group.id)
            .join(Group, Group.pair_id == Pair.id)
            .where(Group.run_id == run.id, *mine)
        ).all()
    )
    rows: list[dict[str, Any]] = []
    sizes: list[int] = []
    for record in records:
        before = len(rows)
        candidates = [
            {"passage_id": passages[one.external_id], "label": one.label} for one in record.passages
        ]
        rows += [
            {
                "group_id": groups[record.id],
                "scenario": place,
                "revision": 1,
                "instruction": record.instruction,
                "query": record.query,
                "candidates": candidates,
                "expected": expected,
                "question_id": stored[each.question.key],
                "created_at": utc_now(),
            }
            for each in entries
            for place, expected in record.items(each)
        ]
        sizes.append(len(rows) - before)
    item_ids = iter(insert_items(session, rows))
    return [[next(item_ids) for _ in range(size)] for size in sizes]


def _set_parts(
    session: Session,
    study: Study,
    records: Sequence[Record],
    cards: Sequence[Sequence[int]],
    entries: Sequence[StudyQuestion],
) -> None:
    """Make gold and qualification items of the rows that are; each keeps its place in the order."""
    for record, card in zip(records, cards, strict=True):
        if record.part == "main":
            continue
        right = [expected for each in entries for _, expected in record.items(each)]
        for item_id, choice in zip(card, right, strict=True):
            session.execute(
                update(StudyItem)
                .where(StudyItem.study_id == study.id, StudyItem.item_id == item_id)
                .values(
                    part=record.part,
                    gold_choice=choice,
                    explanation=record.explanation,
                    **({"places": None} if record.part == "training" else {}),
                )
            )
