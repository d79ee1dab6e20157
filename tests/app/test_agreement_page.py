"""The Agreement page: figures, tables, and sentences where there is no number."""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import yaml
from app_pages import open_page, open_tab, words
from conftest import Ran
from exporting import export
from judged_study import judged
from made_study import make_study
from records_world import make_run
from sqlalchemy import select, update
from streamlit.testing.v1 import AppTest

from analysis.agreement.agreement import agreement_report
from analysis.agreement.answers import Decision
from analysis.agreement.flagged import WITHOUT, WITHOUT_HIGH, WITHOUT_LOW, profile_rows
from app.access.identity import owner
from app.agreement.verdict import agreement_sentence
from app.operations.judging import agreement
from curation.judging.agreement import VERSION, study_report
from curation.judging.job import work_on_study
from curation.judging.sampling import Sampling
from curation.judging.scope import Scope
from curation.release.card.croissant import CROISSANT
from curation.release.plan import MANIFEST
from db.assignment.members import add_member
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.outcome.position_bias import study_choices
from db.shape import INF_IR
from db.store.store import Store
from db.study.items import study_item_places
from db.study.judgments import (
    count_known,
    current_judgment,
    get_or_create_judge,
    judgment_state,
    record_judgment,
)
from db.study.studies import set_status
from db.tables import Analysis, Item, Job, Judge, Judgment, Study, StudyItem

tab = partial(open_tab, key="agreement.tab")


def test_a_full_study_shows_its_means_tables_and_items(sqlite_store: Store) -> None:
    judged(
        sqlite_store,
        {
            "ann": "ppnnppnn" * 2,
            "bob": "ppnnppnp" * 2,
            "GPT": "pppnppnn" * 2,
            "O3": "nnnnpppp" * 2,
        },
    )
    page = open_page("agreement")
    assert not page.exception
    metrics = {metric.label: metric.value for metric in page.metric}
    assert metrics["People with people"] == "0.750"  # p_o 7/8, p_e (4·5 + 4·3)/64 = 1/2
    frames = [frame.value for frame in tab(page, "Measures").dataframe]
    assert any("Krippendorff's alpha" in list(frame.get("Measure", [])) for frame in frames)
    assert any("Difference of kappa" in frame for frame in frames)
    # the reader may judge these items themselves, until the study is closed
    frames = [frame.value for frame in tab(page, "Items").dataframe]
    assert not [frame for frame in frames if "Disagreement" in frame]
    assert "You may still judge 16 items of this study: until it is closed, " in words(page)
    with sqlite_store.write() as session:
        set_status(session, 1, "closed")
        session.commit()
    page = tab(open_page("agreement"), "Items")
    frames = [frame.value for frame in page.dataframe]
    items = next(frame for frame in frames if "Disagreement" in frame)
    assert items["Disagreement"].is_monotonic_decreasing
    assert "inf analyze agreement --study 1 --json" in words(page)


def test_no_table_lists_hidden_items_and_figures_leave_them_out_for_members(
    sqlite_store: Store,
) -> None:
    judged(sqlite_store, {"ann": "ppnnppnn" * 2, "bob": "ppnnppnp" * 2})
    page = tab(open_page("agreement"), "Judges")
    frames = [frame.value for frame in page.dataframe]
    assert [metric.value for metric in page.metric] == ["0.750"]
    assert not [frame for frame in frames if "Consensus" in frame and len(frame)]
    with sqlite_store.write() as session:
        add_member(session, 1, get_or_create_judge(session, "local admin", kind="person").id)
        session.commit()
    page = open_page("agreement")
    assert not page.exception and not page.metric
    assert "Every judged item is hidden from you" in words(page)
    with sqlite_store.write() as session:
        set_status(session, 1, "closed")
        session.commit()
    frames = [frame.value for frame in tab(open_page("agreement"), "Judges").dataframe]
    assert [len(frame) for frame in frames if "Consensus" in frame] == [16]


def test_a_study_that_nobody_judged_yet_says_so(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "........"})
    page = open_page("agreement")
    assert not page.exception
    assert not page.metric
    assert "No judgments in this study yet" in words(page)
    assert "the Accounts page makes a link for others" in words(page)
    assert "No person has judged in study 1 yet" in words(open_page("adjudicate"))


