import json
import os
import random
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import count_rows
from grown_dataset import grown
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from sqlalchemy import select

from analysis.agreement import intervals
from analysis.agreement.agreement import Decision, agreement_report
from analysis.agreement.answers import number_decisions
from analysis.agreement.cohen import NO_ITEMS, ONE_LABEL
from analysis.agreement.flagged import pairs_sentence
from analysis.agreement.headline import COEFFICIENTS, MIN_SHARED, rest_sentence
from analysis.agreement.over_time import agreement_over_time
from analysis.agreement.pairs import MAX_LISTED
from analysis.study.judgment_file import read_judgments
from db.errors import BadInput
from db.store.store import Store
from db.tables import Group, Item, Judge, Judgment, Run, Study, StudyItem


def decisions(**labels: str) -> list[Decision]:
    """A judge per name, a letter per item, a dot for a gap; names in capitals are models."""
    return [
        Decision(item, judge, letter, "model" if judge.isupper() else "person")
        for judge, letters in labels.items()
        for item, letter in enumerate(letters)
        if letter != "."
    ]


def test_two_people_have_cohens_kappa_and_a_model_kappa_with_both() -> None:
    """ann–bob: p_o 1, so 1. M with ann and bob: 1 with each of them, so 1."""
    report = agreement_report(decisions(ann="aabb" * 3, bob="aabb" * 3, M="aabb" * 3))
    assert report["human_human"]["coefficient"] == "cohen_kappa"
    assert report["human_human"]["value"] == report["pairs"][0]["kappa"] == 1.0
    assert report["human_model"]["M"]["coefficient"] == "group_kappa"
    assert report["human_model"]["M"]["value"] == 1.0
    assert (len(report["pairs"]), report["items"], report["judgments"]) == (3, 12, 36)


def test_three_people_have_alpha_and_a_model_kappa_with_the_group() -> None:
    """ann and bob aabb × 3, cas abab × 3. Of four items two: two a one b, two b one a.

    alpha: n = 36, n_a = n_b = 18; disagreements 6·(9 - 5)/2 = 12: 1 - 35·12/(36² - 2·18²) = 19/54.
    M as ann: p_o = (1 + 2/3 + 2/3 + 1)/4 = 5/6, p_e = 1/2: 2/3.
    """
    report = agreement_report(
        decisions(ann="aabb" * 3, bob="aabb" * 3, cas="abab" * 3, M="aabb" * 3)
    )
    assert report["human_human"]["coefficient"] == "krippendorff_alpha"
    assert report["human_human"]["value"] == pytest.approx(19 / 54)
    assert report["human_human"]["items"] == 12
    assert report["human_human"] | {"value": 0, "interval": 0} == {
        **report["human_human"],
        "value": 0,
        "interval": 0,
        "label": COEFFICIENTS["krippendorff_alpha"].label,
    }
    assert report["human_model"]["M"]["value"] == pytest.approx(2 / 3)
    few = agreement_report(decisions(ann="aabb", bob="aabb", cas="abab"))
    assert few["with_people"]["cas"]["reason"] == "4 shared items, a value needs 10"


def test_two_people_or_a_model_with_people_below_ten_shared_items_are_counts() -> None:
    few = agreement_report(decisions(ann="ab" * 4 + "a", bob="ab" * 4 + "a", M="ab" * 4 + "b"))
    reason = "9 shared items, a value needs 10"
    for figure in (few["human_human"], few["human_model"]["M"]):
        assert (figure["value"], figure["agreement"], figure["interval"]) == (None, None, None)
        assert (figure["items"], figure["reason"]) == (9, reason)
    two = agreement_report(decisions(ann="ab" * 6, M="ab" * 4 + "b" * 4, N="ab" * 2))
    assert two["human_model"]["M"]["value"] is not None
    assert two["human_model"]["N"]["reason"] == "4 shared items, a value needs 10"
    (difference,) = two["differences"]
    assert difference["difference"] is None
    assert difference["reason"] == "4 shared items, a value needs 10"
    enough = agreement_report(decisions(ann="ab" * 5, bob="ab" * 5, M="ab" * 5))
    assert enough["human_human"]["value"] == enough["human_model"]["M"]["value"] == 1.0


