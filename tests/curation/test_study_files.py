"""A study from a file, with nothing else in the store: made, judged and reported by question."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from asked_study import KINDS, PER_RECORD, QUESTIONS, ROLE, make_asked_study, record, write_records
from conftest import Ran
from sklearn.metrics import cohen_kappa_score
from sqlalchemy import select

from curation.questions.questions_file import read_questions
from curation.questions.study_file import read_records
from curation.questions.templates import TEMPLATES
from db.errors import BadInput, BadRows
from db.question import about_of
from db.store.store import Store
from db.study.items import questions_of_study
from db.tables import Group, Item, Judge, Judgment, StudyItem

Inf = Callable[..., Ran]


def asked(*questions: dict[str, Any]) -> str:
    return json.dumps({"name": "audit", "questions": list(questions)})


def test_each_question_of_a_record_is_an_item_and_together_they_are_a_card(
    store: Store, tmp_path: Path
) -> None:
    study_id = make_asked_study(store, tmp_path, [record(n) for n in range(5)])
    with store.read() as session:
        rows = session.execute(
            select(StudyItem.position, Item)
            .join(Item, Item.id == StudyItem.item_id)
            .where(StudyItem.study_id == study_id)
        ).all()
        assert [one.name for one in questions_of_study(session, study_id)] == [
            one["key"] for one in QUESTIONS
        ]
        verdicts = set(session.scalars(select(Group.verdict)))
    assert verdicts == {None}  # nobody said that they are good: no release takes them
    cards: dict[int, list[Item]] = {}
    for position, item in rows:
        cards.setdefault(position, []).append(item)
    assert len(cards) == 5
    labels = ["positive", "instruction_negative_1", "instruction_negative_2", "hard_negative"]
    for items in cards.values():
        assert len({item.group_id for item in items}) == 1
        expected = {item.scenario: item.expected for item in items}
        assert expected == {
            "query_ok:query": "yes",
            "best": "positive",
            "fluency": None,
            "role:positive": "2",
            "role:instruction_negative_1": "1",
            "role:instruction_negative_2": "1",
            "role:hard_negative": "0",
        }
        assert len(items) == PER_RECORD
        assert all([one["label"] for one in item.candidates] == labels for item in items)
    assert about_of("role:hard_negative") == "hard_negative"
    assert about_of("best") == ""


@pytest.mark.parametrize(
    ("row", "place", "value"),
    [
        (record(1, query=""), "line 2", "`query` ''"),
        (record(1, query=None), "line 2", "`query` None"),
        (record(1, passages=[]), "line 2", "`passages` []"),
        (record(1, passages="one text"), "line 2", "`passages` 'one text'"),
        (record(1, passages=["good", " "]), "line 2", "`text` ' '"),
        (record(1, passages=[{"text": "a", "kind": "Best!"}]), "line 2", "`kind` 'Best!'"),
        (record(1, passages=[{"text": "a", "kind": "several"}]), "line 2", "`kind` 'several'"),
        (record(1, id="r0"), "line 2", "'r0' is that of an earlier row"),
        (record(1, part="test"), "line 2", "`part` 'test'"),
        (record(1, part="gold"), "line 2", "nothing is expected for 'fluency'"),
        (record(1, expected={"query_ok": "maybe"}), "line 2", "'maybe' cannot be expected"),
        (record(1, expected={"role": "2"}), "line 2", "`expected` {'role': '2'}"),
        (record(1, expected={"best": "9"}), "line 2", "'9' cannot be expected"),
        (
            record(1, passages=[{"id": "r0p0", "text": "another"}]),
            "line 2",
            "'r0p0' had another text",
        ),
    ],
)
def test_a_bad_row_is_named_with_its_line_its_value_and_what_to_do(
    tmp_path: Path, row: dict[str, Any], place: str, value: str
) -> None:
    file = write_records(tmp_path / "items.jsonl", [record(0), row])
    with pytest.raises(BadRows) as refused:
        read_records(file, read_questions(asked(*QUESTIONS), "q.json").entries)
    [bad] = refused.value.rows
    assert place in str(bad)
    assert value in bad.reason
    assert ":" in bad.reason  # and the remedy behind it


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ('{"questions": [', "questions_not_json", "line 1, column 16"),
        ("[]", "questions_missing", "q.json"),
        (asked(), "questions_missing", "q.json"),
        (asked({"key": "A", "type": "pick", "text": "t"}), "question_key_invalid", "question 1"),
        (asked({"key": "a", "type": "rank", "text": "t"}), "question_kind", "question 1 (a)"),
        (asked({"key": "a", "type": "pick"}), "question_text_missing", "question 1 (a)"),
        (asked(ROLE, ROLE), "question_key_taken", "question 2"),
        (asked({"key": "a", "type": "grade", "text": "t"}), "question_labels", "two labels"),
        (asked(ROLE | {"about": "title"}), "question_about_invalid", "'title'"),
        (asked(ROLE | {"expected": {"positive": "7"}}), "question_expected_invalid", "'7'"),
        (asked(ROLE | {"expected": "2"}), "question_expected_invalid", "by kind of passage"),
        (asked(ROLE | {"colour": "red"}), "question_invalid", "'colour'"),
    ],
)
def test_a_bad_question_is_named_with_its_place(text: str, code: str, place: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_questions(text, "q.json")
    assert refused.value.code == code
    assert place in f"{refused.value} {refused.value.remedy}"
    assert refused.value.remedy or code == "question_labels"


@pytest.mark.long
def test_two_commands_make_a_study_of_an_empty_store_and_report_by_question(
    inf: Inf, tmp_path: Path
) -> None:
    items = write_records(tmp_path / "items.jsonl", [record(n) for n in range(15)])
    questions = tmp_path / "questions.json"
    questions.write_text(asked(*QUESTIONS), encoding="utf-8")
    command = ("--items-file", items, "--questions", questions, "--overlap", 2)
    made = inf("studies", "create", *command, "--json").json
    assert (made["items"], made["answers"]) == (15, 15 * PER_RECORD)
    study = made["study_id"]
    for number in (1, 2):
        done = inf("studies", "judge", study, "--judge", f"simulated:{number}", "--json").json
        assert (done["judged"], done["unusable"]) == (15 * PER_RECORD, {})
    report = inf("analyze", "agreement", "--study", study, "--resamples", 200, "--json").json
    assert list(report["questions"]) == ["query_ok", "role", "best", "fluency"]
    for key, kind, count in (
        ("query_ok", "yes_no", 15),
        ("role", "grade", 60),
        ("best", "pick", 15),
    ):
        found = report["questions"][key]
        assert (found["type"], found["items"], found["simulated"]) == (kind, count, True)
        assert ("weighted_kappa" in found) == (kind == "grade")
    shown = inf("analyze", "agreement", "--study", study, "--question", "role")
    assert "Weighted kappa, quadratic" in shown.out  # a row of the table of measures
    assert "query_ok" not in shown.out
    refused = inf("analyze", "agreement", "--study", study, "--question", "roles", "--json")
    assert refused.code != 0
    assert "query_ok, role, best, fluency" in refused.out + refused.err


@pytest.mark.long
def test_the_figures_of_a_graded_question_are_those_of_other_packages(
    sqlite_store: Store, inf: Inf, tmp_path: Path
) -> None:
    study = make_asked_study(sqlite_store, tmp_path, [record(n) for n in range(20)], [ROLE])
    for number in (1, 2):
        inf("studies", "judge", study, "--judge", f"simulated:{number}", "--json")
    with sqlite_store.read() as session:
        rows = session.execute(
            select(Judgment.item_id, Judge.name, Judgment.choice)
            .join(Judge, Judge.id == Judgment.judge_id)
            .order_by(Judgment.item_id, Judge.name)
        ).all()
    one, other = (
        [int(choice) for _, name, choice in rows if name == f"simulated:{number}"]
        for number in (1, 2)
    )
    found = inf("analyze", "agreement", "--study", study, "--json").json["questions"]["role"]
    assert found["cohen_kappa"]["value"] == pytest.approx(cohen_kappa_score(one, other))
    for name, weights in (("weighted_kappa", "quadratic"), ("linear_weighted_kappa", "linear")):
        expected = cohen_kappa_score(one, other, labels=[0, 1, 2], weights=weights)
        assert found[name]["value"] == pytest.approx(expected)
        low, high = found[name]["interval"]
        assert low < expected < high
    both = np.array([one, other], dtype=float)
    for name, level in (("krippendorff_alpha", "nominal"), ("ordinal_alpha", "ordinal")):
        expected = krippendorff.alpha(reliability_data=both, level_of_measurement=level)
        assert found[name]["value"] == pytest.approx(expected)


def test_a_judge_of_picks_alone_is_refused_before_it_answers(
    sqlite_store: Store, inf: Inf, tmp_path: Path
) -> None:
    study = make_asked_study(sqlite_store, tmp_path, [record(0)], [ROLE])
    refused = inf("studies", "judge", study, "--judge", "offline:embedding", "--json")
    assert refused.code != 0
    assert "grade" in refused.out + refused.err
    with sqlite_store.read() as session:
        assert session.scalars(select(Judgment)).all() == []


def test_options_of_a_sample_and_of_a_file_do_not_go_together(inf: Inf, tmp_path: Path) -> None:
    items = write_records(tmp_path / "items.jsonl", [record(0)])
    questions = tmp_path / "questions.json"
    questions.write_text(asked(ROLE), encoding="utf-8")
    both = ("--items-file", items, "--questions", questions, "--overlap", 1)
    for words in (
        ("studies", "create", "--overlap", 1),
        ("studies", "create", "--items-file", items, "--overlap", 1),
        ("studies", "create", "some", *both),
        ("studies", "create", *both, "--gold", 2),
    ):
        assert inf(*words).code == 2
    assert len(KINDS) == 4


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_a_file_of_questions(
    sqlite_store: Store, inf: Inf, tmp_path: Path, name: str
) -> None:
    items = write_records(tmp_path / "items.jsonl", [record(n) for n in range(3)])
    made = inf(
        "studies", "create", "--items-file", items, "--template", name, "--overlap", 1, "--json"
    ).json
    assert made["name"] == TEMPLATES[name]["name"]
    assert made["questions"] == [one["key"] for one in TEMPLATES[name]["questions"]]
    done = inf("studies", "judge", made["study_id"], "--judge", "simulated:1", "--json").json
    assert done["judged"] == made["answers"] > 0