def test_one_judge_gives_no_figure_but_says_who_is_missing_and_what_to_do(
    sqlite_store: Store,
) -> None:
    judged(sqlite_store, {"ann": "pppp...."})
    page = open_page("agreement")
    assert not page.exception and not page.metric and not page.get("plotly_chart")
    assert "No item has judgments of two judges yet" in words(page)
    assert "inf studies judge 1" in words(page)


def test_models_alone_are_compared_and_no_card_is_undefined(sqlite_store: Store) -> None:
    """p_o 3/4; marginals p 2/4 and 3/4: p_e 2/4·3/4 + 2/4·1/4 = 1/2; kappa 1/2."""
    judged(sqlite_store, {"GPT": "ppnn" * 3, "O3": "ppnp" * 3})
    page = open_page("agreement")
    assert {each.label: each.value for each in page.metric} == {"GPT with O3": "0.500"}
    assert "fewer than two people have judged" in words(page)
    assert "GPT and O3 agree at kappa 0\\.500" in words(page)
    assert "Models with people" not in [head.value for head in page.header]


def test_the_page_opens_on_the_newest_study_with_figures_for_this_person(
    sqlite_store: Store,
) -> None:
    judged(sqlite_store, {"ann": "ppnn", "bob": "ppnp", "GPT": "ppnp", "O3": "pppp"})
    with sqlite_store.write() as session:
        first = session.scalars(select(Study)).one()
        for name in ("nobody judged", "I judge"):
            session.add(
                Study(dataset_id=first.dataset_id, run_id=first.run_id, name=name, overlap=1)
            )
        session.flush()
        for item_id in session.scalars(select(StudyItem.item_id)).all():  # models judged them
            session.add(StudyItem(study_id=3, item_id=item_id))
        session.flush()
        for judge_id in session.scalars(select(Judge.id).where(Judge.kind == "model")).all():
            count_known(session, 3, judge_id)  # as a job does that let them judge study 3
        add_member(session, 3, get_or_create_judge(session, "local admin", kind="person").id)
        session.commit()
    page = open_page("agreement")
    assert page.selectbox(key="agreement.study").value == "1" and page.metric
    page = open_page("agreement", study="3")  # the address wins
    assert page.selectbox(key="agreement.study").value == "3"
    assert "Every judged item is hidden from you" in words(page)
    with sqlite_store.write() as session:
        for study_id in (1, 3):  # while either is open, its items may still be given to me
            set_status(session, study_id, "closed")
        session.commit()
    chosen = open_page("agreement").selectbox(key="agreement.study").value
    assert chosen == "1", "people's answers before those of models alone"


def test_the_results_stand_above_the_filters(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "ppnnppnn", "bob": "ppnnppnp"})
    page = open_page("agreement")
    kinds = [getattr(each, "key", None) or each.type for each in page.main]
    assert kinds.index("metric") < kinds.index("agreement.scenarios")


def test_judges_who_never_met_or_always_say_the_same_are_undefined(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "pppp....", "bob": "....pppp", "cas": "pppppppp"})
    page = open_page("agreement")
    assert not page.exception
    assert [metric.value for metric in page.metric] == ["undefined"]
    assert "one and the same label" in words(page)
    (pairs,) = [frame.value for frame in page.dataframe if "With" in frame.value]
    assert list(pairs["Reason if undefined"]) == [
        "no items in common",
        "4 shared items, a value needs 10",
        "4 shared items, a value needs 10",
    ]


def test_three_people_have_alpha_and_a_pair_of_few_items_is_a_count(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "ppnnppnn", "bob": "ppnnppnp", "cas": "pppnppnn"})
    page = tab(open_page("agreement"), "Pairs")
    assert not page.exception
    # n = 24, 14 of them p; two items of three where one differs: 2 · (9 - 5)/2 = 4
    alpha = 1 - 23 * 4 / (24**2 - 14**2 - 10**2)
    assert {each.label: each.value for each in page.metric}["People with people"] == f"{alpha:.3f}"
    assert f"People agree with each other at alpha {alpha:.3f}" in words(page).replace("\\", "")
    (pairs,) = [frame.value for frame in page.dataframe if "With" in frame.value]
    assert pairs["Kappa"].isna().all() and list(pairs["Items"]) == [8, 8, 8]


