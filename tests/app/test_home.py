"""Home: no light is green without evidence, no step is ticked by its count alone."""

from dataclasses import replace
from typing import Any

import pytest
from app_pages import open_page, words
from full_store import fill
from study_world import make_world, sampled_study

from analysis.figures.paired import Difference
from app.home import actions, example
from app.home import demo_actions as demo
from app.home.path import Judged, next_step, path_of
from app.home.quality import (
    Level,
    Light,
    Quality,
    flip_light,
    kappa_light,
    kept_light,
    leakage_light,
    precision_light,
)
from app.home.quality_actions import newest_judged, newest_pair
from db.outcome.evaluations import Scored
from db.outcome.overview import Overview
from db.people.audit import list_audit
from db.store.store import Store
from db.study.studies import StudySummary

EMPTY = Overview(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {}, 0, 0, 0, 0, 0)
FULL = replace(
    EMPTY,
    pairs=90,
    kept=60,
    dropped=30,
    judgments=180,
    reviews=30,
    analyses={"diversity": 1, "coverage": 1},
    releases=1,
    checkpoints=1,
)


def light(level: Level, view: str = "agreement") -> Light:
    return Light("Figure", "0.5", level, "by a rule.", view)


def quality(**levels: Level) -> Quality:
    names = ("kept", "leakage", "precision", "people", "model", "flip")
    return Quality(**{name: light(levels.get(name, "good")) for name in names})


def kappa(value: float | None, items: int = 90, *, simulated: bool = False) -> Light:
    mean = {"kappa": value, "reason": "fewer than two people have judged"}
    return kappa_light("Kappa", 1, mean, items, why_not="", simulated=simulated)


def test_a_kappa_of_nobody_of_few_items_or_of_simulated_people_is_never_good() -> None:
    assert kappa(None).level == "unknown" and "fewer than two people" in kappa(None).why
    assert kappa(0.9, 10).level == "look"
    assert kappa(0.9, simulated=True).level == "look"
    assert kappa(0.05).level == "problem"
    assert (kappa(0.61).level, kappa(0.59).level) == ("good", "look")
    assert kappa(0.75, 60).value == "0.75 (n = 60)"


def test_the_share_kept_of_a_few_finished_groups_says_nothing() -> None:
    assert kept_light(None, 0, 0, 0).level == "unknown"
    assert kept_light(1, 300, 10, 1).level == "unknown"
    assert kept_light(1, 300, 15, 5).level == "good"
    assert kept_light(1, 300, 40, 60).level == "look"
    assert kept_light(1, 300, 10, 90).level == "problem"


def test_one_leaking_comparison_is_a_problem_and_none_measured_is_not_good() -> None:
    report: dict[str, Any] = {"warn_above": 0.8, "leaks": [], "comparisons": {}}
    report["comparisons"] = {"I- / I+": {"auc": 0.55}, "P1- / P+": {"auc": None, "reason": "few"}}
    assert leakage_light(1, report).level == "good" and leakage_light(1, report).value == "0.55"
    report["comparisons"]["P1- / P+"] = {"auc": 0.91}
    leaking = leakage_light(1, {**report, "leaks": ["P1- / P+"]})
    assert leaking.level == "problem" and leaking.value == "0.91" and "P1- / P+" in leaking.why
    report["comparisons"] = {"I- / I+": {"auc": None, "reason": "12 pairs: 20 are needed"}}
    assert (
        leakage_light(1, report).level == "unknown" and "12 pairs" in leakage_light(1, report).why
    )
    assert leakage_light(None, None).level == "unknown"


@pytest.mark.parametrize(
    ("interval", "simulated", "level"),
    [
        ([0.82, 0.97], False, "good"),
        ([0.75, 0.97], False, "look"),
        ([0.5, 0.7], False, "problem"),
        (None, False, "look"),
        ([0.82, 0.97], True, "look"),
    ],
)
def test_precision_is_good_when_its_whole_interval_is(
    interval: list[float] | None, simulated: bool, level: str
) -> None:
    share = {"value": 0.9, "interval": interval, "judged": 45}
    about = {"precision": share, "simulated": simulated, "known": True, "judged": 45}
    assert precision_light(1, about, "").level == level


def test_a_flip_is_good_when_the_whole_interval_of_the_difference_is_above_zero() -> None:
    def of(low: float | None, high: float | None) -> Light:
        return flip_light(0.36, 0.5, Difference(0.14, low, high, 0.01, 90), "")

    assert of(0.05, 0.2).level == "good" and "0.36 → 0.50" in of(0.05, 0.2).value
    assert of(-0.01, 0.2).level == of(None, None).level == "look"
    assert flip_light(0.5, 0.3, Difference(-0.2, -0.3, -0.1, 0.01, 90), "").level == "problem"
    refused = flip_light(0.36, 0.5, None, "another seed")
    assert refused.level == "unknown" and "another seed" in refused.why


