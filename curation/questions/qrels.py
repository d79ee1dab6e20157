"""Relevance judgments of a file as answers of a study: TREC's four fields a line, or BEIR's table.

A query is a record of the study by its id, a document a passage by its id; the item is the one that
asks the study's grade, or the question named, about that passage.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.files.rows import Row, format_of
from curation.questions.graded import graded_questions, passage_names
from db.errors import BadInput, BadRow
from db.question import about_of
from db.tables import Group, Item, Pair, StudyItem

BEIR = ("query-id", "corpus-id", "score")
LAYOUT = "query 0 document grade"


def is_trec(path: Path) -> bool:
    """Whether a file is read as TREC qrels: one of no other known extension."""
    return format_of(path) is None and path.is_file()


def is_qrels(row: Row) -> bool:
    """Whether a row is a relevance judgment."""
    return set(BEIR) <= row.keys()


def read_trec(path: Path) -> Iterator[tuple[int, Row]]:
    """The judgments by line, in the columns of BEIR's table. Raises BadInput with the line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path.name} is not UTF-8 text ({error.reason})",
            "save it as UTF-8",
            code="text_not_utf8",
        ) from error
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if fields and len(fields) != 4:
            raise BadInput(
                f"{path.name}, line {number} has {len(fields)} fields, and a line is: {LAYOUT}",
                "correct that line; other formats are known by their extension",
                code="trec_line_invalid",
            )
        if fields:
            yield number, dict(zip(BEIR, (fields[0], fields[2], fields[3]), strict=True))


def with_items(
    session: Session,
    study_id: int,
    rows: Sequence[tuple[int, Row]],
    question: str | None,
    file: str,
) -> tuple[list[tuple[int, Row]], list[BadRow]]:
    """The judgments with the item of each, and those about what the study does not ask.

    Raises BadInput where no question grades passages, or several do and none is named.
    """
    query = (
        select(Item, Pair.external_id)
        .join(StudyItem, StudyItem.item_id == Item.id)
        .join(Group, Group.id == Item.group_id)
        .join(Pair, Pair.id == Group.pair_id)
        .where(StudyItem.study_id == study_id)
    )
    found = session.execute(query).all()
    grading = graded_questions(session, [item for item, _ in found], question or "")
    ids = {entry["passage_id"] for item, _ in found for entry in item.candidates}
    names = passage_names(session, ids)
    items = {}
    for item, record in found:
        passages = {str(entry["label"]): entry["passage_id"] for entry in item.candidates}
        about = about_of(item.scenario)
        if item.question_id in grading and about in passages:
            items[record, names[passages[about]]] = item.id
    known, bad = [], []
    for number, row in rows:
        item_id = items.get((str(row["query-id"]), str(row["corpus-id"])))
        if item_id is None:
            reason = f"the study asks no grade of {row['corpus-id']!r} for {row['query-id']!r}"
            bad.append(BadRow(file, number, reason))
        else:
            known.append((number, {**row, "item": item_id}))
    return known, bad