@pytest.mark.long
def test_a_person_who_fails_gold_or_is_too_fast_is_named_with_the_figure_without(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    """ann and bob agree on all 12; cas always says p, in half a second each."""
    judged(
        sqlite_store, {"ann": "ppnn" * 3, "bob": "ppnn" * 3, "cas": "pppp" * 3, "GPT": "ppnn" * 3}
    )
    with sqlite_store.write() as session:
        cas = session.scalars(select(Judge).where(Judge.name == "cas")).one()
        for each in session.scalars(select(Judgment).where(Judgment.judge_id == cas.id)):
            each.shown_at = each.decided_at - timedelta(seconds=0.5)
        session.commit()
    page = open_page("agreement")
    assert not page.exception
    shown = words(page).replace("\\", "")
    assert "Flagged: cas (100% of answers under 1.5 s); without this person: kappa 1.000" in shown
    verdict = next(each.value for each in page.markdown if "agree with each other" in each.value)
    assert "cas" in verdict and "without this person: kappa 1" in verdict.replace("\\", "")
    drawn = next(each.proto.spec for each in page.get("plotly_chart"))
    both, without = json.loads(drawn)["data"]  # side by side, in one figure
    assert (both["name"], without["name"]) == ("all", WITHOUT.lower())
    assert sum(dot.startswith("People with each other: 1.0") for dot in without["customdata"]) == 1
    assert len(both["customdata"]) == 2
    found = inf("analyze", "agreement", "--study", 1, "--json").json
    assert found["flagged"] == {"cas": "100% of answers under 1.5 s"}
    assert found["human_human"]["without_flagged"]["value"] == 1.0
    assert found["human_human"]["without_flagged"]["coefficient"] == "cohen_kappa"
    assert found["human_model"]["GPT"]["without_flagged"]["value"] == 1.0
    assert found["human_human"]["value"] < 0.5
    printed = inf("analyze", "agreement", "--study", 1).out
    assert "Flagged: cas" in printed
    assert WITHOUT in printed and WITHOUT_LOW in printed  # a column of the tables
    page.session_state["agreement.pairs_drawer"] = True
    tables = [each.value for each in tab(page, "Pairs").dataframe]
    tables += [each.value for each in tab(page, "Measures").dataframe]
    tables += [each.value for each in open_tab(page, "Judges", key="agreement.tab").dataframe]
    without = [table for table in tables if WITHOUT in table]
    assert len(without) >= 3
    for table in without:
        if "Outlier" not in table:  # there the interval is in the text
            known = table[table[WITHOUT].notna()]
            assert (known[WITHOUT_LOW] <= known[WITHOUT_HIGH]).any()
    with sqlite_store.write() as session:  # who may still be given items learns nothing of gold
        add_member(session, 1, get_or_create_judge(session, "local admin", kind="person").id)
        session.commit()
    assert "Flagged" not in words(open_page("agreement"))
    with sqlite_store.write() as session:
        set_status(session, 1, "closed")
        session.commit()
    page = open_tab(open_page("agreement"), "Items", key="agreement.tab")
    items = page.dataframe[-1].value
    assert set(items.loc[items["Disagreement"] > 0, WITHOUT]) == {0.0}  # without cas all agree
    named = []
    for one in ("bob", "cas"):
        page.session_state["agreement.one"], page.session_state["agreement.other"] = one, "ann"
        page = open_tab(page, "Items", key="agreement.tab")
        assert page.selectbox(key="agreement.one").value == one
        notes = [each.value.replace("\\", "") for each in page.caption]
        named.append(sum("Flagged: cas" in each for each in notes))
    assert named[1] == named[0] + 1  # the matrix names her


@pytest.mark.parametrize("is_blind", [False, True])
def test_the_rows_of_judges_count_no_gold_for_who_may_still_be_given_it(
    sqlite_store: Store, is_blind: bool
) -> None:
    judged(sqlite_store, {"ann": "ppnn" * 3, "bob": "ppnp" * 3})
    with sqlite_store.write() as session:
        gold = session.scalars(select(StudyItem)).first()
        assert gold is not None
        gold.part, gold.gold_choice = "gold", "positive"
        session.commit()
        profiles = study_report(session, 1, with_flags=not is_blind)["by_judge"]
    rows = profile_rows(profiles)
    counts = [{key: row[key] for key in row if key.startswith("Gold")} for row in rows]
    shown = {"Gold seen": 1, "Gold accuracy": 1.0}
    assert counts == ([{}, {}] if is_blind else [shown, shown])


def heat(page: AppTest) -> dict[str, object]:
    """The labels and counts of the confusion grid."""
    charts = [json.loads(each.proto.spec)["data"][0] for each in page.get("plotly_chart")]
    (grid,) = [one for one in charts if one["type"] == "heatmap"]
    return {name: grid[name] for name in ("x", "y", "z")}


@pytest.mark.long
def test_a_large_study_is_computed_by_a_job_and_its_stored_figures_are_shown(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(sqlite_store, {"ann": "ppnn" * 3, "bob": "ppnn" * 3, "cas": "ppnp" * 3})
    live = open_page("agreement")
    monkeypatch.setattr("app.jobs.supervisors.ensure_supervisor", lambda store: None)
    monkeypatch.setattr(agreement, "MAX_LIVE", 10)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("the page computes")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agreement, "study_report", refused)
        patch.setattr(agreement, "judgment_frame", refused)
        page = open_page("agreement")
        assert not page.exception and not page.metric
        assert "No figures computed yet" in words(page)
        page.button(key="agreement.compute").click().run()
        assert not page.exception
    with sqlite_store.write() as session:
        job = session.scalars(select(Job).where(Job.kind == "study")).one()
        assert job.config == {"what": "agreement", "study_id": 1, "reader": ""}
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
    handle = JobHandle(sqlite_store, claimed.id, claimed.attempt)
    work_on_study(handle)
    page = open_page("agreement")
    assert not page.exception
    assert [each.value for each in page.metric] == [each.value for each in live.metric]
    assert "36 judgments, computed" in words(page) and "from all of them" in words(page)
    for name in ("Pairs", "Over time", "Judges"):
        assert not tab(page, name).exception
    grids = [heat(tab(open_page("agreement"), "Confusion"))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agreement, "MAX_LIVE", 20_000)
        grids.append(heat(tab(open_page("agreement"), "Items")))
    assert grids[0] == grids[1] and grids[0]["z"], "counted in the store and on the page"
    with sqlite_store.write() as session:  # a later answer: other figures
        session.execute(update(Judgment).where(Judgment.id == 1).values(choice="none"))
        session.execute(update(Judgment).where(Judgment.id == 36).values(id=99))
        session.commit()
    work_on_study(handle)
    assert "there are newer ones" not in words(open_page("agreement"))
    with sqlite_store.read() as session:
        stored = session.scalars(select(Analysis)).one()  # the newest is kept, no other
        before = {key: each for key, each in stored.result.items() if key != "version"}
    for old in (before, before | {"version": VERSION - 1}):  # these held counts of gold
        with sqlite_store.write() as session:
            session.execute(update(Analysis).values(result=old, inputs_sha256=str(len(old))))
            session.commit()
        page = open_page("agreement")
        assert "No figures computed yet" in words(page) and not page.metric
        assert agreement.stored(owner("ada"), 1) is None
    work_on_study(handle)
    assert len(open_page("agreement").metric) == len(live.metric)


def test_every_figure_has_its_numbers_its_data_and_its_command(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "ppnn" * 3, "bob": "ppnp" * 3, "GPT": "pppn" * 3})
    page = open_page("agreement")
    assert "36 judgments of study 1, latest no\\. 36" in words(page)
    command = "inf analyze agreement --study 1 --json"
    # with Figure 4: the pairs, the windows, the judges, the confusion of two judges
    for name, option in (
        ("People and models", ""),
        ("Pairs", ""),
        ("Over time", " --over-time"),
        ("Judges", " --by-judge"),
        ("Items", ""),
    ):
        tab(page, name)
        assert not page.exception
        assert len(page.get("plotly_chart")) == 1, name
        assert command + option in words(page), name


