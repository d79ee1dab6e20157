"""A judged study as relevance judgments, as a benchmark and as training rows.

The grade of a passage is the decision of an adjudicator; else the answer that more than half of
the people gave, or the one judge named. "Ambiguous", a tie or no answer gives none: such a passage
is in no qrels, no positive and no negative, and is counted by its reason.

What the grades become, by `positive` (a grade from which a passage satisfies, by default the
highest) and `violates` (the grade that answers the query but violates the instruction):

    grade                    qrels     training row (Promptriever's columns)
    positive and above       grade     positive passage
    violates                 grade     negative, explained as `instruction_negative`: of the query
                                       with its instruction alone, where there is one
    0                        grade     negative
    any other below          grade     left out, counted as `between`

A record without a positive passage is no training row. The files are those that `trainer` reads:
`data/train.jsonl` a release of such rows, the folder itself a benchmark as BEIR's, with
instructions.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from curation.questions.tasks import json_lines
from curation.release.rows import EXPLANATIONS
from db.corpus.texts import passage_texts
from db.errors import BadInput, NotFound
from db.question import Question, about_of
from db.run.new_items import questions_of
from db.study.judgments import judgments_that_count
from db.study.studies import get_study
from db.tables import Group, Item, Judge, Judgment, Pair, Passage, StudyItem

GRADED: Final = ("grade", "yes_no")  # of questions about passages: those with whole numbers
UNJUDGED, TIED, BETWEEN = "unjudged", "no_majority", "between"


@dataclass(frozen=True)
class GradedPassage:
    """A passage of a record; `grade` None where there is none, with the `reason`."""

    external_id: str
    text: str
    grade: int | None
    reason: str = ""


@dataclass(frozen=True)
class GradedRecord:
    """A row of the study's file with the grades of its passages."""

    id: str
    instruction: str
    query: str
    passages: tuple[GradedPassage, ...]


@dataclass(frozen=True)
class Graded:
    """The records of a study by one question, and whose grades they are: "" the majority's."""

    study_id: int
    question: Question
    judge: str
    records: tuple[GradedRecord, ...]

    @property
    def highest(self) -> int:
        return 1 if self.question.kind == "yes_no" else max(map(int, self.question.labels))


def graded_study(session: Session, study_id: int, *, question: str = "", judge: str = "") -> Graded:
    """The grades of a study's main items. Raises NotFound, BadInput where no question grades
    passages, or several do and none is named, and for a judge without an answer."""
    get_study(session, study_id)
    query = (
        select(Item)
        .join(StudyItem, StudyItem.item_id == Item.id)
        .where(StudyItem.study_id == study_id, StudyItem.part == "main")
        .order_by(Item.group_id, Item.id)
    )
    items = list(session.scalars(query))
    grading = graded_questions(session, items, question)
    items = [item for item in items if item.question_id in grading]
    [found] = {one.key: one for one in grading.values()}.values()
    grades = _grades(session, study_id, [item.id for item in items], judge)
    return Graded(study_id, found, judge, tuple(_records(session, items, found, grades)))


def graded_questions(
    session: Session, items: Sequence[Item], named: str = ""
) -> dict[int | None, Question]:
    """The one question of these items that grades passages, by its id. Raises BadInput."""
    about = {item.question_id for item in items if about_of(item.scenario) in _labels(item)}
    able = {
        each: one
        for each, one in questions_of(session, items).items()
        if one.kind in GRADED and each in about
    }
    names = sorted({one.name for one in able.values()})
    if named and named not in names:
        raise BadInput(
            f"no question {named!r} grades passages",
            f"one of {', '.join(names)}" if names else "ask a grade or yes/no about each passage",
            code="question_unknown",
        )
    if not named and len(names) != 1:
        raise BadInput(
            f"{len(names)} questions of the study grade passages"
            + (f": {', '.join(names)}" if names else ""),
            "name the one to take with `question=`"
            if names
            else "ask a grade or yes/no about each passage",
            code="question_ambiguous" if names else "question_without_grades",
        )
    return {each: one for each, one in able.items() if one.name == (named or names[0])}


def _labels(item: Item) -> list[str]:
    return [str(entry["label"]) for entry in item.candidates]


def _grades(session: Session, study_id: int, item_ids: Sequence[int], judge: str) -> dict[int, str]:
    """The answer of each item that has one; TIED where people gave no other."""
    query = judgments_that_count(
        study_id, Judgment.item_id, Judge.name, Judge.kind, Judge.simulated, Judgment.choice
    )
    wanted = set(item_ids)
    rows = [row for row in session.execute(query) if row[0] in wanted]
    if judge:
        found = {item_id: choice for item_id, name, _, _, choice in rows if name == judge}
        if not found:
            known = ", ".join(sorted({row[1] for row in rows})) or "none"
            raise NotFound(
                f"{judge!r} has graded nothing in study {study_id}",
                f"its judges: {known}",
                code="judge_without_judgments",
            )
        return found
    people = [row for row in rows if row[2] == "person"]
    people = [row for row in people if not row[3]] or people  # simulated ones where nobody is real
    answers: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for item_id, *_, choice in people:
        answers[item_id][choice] += 1
    found = {}
    for item_id, counted in answers.items():
        [(answer, most)] = counted.most_common(1)
        found[item_id] = answer if 2 * most > counted.total() else TIED
    decided = (
        select(Judgment.item_id, Judgment.choice)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judgment.study_id == study_id, Judgment.is_current, Judge.kind == "adjudicator")
        .order_by(Judgment.id)
    )
    return found | {item: choice for item, choice in session.execute(decided) if item in wanted}


