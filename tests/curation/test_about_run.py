"""What a study says about its run, from the store: sampled, listed, disputed and kept-only."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from app_pages import open_page, open_tab, words
from conftest import Ran
from exporting import export
from made_study import make_study
from records_world import group_ids, make_run
from sqlalchemy import select
from sqlalchemy.orm import Session
from statement_count import statements_counted

from analysis.study.design import DISPUTED, LISTED
from curation.judging.about_run import about_run, extend_by_plan, plan_for
from curation.judging.consensus import study_consensus
from curation.judging.sampling import Sampling
from db.errors import BadInput, Refused
from db.shape import INF_IR
from db.store.store import Store
from db.study import studies
from db.study.judgments import get_or_create_judge, record_judgment
from db.study.run_items import run_item_kinds, run_population
from db.tables import Group, Item, Judgment, Pair, StudyItem, utc_now


def judge_all(store: Store, study_id: int, people: Sequence[str] = ("ada", "bob")) -> None:
    """People confirm what the validator passed, and every fourth item that it missed."""
    with store.write() as session:
        study = studies.get_study(session, study_id)
        assert study.run_id is not None
        kinds = run_item_kinds(session, study.run_id)
        items = select(Item).join(StudyItem).where(StudyItem.study_id == study_id)
        for item in session.scalars(items):
            is_right = kinds[item.id][1].passed or item.group_id % 4 == 0
            for name in people:
                judge = get_or_create_judge(session, name, kind="person")
                record_judgment(
                    session,
                    judge_id=judge.id,
                    item_id=item.id,
                    choice=item.scenario if is_right else "none",
                    order_shown=list(INF_IR.roles),
                    event_id=f"{name} {study_id} {item.id}",
                    study_id=study_id,
                )
        session.commit()


def make(store: Store, items: int | None, sampling: Sampling, study_id: int = 1) -> None:
    made = make_study(store, dataset="books", items=items, overlap=2, sampling=sampling)
    assert made["study_id"] == study_id
    judge_all(store, study_id)


def test_a_sampled_study_estimates_the_run(store: Store) -> None:
    make_run(store, kept=30, dropped=20)
    make(store, 30, Sampling(strata=("scenario", "verdict")))
    with store.read() as session:
        report = about_run(session, 1)
    assert report["groups"] == {"kept": 30, "dropped": 20}  # one was dropped before validation
    assert report["judged"] == 30 and not report["simulated"]
    assert report["precision"]["value"] == 1
    overturned, recall = report["overturned"]["value"], report["recall"]["value"]
    assert 0 < overturned < 0.6
    # the validator missed all three items of its dropped groups: 90 passed, 60 missed
    assert recall == pytest.approx(90 / (90 + 60 * overturned))
    assert report["dropped_groups"]["high"] == pytest.approx(overturned)


@pytest.mark.long
def test_estimates_name_the_flagged_people_and_have_themselves_without_them(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    """Three people reject every passage, in half a second each; without them it is as before."""
    make_run(sqlite_store, kept=30, dropped=20)
    make(sqlite_store, 30, Sampling(strata=("scenario", "verdict")))
    with sqlite_store.write() as session:
        before, agreed = about_run(session, 1), study_consensus(session, 1)
        items = session.scalars(select(StudyItem.item_id)).all()
        for name in ("eve", "fay", "gus"):
            judge = get_or_create_judge(session, name, kind="person")
            for item_id in items:
                at = utc_now()
                session.add(
                    Judgment(
                        event_id=f"{name} {item_id}",
                        judge_id=judge.id,
                        item_id=item_id,
                        study_id=1,
                        choice="none",
                        order_shown=list(INF_IR.roles),
                        shown_at=at - timedelta(seconds=0.5),
                        decided_at=at,
                    )
                )
        session.commit()
        report = about_run(session, 1)
        consensus = study_consensus(session, 1)
        assert "flagged" not in str(study_consensus(session, 1, with_flags=False)["judges"])
    assert list(report["flagged"]) == ["eve", "fay", "gus"]
    figures = ("precision", "overturned", "recall", "kept_groups", "dropped_groups", "group_recall")
    for name in figures:
        assert report[name]["flagged"] == report["flagged"]
        assert report[name]["without_flagged"] == before[name], name
    assert report["precision"]["value"] == 0
    assert all(part["without_flagged"] in before["parts"] for part in report["parts"])
    assert list(consensus["flagged"]) == ["eve", "fay", "gus"]
    assert consensus["without_flagged"] == {"sure": agreed["sure"]}
    others = [row["without_flagged"] for row in consensus["judges"]]
    assert [row for row in others if row is not None] == agreed["judges"]
    assert others.count(None) == 3
    told = inf("study", "consensus", "--study", 1).out
    assert "Flagged: eve (100% of answers under 1.5 s), fay" in told
    assert f"Without them {agreed['sure']} labels are that sure." in told
    shown = inf("study", "estimate", "--study", 1).out
    assert "Flagged: eve (100% of answers under 1.5 s), fay" in shown
    (head, first, *_) = shown[shown.index("Figure") :].splitlines()  # the table of the page
    assert "Without flagged people" in head and " 1.0000" in first
    page = open_page("agreement")
    assert not page.exception and "Flagged: eve" in words(page).replace("\\", "")
    open_tab(page, "Whole run", key="agreement.tab")
    assert not page.exception and "threshold" not in words(page)
    # every judgment of the run is read for the opened drawer
    page.session_state["agreement.stricter"] = True
    assert "No threshold to explore" in words(page.run())
    frames = [frame.value for frame in (*page.dataframe, *page.table)]
    assert sum("Without flagged people" in frame for frame in frames) >= 2


def test_listed_disputed_and_kept_only_studies_say_only_what_is_known(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    run_id = make_run(sqlite_store, kept=20, dropped=12)
    make(sqlite_store, 20, Sampling())
    kept = tuple(str(one) for one in group_ids(sqlite_store, run_id, "kept"))
    make(sqlite_store, None, Sampling("list", lines=kept), 2)
    make(sqlite_store, 6, Sampling("disagreement", of_study=1), 3)
    make(sqlite_store, 12, Sampling("random", only="kept"), 4)
    for study_id, reason in ((2, LISTED), (3, DISPUTED)):
        shown = inf("study", "estimate", "--study", study_id).out
        assert "says nothing about the run" in shown and reason in shown
        assert "%" not in shown
        with pytest.raises(BadInput, match="no plan"), sqlite_store.read() as session:
            plan_for(session, study_id, target="precision", reach=0.05)
    shown = inf("study", "estimate", "--study", 4).out
    assert "People confirm 100.0%" in shown
    assert "Recall is not known: only kept groups were sampled" in shown
    assert "of the items that people confirm" not in shown.lower()


def test_the_planned_items_are_added_and_the_study_stays_a_sample(store: Store) -> None:
    make_run(store, kept=60, dropped=40)
    make(store, 20, Sampling())
    with store.write() as session:
        plan = extend_by_plan(session, 1, target="recall", reach=None, items=25)
        session.commit()
    with store.read() as session:
        places = session.execute(
            select(StudyItem.position, StudyItem.places).where(StudyItem.study_id == 1)
        ).all()
        settings = studies.get_study(session, 1).settings
    assert plan.items == 25 and len(places) == 45
    assert sorted(position for position, _ in places) == list(range(45))
    assert {overlap for _, overlap in places} == {2}
    assert settings["additions"][0]["items"] == 25
    judge_all(store, 1, ("cas", "dan"))
    with store.read() as session:
        report = about_run(session, 1)
    assert report["judged"] == 45 and report["recall"]["interval"] is not None


def test_the_command_plans_first_and_adds_only_with_add(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    make_run(sqlite_store, kept=60, dropped=30)
    make(sqlite_store, 15, Sampling())
    arguments = ("study", "plan", "--study", 1, "--target", "precision", "--reach", 6)
    shown = inf(*arguments).out
    assert "to know precision to ±6 points (now ±" in shown
    assert "more judgments" in shown and "kept groups" in shown and "nothing added" in shown
    result = inf(*arguments, "--json").json
    assert result["judgments"] == 2 * result["items"]
    with sqlite_store.read() as session:
        assert len(session.scalars(select(StudyItem)).all()) == 15
    inf(*arguments, "--add")
    with sqlite_store.read() as session:
        assert len(session.scalars(select(StudyItem)).all()) == 15 + result["items"]


def test_a_closed_study_takes_no_items(sqlite_store: Store) -> None:
    make_run(sqlite_store, kept=20, dropped=10)
    make(sqlite_store, 10, Sampling())
    with sqlite_store.write() as session:
        studies.set_status(session, 1, "closed")
        with pytest.raises(Refused, match="study 1 is closed"):
            extend_by_plan(session, 1, target="precision", reach=0.02)


def test_the_card_has_estimates_of_a_sampled_study_and_none_of_a_list(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    run_id = make_run(sqlite_store, kept=20, dropped=12)
    make(sqlite_store, 24, Sampling())
    kept = tuple(str(one) for one in group_ids(sqlite_store, run_id, "kept"))
    make(sqlite_store, None, Sampling("list", lines=kept), 2)
    export(sqlite_store, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    circular = "offline:embedding is the validator that chose this run's groups"
    assert circular in card
    assert circular in inf("analyze", "agreement", "--study", 1, "--resamples", 0).out
    assert "Validator over the run, by study 1: People confirm 100.0% (" in card
    assert "| Dropped groups that people would keep | 0.0% to " in card
    assert "Validator over the run, by study 2" not in card
    assert f"This study says nothing about the run as a whole: {LISTED}." in card


def test_what_the_store_counts_is_what_the_rows_say(store: Store) -> None:
    """Unasked, half-answered and twice-answered items, another run's and an edited text's answers,
    pairs with a source and without."""
    run_id = make_run(store, kept=9, dropped=6)
    make_run(store, kept=3, dropped=1, name="other")
    with store.write() as session:
        answers = session.execute(
            select(Judgment, Item)
            .join(Item, Item.id == Judgment.item_id)
            .where(Judgment.run_id == run_id)
            .order_by(Judgment.id)
        ).all()
        for number, (judgment, item) in enumerate(answers):
            if number in (0, 7, 8):
                session.delete(judgment)
            elif number % 5 == 0:  # asked again, which counts
                record_judgment(
                    session,
                    judge_id=judgment.judge_id,
                    item_id=item.id,
                    choice="none" if judgment.choice == item.scenario else item.scenario,
                    order_shown=list(INF_IR.roles),
                    event_id=f"again {item.id}",
                    run_id=run_id,
                )
        edited = answers[-1][1]
        edited.revision = 2
        for pair in session.scalars(select(Pair).where(Pair.id % 3 == 0)):
            pair.meta = {**pair.meta, "source": "nq" if pair.id % 2 else ""}
        session.commit()
        make_study(store, dataset="books", items=5, overlap=1, sampling=Sampling())
        kinds = run_item_kinds(session, run_id)
        assert run_population(session, run_id) == Counter(kind for _, kind in kinds.values())
        assert {kind.missed for _, kind in kinds.values()} >= {None, 0, 1}
        assert {kind.source for _, kind in kinds.values()} >= {"made for a test", "nq"}
        asked = set(session.scalars(select(StudyItem.item_id).where(StudyItem.study_id == 1)))
        groups = {kinds[item_id][0] for item_id in asked}
        assert asked and run_item_kinds(session, run_id, of_study=1) == {
            item_id: each for item_id, each in kinds.items() if each[0] in groups
        }


KEPT = {"verdict": "kept", "drop_reason": None}


def test_a_population_is_counted_once_and_again_when_anything_it_counts_has_changed(
    store: Store,
) -> None:
    run_id = make_run(store, kept=9, dropped=6)

    def counted() -> int:
        """The items, as they are now; and how many statements that took."""
        with store.read() as session, statements_counted() as sent:
            found = run_population(session, run_id)
        with store.read() as session:
            kinds = run_item_kinds(session, run_id)
            assert found == Counter(kind for _, kind in kinds.values())
        return sent.total

    def answer(session: Session, item: Item, choice: str) -> None:
        judge = get_or_create_judge(session, "validator of old", kind="model")
        record_judgment(
            session,
            judge_id=judge.id,
            item_id=item.id,
            choice=choice,
            order_shown=list(INF_IR.roles),
            event_id=f"again {item.id} {choice}",
            run_id=run_id,
        )

    dropped, first = group_ids(store, run_id, "dropped")[0], counted()
    assert counted() == first - 1
    changes: list[Callable[[Session, Group, Item], object]] = [
        lambda session, group, item: answer(session, item, "none"),
        lambda session, group, item: answer(session, item, item.scenario),
        lambda session, group, item: setattr(group, "drop_reason", "ambiguous"),
        lambda session, group, item: [setattr(group, *each) for each in KEPT.items()],
        lambda session, group, item: session.add(
            Item(
                group_id=group.id,
                scenario=item.scenario,
                revision=2,
                instruction="other words",
                query=item.query,
                candidates=item.candidates,
                expected=item.expected,
            )
        ),
    ]
    for change in changes:
        with store.write() as session:
            group = session.get_one(Group, dropped)
            item = session.scalars(select(Item).where(Item.group_id == group.id)).first()
            assert item is not None
            change(session, group, item)
            session.commit()
        assert counted() == first, "a change that was not seen"
        assert counted() == first - 1


def test_a_second_judge_gives_a_stricter_filter_to_explore(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    run_id = make_run(sqlite_store, kept=20, dropped=12)
    make(sqlite_store, 30, Sampling())
    shown = inf("study", "thresholds", "--study", 1).out
    assert "no threshold to explore: the run's validator gave one answer" in shown
    with sqlite_store.write() as session:
        second = get_or_create_judge(session, "second", kind="model")
        for item_id, (group_id, kind) in run_item_kinds(session, run_id).items():
            record_judgment(
                session,
                judge_id=second.id,
                item_id=item_id,
                choice=kind.scenario if group_id % 2 else "none",
                order_shown=list(INF_IR.roles),
                event_id=f"second {item_id}",
                detail={"scores": [0.9 if role == kind.scenario else 0.4 for role in INF_IR.roles]},
            )
        session.commit()
    explored = {
        each["by"]: each["rows"]
        for each in inf("study", "thresholds", "--study", 1, "--json").json["explored"]
    }
    assert [row["kept_groups"] for row in explored["judges"]] == [20, 10]
    assert [row["kept_groups"] for row in explored["margin of second"]] == [20]  # all alike
    assert explored["judges"][1]["recall"]["value"] < explored["judges"][0]["recall"]["value"]
    assert "at least 2" in inf("study", "thresholds", "--study", 1).out