def test_a_filter_changes_the_numbers_and_stands_in_the_command(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "ppnnppnn", "bob": "ppnnppnp", "GPT": "pppnppnn"})
    page = open_page("agreement")
    page.multiselect(key="agreement.judges").set_value(["ann", "GPT"]).run()
    assert not page.exception
    shown = words(page)
    assert "--judge ann --judge GPT" in shown
    assert "16 judgments of 8 items" in shown
    assert {metric.label: metric.value for metric in page.metric}["People with people"] == (
        "undefined"
    )


def test_a_filter_that_leaves_nothing_says_so(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "pp", "bob": "pn"})
    page = open_page("agreement")
    roles = next(each for each in page.get("button_group") if each.key == "agreement.scenarios")
    roles.set_value(["query_negative"]).run()
    assert not page.exception
    assert "No judgment matches these filters" in words(page)


def test_what_a_judge_has_no_number_for_is_a_sentence(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "pppp....", "bob": "....pppp"})
    page = open_page("agreement")
    shown = "".join(words(tab(page, name)) for name in ("Judges", "Over time")).replace("\\", "")
    assert "Kappa with people undefined: no items in common (ann, bob)" in shown
    assert "Kappa with models undefined: no judge to compare with (ann, bob)" in shown
    assert "Position bias undefined: one place on the list: nothing to prefer" in shown
    assert "Agreement is undefined in every window" in shown


