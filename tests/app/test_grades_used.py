"""Grades of people become qrels, a benchmark and training rows, and come back from qrels."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asked_study import QUESTIONS, ROLE, make_asked_study, record
from conftest import Ran
from sklearn.metrics import ndcg_score
from sqlalchemy import select

from db.question import about_of
from db.store.store import Store
from db.study.adjudication import adjudicate
from db.study.judgments import get_or_create_judge, judgment_frame, record_judgment
from db.tables import Item, StudyItem
from trainer.data.claims import right_texts
from trainer.data.release_files import read_release
from trainer.evaluate.scoring import measure_run
from trainer.settings.template import Template
from trainer.suites.registry import read_benchmark

Inf = Callable[..., Ran]
LABELS = ("positive", "instruction_negative_1", "instruction_negative_2", "hard_negative")
RIGHT = dict(zip(LABELS, ("2", "1", "1", "0"), strict=True))


def grade(
    store: Store,
    study_id: int,
    answers: Callable[[str, str, str], str],
    people: tuple[str, ...] = ("ada", "ben", "cy"),
) -> dict[int, tuple[str, str]]:
    """Let people grade every passage by `answers(person, query, label)`; (query, label) by item."""
    with store.write() as session:
        query = select(Item).join(StudyItem, StudyItem.item_id == Item.id)
        items = session.scalars(query.where(StudyItem.study_id == study_id)).all()
        found = {item.id: (item.query, about_of(item.scenario)) for item in items}
        for who in people:
            judge = get_or_create_judge(session, who, kind="person")
            for item in items:
                record_judgment(
                    session,
                    judge_id=judge.id,
                    item_id=item.id,
                    choice=answers(who, *found[item.id]),
                    order_shown=[one["label"] for one in item.candidates],
                    event_id=f"{who}:{item.id}",
                    study_id=study_id,
                )
        session.commit()
    return found


@pytest.fixture
def study(sqlite_store: Store, tmp_path: Path) -> int:
    return make_asked_study(sqlite_store, tmp_path, [record(n) for n in range(4)], [ROLE])


def rows_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "data" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def passage(number: int, label: str) -> str:
    return str(record(number)["passages"][LABELS.index(label)]["text"])


def test_what_violates_is_a_negative_of_the_instruction_and_what_satisfies_a_positive(
    sqlite_store: Store, inf: Inf, tmp_path: Path, study: int
) -> None:
    grade(sqlite_store, study, lambda who, query, label: RIGHT[label])
    done = inf("studies", "export", study, "--out", tmp_path / "out", "--json").json
    assert (done["rows"], done["qrels"], done["left_out"]) == (4, 16, {})
    assert done["grades"] == {"0": 4, "1": 8, "2": 4}
    found = read_release(tmp_path / "out")
    assert [group.group_id for group in found.groups] == ["r0", "r1", "r2", "r3"]
    template = Template()
    right = right_texts(found.groups, template)
    for number, group in enumerate(found.groups):
        query, instruction = record(number)["query"], record(number)["instruction"]
        assert list(group.triplets()) == [(instruction, query, passage(number, "positive"))]
        assert {(one.grade, one.text) for one in group.negatives} == {
            (int(RIGHT[label]), passage(number, label)) for label in LABELS[1:]
        }
        assert right[template.apply(instruction, query)] == {passage(number, "positive")}
        # without the instruction nothing is violated: these two answer the query
        assert right[template.apply("", query)] == {passage(number, label) for label in LABELS[:3]}


def test_what_people_do_not_agree_on_is_left_out_unless_it_was_decided(
    sqlite_store: Store, inf: Inf, tmp_path: Path, study: int
) -> None:
    def answers(who: str, query: str, label: str) -> str:
        if query.endswith(" 0") and label == "hard_negative":
            return {"ada": "0", "ben": "1", "cy": "2"}[who]
        if query.endswith(" 1") and label == "hard_negative":
            return "ambiguous" if who != "ada" else "0"
        if query.endswith(" 2") and label == "positive":
            return "2" if who == "ada" else "0"
        return RIGHT[label]

    items = grade(sqlite_store, study, answers)
    done = inf("studies", "export", study, "--out", tmp_path / "a", "--json").json
    assert done["left_out"] == {"ambiguous": 1, "no_majority": 1, "record_without_positive": 1}
    assert [row["query_id"] for row in rows_of(tmp_path / "a")] == ["r0", "r1", "r3"]
    qrels = (tmp_path / "a" / "qrels.trec").read_text().splitlines()
    assert len(qrels) == 14 and "r2 0 r2p0 0" in qrels
    [tied] = [id for id, place in items.items() if place == ("what is tea 0", "hard_negative")]
    with sqlite_store.write() as session:
        adjudicate(session, study, tied, "0", by="dee", note="it does not answer")
        session.commit()
    done = inf("studies", "export", study, "--out", tmp_path / "b", "--json").json
    assert done["left_out"] == {"ambiguous": 1, "record_without_positive": 1}
    ada = inf("studies", "export", study, "--judge", "ada", "--out", tmp_path / "c", "--json").json
    assert (ada["rows"], ada["qrels"], ada["left_out"]) == (4, 16, {})
    refused = inf("studies", "export", study, "--judge", "eve", "--out", tmp_path / "d", "--json")
    assert (refused.code, refused.json["code"]) == (1, "judge_without_judgments")


def test_grades_of_another_scale_are_cut_where_it_is_said(
    sqlite_store: Store, inf: Inf, tmp_path: Path, study: int
) -> None:
    grade(sqlite_store, study, lambda who, query, label: RIGHT[label])
    options = ("--positive", 1, "--out", tmp_path / "out", "--json")
    done = inf("studies", "export", study, *options).json
    assert [len(row["positive_passages"]) for row in rows_of(tmp_path / "out")] == [3] * 4
    options = ("--violates", 3, "--out", tmp_path / "none", "--json")
    done = inf("studies", "export", study, *options).json
    assert done["left_out"] == {"between": 8}  # neither positive nor a negative: in the qrels alone
    assert [len(row["negative_passages"]) for row in rows_of(tmp_path / "none")] == [1] * 4
    refused = inf("studies", "export", study, "--positive", 3, "--out", tmp_path / "x", "--json")
    assert (refused.code, refused.json["code"]) == (1, "grade_invalid")


def test_evaluation_gains_by_the_grades(
    sqlite_store: Store, inf: Inf, tmp_path: Path, study: int
) -> None:
    """nDCG@10 with linear gains over the judged corpus, as scikit-learn computes it."""
    grade(sqlite_store, study, lambda who, query, label: RIGHT[label])
    inf("studies", "export", study, "--out", tmp_path / "out", "--json")
    benchmark = read_benchmark(tmp_path / "out")
    assert benchmark.questions["r3"].instruction == record(3)["instruction"]
    documents = sorted(benchmark.corpus)
    run = {
        query: {name: float((place * 7 + number) % 17) for place, name in enumerate(documents)}
        for number, query in enumerate(benchmark.questions)
    }
    found = measure_run(benchmark, run, {query: {} for query in run})

    def mean(most: int) -> float:
        """The mean over queries with grades above `most` counted as that."""
        values = [
            ndcg_score(
                [[min(most, benchmark.judgments[query].get(name, 0)) for name in documents]],
                [[run[query][name] for name in documents]],
                k=10,
            )
            for query in run
        ]
        return sum(values) / len(values)

    assert found.metrics["ndcg@10"] == pytest.approx(mean(2))
    assert abs(mean(2) - mean(1)) > 0.01  # grades matter: yes or no would give another figure
    ran = inf("evaluate", "--model", "bm25", "--benchmark", tmp_path / "out", "--json")
    assert ran.code == 0, ran.err


def test_qrels_come_back_as_the_answers_of_a_judge(
    sqlite_store: Store, inf: Inf, tmp_path: Path, study: int
) -> None:
    grade(sqlite_store, study, lambda who, query, label: RIGHT[label])
    inf("studies", "export", study, "--out", tmp_path / "out", "--json")
    for name, judge in (("qrels.trec", "trec:qrels"), ("qrels/test.tsv", "trec:test")):
        command = ("import", "--study", study, "--judgments", tmp_path / "out" / name, "--json")
        done = inf(*command).json
        assert (done["imported"], done["judges"]) == (16, [judge])
        assert inf(*command).json["unchanged"] == 16
        with sqlite_store.read() as session:
            rows = [row for row in judgment_frame(session, study) if row.judge in (judge, "ada")]
        answers: dict[int, set[str]] = {}
        for row in rows:
            answers.setdefault(row.item_id, set()).add(row.label)
        assert len(answers) == 16 and all(len(labels) == 1 for labels in answers.values())
    bad = tmp_path / "mine.qrels"
    bad.write_text("r0 0 r0p0 2\nr0 0 elsewhere 1\nr1 0 r1p0 7\n")
    refused = inf("import", "--study", study, "--judgments", bad, "--json")
    reasons = {row["line"]: row["reason"] for row in refused.json["bad_rows"]}
    assert "'elsewhere' for 'r0'" in reasons[2] and "'7'" in reasons[3]
    bad.write_text("r0 r0p0 2\n")
    assert inf("import", "--study", study, "--judgments", bad, "--json").json["code"] == (
        "trec_line_invalid"
    )


def test_a_study_without_grades_says_so(
    sqlite_store: Store, inf: Inf, tmp_path: Path, study: int
) -> None:
    refused = inf("studies", "export", study, "--out", tmp_path / "a", "--json")
    assert (refused.code, refused.json["code"]) == (1, "grades_missing")
    several = [ROLE, {**ROLE, "key": "second"}]
    (tmp_path / "more").mkdir()
    other = make_asked_study(sqlite_store, tmp_path / "more", [record(9)], several)
    refused = inf("studies", "export", other, "--out", tmp_path / "b", "--json")
    assert (refused.code, refused.json["code"]) == (1, "question_ambiguous")
    (tmp_path / "none").mkdir()
    picks = [one for one in QUESTIONS if one["type"] == "pick"]
    none = make_asked_study(sqlite_store, tmp_path / "none", [record(8)], picks)
    refused = inf("studies", "export", none, "--out", tmp_path / "c", "--json")
    assert (refused.code, refused.json["code"]) == (1, "question_without_grades")
    assert not (tmp_path / "c").exists()
