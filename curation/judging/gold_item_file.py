"""Gold items from a file that a curator filled in, and the template of that file.

A row names an item of the study's run, by its number (`item`) or by the pair's query id and the
scenario (`pair`, `scenario`), the right answer (`right`: a label such as `positive` or
`distractor_1`, the passage's number from 1 in the row's own `passages`, or `none`) and the reason
(`explanation`, which judges read in the qualification). All rows are added or, with one bad row,
none.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.files.rows import Row, read_rows
from db.errors import BadInput, BadRow, BadRows
from db.run.runs import shape_of
from db.study.gold_items import add_gold_item
from db.study.studies import get_study, judged_groups
from db.tables import Group, Item, Pair, Passage, StudyItem
from db.values import NONE

REMEDY = (
    "Nothing was added. `studies template ID out=FILE` writes rows to fill in: "
    "set `right` and `explanation` in each."
)


def add_from_file(session: Session, study_id: int, part: str, path: Path) -> list[int]:
    """Add every row of the file to the qualification or gold part. Returns the items' numbers.

    Raises BadRows with line and remedy of each bad row, BadInput for an empty file.
    Does not commit.
    """
    get_study(session, study_id)
    added: list[int] = []
    bad: list[BadRow] = []
    with session.begin_nested() as savepoint:
        for row in read_rows(path):
            try:
                if row.reason is not None:
                    raise BadInput(row.reason, "correct the row", code="rows_invalid")
                item = _item_of(session, study_id, row.values)
                if item.id in added:
                    raise BadInput(
                        f"item {item.id} is in the file twice",
                        "keep one row",
                        code="item_duplicate",
                    )
                right = _right(item, row.values)
                why = str(row.values.get("explanation") or "").strip()
                add_gold_item(session, study_id, item.id, part, right, why)
                added.append(item.id)
            except BadInput as error:
                bad.append(BadRow(path.name, row.line, str(error)))
        if bad:
            savepoint.rollback()
    if bad:
        raise BadRows(bad, REMEDY, code="rows_invalid")
    if not added:
        raise BadInput(f"{path.name} has no rows", REMEDY, code="rows_missing")
    return added


def template_rows(session: Session, study_id: int, count: int) -> list[dict[str, Any]]:
    """Rows of items of groups that the study does not use, `right` and `explanation` empty.

    Raises BadInput if the study has no run to take items from.
    """
    study = get_study(session, study_id)
    if study.run_id is None:
        raise BadInput(
            f"study {study_id} has no run to take items from",
            "create a study of a run",
            code="study_without_run",
        )
    used, roles = _used_groups(session, study_id), shape_of(session, study.run_id).roles
    free = {g: items for g, items in judged_groups(session, study.run_id).items() if g not in used}
    rows = []
    for number, group_id in enumerate(sorted(free)[:count]):
        wanted = roles[number % len(roles)]
        found = free[group_id]
        item = session.get_one(Item, found[wanted] if wanted in found else found[min(found)])
        texts = [session.get_one(Passage, entry["passage_id"]).text for entry in item.candidates]
        rows.append(
            {
                "item": item.id,
                "scenario": item.scenario,
                "instruction": item.instruction,
                "query": item.query,
                "passages": texts,
                "labels": [entry["label"] for entry in item.candidates],
                "right": "",
                "explanation": "",
            }
        )
    return rows


def _used_groups(session: Session, study_id: int) -> set[int]:
    return set(
        session.scalars(
            select(Item.group_id)
            .join(StudyItem, StudyItem.item_id == Item.id)
            .where(StudyItem.study_id == study_id)
        )
    )


def _item_of(session: Session, study_id: int, values: Row) -> Item:
    run_id = get_study(session, study_id).run_id
    if values.get("item") not in (None, ""):
        number = str(values["item"])
        item = session.get(Item, int(number)) if number.isdecimal() else None
        if item is None or session.get_one(Group, item.group_id).run_id != run_id:
            raise BadInput(
                f"`item` {number!r} is not an item of run {run_id}, which the study judges",
                "take items from `studies template N out=FILE`",
                code="item_not_in_run",
            )
    else:
        item = _item_of_pair(session, run_id, values)
    row = session.get(StudyItem, (study_id, item.id))
    if item.question_id is not None:
        raise BadInput(
            f"item {item.id} asks another question than which passage answers",
            "name an item of a scenario",
            code="item_not_a_pick",
        )
    if row is None and item.group_id in _used_groups(session, study_id):
        raise BadInput(
            f"item {item.id} is of a group that the study uses",
            "choose another group",
            code="gold_item_in_study",
        )
    return item


def _item_of_pair(session: Session, run_id: int | None, values: Row) -> Item:
    pair, scenario = str(values.get("pair") or ""), str(values.get("scenario") or "")
    if not pair:
        raise BadInput(
            "no `item`, and no `pair` with `scenario`", "name the item", code="item_or_pair_missing"
        )
    roles = () if run_id is None else shape_of(session, run_id).roles
    if scenario not in roles:
        raise BadInput(
            f"`scenario` {scenario!r}",
            f"one of {', '.join(roles)}" if roles else "name the `item`: the study has no run",
            code="scenario_unknown",
        )
    found = session.scalar(
        select(Item)
        .join(Group, Group.id == Item.group_id)
        .join(Pair, Pair.id == Group.pair_id)
        .where(Group.run_id == run_id, Pair.external_id == pair, Item.scenario == scenario)
        .order_by(Item.revision.desc())
        .limit(1)
    )
    if found is None:
        raise BadInput(
            f"pair {pair!r} has no {scenario} item in run {run_id}",
            "take items from `studies template N out=FILE`",
            code="pair_not_in_run",
        )
    return found


def _right(item: Item, values: Row) -> str:
    labels = [str(entry["label"]) for entry in item.candidates]
    given = str("" if values.get("right") is None else values["right"]).strip()
    if not given:
        raise BadInput(
            "no `right`",
            f"one of {', '.join(labels)}, 1 to {len(labels)}, or {NONE}",
            code="gold_right_missing",
        )
    if given.isdecimal() and 1 <= int(given) <= len(labels):
        return labels[int(given) - 1]
    if given not in (*labels, NONE):
        raise BadInput(
            f"`right` {given!r}",
            f"one of {', '.join(labels)}, 1 to {len(labels)}, or {NONE}",
            code="gold_right_invalid",
        )
    return given