def test_every_figure_a_flagged_person_enters_names_them_and_has_itself_without_them() -> None:
    """dan always says a; the figures without him are those of a report that never saw him."""
    letters = {"ann": "aabb" * 5, "bob": "abbb" * 5, "cas": "aabb" * 5, "M": "aabb" * 5}
    clean = agreement_report(decisions(**letters, N="abab" * 5), resamples=200)
    known = decisions(**letters, dan="aaaa" * 5, N="abab" * 5)
    flagged = {"dan": "90% of answers under 1.5 s"}
    report = agreement_report(known, resamples=200, flagged=flagged)

    def pairs(one: Any, other: Any, place: tuple[str, ...] = ()) -> Iterator[Any]:
        if {"value", "difference"} & one.keys():
            yield place, one, other
        else:
            for key, each in one.items():
                yield from pairs(each, other.get(key), (*place, str(key)))

    for place in ("human_human", "human_model", "people", "all_judges", "with_people"):
        found = list(pairs(report[place], clean[place], (place,)))
        assert found
        for path, one, other in found:
            if path[-1] == "dan":
                assert "flagged" not in one, "his own row is about him, not without him"
                continue
            assert one["flagged"] == flagged, path
            assert one["without_flagged"]["value"] == pytest.approx(other["value"]), path
            assert one["value"] != pytest.approx(other["value"]), path
    (one,), (other,) = report["differences"], clean["differences"]
    assert one["without_flagged"]["difference"] == pytest.approx(other["difference"])
    with_dan = [pair for pair in report["pairs"] if "dan" in (pair["judge_a"], pair["judge_b"])]
    assert [pair["flagged"] for pair in with_dan] == [flagged] * 5
    assert sum("flagged" in pair for pair in report["pairs"]) == 5
    assert "without flagged people: kappa" in rest_sentence(report)
    answers = number_decisions(
        row._replace(decided_at=datetime(2026, 3, 1, int(row.item), tzinfo=UTC)) for row in known
    )
    for window in agreement_over_time(answers, flagged):
        people, model = window.human_human, window.human_model["M"]
        assert people.flagged == model.flagged == flagged
        assert people.without_flagged is not None
        assert people.without_flagged.value > people.value


def test_kappa_is_over_the_items_both_judged() -> None:
    report = agreement_report(decisions(ann="aabb" * 4 + "..", bob="abb." * 4 + "ba"))
    (pair,) = report["pairs"]
    assert pair["items"] == report["human_human"]["items"] == 12
    expected = cohen_kappa_score(list("aab" * 4), list("abb" * 4))
    assert pair["kappa"] == report["human_human"]["value"]
    assert report["human_human"]["value"] == pytest.approx(expected)


def test_pairs_that_share_few_items_are_counts_and_say_how_many_a_value_needs() -> None:
    report = agreement_report(
        decisions(ann="a" * 9 + "." * 10, bob="." * 9 + "ab" * 5, cas="aab" * 6 + "a")
    )
    by_names = {(pair["judge_a"], pair["judge_b"]): pair for pair in report["pairs"]}
    assert (by_names["ann", "bob"]["kappa"], by_names["ann", "bob"]["reason"]) == (None, NO_ITEMS)
    few = by_names["ann", "cas"]
    assert (few["kappa"], few["agreement"], few["items"]) == (None, None, 9)
    assert few["reason"] == "9 shared items, a value needs 10"
    assert by_names["bob", "cas"]["items"] == 10 and by_names["bob", "cas"]["kappa"] is not None
    assert report["pairs_counted"] == {
        "pairs": 3,
        "listed": 3,
        "with_enough_items": 1,
        "with_fewer": 1,
        "min_shared": MIN_SHARED,
    }


def test_a_pair_of_one_label_says_why_it_has_no_value() -> None:
    report = agreement_report(decisions(ann="a" * 12, bob="a" * 12, cas="aab" * 4))
    by_names = {(pair["judge_a"], pair["judge_b"]): pair for pair in report["pairs"]}
    assert by_names["ann", "bob"]["reason"] == ONE_LABEL
    assert by_names["ann", "bob"]["agreement"] == 1.0


