"""Home: no light is green without evidence, no step is ticked by its count alone."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import streamlit as st
from app_pages import cookies_of, open_page, send_cookies, sign_in, words
from full_store import fill
from sqlalchemy import select
from sqlalchemy.orm import Session
from study_world import make_world, sampled_study

from analysis.figures.flow import OTHER_REASONS, flow
from analysis.figures.paired import Difference
from analysis.found.runs import LeakageReport
from app.access.identity import SessionUser, owner
from app.home import example, start
from app.home.lights import model_to_show, read_quality
from app.home.path import Judged, next_step, path_of
from app.home.quality import (
    HIDDEN,
    TOO_MANY,
    Level,
    Light,
    Quality,
    agreement_light,
    flip_light,
    kept_light,
    leakage_light,
    precision_light,
)
from app.home.story import AGREEMENT, branches_of, dots_of, streams_of
from app.kit.menu import may_open
from app.operations.overview import demo, home
from app.operations.overview.quality import newest_judged, newest_pair
from curation.judging.agreement import Reader, study_report
from curation.rules.language import language_of
from db.assignment.members import add_member, may_be_given_items, pause_judge
from db.events import list_events
from db.outcome.checkpoints import record_checkpoint
from db.outcome.evaluations import Scored, record_evaluation
from db.outcome.overview import KeptGroups, Overview
from db.people.rights import Rights, set_rights
from db.run.runs import Funnel
from db.store.settings import logs
from db.store.store import Store
from db.study.adjudication import adjudicate
from db.study.rules import set_rules
from db.study.run_items import estimate_state
from db.study.studies import StudySummary, list_studies
from db.tables import (
    Account,
    Analysis,
    Dataset,
    Evaluation,
    Group,
    Item,
    Judge,
    Release,
    Study,
    StudyItem,
    utc_now,
)
from db.values import LOCAL_ADMIN
from trainer.evaluate.following import INSTRUCTION_CONTROL, INSTRUCTION_FLIP

EMPTY = Overview(0, 0, 0, 0, 0, 0, 0, {}, 0, 0, 0)
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


NAMES = ("kept", "leakage", "precision", "people", "model", "flip")


def quality(**levels: Level) -> Quality:
    return Quality(**{name: light(levels.get(name, "good")) for name in NAMES})


def user_with(*rights: str) -> SessionUser:
    return SessionUser("tom", "curator", 1, rights=Rights(everywhere=frozenset(rights)))


def figure(value: float | None, items: int = 90, **more: Any) -> dict[str, Any]:
    alpha = {"coefficient": "krippendorff_alpha", "label": "Krippendorff's alpha"}
    reason = {} if value is not None else {"reason": "fewer than two people have judged"}
    return {**alpha, "value": value, "items": items, **reason, **more}


def kappa(value: float | None, items: int = 90, *, simulated: bool = False) -> Light:
    return agreement_light("Alpha", 1, figure(value, items), why_not="", simulated=simulated)


def test_a_kappa_of_nobody_of_few_items_or_of_simulated_people_is_never_good() -> None:
    assert kappa(None).level == "unknown" and "fewer than two people" in kappa(None).why
    assert kappa(0.9, 10).level == "look"
    assert kappa(0.9, simulated=True).level == "look"
    assert kappa(0.05).level == "problem"
    assert (kappa(0.61).level, kappa(0.59).level) == ("good", "look")
    assert (kappa(0.596).value[:4], kappa(0.596).level) == ("0.60", "good")  # rated as printed
    assert kappa(0.75, 60).value == "0.75 (n = 60)"
    assert "Krippendorff's alpha over 60 items" in kappa(0.75, 60).why


def test_a_figure_with_flagged_people_names_them_and_itself_without_them() -> None:
    flagged = {"flagged": {"ann": "gold 1 of 6 right"}, "without_flagged": figure(0.85)}
    light = agreement_light("Alpha", 1, figure(0.7, **flagged), why_not="")
    assert light.level == "look"
    many = {f"person {number}": "gold 1 of 6 right" for number in range(7)}
    light_of_many = agreement_light(
        "Alpha", 1, figure(0.7, **flagged | {"flagged": many}), why_not=""
    )
    assert "person 4 (gold 1 of 6 right) and 2 more; without them: alpha" in light_of_many.why
    assert light.why.endswith("Flagged: ann (gold 1 of 6 right); without this person: alpha 0.85.")


def test_a_precision_with_flagged_people_is_never_good_and_has_itself_without_them() -> None:
    share = {"value": 0.9, "interval": [0.85, 0.95], "judged": 60}
    about = {"known": ["kept"], "judged": 60, "simulated": False, "precision": share}
    assert precision_light(1, about, "").level == "good"
    without = {"value": 0.7, "interval": [0.6, 0.8], "judged": 40}
    flagged = share | {"flagged": {"ann": "gold 1 of 6 right"}, "without_flagged": without}
    light = precision_light(1, about | {"precision": flagged}, "")
    assert light.level == "look"
    assert light.why.endswith(
        "Flagged: ann (gold 1 of 6 right). "
        "Precision without flagged people: 70.0% (60.0% to 80.0%)."
    )


def test_the_share_kept_of_a_few_finished_groups_says_nothing() -> None:
    assert kept_light(None, 0, 0, 0).level == "unknown"
    assert kept_light(1, 300, 10, 1).level == "unknown"
    assert kept_light(1, 12, 9, 3).level == kept_light(1, 12, 9, 1, is_done=True).level == "look"
    assert kept_light(1, 300, 15, 5).level == "good"
    assert kept_light(1, 300, 40, 60).level == "look"
    assert kept_light(1, 300, 10, 90).level == "problem"


def checked(report: dict[str, Any]) -> LeakageReport:
    return LeakageReport.model_validate(report)


def test_one_leaking_comparison_is_a_problem_and_none_measured_is_not_good() -> None:
    report: dict[str, Any] = {"warn_above": 0.8, "leaks": [], "comparisons": {}}
    report["comparisons"] = {"I- / I+": {"auc": 0.55}, "P1- / P+": {"auc": None, "reason": "few"}}
    assert (
        leakage_light(1, checked(report)).level == "good"
        and leakage_light(1, checked(report)).value == "0.55"
    )
    report["comparisons"]["P1- / P+"] = {"auc": 0.91}
    leaking = leakage_light(1, checked({**report, "leaks": ["P1- / P+"]}))
    assert leaking.level == "problem" and leaking.value == "0.91" and "P1- / P+" in leaking.why
    report["comparisons"] = {"I- / I+": {"auc": None, "reason": "12 pairs: 20 are needed"}}
    assert (
        leakage_light(1, checked(report)).level == "look"
        and "12 pairs" in leakage_light(1, checked(report)).why
    )
    assert leakage_light(None, None).level == "unknown"
    report["comparisons"]["I- / I+"] = {"auc": 0.55}
    old = leakage_light(1, checked(report), "measured before 3 groups were kept or edited")
    assert (old.level, old.value) == ("unknown", "–")
    assert old.why == "Outdated: measured before 3 groups were kept or edited."


@pytest.mark.parametrize(
    ("interval", "simulated", "level"),
    [
        ([0.82, 0.97], False, "good"),
        ([0.75, 0.97], False, "look"),
        ([0.797, 0.97], False, "good"),  # printed as 80 %
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
    counted = Difference(0.14, 0.05, 0.2, 0.01, 90, gained=20, lost=7)
    shown = flip_light(0.36, 0.5, counted, "", stays="The index of the/base stays valid.")
    assert "20 groups gained" in shown.why and "7 lost" in shown.why
    assert shown.why.endswith("The index of the/base stays valid.")
    one = flip_light(0.36, 0.5, Difference(0.14, 0.05, 0.2, 0.01, 90), "", seed=1)
    assert "newest trained model (one training, seed 1): +0.140 [+0.050" in one.why
    assert "(one training" not in of(0.05, 0.2).why, "of a model whose training is not known"
    refused = flip_light(0.36, 0.5, None, "another seed")
    assert refused.level == "unknown" and "another seed" in refused.why


@pytest.mark.parametrize(
    ("low", "high", "level"),
    [
        (0.0004, 0.09, "look"),
        (0.0006, 0.09, "good"),
        (-0.09, 0.0004, "problem"),
        (-0.0004, 0.1, "look"),
    ],
)
def test_the_level_of_a_flip_is_that_of_the_interval_as_printed(
    low: float, high: float, level: str
) -> None:
    found = flip_light(0.36, 0.4, Difference(0.04, low, high, 0.01, 90), "")
    assert found.level == level and "-0.000" not in found.why


def test_a_circular_flip_is_never_good_and_names_who_chose_its_groups() -> None:
    def of(low: float, high: float) -> Light:
        difference = Difference(0.14, low, high, 0.01, 90)
        return flip_light(0.36, 0.5, difference, "", ["Circular on x: it is the validator."])

    assert of(0.05, 0.2).level == "look" and "it is the validator" in of(0.05, 0.2).why
    assert of(-0.3, -0.1).level == "problem"


def test_home_knows_that_the_base_model_chose_the_groups_of_the_flip(sqlite_store: Store) -> None:
    base, benchmark = "sentence-transformers/all-MiniLM-L6-v2", "held-out x 123456789abc"
    questions = {f"g{number}": {"cluster": f"g{number}", "scored": True} for number in range(40)}
    names = ("corpus", "queries", "judgments", "candidates", "forms")
    parts = dict.fromkeys(names, "a" * 64) | {"documents": 9, "questions": 9}
    with sqlite_store.write() as session:
        trained = record_checkpoint(session, path="/m/new", base_model=base, config={}, summary={})
        for model, flipped, checkpoint_id in ((base, 12, None), ("/m/new", 36, trained.id)):
            record_evaluation(
                session,
                model=model,
                benchmark=benchmark,
                metrics={INSTRUCTION_FLIP: flipped / 40, INSTRUCTION_CONTROL: flipped / 40},
                per_query={
                    name: {INSTRUCTION_FLIP: float(number < flipped)}
                    for number, name in enumerate(questions)
                },
                questions=questions,
                record={
                    "format": 3,
                    "benchmark": parts,
                    "model": {"weights_sha256": model},
                    "held_out": {"choice": "kept", "approved": False, "validators": {base: None}},
                },
                checkpoint_id=checkpoint_id,
            )
        session.commit()
    (flip,) = read_quality(user_with("train")).quality.lights
    assert flip.level == "look" and "Circular on held-out x" in flip.why
    assert "by the instruction alone, it gained +60.0 points" in flip.why


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
    first = StudySummary(
        id=1,
        name="a",
        dataset="d",
        run_id=1,
        status="open",
        items=9,
        overlap=2,
        seed=0,
        places=18,
        done=3,
        created_by="ann",
        created_at=utc_now(),
    )
    second = first.model_copy(update={"id": 2, "done": 0})
    assert newest_judged([second, first], None) == first
    assert newest_judged([second, first.model_copy(update={"done": 0})], None) == second


@pytest.mark.parametrize(
    ("right", "views"), [("train", ["train", "evaluations"]), ("release", ["releases"])]
)
def test_what_the_user_may_not_see_is_not_called_missing_nor_next(
    sqlite_store: Store, right: str, views: list[str]
) -> None:
    make_world(sqlite_store, 4)
    user = user_with(right)
    found = read_quality(user)
    assert found.judged is None
    assert [each.label for each in found.quality.lights] == ["Instruction flip"] * (
        right == "train"
    )
    steps = path_of(EMPTY, found.quality, may_open=partial(may_open, user))
    assert [each.view for each in steps] == views
    assert next_step(steps) is steps[0]


def test_a_curator_of_an_empty_store_reads_that_nothing_is_known_yet(
    sqlite_store: Store,
) -> None:
    found = read_quality(user_with("curate"))
    assert [each.level for each in found.quality.lights] == ["unknown"] * 5
    assert next_step(path_of(EMPTY, found.quality)) is not None


def test_the_precision_is_of_the_studys_own_run_and_follows_decisions_and_verdicts(
    sqlite_store: Store,
) -> None:
    """A newer run must not hide it, and neither changes a judgment that agreement counts."""
    fill(sqlite_store)
    make_world(sqlite_store, 4, name="newer")
    st.cache_data.clear()

    def precision() -> Light:
        found = read_quality(user_with("curate")).quality.precision
        assert found is not None
        return found

    before = precision()
    assert before.why != TOO_MANY and before.value != "100%"
    with sqlite_store.write() as session:
        chosen = select(Item).join(StudyItem, StudyItem.item_id == Item.id)
        for item in session.scalars(chosen.where(StudyItem.study_id == 1)):
            adjudicate(session, 1, item.id, item.scenario, by="cora")
        session.commit()
    assert precision().value == "100%"
    with sqlite_store.write() as session:
        state = estimate_state(session, 1)
        groups = session.scalars(select(Group).where(Group.run_id == 1)).all()
        kept, dropped = (
            next(each for each in groups if each.verdict == verdict)
            for verdict in ("kept", "dropped")
        )
        kept.verdict, kept.drop_reason = "dropped", dropped.drop_reason
        dropped.verdict, dropped.drop_reason = "kept", None
        session.flush()
        assert estimate_state(session, 1) != state, "as many are kept, but others"


def test_the_models_kappa_is_the_validators_and_never_the_best_of_several() -> None:
    shared = {"lucky": 2, "busy": 60, "validator": 40}
    assert model_to_show(shared, ["validator"]) == ("validator", "the run's validator")
    assert model_to_show(shared, ["absent"]) == ("busy", "the model judge of the most items")
    assert model_to_show({}, ["validator"]) == (None, "")
    kappa = agreement_light("A", 1, figure(0.7, 40), why_not="", whose="the run's validator")
    assert "with the run's validator" in kappa.why


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


def undefined(level: Level = "unknown", why: str = "fewer than two people") -> Quality:
    return replace(quality(), people=Light("Kappa", "–", level, why, "agreement"))


def test_judging_that_can_go_no_further_leads_to_another_study() -> None:
    for judged in (
        Judged(2, 10, 10, is_own=True, is_closed=True),
        Judged(2, 3, 10, is_closed=True),
    ):
        found = step("Judge", FULL, undefined(), judged)
        assert (found.button, dict(found.parameters)) == ("Create a study", {})
        assert "second person" not in found.state
        other = step("Judge", FULL, undefined(), replace(judged, other_id=7))
        assert (other.button, other.parameters["study"]) == ("Judge or invite people", "7")
    assert step("Judge", FULL, undefined(), Judged(2, 3, 10, is_own=True)).view == "judge"


def test_a_step_in_which_nothing_can_be_done_is_never_to_do() -> None:
    few = kept_light(1, 12, 9, 3)
    report = {"warn_above": 0.8, "leaks": [], "comparisons": {"a": {"auc": None, "reason": "few"}}}
    made = replace(quality(), kept=few, leakage=leakage_light(1, checked(report)))
    assert step("Curate", FULL, made).level == "look"
    judged = Judged(1, 90, 90)
    for why in (HIDDEN, TOO_MANY):
        assert step("Judge", FULL, undefined(why=why), judged).level == "look"
    unknown = quality(precision="unknown")
    assert step("Agreement", FULL, unknown, judged).level == "look"
    assert step("Agreement", FULL, unknown, Judged(1, 10, 90)).level == "unknown"
    early = Judged(1, 50, 90, is_closed=True)
    assert step("Judge", FULL, quality(), early).level == "look"
    assert step("Judge", FULL, quality(people="problem"), early).level == "problem"


def test_a_leaking_run_is_not_done_however_much_it_kept() -> None:
    assert not step("Curate", FULL, quality(leakage="problem")).done


def test_home_says_nothing_about_a_study_to_who_judges_in_it(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    before = words(open_page("home"))
    assert "n \\= 12" in before or "n = 12" in before
    blind = Reader("local admin", frozenset({1}))
    monkeypatch.setattr("app.operations.overview.quality.reader_of", lambda *_: blind)
    after = words(open_page("home"))
    assert "You judge in this study" in after and "n \\= 12" not in after


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
    assert {button.key for button in page.button} == {"tour.skip", "home.load_demo", "home.import"}
    assert "why do leaves change color in fall" in words(page)
    monkeypatch.setattr(demo.subprocess, "Popen", Process)
    monkeypatch.setattr(demo, "_processes", {})
    page.button("home.load_demo").click().run()
    assert started[0][-2:] == ["demo", "--no-serve"]
    assert [button.key for button in page.button] == ["tour.skip"]
    with pytest.raises(Exception, match="being loaded already"):
        start.load_demo.__wrapped__()  # type: ignore[attr-defined]
    assert len(started) == 1
    with sqlite_store.read() as session:
        assert list_events(session)[0][0].name == "demo.load"


def test_the_step_of_the_demo_is_the_last_one_its_log_names() -> None:
    assert demo.current_step("") == "starting"
    log = "\n[1/11] Import the demo set\n$ inf import\n[2/11] Curate\n[broken] 3/11\n"
    assert demo.current_step(log) == "[2/11] Curate"


def test_the_example_is_a_kept_group_in_no_study_of_the_demo_and_hidden_from_its_judges(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for language, query_id in home.EXAMPLES.items():
        texts = example.example_texts(query_id)
        assert len({texts[f"passage_{role}"] for role in ("positive", "instruction_negative")}) == 2
        assert language_of(texts["passage_positive"]) == language
    fill(sqlite_store)
    assert "What is a group?" in [each.label for each in open_page("home").get("expander")]
    run_id = make_world(sqlite_store, 4, name="demo")
    monkeypatch.setattr(home, "DEMO", "demo")
    monkeypatch.setitem(home.EXAMPLES, "en", "0")
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=4, overlap=2, name="of the demo")
        session.commit()
    assert "What is a group?" not in [each.label for each in open_page("home").get("expander")]


def links(text: str) -> list[Any]:
    """The page links of Home with this text."""
    found = [each.proto for each in open_page("home").main if each.type == "page_link"]
    return [each for each in found if text in each.label]


def test_what_waits_is_counted_for_its_person_and_links_to_its_study(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    reads: list[Session] = []

    def counted(session: Session) -> list[StudySummary]:
        reads.append(session)
        return list_studies(session)

    monkeypatch.setattr("app.operations.overview.home.list_studies", counted)
    (link,) = links("to judge")
    assert link.label.replace("\\", "") == "12 items to judge in first study"
    assert "study=1" in link.query_string
    assert len(reads) == 1, "the list of studies is read once"
    with sqlite_store.write() as session:
        set_rules(session, 1, members_only=True)
        session.commit()
    assert links("to judge") == [], "they are not invited"
    with sqlite_store.read() as session:
        judge_id = session.scalars(select(Judge.id).where(Judge.name == LOCAL_ADMIN)).one()
        assert not may_be_given_items(session, 1, judge_id)
        add_member(session, 1, judge_id)
        assert may_be_given_items(session, 1, judge_id)
        pause_judge(session, 1, judge_id, "too fast")
        assert not may_be_given_items(session, 1, judge_id)


def test_an_adjudicator_sees_on_home_what_waits_for_a_decision(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    cookies = cookies_of(sqlite_store, "annotator")
    with sqlite_store.write() as session:
        account = session.scalars(select(Account)).one()
        set_rights(session, account, ["adjudicate"], actor="test", study_id=1)
        session.commit()
    send_cookies(monkeypatch, cookies)
    (link,) = links("Disputed")
    assert "study=1" in link.query_string and "first study" in link.label


class Failed:
    """A demo that ended with an error."""

    def poll(self) -> int:
        return 1


@pytest.fixture
def failed_demo(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store of an app whose demo failed."""
    logs().mkdir(parents=True, exist_ok=True)
    (logs() / demo.LOG).write_text("[2/11] Curate\nno space on /srv/secret\n")
    monkeypatch.setattr(demo, "_processes", {sqlite_store.url: Failed()})
    return sqlite_store