def test_the_base_is_the_one_on_the_benchmark_of_the_newest_trained_model() -> None:
    def scored(model: str, benchmark: str, checkpoint: int | None, number: int) -> Scored:
        base = None if checkpoint is None else "base"
        return Scored(model, benchmark, {"instruction-flip": 0.4}, checkpoint, base, number)

    old, new = scored("a", "held-out 1", 1, 2), scored("b", "held-out 2", 2, 3)
    base, other = scored("base", "held-out 2", None, 4), scored("base", "held-out 1", None, 1)
    assert newest_pair([other, old, base, new]) == (base, new)
    assert newest_pair([other, old, new]) == (None, new)
    assert newest_pair([base, other]) == (None, None)


def test_the_newest_study_that_people_judged_in_the_run_is_shown() -> None:
    assert newest_judged([], None) is None
    first = StudySummary(1, "a", "d", 1, "open", 9, 2, 0, 18, 3, "ann", None)  # type: ignore[arg-type]
    second = replace(first, id=2, done=0)
    assert newest_judged([second, first], None) == first
    assert newest_judged([second, replace(first, done=0)], None) == second


def step(title: str, found: Overview, made: Quality, judged: Judged | None = None) -> Any:
    return next(each for each in path_of(found, made, judged) if each.title == title)


def test_ten_of_ninety_judgments_are_no_tick_whatever_kappa_says() -> None:
    assert not step("Judge", FULL, quality(), Judged(1, 10, 90)).done
    assert step("Judge", FULL, quality(), Judged(1, 90, 90)).done
    assert not step("Judge", FULL, quality(people="problem"), Judged(1, 90, 90)).done
    assert not step("Judge", FULL, quality(), None).done
    assert not step("Judge", FULL, quality(), Judged(1, 0, 0)).done


def test_no_step_of_an_empty_store_is_done_and_the_first_is_next() -> None:
    nothing = quality(**dict.fromkeys(quality().__dataclass_fields__, "unknown"))
    steps = path_of(EMPTY, nothing)
    assert not any(each.done for each in steps)
    following = next_step(steps)
    assert following is not None and following.view == "datasets"


def test_a_problem_comes_next_before_what_deserves_a_look_and_good_steps_leave_nothing() -> None:
    judged = Judged(1, 90, 90)
    assert next_step(path_of(FULL, quality(), judged)) is None
    look = next_step(path_of(FULL, quality(kept="look"), judged))
    assert look is not None and look.view == "groups"
    assert look.parameters["verdict"] == "dropped"
    both = next_step(path_of(FULL, quality(kept="look", flip="problem"), judged))
    assert both is not None and both.view == "evaluations"


def test_a_leaking_run_is_not_done_however_much_it_kept() -> None:
    assert not step("Curate", FULL, quality(leakage="problem")).done


def test_home_says_nothing_about_a_study_to_who_judges_in_it(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    before = words(open_page("home"))
    assert "n \\= 6" in before or "n = 6" in before
    monkeypatch.setattr("app.home.quality_actions.is_member", lambda *_: True)
    after = words(open_page("home"))
    assert "You judge in this study" in after and "n \\= 6" not in after


def test_an_empty_store_offers_the_demo_and_an_import_and_explains_a_group(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    class Process:
        def __init__(self, command: list[str], **_: Any) -> None:
            started.append(command)

        def poll(self) -> None:
            return None

    page = open_page("home")
    assert {button.key for button in page.button} == {"home.load_demo", "home.import"}
    assert "why do leaves change color in fall" in words(page)
    monkeypatch.setattr(demo.subprocess, "Popen", Process)
    monkeypatch.setattr(demo, "_processes", {})
    page.button("home.load_demo").click().run()
    assert started[0][-2:] == ["demo", "--no-serve"] and not page.button
    with pytest.raises(Exception, match="being loaded already"):
        demo.load_demo.__wrapped__()  # type: ignore[attr-defined]
    assert len(started) == 1
    with sqlite_store.read() as session:
        assert list_audit(session)[0][0].action == "demo.load"


def test_the_step_of_the_demo_is_the_last_one_its_log_names() -> None:
    assert demo.current_step("") == "starting"
    log = "\n[1/11] Import the demo set\n$ inf import\n[2/11] Curate\n[broken] 3/11\n"
    assert demo.current_step(log) == "[2/11] Curate"


def test_the_example_is_a_kept_group_in_no_study_of_the_demo_and_hidden_from_its_judges(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = example.example_texts()
    assert len({texts[f"passage_{role}"] for role in ("positive", "instruction_negative")}) == 2
    fill(sqlite_store)
    assert "What is a group?" in [each.label for each in open_page("home").get("expander")]
    run_id = make_world(sqlite_store, 4, name="demo")
    monkeypatch.setattr(actions, "DEMO", "demo")
    monkeypatch.setattr(actions, "EXAMPLE", "0")
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=4, overlap=2, name="of the demo")
        session.commit()
    assert "What is a group?" not in [each.label for each in open_page("home").get("expander")]


def test_what_waits_is_counted_for_its_person_and_links_to_its_study(sqlite_store: Store) -> None:
    fill(sqlite_store)
    (link,) = [
        each.proto
        for each in open_page("home").main
        if each.type == "page_link" and "to judge" in each.proto.label
    ]
    assert link.label.replace("\\", "") == "6 items to judge in first study"
    assert "study=1" in link.query_string