def test_no_judge_one_judge_and_no_person_give_a_sentence_and_no_number() -> None:
    no_judges = agreement_report([])["human_human"]
    assert (no_judges["value"], no_judges["interval"], no_judges["items"]) == (None, None, 0)
    assert no_judges["reason"] == "fewer than two people have judged"
    one = agreement_report(decisions(ann="ab"))
    assert one["human_human"]["value"] is None
    assert one["pairs"] == []
    models = agreement_report(decisions(M="ab", N="ab"))
    assert models["human_model"]["M"]["value"] is None
    assert models["human_model"]["M"]["reason"] == "no person has judged"
    all_equal = agreement_report(decisions(ann="a" * 10, bob="a" * 10))
    assert all_equal["human_human"]["value"] is None
    assert all_equal["human_human"]["reason"] == ONE_LABEL


def test_simulated_judges_stand_in_only_where_no_real_person_has_judged() -> None:
    simulated = [
        Decision(item, judge, label, "person", simulated=True)
        for judge, labels in (("simulated:1", "abab" * 3), ("simulated:2", "abba" * 3))
        for item, label in enumerate(labels)
    ]
    alone = agreement_report(simulated)
    assert alone["simulated"] is True
    assert alone["human_human"]["value"] == 0.0
    mixed = agreement_report([*simulated, *decisions(ann="abab" * 3, bob="abab" * 3)])
    assert mixed["simulated"] is False
    assert mixed["simulated_left_out"] == 2
    assert mixed["human_human"]["value"] == 1.0
    assert mixed["human_human"]["people"] == 2
    assert len(mixed["pairs"]) == 6


def test_the_last_decision_of_a_judge_on_an_item_counts() -> None:
    answers = number_decisions([Decision(1, "ann", "a"), Decision(1, "ann", "b")])
    assert [answers.labels[code] for code in answers.label] == ["b"]


def noisy(judges: dict[str, float], items: int = 300) -> list[Decision]:
    """Judges who tell the truth with the given probability; names in capitals are models."""
    rng = random.Random(7)
    truth = [rng.choice("abc") for _ in range(items)]
    return [
        Decision(
            item,
            judge,
            label if rng.random() < skill else rng.choice("abcd"),
            "model" if judge.isupper() else "person",
        )
        for judge, skill in judges.items()
        for item, label in enumerate(truth)
    ]


def test_a_better_model_differs_from_a_worse_one_and_a_twin_does_not() -> None:
    known = noisy({"ann": 0.9, "bob": 0.9, "GOOD": 0.9, "POOR": 0.4})
    known += [row._replace(judge="TWIN") for row in known if row.judge == "GOOD"]
    report = agreement_report(known)
    differences = {(row["model_a"], row["model_b"]): row for row in report["differences"]}
    good = differences["GOOD", "POOR"]
    assert good["differs"]
    assert good["interval"][0] < good["difference"] < good["interval"][1]
    twin = differences["GOOD", "TWIN"]
    assert (twin["difference"], twin["differs"]) == (0.0, False)
    assert twin["interval"] == pytest.approx([0.0, 0.0], abs=0.02)
    means = report["human_model"]
    assert good["difference"] == means["GOOD"]["value"] - means["POOR"]["value"]
    low, high = means["GOOD"]["interval"]
    assert low < means["GOOD"]["value"] < high


def test_with_too_many_patterns_the_jackknife_gives_the_same_interval(monkeypatch) -> None:
    known = noisy({"ann": 0.9, "bob": 0.8, "cas": 0.7, "GOOD": 0.9, "POOR": 0.6}, items=1500)
    known = [row for row in known if (int(row.item) * 31 + ord(row.judge[0])) % 7]  # gaps
    drawn = agreement_report(known)
    monkeypatch.setattr(intervals, "MAX_PATTERNS", 1)
    left_out = agreement_report(known)
    compared = [
        (drawn["human_human"], left_out["human_human"]),
        (drawn["human_model"]["GOOD"], left_out["human_model"]["GOOD"]),
        (drawn["differences"][0], left_out["differences"][0]),
        *((drawn["people"][name], left_out["people"][name]) for name in drawn["people"]),
    ]
    for one, other in compared:
        assert one["interval_from"] == "posterior"
        assert other["interval_from"] == "standard_error"
        # the standard error of a standard error from 200 groups is 5 % of it
        width = one["interval"][1] - one["interval"][0]
        assert other["interval"] == pytest.approx(one["interval"], abs=0.12 * width)