def test_a_new_judgment_is_seen_by_the_state_that_the_page_follows(store: Store) -> None:
    judged(store, {"ann": "ppn", "bob": "ppp"})
    with store.write() as session:
        before = judgment_state(session, 1)
        judge = session.scalars(select(Judge).where(Judge.name == "ann")).one()
        earlier = current_judgment(session, judge.id, 3)
        assert earlier is not None
        assert before.judgments == 6
        record_judgment(
            session,
            judge_id=judge.id,
            item_id=3,
            choice="positive",
            order_shown=["positive"],
            event_id="again",
            study_id=1,
        )
        session.commit()
        after = judgment_state(session, 1)
        assert (after.judgments, after.last_id) == (6, before.last_id + 1)
        assert study_choices(session, 1) == {"ann": [(1, 1)] * 3, "bob": [(1, 1)] * 3}
        assert {place.recipe for place in study_item_places(session, 1).values()} == {"demo"}


@pytest.mark.long
def test_the_page_begins_with_what_the_study_says_about_its_run(sqlite_store: Store) -> None:
    make_run(sqlite_store, kept=20, dropped=12)
    make_study(sqlite_store, dataset="books", items=24, overlap=2, sampling=Sampling())
    with sqlite_store.write() as session:
        items = session.scalars(select(Item).join(StudyItem).where(StudyItem.study_id == 1))
        for item in items.all():
            for name in ("ada", "bob", "cas"):
                judge = get_or_create_judge(session, name, kind="person")
                record_judgment(
                    session,
                    judge_id=judge.id,
                    item_id=item.id,
                    choice="none" if item.group_id % 7 == 0 else item.scenario,
                    order_shown=list(INF_IR.roles),
                    event_id=f"{name} {item.id}",
                    study_id=1,
                )
        session.commit()
    page = open_page("agreement")
    assert not page.exception
    first = next(each.value for each in page.markdown if "confirm" in each.value)
    assert first.startswith("**People confirm ") and "the validator passed" in first
    shown = words(page)
    assert shown.index("People confirm") < shown.index("People agree with each other")
    frames = [frame.value for frame in tab(page, "Whole run").table]
    assert any("At least" in frame for frame in frames)
    frames = [frame.value for frame in tab(page, "Judges").dataframe]
    assert any("Others on the same items" in frame for frame in frames)
    tab(page, "Whole run")
    page.toggle(key="agreement.plan_show").set_value(True).run()
    assert not page.exception and "to know precision to ±5 points" in words(page)
    page.button(key="agreement.plan_add").click().run()
    assert not page.exception
    with sqlite_store.read() as session:
        assert len(session.scalars(select(StudyItem)).all()) > 24


