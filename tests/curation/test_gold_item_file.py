"""Training and gold items from a file, the command, the rules of a study."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from sqlalchemy import select
from study_world import make_world, sampled_study

from curation.judging.gold_item_file import add_from_file, template_rows
from db.errors import BadInput, BadRows
from db.store.store import Store
from db.study import studies
from db.study.gold_items import list_gold_items
from db.study.rules import rules_of, set_rules
from db.tables import Item, StudyItem


def make_study(store: Store) -> int:
    run_id = make_world(store, 8)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=3, overlap=2).id
        session.commit()
        return study_id


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_template_that_was_filled_in_becomes_gold(store: Store, tmp_path: Path) -> None:
    study_id = make_study(store)
    with store.read() as session:
        rows = template_rows(session, study_id, 3)
    assert len(rows) == 3 and all(row["right"] == "" for row in rows)
    for row, right in zip(rows, ("positive", "2", "none"), strict=True):
        row |= {"right": right, "explanation": "because"}
    with store.write() as session:
        add_from_file(session, study_id, "gold", write(tmp_path / "gold.jsonl", *rows))
        session.commit()
    with store.read() as session:
        found = list_gold_items(session, study_id)
        second = session.get_one(Item, rows[1]["item"]).candidates[1]["label"]
    right = {one.item_id: one.right for one in found}
    assert [right[row["item"]] for row in rows] == ["positive", second, "none"]
    assert {(one.part, one.explanation) for one in found} == {("gold", "because")}


def test_bad_rows_are_named_with_line_and_remedy_and_nothing_is_added(
    store: Store, tmp_path: Path
) -> None:
    study_id = make_study(store)
    with store.read() as session:
        good, other, third = template_rows(session, study_id, 3)
        judged = session.scalars(
            select(StudyItem.item_id).where(StudyItem.study_id == study_id)
        ).first()
    good |= {"right": "none"}
    path = write(
        tmp_path / "rows.jsonl",
        good,
        {**other, "right": "the first"},
        {"item": 99999, "right": "none"},
        {"item": judged, "right": "none"},
        {"pair": "0", "scenario": "sideways", "right": "none"},
        {"right": "none"},
        good,
        {**third, "right": ""},
    )
    with store.write() as session, pytest.raises(BadRows) as raised:
        add_from_file(session, study_id, "training", path)
    words = str(raised.value)
    for line, why in (
        (2, "'the first'"),
        (3, "not an item of run"),
        (4, "it cannot be a gold item"),
        (5, "'sideways'"),
        (6, "name the item"),
        (7, "twice"),
        (8, "no `right`"),
    ):
        assert f"rows.jsonl, line {line}:" in words and why in words
    assert "`studies template ID out=FILE`" in words
    with store.read() as session:
        assert list_gold_items(session, study_id) == []


def test_the_command_adds_rows_sets_rules_and_refuses_what_cannot_be(
    store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    study_id = make_study(store)
    out = tmp_path / "fill.jsonl"
    assert inf("study", "template", "--study", study_id, "--items", 2, "--out", out).code == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    for row in rows:
        row["right"] = row["scenario"]
    write(out, *rows)
    words = ("study", "gold", "--study", study_id)
    ran = inf(*words, "--file", out, "--threshold", 0.5, "--action", "pause", "--json")
    assert (ran.json["gold"], ran.json["gold_threshold"]) == (2, 0.5)
    refused = inf("study", "qualification", "--study", study_id, "--pass-mark", 80)
    assert refused.code == 2 and "80.0 is not in the range 0<=x<=1" in refused.err
    nothing = inf(*words)
    assert nothing.code == 2 and "--file" in nothing.err
    with store.read() as session:
        rules = rules_of(studies.get_study(session, study_id))
    assert (rules.gold_threshold, rules.gold_action, rules.pass_mark) == (0.5, "pause", 0.8)


@pytest.mark.parametrize(
    ("rule", "value"),
    [("gold_threshold", 2), ("gold_action", "shout"), ("pass_mark", 1.5), ("speed", 1)],
)
def test_a_rule_that_cannot_be_is_refused(store: Store, rule: str, value: object) -> None:
    study_id = make_study(store)
    with store.write() as session, pytest.raises(BadInput, match=rule):
        set_rules(session, study_id, **{rule: value})