def team(judges: int, items: int, overlap: int) -> list[Decision]:
    """People of whom `overlap` answer each item, and a model that answers all."""
    rng = random.Random(1)
    rows = []
    for item in range(items):
        truth = rng.choice("abcd")
        for judge in [*rng.sample(range(judges), overlap), -1]:
            label = truth if rng.random() < 0.8 else rng.choice("abcd")
            kind = "person" if judge >= 0 else "model"
            rows.append(Decision(item, f"{kind} {judge}", label, kind))
    return rows


def test_memory_and_time_do_not_grow_with_the_pairs_of_judges() -> None:
    """100 people with 1,300 judgments took 585 s and 14.9 GB: a table for each pair and pattern."""
    rows = team(100, 433, 3)
    tracemalloc.start()
    spent = time.process_time()
    report = agreement_report(rows)
    seconds, (_, peak) = time.process_time() - spent, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 20, seconds
    assert peak < 100e6, peak
    assert report["pairs_counted"]["pairs"] == 101 * 100 // 2
    assert len(report["pairs"]) == MAX_LISTED
    few = agreement_report(team(20, 433, 3), resamples=0)["human_human"]["value"]
    assert report["human_human"]["value"] == pytest.approx(few, abs=0.06)  # both about 0.64


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1800)  # makes its two million decisions first
def test_a_million_judgments_of_a_thousand_judges_take_seconds_and_bounded_memory() -> None:
    """Three of a thousand for each item, and all of them: each in a process of its own."""
    script = Path(__file__).resolve().parents[2] / "bench" / "analysis.py"
    done = subprocess.run(
        [sys.executable, script, "team"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    printed = re.findall(
        r"^(\w+) of ([\d,]+) judgments: [\d.]+ s \(([\d.]+) s of CPU time\), ([\d.]+) GB;.*: (.*)$",
        done.stdout,
        re.MULTILINE,
    )
    million = {name: row for name, number, *row in printed if number == "1,000,000"}
    assert set(million) == {"sparse_team", "crowded_team"}, done.stdout
    for seconds, memory, value in million.values():
        assert float(seconds) < 30, done.stdout  # 7 on an idle machine, docs/benchmarks.md
        assert float(memory) < 1, done.stdout
        assert float(value) == pytest.approx(0.49, abs=0.01)  # two judges who know 0.7 of the items


def test_the_measures_of_people_leave_the_models_out() -> None:
    report = agreement_report(decisions(ann="aabb", bob="aabb", M="bbaa"))
    assert report["people"]["krippendorff_alpha"]["value"] == 1.0
    assert report["all_judges"]["krippendorff_alpha"]["value"] < 0.5
    assert report["people"]["agreement"]["value"] == 1.0
    alone = agreement_report(decisions(ann="ab"))["people"]
    assert alone["gwet_ac1"] == {"value": None, "reason": "no item was judged twice"}
    same = agreement_report(decisions(ann="aa", bob="aa"))["people"]
    assert same["fleiss_kappa"]["value"] is None
    assert "one and the same label" in same["fleiss_kappa"]["reason"]
    assert same["agreement"]["value"] == 1.0


rows = st.lists(
    st.builds(
        Decision,
        st.integers(0, 6),
        st.sampled_from(["ann", "bob", "cas"]),
        st.sampled_from("abc"),
    ),
    max_size=30,
    unique_by=lambda row: (row.item, row.judge),
)


@given(rows, st.randoms(use_true_random=False))
def test_order_and_names_of_items_and_labels_change_nothing(
    known: list[Decision], rng: random.Random
) -> None:
    renamed = [
        row._replace(item=f"item {-row.item}", label={"a": "z", "b": "y", "c": "x"}[row.label])
        for row in known
    ]
    rng.shuffle(renamed)
    before, after = (agreement_report(each, resamples=0) for each in (known, renamed))
    for one, other in zip(before["pairs"], after["pairs"], strict=True):
        # a standard error of 0 is the root of a rounding error
        assert one == pytest.approx(other, abs=1e-6)
    for name, one in before["people"].items():
        assert one == pytest.approx(after["people"][name], abs=1e-6)


def test_the_command_reads_a_csv_and_prints_the_report(inf, tmp_path) -> None:
    path = tmp_path / "judgments.csv"
    path.write_text(
        "item,judge,label,kind\n"
        + "".join(f"{i},ann,{'pn'[i % 2]},person\n{i},bob,p,person\n" for i in range(12))
        + "".join(f"{i},gpt,{'pn'[i % 2]},model\n" for i in range(12))
    )
    done = inf("analyze", "agreement", "--judgments", path, "--json")
    assert done.code == 0, done.err
    by_names = {(pair["judge_a"], pair["judge_b"]): pair for pair in done.json["pairs"]}
    assert by_names["ann", "gpt"]["kappa"] == 1.0
    assert by_names["ann", "bob"]["kappa"] == 0.0
    # of two people ann is always as gpt, bob on half of the items: p_o 3/4; p_e 1/2·3/4 + 1/2·1/4
    assert done.json["human_model"]["gpt"]["value"] == 0.5
    assert "human–human" in inf("analyze", "agreement", "--judgments", path).out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("j.csv", "item,judge\n1,ann\n", "line 2: no `label`: the row has `item`, `judge`"),
        ("j.csv", "item,judge,label\n1,ann,\n", "line 2: empty `label`"),
        ("j.csv", "item,judge,label\n1,ann\n", "line 2: 2 fields where the header has 3"),
        ("j.csv", "item,judge,label\n1,ann,a\n1,ann,b\n", "line 3: ann judged 1 already in line 2"),
        ("j.csv", "item,judge,label,kind\n1,ann,a,robot\n", "line 2: `kind` is 'robot'"),
        (
            "j.csv",
            "item,judge,label,kind\n1,a,x,model\n2,a,x,person\n",
            "line 3: a is a person here",
        ),
        ("j.jsonl", '{"item": 1, "judge": "ann"}\n', "line 1: no `label`"),
        (
            "j.jsonl",
            '{"item": 1, "judge": "ann", "label": "x"}\nnonsense\n',
            "line 2: invalid JSON",
        ),
        ("j.jsonl", "[1, 2]\n", "line 1: invalid JSON: the line is not an object {…}: [1, 2]"),
        ("j.csv", "item,judge,label\n1,ann,a\0b\n", "line 2: NUL byte in `label`: 'a\\x00b'"),
        (
            "j.jsonl",
            '{"item": 1, "judge": "a\\u0000", "label": "x"}\n',
            "line 1: NUL byte in `judge`: 'a\\x00'; take it out",
        ),
        (
            "j.jsonl",
            '{"item": 1, "judge": "a", "label": "\\ud800"}\n',
            "lone surrogate U+D800",
        ),
        ("j.jsonl", '{"item": 1, "judge": "a", "label": 0.5}\n', "line 1: `label` is 0.5: a text"),
        ("j.jsonl", "", "holds no judgment"),
        ("none.csv", None, "there is no such file"),
    ],
)
def test_a_bad_file_is_refused_with_the_line(tmp_path, name, content, message) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(BadInput, match=re.escape(message)):
        read_judgments(tmp_path / name)