@pytest.mark.long
def test_light_verdict_page_command_and_card_have_one_coefficient_of_an_incomplete_design(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    """Four people, two or three for each item: alpha everywhere, and no mean of pairwise kappas."""
    make_run(sqlite_store, kept=40, dropped=20)
    make_study(sqlite_store, dataset="books", items=48, overlap=3, sampling=Sampling())
    with sqlite_store.write() as session:
        items = session.scalars(select(Item).join(StudyItem).where(StudyItem.study_id == 1)).all()
        ids = [
            get_or_create_judge(session, name, kind="person").id
            for name in ("ada", "bob", "cas", "dan")
        ]
        for number, item in enumerate(items):
            for place in range(2 + number % 2):
                is_wrong = (number + place) % 5 == 0
                record_judgment(
                    session,
                    judge_id=ids[(number + place) % 4],
                    item_id=item.id,
                    choice=INF_IR.roles[(INF_IR.roles.index(item.scenario) + is_wrong) % 3],
                    order_shown=list(INF_IR.roles),
                    event_id=f"{place} {item.id}",
                    study_id=1,
                )
        session.commit()
    report = inf("analyze", "agreement", "--study", 1, "--json").json
    figure = report["human_human"]
    value, measured = figure["value"], report["people"]["krippendorff_alpha"]["value"]
    assert figure["coefficient"] == "krippendorff_alpha" and value == measured
    pairs = [pair["kappa"] for pair in report["pairs"] if pair["kappa"] is not None]
    assert pairs and abs(sum(pairs) / len(pairs) - value) > 0.002, "the mean of pairs is another"
    shown = f"Krippendorff's alpha {value:.4f}"
    assert shown in inf("analyze", "agreement", "--study", 1).out
    page = open_page("agreement")
    assert {each.label: each.value for each in page.metric}["People with people"] == f"{value:.3f}"
    assert f"agree with each other at alpha {value:.3f}" in words(page).replace("\\", "")
    home = words(open_page("home")).replace("\\", "")
    assert f"{value:.2f} (n = {figure['items']})" in home and "Krippendorff's alpha over" in home
    export(sqlite_store, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"| people with each other | Krippendorff's alpha | {value:.3f} (" in card
    _, front_matter, _ = card.split("---\n", 2)
    (of_study,) = yaml.safe_load(front_matter)["annotator_agreement"]
    low, high = (round(limit, 4) for limit in figure["interval"])
    assert of_study == {
        "study": 1,
        "run": 1,
        "sample_of_run": True,
        "between": "people",
        "judges": 4,
        "coefficient": "krippendorff_alpha",
        "value": round(value, 4),
        "interval_95": [low, high],
        "items": figure["items"],
        "with_models": of_study["with_models"],
    }
    for each in of_study["with_models"]:
        of_model = report["human_model"][each["model"]]
        assert each["coefficient"] == of_model["coefficient"] == "group_kappa"
        assert each["value"] == round(of_model["value"], 4)
    assert "cohen" not in front_matter, "no other coefficient"
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    assert manifest["agreement"] == [of_study]
    described = json.loads((tmp_path / "out" / CROISSANT).read_text())
    assert described["rai:dataAnnotationAnalysis"] == [
        f"Study 1: Krippendorff's alpha of 4 people over {figure['items']} items: "
        f"{value:.3f} (95 % interval {low:.3f} to {high:.3f})."
    ]


def test_simulated_judges_are_not_called_people(sqlite_store: Store) -> None:
    letters = {"ann": "ppnnppnn", "bob": "ppnnppnp", "GPT": "pppnppnn"}
    judged(sqlite_store, {name: each * 2 for name, each in letters.items()})
    with sqlite_store.write() as session:
        session.execute(update(Judge).where(Judge.name.in_(["ann", "bob"])).values(simulated=True))
        session.commit()
    page = open_page("agreement")
    labels = [metric.label for metric in page.metric]
    assert "Simulated judges with simulated judges" in labels
    assert not [label for label in labels if label.startswith("People with")]
    assert "Models with simulated judges" in [head.value for head in page.header]


def test_a_pair_in_the_first_sentence_names_who_of_it_is_flagged() -> None:
    """One person and a simulated judge: no figure of people, so that their pair stands for it."""
    known = [Decision(n, "cas", "ab"[n % 2]) for n in range(12)]
    known += [Decision(n, "sim", "ab"[n % 2], simulated=True) for n in range(12)]
    report = agreement_report(known, flagged={"cas": "gold 1 of 6 right"}, resamples=0)
    assert report["human_human"]["value"] is None
    found = agreement_sentence(report, Scope(True, ""))
    assert found.endswith("cas and sim agree at kappa 1.000. Flagged: cas (gold 1 of 6 right).")
