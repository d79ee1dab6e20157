import json
import random
import re

import pytest
from conftest import count_rows
from grown_dataset import grown
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from sqlalchemy import select

from analysis.agreement import agreement
from analysis.agreement.agreement import Decision, agreement_report
from analysis.agreement.answers import number_decisions
from analysis.agreement.cohen import NO_ITEMS, ONE_LABEL
from analysis.agreement.judgment_file import read_judgments
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


def test_the_means_are_over_pairs_of_people_and_of_a_model_with_each_person() -> None:
    report = agreement_report(decisions(ann="aabb", bob="aabb", cas="abab", M="aabb"))
    # ann–bob 1, ann–cas 0, bob–cas 0 (p_o = p_e = 1/2)
    assert report["human_human"]["kappa"] == pytest.approx(1 / 3)
    assert report["human_human"]["pairs"] == 3
    assert report["human_model"]["M"]["kappa"] == pytest.approx((1 + 1 + 0) / 3)
    assert len(report["pairs"]) == 6
    assert report["items"] == 4
    assert report["judgments"] == 16


def test_kappa_is_over_the_items_both_judged() -> None:
    report = agreement_report(decisions(ann="aabb..", bob="aab.ba"))
    (pair,) = report["pairs"]
    assert pair["items"] == 3
    assert pair["kappa"] == pytest.approx(cohen_kappa_score(list("aab"), list("aab")))


def test_a_pair_without_a_number_says_why_and_is_left_out_of_the_mean() -> None:
    report = agreement_report(decisions(ann="aa..", bob="..ab", cas="aaab", dan="aaab"))
    by_names = {(pair["judge_a"], pair["judge_b"]): pair for pair in report["pairs"]}
    assert by_names["ann", "bob"]["kappa"] is None
    assert by_names["ann", "bob"]["reason"] == NO_ITEMS
    assert by_names["ann", "cas"]["reason"] == ONE_LABEL
    assert by_names["ann", "cas"]["agreement"] == 1.0
    assert report["human_human"]["kappa"] == 1.0
    assert report["human_human"]["pairs"] == 3
    assert report["human_human"]["undefined_pairs"] == 3


def test_no_judge_one_judge_and_no_person_give_a_sentence_and_no_number() -> None:
    no_judges = agreement_report([])["human_human"]
    assert (no_judges["kappa"], no_judges["interval"], no_judges["pairs"]) == (None, None, 0)
    assert no_judges["reason"] == "fewer than two people have judged"
    one = agreement_report(decisions(ann="ab"))
    assert one["human_human"]["kappa"] is None
    assert one["pairs"] == []
    models = agreement_report(decisions(M="ab", N="ab"))
    assert models["human_model"]["M"]["kappa"] is None
    assert models["human_model"]["M"]["reason"] == "no person has judged"
    all_equal = agreement_report(decisions(ann="aa", bob="aa"))
    assert all_equal["human_human"]["kappa"] is None
    assert all_equal["human_human"]["reason"] == ONE_LABEL


def test_simulated_judges_stand_in_only_where_no_real_person_has_judged() -> None:
    simulated = [
        Decision(item, judge, label, "person", simulated=True)
        for judge, labels in (("simulated:1", "abab"), ("simulated:2", "abba"))
        for item, label in enumerate(labels)
    ]
    alone = agreement_report(simulated)
    assert alone["simulated"] is True
    assert alone["human_human"]["kappa"] == 0.0
    mixed = agreement_report([*simulated, *decisions(ann="abab", bob="abab")])
    assert mixed["simulated"] is False
    assert mixed["simulated_left_out"] == 2
    assert mixed["human_human"]["kappa"] == 1.0
    assert mixed["human_human"]["pairs"] == 1
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
    assert good["difference"] == means["GOOD"]["kappa"] - means["POOR"]["kappa"]
    low, high = means["GOOD"]["interval"]
    assert low < means["GOOD"]["kappa"] < high


def test_with_too_many_patterns_the_standard_error_gives_the_same_interval(monkeypatch) -> None:
    known = noisy({"ann": 0.9, "bob": 0.8, "GOOD": 0.9, "POOR": 0.6})
    known = [row for row in known if (int(row.item) * 31 + ord(row.judge[0])) % 7]  # gaps
    resampled = agreement_report(known)
    monkeypatch.setattr(agreement, "MAX_PATTERNS", 1)
    by_error = agreement_report(known)
    for one, other in (
        (resampled["human_human"], by_error["human_human"]),
        (resampled["human_model"]["GOOD"], by_error["human_model"]["GOOD"]),
        (resampled["differences"][0], by_error["differences"][0]),
    ):
        assert one["interval_from"] == "posterior"
        assert other["interval_from"] == "standard_error"
        assert other["interval"] == pytest.approx(one["interval"], abs=0.012)
    for measure in by_error["people"].values():
        assert measure["interval"] is None
        assert "patterns of answers, more than 1" in measure["reason"]


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
        + "".join(f"{i},ann,{'pn'[i % 2]},person\n{i},bob,p,person\n" for i in range(4))
        + "".join(f"{i},gpt,{'pn'[i % 2]},model\n" for i in range(4))
    )
    done = inf("analyze", "agreement", "--judgments", path, "--json")
    assert done.code == 0, done.err
    by_names = {(pair["judge_a"], pair["judge_b"]): pair for pair in done.json["pairs"]}
    assert by_names["ann", "gpt"]["kappa"] == 1.0
    assert by_names["ann", "bob"]["kappa"] == 0.0
    assert done.json["human_model"]["gpt"]["kappa"] == 0.5
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
    run_id = grown(store, groups=4)
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
                instruction="i",
                query="q",
                candidates=[{"passage_id": 1, "label": "positive"}],
            )
            session.add(item)
            session.flush()
            session.add(StudyItem(study_id=study.id, item_id=item.id))
            for judge in judges:
                wrong = number == 0 and judge.name == "simulated:2"
                session.add(
                    Judgment(
                        event_id=f"{judge.name} {number}",
                        judge_id=judge.id,
                        item_id=item.id,
                        study_id=study.id if judge.kind == "person" else None,
                        choice="none" if wrong or number == 3 else "positive",
                        order_shown=["positive"],
                    )
                )
        session.commit()
    done = inf("analyze", "agreement", "--study", study.id, "--json")
    assert done.code == 0, done.err
    assert done.json["study_id"] == study.id
    assert done.json["simulated"] is True
    # p, p, p, n against n, p, p, n: p_o 3/4, p_e (3·2 + 1·2)/16 = 1/2, kappa 1/2
    assert done.json["human_human"]["kappa"] == 0.5
    assert done.json["human_model"]["offline:embedding"]["kappa"] == 0.75
    assert "demo data, not evidence" in inf("analyze", "agreement", "--study", study.id).out
    assert "no study 99" in inf("analyze", "agreement", "--study", 99, "--json").json["error"]