def test_the_command_reports_what_is_wrong_with_a_file(inf, tmp_path) -> None:
    (tmp_path / "j.csv").write_text("item,judge,label\n1,ann,\n")
    done = inf("analyze", "agreement", "--judgments", tmp_path / "j.csv", "--json")
    assert done.code == 1
    assert "j.csv, line 2: empty `label`" in json.loads(done.out)["error"]
    assert done.json["bad_rows"] == [{"file": "j.csv", "line": 2, "reason": "empty `label`: ''"}]


def test_wrong_arguments_end_with_2(inf, tmp_path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "one"}\n')
    for message in (
        ("agreement", "--judgments", tmp_path / "none.csv"),
        ("agreement", "--study", 1, "--since", "2026-02-01", "--until", "2026-01-01"),
        ("diversity", "--texts", tmp_path / "none.jsonl"),
        ("diversity", "--corpus", tmp_path / "none"),
        ("diversity", "--texts", tmp_path / "t.jsonl", "--source", "nq"),
        ("coverage", "--texts", tmp_path / "t.jsonl", "--onto", 1, "--fit", 20),
        ("contamination", "--texts", tmp_path / "t.jsonl"),
        ("contamination", "--texts", tmp_path / "t.jsonl", "--against", tmp_path / "none"),
    ):
        done = inf("analyze", *message, "--json")
        assert done.code == 2, message
        assert done.json["error"]