def test_who_may_use_the_server_sees_why_the_demo_failed_until_they_dismiss_it(
    failed_demo: Store,
) -> None:
    page = open_page("home")
    assert "/srv/secret" in words(page) and page.button("home.resume_demo")
    page.button("home.dismiss_demo").click().run()
    assert not page.exception and "The demo stopped" not in words(page)
    assert demo._processes == {}


def test_others_see_neither_the_log_of_the_demo_nor_buttons_that_refuse(
    failed_demo: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(failed_demo, monkeypatch, "curator")
    page = open_page("home")
    (warning,) = page.warning
    assert "The demo stopped" in warning.value and "secret" not in warning.value + words(page)
    assert not [each.key for each in page.button if each.key and "demo" in each.key]


def test_a_failed_demo_that_was_completed_since_is_no_longer_shown(failed_demo: Store) -> None:
    assert demo.loading(owner("ada")) == demo.Loading("[2/11] Curate", "no space on /srv/secret")
    with failed_demo.write() as session:
        dataset = Dataset(name="demo", source="test", licence="CC0-1.0")
        session.add(dataset)
        session.flush()
        empty: dict[str, Any] = {"filter": {}, "counts": {}, "card": "", "offline": True}
        release = Release(
            dataset_id=dataset.id,
            name="demo",
            content_sha256="0" * 64,
            path="/x",
            format="parquet",
            **empty,
        )
        session.add(release)
        session.flush()
        checkpoint = record_checkpoint(
            session, path="/m", base_model="b", config={}, summary={}, release_id=release.id
        )
        session.add(
            Evaluation(
                model="/m", benchmark="x", metrics={}, per_query={}, checkpoint_id=checkpoint.id
            )
        )
        session.add(
            Analysis(
                dataset_id=dataset.id, kind="diversity", inputs_sha256="a", config={}, result={}
            )
        )
        session.commit()
    assert demo.loading(owner("ada")) is not None, "the map is still missing"
    with failed_demo.write() as session:
        session.add(
            Analysis(dataset_id=1, kind="coverage", inputs_sha256="b", config={}, result={})
        )
        session.commit()
    assert demo.loading(owner("ada")) is None


def test_every_group_of_a_run_is_in_the_picture_once() -> None:
    """Two reasons whose first words are the same, a waiting group, reviews of every kind."""
    dropped = {"judge_other_p1": 1, "judge_other_p2": 1, "judge_none": 37}
    found = Funnel(1, 1, pairs=50, waiting=2, in_work=1, reached={}, kept=8, dropped=dropped)
    kept = [
        KeptGroups("none", True, True, 3),
        KeptGroups("approve", True, False, 2),
        KeptGroups("edit", False, False, 1),
        KeptGroups("reject", False, False, 2),
    ]
    streams = streams_of(found, kept)
    of_pairs = {one.end: one.groups for one in streams if one.start == "Pairs" and one.groups}
    assert sum(of_pairs.values()) == 50 and len(of_pairs) == 5
    assert sum(one.groups for one in streams if one.start == "Kept") == 8
    assert sum(one.groups for one in streams if one.end == "Released") == 5
    assert [one.groups for one in streams if one.end == "Trained"] == [3]
    branches = branches_of(found, kept)
    to_review = {"run": 1, "verdict": "kept", "review": "none"}
    assert branches["Not reviewed"] == ("Not reviewed: 3", "groups", to_review)
    assert branches["Kept"].parameters == {"run": 1, "verdict": "kept"}
    of_kept = {"run": 1, "verdict": "kept"}
    assert [branches[name] for name in ("Not finished", "Released", "Trained")] == [
        ("Not finished: 3", "groups", {"run": 1, "status": "unfinished"}),
        ("Released: 5", "groups", of_kept | {"status": "released"}),
        ("Trained: 3", "groups", of_kept | {"status": "trained"}),
    ]
    assert set(branches) == {one.end for one in streams if one.groups}
    rare = Funnel(1, 1, 9, 0, 0, {}, 0, {f"reason_{n}": 1 for n in range(9)})
    summed = branches_of(rare, [])
    assert summed[OTHER_REASONS].parameters == {"run": 1, "verdict": "dropped"}
    assert summed[OTHER_REASONS].label == "other reasons: 3" and len(summed) == 10
    (sankey,) = flow(streams, list(branches)).data
    assert [list(branches)[n] for n in sankey.link.customdata] == [
        one.end for one in streams if one.groups
    ]
    assert sankey.node.customdata[0] == -1, "the pairs have no link"


def test_home_draws_the_intervals_that_the_agreement_page_reports(sqlite_store: Store) -> None:
    fill(sqlite_store)
    with sqlite_store.write() as session:
        session.get_one(Study, 1).status = "closed"  # its figures are hidden from nobody
        session.commit()
    found = read_quality(user_with("curate")).figures.of_study
    assert found is not None and found.report is not None
    with sqlite_store.read() as session:
        whole = study_report(session, 1)["report"]
    assert found.report["human_model"] == whole["human_model"]
    assert found.report["human_human"] == whole["human_human"]
    drawn = dots_of(found, None)[AGREEMENT]
    assert drawn and all(dot.interval is not None for dot in drawn)