def _records(
    session: Session, items: Sequence[Item], question: Question, grades: dict[int, str]
) -> Iterator[GradedRecord]:
    groups: defaultdict[int, list[Item]] = defaultdict(list)
    for item in items:
        groups[item.group_id].append(item)
    names = dict(
        session.execute(
            select(Group.id, Pair.external_id)
            .join(Pair, Pair.id == Group.pair_id)
            .join(Item, Item.group_id == Group.id)
            .join(StudyItem, StudyItem.item_id == Item.id)
        ).all()
    )
    ids = {entry["passage_id"] for item in items for entry in item.candidates}
    texts = passage_texts(session, ids)
    external = passage_names(session, ids)
    for group_id, of_group in groups.items():
        by_label = {about_of(item.scenario): item for item in of_group}
        passages = []
        for entry in of_group[0].candidates:
            of_passage = by_label.get(str(entry["label"]))
            if of_passage is None:
                continue
            answer = grades.get(of_passage.id, UNJUDGED)
            value = question.value(answer)
            reason = "" if value is not None else answer
            grade = None if value is None else int(value)
            passage_id = entry["passage_id"]
            passages.append(GradedPassage(external[passage_id], texts[passage_id], grade, reason))
        first = of_group[0]
        yield GradedRecord(names[group_id], first.instruction, first.query, tuple(passages))


def passage_names(session: Session, ids: set[int]) -> dict[int, str]:
    """The external ids of passages."""
    found: dict[int, str] = {}
    listed = sorted(ids)
    for start in range(0, len(listed), 500):
        part = listed[start : start + 500]
        query = select(Passage.id, Passage.external_id).where(Passage.id.in_(part))
        found |= dict(session.execute(query).all())
    return found


def graded_files(
    graded: Graded, *, positive: int | None = None, violates: int = 1
) -> tuple[dict[str, str], dict[str, Any]]:
    """The files of a judged study by name, and what a report says of them. Pure.

    positive: the lowest grade that satisfies (default: the highest there is). Raises BadInput for
    grades that the question does not have, or where nothing is graded.
    """
    satisfies = graded.highest if positive is None else positive
    if not 0 < satisfies <= graded.highest:
        raise BadInput(
            f"positive={satisfies}: grades of {graded.question.name} go from 0 to {graded.highest}",
            "give one of them above 0",
            code="grade_invalid",
        )
    left_out: Counter[str] = Counter()
    grades: Counter[str] = Counter()
    rows, qrels = [], []
    for record in graded.records:
        for one in record.passages:
            if one.grade is None:
                left_out[one.reason] += 1
            else:
                grades[str(one.grade)] += 1
                qrels.append((record.id, one.external_id, one.grade))
        row = _training_row(record, satisfies, violates, left_out)
        if row is not None:
            rows.append(row)
    if not qrels:
        raise BadInput(
            f"study {graded.study_id} has no grade of {graded.question.name} that people agree on",
            "let people judge it, or decide items by adjudication",
            code="grades_missing",
        )
    report = {
        "study_id": graded.study_id,
        "question": graded.question.name,
        "judge": graded.judge,
        "positive": satisfies,
        "violates": violates,
        "records": len(graded.records),
        "rows": len(rows),
        "qrels": len(qrels),
        "grades": dict(sorted(grades.items())),
        "left_out": dict(sorted(left_out.items())),
    }
    judged = {record_id for record_id, _, _ in qrels}
    corpus = {one.external_id: one.text for each in graded.records for one in each.passages}
    queries = [
        {"_id": each.id, "text": each.query, "instruction": each.instruction}
        for each in graded.records
        if each.id in judged
    ]
    names = [name for query, document, _ in qrels for name in (query, document)]
    if spaced := next((name for name in names if name.split() != [name]), None):
        raise BadInput(
            f"the id {spaced!r} is empty or has a space: a TREC file cannot hold it",
            "create the study from a file with other ids",
            code="id_invalid_in_trec",
        )
    files = {
        "data/train.jsonl": json_lines(rows),
        "queries.jsonl": json_lines(queries),
        "corpus.jsonl": json_lines({"_id": name, "text": text} for name, text in corpus.items()),
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\n"
        + "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in qrels),
        "qrels.trec": "".join(
            f"{query} 0 {document} {grade}\n" for query, document, grade in qrels
        ),
        "study.json": json.dumps(report, ensure_ascii=False, indent=1) + "\n",
    }
    return files, report


def _training_row(
    record: GradedRecord, satisfies: int, violates: int, left_out: Counter[str]
) -> dict[str, Any] | None:
    """A row of Promptriever's columns; None without a positive passage, which is counted."""
    positives, negatives = [], []
    for one in record.passages:
        entry = {"docid": one.external_id, "title": "", "text": one.text}
        if one.grade is None:
            continue
        if one.grade >= satisfies:
            positives.append(entry | {"explanation": EXPLANATIONS[2]})
        elif one.grade == 0:
            negatives.append(entry | {"explanation": EXPLANATIONS[0]})
        elif one.grade == violates and record.instruction:
            negatives.append(entry | {"explanation": EXPLANATIONS[1]})
        else:
            left_out[BETWEEN] += 1
    if not positives:
        left_out["record_without_positive"] += 1
        return None
    return {
        "query_id": record.id,
        "query": f"{record.query} {record.instruction}".strip(),
        "only_query": record.query,
        "only_instruction": record.instruction,
        "has_instruction": bool(record.instruction),
        "positive_passages": positives,
        "negative_passages": negatives,
    }