def test_bad_lines_of_texts_are_reported_before_a_job_is_made(sqlite_store: Store, inf, tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_bytes(b'{"text": "one"}\n{"txt": "two"}\n{"text": "a\\u0000"}\n')
    done = inf("analyze", "diversity", "--texts", path, "--json")
    assert done.code == 1
    assert done.json["bad_rows"] == [
        {"file": "texts.jsonl", "line": 2, "reason": "no `text`: the row has `txt`"},
        {"file": "texts.jsonl", "line": 3, "reason": "NUL byte in `text`: 'a\\x00'; take it out"},
    ]
    assert count_rows(sqlite_store, "job") == 0


def test_a_study_or_a_file_is_given_but_not_both(inf, tmp_path) -> None:
    (tmp_path / "x").touch()
    for message in ((), ("--study", 1, "--judgments", tmp_path / "x")):
        done = inf("analyze", "agreement", *message, "--json")
        assert done.code == 2
        assert "--study" in done.json["error"]


def test_the_command_reads_a_study_with_its_model_judges(store: Store, inf) -> None:
    run_id = grown(store, groups=12)
    with store.write() as session:
        groups = session.scalars(select(Group).where(Group.run_id == run_id)).all()
        study = Study(dataset_id=session.get_one(Run, run_id).dataset_id, name="s", overlap=2)
        judges = [
            Judge(name="simulated:1", kind="person", simulated=True),
            Judge(name="simulated:2", kind="person", simulated=True),
            Judge(name="offline:embedding", kind="model", offline=True),
        ]
        session.add_all([study, *judges])
        session.flush()
        for number, group in enumerate(groups):
            item = Item(
                group_id=group.id,
                scenario="positive",
                expected="positive",
                instruction="i",
                query="q",
                candidates=[{"passage_id": 1, "label": "positive"}],
            )
            session.add(item)
            session.flush()
            session.add(StudyItem(study_id=study.id, item_id=item.id))
            for judge in judges:
                wrong = number % 4 == 0 and judge.name == "simulated:2"
                session.add(
                    Judgment(
                        event_id=f"{judge.name} {number}",
                        judge_id=judge.id,
                        item_id=item.id,
                        study_id=study.id if judge.kind == "person" else None,
                        choice="none" if wrong or number % 4 == 3 else "positive",
                        order_shown=["positive"],
                    )
                )
        session.commit()
    done = inf("analyze", "agreement", "--study", study.id, "--json")
    assert done.code == 0, done.err
    assert done.json["study_id"] == study.id
    assert done.json["simulated"] is True
    # of each four p, p, p, n against n, p, p, n: p_o 3/4, p_e (3·2 + 1·2)/16 = 1/2, kappa 1/2
    assert done.json["human_human"]["value"] == 0.5
    assert done.json["human_human"]["coefficient"] == "cohen_kappa"
    # p, p, p, n with two people: p_o 7/8; p_e 3/4·5/8 + 1/4·3/8 = 9/16; 5/7
    assert done.json["human_model"]["offline:embedding"]["value"] == pytest.approx(5 / 7)
    assert "demo data, not evidence" in inf("analyze", "agreement", "--study", study.id).out
    assert "no study 99" in inf("analyze", "agreement", "--study", 99, "--json").json["error"]


def test_a_pair_is_one_and_few_are_counted_apart() -> None:
    """The sentence above the pairs, on the page and in the report, said `1 pairs`."""
    found = {"with_enough_items": 1, "with_fewer": 2, "min_shared": 10, "listed": 3, "pairs": 3}
    assert pairs_sentence(found) == (
        "1 pair with 10 or more shared items; 2 pairs with fewer, shown as a count."
    )
