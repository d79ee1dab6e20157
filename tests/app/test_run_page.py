"""The page of a run at work: its controls reach the run, its drops lead to the groups."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from app_pages import card_data, open_page, words
from conftest import Ran, count_rows
from curation_runs import add_dataset, claimed_job, run_curation
from openai_server import Server
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

from app.curate.checks import bias_summary, found_text
from app.curate.outcome import run_sentence
from curation.recipe import recipe
from curation.recipe.prices import Price, load_prices
from curation.run.starting import recipe_of, start_run
from db.jobs.jobs import enqueue_job, list_jobs, record_metrics
from db.outcome.position_bias import PlaceCount
from db.run.batches import create_batch, end_batch, mark_submitted
from db.run.comparison import changed_pairs, count_shared, differing_settings, shared_funnels
from db.run.runs import ANSWERS, STAGES, Funnel, begin_run, funnel, get_run, set_run_status
from db.run.workers import Pace, Trouble, add_worker, beat_worker
from db.store.store import Store
from db.tables import Group, Job, Pair, Recipe, Run, RunWorker, utc_now

DAY = timedelta(days=1)
CALLS = {"in_flight": 7, "width": 8.0, "made": 120, "reused": 3, "failures": 2, "throttled": 1}


@pytest.fixture
def running(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> int:
    """A run that a worker is at."""
    monkeypatch.setattr("app.jobs.supervisors.ensure_supervisor", lambda store: None)
    add_dataset(sqlite_store)
    with sqlite_store.write() as session:
        run_id = start_run(session, dataset="small", provider="openai", concurrency=16).id
        begin_run(session, run_id)
        add_worker(session, run_id, "me")
        beat_worker(session, "me", **CALLS)
        session.commit()
    claimed_job(sqlite_store, run_id)
    return run_id


def test_the_controls_change_the_run(sqlite_store: Store, running: int) -> None:
    at = open_page("curate")
    shown = [metric.value for metric in at.metric]
    assert shown[:4] == ["…", "7", "120", "2"]
    assert "of 8 allowed now" in words(at) and "throttled 1 time" in words(at)
    at.number_input(key=f"curate.width-{running}").set_value(48).run()
    with sqlite_store.read() as session:
        assert get_run(session, running).concurrency == 48
    at.button(key="curate.pause").click().run()
    with sqlite_store.read() as session:
        assert get_run(session, running).status == "paused"
    budget = at.number_input(key=f"curate.raise-{running}")
    assert (budget.value, budget.placeholder) == (None, "no limit")  # and no 0 that means none
    budget.set_value(2.5).run()
    at.button(key="curate.resume").click().run()
    with sqlite_store.read() as session:
        run = get_run(session, running)
        assert (run.status, run.budget_usd, run.error) == ("created", 2.5, None)
    assert at.button(key="curate.pause"), "the page follows the run from here on"


def test_a_worker_joins_and_leaves_by_the_buttons_and_the_last_one_stays(
    sqlite_store: Store, running: int
) -> None:
    def jobs() -> list[str]:
        with sqlite_store.read() as session:
            return list(session.scalars(select(Job.status).order_by(Job.id)))

    at = open_page("curate")
    at.button(key="curate.shrink").click().run()
    assert jobs() == ["running"] and "none would stay" in words(at)
    at.button(key="curate.grow").click().run()
    assert jobs() == ["running", "queued"]
    at.button(key="curate.shrink").click().run()
    assert jobs() == ["running", "cancelled"]
    assert "Job 2 leaves run" in words(at)


def test_the_limits_of_a_run_are_said_in_words(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    at = open_page("curate")
    assert "No limits: all pairs" in words(at).replace("\\", "")
    assert at.number_input(key="curate.budget_usd").value is None  # and no 0 that means none
    at.number_input(key="curate.budget_usd").set_value(2.5)
    at.number_input(key="curate.requests_per_minute").set_value(1200).run()
    assert "At most $2.50, 1,200 requests per minute." in words(at).replace("\\", "")


def test_a_run_at_work_has_a_lane_per_stage(sqlite_store: Store, running: int) -> None:
    assert not open_page("curate").get("plotly_chart")
    with sqlite_store.write() as session:
        (job,) = list_jobs(session, kind="curate")
        for step in range(5):
            values = {f"{ANSWERS}{STAGES[0]}": 10.0 * step, f"{ANSWERS}{STAGES[-1]}": 1.0 * step}
            record_metrics(session, job.id, 5 * step + 1, values)
        session.commit()
    for _ in range(2):  # in another session, too: they are stored
        (lanes,) = open_page("curate").get("plotly_chart")
        (drawn,) = json.loads(lanes.proto.spec)["data"]
        assert drawn["y"] == [stage.capitalize() for stage in STAGES]
        by_stage = dict(zip(drawn["y"], drawn["z"], strict=True))
        first = by_stage[STAGES[0].capitalize()]
        assert first[0] == 0 and sum(first) == 40 and len(first) >= 4
        assert sum(by_stage[STAGES[-1].capitalize()]) == 4


@pytest.mark.parametrize("batch", [False, True])
def test_lanes_keep_what_came_before_a_resume_and_a_batch_run_has_them(
    sqlite_store: Store, running: int, batch: bool
) -> None:
    name = f"{ANSWERS}{STAGES[0]}"
    with sqlite_store.write() as session:
        (job,) = list_jobs(session, kind="curate")
        for step, count in ((10, 20.0), (20, 30.0), (100, 0.0), (110, 7.0), (120, 15.0)):
            record_metrics(session, job.id, step, {name: count})
        earlier = enqueue_job(session, "curate", {"run_id": running})
        earlier.status = "done"
        record_metrics(session, earlier.id, 15, {name: 4.0})
        other = enqueue_job(session, "curate", {"run_id": running + 1})
        record_metrics(session, other.id, 15, {name: 99.0})
        run = get_run(session, running)
        job.started_at = run.created_at + timedelta(seconds=95)  # the second time
        run.batch = batch
        session.commit()
    (lanes,) = open_page("curate").get("plotly_chart")
    (drawn,) = json.loads(lanes.proto.spec)["data"]
    assert sum(dict(zip(drawn["y"], drawn["z"], strict=True))[STAGES[0].capitalize()]) == 49


def test_a_cancelled_run_says_so(sqlite_store: Store, running: int) -> None:
    at = open_page("curate")
    at.button(key="curate.cancel").click().run()
    with sqlite_store.read() as session:
        assert get_run(session, running).status == "cancelled"
    assert "cancelled on request" in words(at)


@pytest.mark.long
def test_a_drop_reason_leads_to_its_groups(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    told = run_curation(sqlite_store, dataset="small", provider="offline")
    reason, count = next(iter(told["dropped"].items()))
    at = open_page("groups", run=str(told["run_id"]), reason=reason)
    assert at.selectbox(key="groups.reason").value == reason
    assert card_data(at)["total"] == count
    at.selectbox(key="groups.reason").select("all").run()
    assert at.selectbox(key="groups.reason").value == "all"


def test_groups_are_those_of_one_provider_where_runs_had_several(
    sqlite_store: Store, running: int
) -> None:
    with sqlite_store.write() as session:
        offline = start_run(session, dataset="small", provider="offline", limit=5).id
        for run_id in (offline, running):  # runs without a finished group have nothing to read
            group = session.scalars(select(Group).where(Group.run_id == run_id)).first()
            assert group is not None
            group.state, group.verdict = "done", "kept"
        session.commit()
    at = open_page("groups")
    assert at.selectbox(key="groups.run").value == str(offline)
    at.selectbox(key="groups.provider").select("openai").run()
    assert not at.exception
    (run,) = (each for each in at.selectbox if each.label == "Run")
    assert run.value == str(running)
    assert len(run.options) == 1
    assert "0 of 1 group reviewed · 11 groups still in work" in words(at)


@pytest.mark.long
def test_calls_are_told_by_stage_prompt_and_model(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    run_curation(sqlite_store, dataset="small", provider="offline")
    at = open_page("curate")
    at.toggle(key="curate.show_calls").set_value(True).run()
    table = at.dataframe[-1].value
    assert {"instruction positive", "validation"} <= set(table["Stage"])
    assert table["Prompt"].str.contains(r"instruction_positive\.md [0-9a-f]{8}").any()
    assert table["Accepted"].between(0, 1).all()


@pytest.mark.long
def test_the_position_bias_of_the_judge_is_shown(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    run_curation(sqlite_store, dataset="small", provider="offline")
    at = open_page("curate")
    at.toggle(key="curate.show_bias").set_value(True).run()
    assert not at.exception
    table = at.dataframe[-1].value
    judged = count_rows(sqlite_store, "judgment")
    assert table["Right passage here"].sum() == judged > 0
    assert table["Found when here"].str.contains(r"% \(").any()
    assert list(table["Position"]) == list(range(1, len(table) + 1))
    assert f"Based on {judged} answers" in words(at)


def test_a_preference_for_a_place_is_told_in_words() -> None:
    even = [PlaceCount(place, 50, 50, 40, 50) for place in range(1, 6)]
    first = [PlaceCount(1, 50, 170, 50, 50), *(PlaceCount(n, 50, 20, 20, 50) for n in range(2, 6))]
    assert "No evidence of position bias" in bias_summary(even)
    assert "not chosen equally often" in bias_summary(first)
    assert "No test: " in bias_summary([PlaceCount(1, 2, 1, 1, 2), PlaceCount(2, 1, 2, 1, 1)])
    assert found_text(even[0]) == "80.0% (67.0% to 88.8%)"  # Wilson, 40 of 50
    assert found_text(PlaceCount(1, 9, 9, 9, 3)) == "100.0% (too few groups for an interval)"
    assert found_text(PlaceCount(1, 0, 2, 0, 0)) == ""


@pytest.mark.long
def test_two_runs_stand_side_by_side(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    first = run_curation(sqlite_store, dataset="small", provider="offline")
    second = run_curation(sqlite_store, dataset="small", provider="offline", seed=5, limit=8)
    at = open_page("curate", run=str(second["run_id"]))
    at.selectbox(key="curate.compare").select(first["run_id"]).run()
    assert not at.exception
    settings, table = (frame.value for frame in at.dataframe[-2:])
    assert list(table.columns)[1:] == [f"Run {second['run_id']}", f"Run {first['run_id']}"]
    assert settings.to_numpy().tolist() == [["run.seed", "5", "0"]]
    assert "**8 pairs** finished by both" in words(at)
    with sqlite_store.read() as session:
        shared = count_shared(session, second["run_id"], first["run_id"])
    both = shared.get(("kept", "kept"), 0)
    kept = table[table[""] == "Kept"].iloc[0]
    assert kept.iloc[1].startswith(f"{both + shared.get(('kept', 'dropped'), 0)} (")
    assert kept.iloc[2].startswith(f"{both + shared.get(('dropped', 'kept'), 0)} (")
    assert f"run {first['run_id']} kept {first['kept']} of" in words(at)


def test_only_pairs_that_both_finished_are_compared_and_every_setting_is_named(
    store: Store,
) -> None:
    add_dataset(store)
    with store.write() as session:
        run, other = (
            start_run(session, dataset="small", provider="offline", concurrency=width).id
            for width in (4, 9)
        )
        for run_id, finished in ((run, 10), (other, 3)):
            groups = session.scalars(select(Group).where(Group.run_id == run_id).order_by(Group.id))
            for group in list(groups)[:finished]:
                group.state, group.stage, group.verdict = "done", "validation", "kept"
        recipe = session.get_one(Recipe, get_run(session, run).recipe_id)
        changed = recipe.body | {"temperature": 0.123, "new": {"deep": {"down": None}}}
        session.add(one := Recipe(name="changed", sha256="c" * 64, body=changed))
        session.flush()
        get_run(session, other).recipe_id = one.id
        session.commit()
    with store.read() as session:
        for found in shared_funnels(session, run, other):
            assert (found.pairs, found.kept, found.reached["validation"]) == (3, 3, 3)
        differing = {name: values for name, *values in differing_settings(session, run, other)}
    assert differing["temperature"][1] == "0.123"
    assert differing["run.concurrency"] == ["4", "9"]
    assert set(differing) == {"temperature", "run.concurrency"}  # None is not set


def test_shared_pairs_are_counted_by_both_verdicts(store: Store) -> None:
    add_dataset(store)
    with store.write() as session:
        runs = [start_run(session, dataset="small", provider="offline").id for _ in range(2)]
        groups = [
            list(session.scalars(select(Group).where(Group.run_id == run).order_by(Group.id)))
            for run in runs
        ]
        for number, (one, other) in enumerate(zip(*groups, strict=True)):
            for group, kept in ((one, number % 2 == 0), (other, number % 3 == 0)):
                group.state, group.stage = "done", "validation"
                group.verdict = "kept" if kept else "dropped"
                group.drop_reason = None if kept else "judge_none"
        session.commit()
    with store.read() as session:
        assert count_shared(session, *runs) == {
            ("kept", "kept"): 2,
            ("kept", "dropped"): 4,
            ("dropped", "kept"): 2,
            ("dropped", "dropped"): 4,
        }
        changed = changed_pairs(session, *runs)
    assert len(changed) == 6
    assert {(each.first, each.second) for each in changed} == {
        ("kept", "judge_none"),
        ("judge_none", "kept"),
    }


def test_the_estimate_asks_for_unknown_prices_and_keeps_them(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    at = open_page("curate")
    at.selectbox(key="curate.provider").select("openai").run()
    at.text_area(key="curate.settings").set_value("model=mine").run()
    at.number_input(key="curate.timeout_seconds").set_value(90)
    at.toggle(key="curate.estimate").set_value(True).run()
    assert "an unknown price" in words(at)
    at.number_input(key="curate.price.mine.in").set_value(1.0)
    at.number_input(key="curate.price.mine.out").set_value(4.0).run()
    at.button(key="curate.keep_prices").click().run()
    assert not at.exception and not at.error
    assert load_prices()["mine"] == Price(1.0, 4.0)
    (usd,) = re.findall(r"about ([\d.]+) (?:cents|USD)", words(at).replace("\\", ""))
    at.checkbox(key="curate.batch").check().run()
    (half,) = re.findall(r"about ([\d.]+) (?:cents|USD)", words(at).replace("\\", ""))
    assert float(half) == pytest.approx(float(usd) / 2, abs=0.01)
    assert "four rounds of batches" in words(at)
    at.selectbox(key="curate.provider").select("offline").run()
    assert "at no cost" in words(at)


@pytest.mark.long
def test_the_page_says_how_many_stored_answers_a_run_would_take_and_stores_no_run(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=3)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run_curation(sqlite_store, dataset="small", provider="openai", settings=["model=small"])
    runs = count_rows(sqlite_store, "run")
    at = open_page("curate", new="1")
    at.selectbox(key="curate.provider").select("openai").run()
    at.text_area(key="curate.settings").set_value("model=small").run()
    at.toggle(key="curate.estimate").set_value(True).run()
    assert not at.exception and not at.error
    shown = words(at).replace("\\", "")
    assert "24 stored answers are reused. Choose “Request new answers” above" in shown
    at.checkbox(key="curate.fresh").check().run()
    assert "stored answers are reused" not in words(at)
    assert count_rows(sqlite_store, "run") == runs


def test_the_timeout_of_the_form_is_the_runs(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    at = open_page("curate")
    at.selectbox(key="curate.provider").select("offline").run()
    at.number_input(key="curate.timeout_seconds").set_value(90).run()
    at.button(key="curate.start").click().run()
    assert not at.exception
    with sqlite_store.read() as session:
        recipe = recipe_of(session, session.scalars(select(Run)).one())
    assert {stage.transport["timeout_seconds"] for stage in recipe.stages.values()} == {90}


def shown_batches(at: AppTest) -> Any:
    """The table of batches; the page has others."""
    return next(each.value for each in at.dataframe if "Batch id" in each.value.columns)


def test_a_run_in_batches_says_what_is_at_the_server(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store)
    with sqlite_store.write() as session:
        run = start_run(session, dataset="small", provider="openai", batch=True)
        begin_run(session, run.id)
        batch = create_batch(
            session, run_id=run.id, owner="me", name="n", model="small", keys=["a", "b"]
        )
        mark_submitted(session, batch.id, "batch-7")
        session.commit()
    at = open_page("curate")
    assert "1 batch at the server with 2 calls" in words(at)
    at.toggle(key="curate.show_batches").set_value(True).run()
    assert list(shown_batches(at)["Batch id"]) == ["batch-7"]
    with sqlite_store.write() as session:
        end_batch(session, batch.id, "completed", failed=["a"], error=None)
        session.commit()
    at.run()
    assert "No open batches" in words(at)
    assert list(shown_batches(at)["Retried calls"]) == [1]


def test_a_run_whose_worker_was_killed_is_told_and_can_be_resumed(
    sqlite_store: Store, running: int
) -> None:
    with sqlite_store.write() as session:  # as a killed process leaves them once it is missed
        session.execute(RunWorker.__table__.update().values(heartbeat_at=utc_now() - DAY))
        session.commit()
    at = open_page("curate")
    assert at.button(key="curate.pause"), "a job for it may be about to start its worker"
    with sqlite_store.write() as session:
        session.execute(Job.__table__.update().values(status="failed", finished_at=utc_now()))
        session.commit()
    at = open_page("curate")
    assert "lost" in words(at) and "No worker is running" in words(at)
    at.button(key="curate.resume").click().run()
    assert at.button(key="curate.pause"), "its new job is queued"


def test_a_wait_the_last_error_and_the_basis_of_the_time_left_are_shown(
    sqlite_store: Store, running: int
) -> None:
    at = open_page("curate")
    assert "No time yet: too few groups are finished" in words(at).replace("\\", "")
    now = utc_now()
    with sqlite_store.write() as session:
        trouble = Trouble("RateLimitError: slow down", now, 17, now + timedelta(minutes=9))
        beat_worker(
            session,
            "me",
            **CALLS,
            trouble=trouble,
            pace=Pace(240.0, {"instruction": 2}),
        )
        for group in session.scalars(select(Group).limit(11)):
            group.state, group.stage, group.verdict = "done", "validation", "kept"
        session.commit()
    at = open_page("curate")
    assert not at.exception
    shown = words(at).replace("\\", "")
    notice = at.info[0].value.replace("\\", "")
    assert re.search(r"Waiting until .*\d\d:\d\d:\d\d as the server requested", notice)
    assert "RateLimitError: slow down" in shown and "Retries in the last minute: 17" in shown
    assert "About 2 s left: about 7 calls" in shown, "1 group of 8 calls, its instruction is there"
    at.toggle(key="curate.show_phases").set_value(True).run()
    phases = next(each.value for each in at.dataframe if "Phase" in each.value.columns)
    assert list(phases["Phase"]) == ["instruction", "negatives", "passages", "validation"]


def test_a_server_that_is_waited_for_is_on_the_page_and_in_the_command(
    sqlite_store: Store, running: int, inf: Callable[..., Ran]
) -> None:
    now = utc_now()
    with sqlite_store.write() as session:
        trouble = Trouble(
            waiting_until=now + timedelta(seconds=20),
            waiting_since=now - timedelta(minutes=3),
            waiting_for="the connection was cut by the server",
        )
        beat_worker(session, "me", **CALLS, trouble=trouble)
        session.commit()
    at = open_page("curate")
    assert not at.exception
    notice = at.info[0].value.replace("\\", "")
    times = r"Waiting for the server since \d\d:\d\d:\d\d: the connection was cut by the server\. "
    assert re.search(rf"{times}Next attempt at \d\d:\d\d:\d\d", notice)
    shown = inf("runs", "show", running, "--json").json["waiting"]
    assert "the connection was cut by the server" in shown and "next attempt at" in shown


def test_a_guarded_run_can_go_on_and_its_dropped_groups_can_be_tried_again(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.jobs.supervisors.ensure_supervisor", lambda store: None)
    add_dataset(sqlite_store, pairs=30)
    with sqlite_store.write() as session:
        run_id = start_run(session, dataset="small", provider="openai").id
        for group in session.scalars(select(Group).limit(25)):
            group.state, group.stage, group.verdict = "done", "instruction", "dropped"
            group.drop_reason, group.drop_detail = "cut_off", "the answer hit its token limit"
        set_run_status(session, run_id, "paused", error="all of the first 25 groups were dropped")
        session.commit()
    at = open_page("curate")
    assert not at.exception
    assert "all of the first 25 groups" in at.warning[0].value
    at.button(key="curate.retry").click().run()
    assert not at.exception and not at.error
    with sqlite_store.read() as session:
        waiting = session.scalars(select(Group.id).where(Group.state == "waiting")).all()
        assert len(waiting) == 30 and get_run(session, run_id).guard
    with sqlite_store.write() as session:
        for group in session.scalars(select(Group).limit(25)):
            group.state, group.stage, group.verdict = "done", "instruction", "dropped"
            group.drop_reason = "cut_off"
        session.execute(Job.__table__.update().values(status="done", finished_at=utc_now()))
        set_run_status(session, run_id, "paused", error="again")
        session.commit()
    at = open_page("curate")
    at.button(key="curate.no_guard").click().run()
    assert not at.exception and not at.error
    with sqlite_store.read() as session:
        run = get_run(session, run_id)
        assert not run.guard and run.status == "created"


def page_links(at: AppTest) -> list[str]:
    return [each.proto.label for each in at.main if each.type == "page_link"]


def run_with_drops(store: Store, query: str) -> int:
    """A run that ended: two groups kept, five dropped for four reasons; the last query is given."""
    add_dataset(store, pairs=7)
    reasons = [*["judge_none"] * 2, "leftover", "cut_off", "invented"]
    with store.write() as session:
        run = start_run(session, dataset="small", provider="offline")
        groups = list(session.scalars(select(Group).where(Group.run_id == run.id)))
        for group, reason in zip(groups, [None, None, *reasons], strict=True):
            group.state, group.stage = "done", "validation"
            group.verdict = "dropped" if reason else "kept"
            group.drop_reason = reason
        session.get_one(Pair, groups[2].pair_id).query = query
        set_run_status(session, run.id, "done")
        session.commit()
        return run.id


def test_a_run_that_ended_shows_each_frequent_reason_with_examples_and_what_to_try(
    sqlite_store: Store,
) -> None:
    run_id = run_with_drops(sqlite_store, "<b>$x$</b> & [a](b)")
    at = open_page("curate", run=str(run_id))
    assert not at.exception
    shown = words(at)
    assert "Why groups were dropped" in [head.value for head in at.header]
    assert "**The judge found no passage that fits**: 2, 28.6% of the finished groups" in shown
    assert "look at dropped groups" in shown
    fourth = [each for each in page_links(at) if each.startswith("1 · ")]
    assert len(fourth) == 1 and "All 2" not in page_links(at)  # both groups of the first are shown
    bodies = "".join(node.proto.body for node in at.get("html"))
    assert "&lt;b&gt;$x$&lt;/b&gt; &amp; [a](b)" in bodies and "<b>$x$" not in bodies


def test_a_run_that_ended_begins_with_what_came_of_it(sqlite_store: Store) -> None:
    run_id = run_with_drops(sqlite_store, "q")
    at = open_page("curate", run=str(run_id))
    told = [each.value.replace("\\", "") for each in at.markdown]
    (first,) = (number for number, text in enumerate(told) if "finished groups kept (" in text)
    assert (
        "Most frequent reason to drop one: the judge found no passage that fits (2)." in told[first]
    )
    order = [node.proto.label for node in at.main if node.type in ("metric", "selectbox")]
    assert order.index("Calls made") < order.index("Dropped groups"), "results come first"


def test_a_run_is_told_by_what_was_measured_and_nothing_else() -> None:
    reached = dict.fromkeys(STAGES, 4)
    found = Funnel(1, 1, 10, 0, 0, reached, 3, {"judge_none": 1})
    assert run_sentence(found, None, 0.0) == (
        "3 of 4 finished groups kept (75%), 6 not finished. "
        "Most frequent reason to drop one: the judge found no passage that fits (1)."
    )
    undefined = {"comparisons": {"a": {"auc": None}}, "leaks": False}
    assert "Style" not in run_sentence(found, undefined, 0.0)
    leaking = {"comparisons": {"a": {"auc": 0.91}, "b": {"auc": 0.5}}, "leaks": True}
    told = run_sentence(found, leaking, 0.3)
    assert "Style alone gives negatives away (AUC at most 0.91, 0.5 is chance)." in told
    assert told.endswith("It cost $0.30, $0.1000 per kept group.")
    old = run_sentence(found, leaking, 0.3, "measured before 1 group was kept or edited")
    assert "The leakage check is outdated: measured before 1 group was kept or edited." in old
    assert "0.91" not in old and "Style" not in old
    nothing = Funnel(1, 1, 10, 10, 0, reached, 0)
    assert run_sentence(nothing, None, 0.0) == ""


def test_an_example_that_is_hidden_from_the_user_is_not_shown(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_with_drops(sqlite_store, "a secret query")
    secret = select(Pair.id).where(Pair.query == "a secret query")
    monkeypatch.setattr(
        "db.review.queue.hidden_pair", lambda session, user, pair_id: pair_id.in_(secret)
    )
    at = open_page("curate", run=str(run_id))
    assert not at.exception
    assert "2, 28.6% of the finished groups" in words(at)
    assert "secret" not in "".join(node.proto.body for node in at.get("html"))


def leakage_page(reason: str, outdated: str = "") -> None:
    """A page with one comparison; in it everything is imported anew."""
    from analysis.found.runs import LeakageReport
    from app.curate.checks import draw_leakage

    found = {"auc": 0.56, "interval": None, "length_auc": 0.5, "pairs": 40, "reason": reason}
    report = {"version": 1, "warn_above": 0.8, "leaks": [], "comparisons": {"I- / I+": found}}
    draw_leakage(LeakageReport.model_validate(report), 1, outdated)


def test_the_leakage_table_has_typical_words_in_sight_and_no_column_of_reasons_without_one() -> (
    None
):
    (shown,) = AppTest.from_function(leakage_page, kwargs={"reason": ""}).run().dataframe
    first = ["Comparison", "AUC", "95 % from", "to", "Typical of negatives", "Typical of positives"]
    assert list(shown.value)[:6] == first
    assert "Undefined because" not in shown.value
    (shown,) = AppTest.from_function(leakage_page, kwargs={"reason": "few"}).run().dataframe
    assert list(shown.value["Undefined because"]) == ["few"]


def test_a_check_by_an_earlier_version_is_shown_with_the_command_that_repeats_it() -> None:
    outdated = "measured by an earlier version; `inf analyze leakage --run 1`"
    page = AppTest.from_function(leakage_page, kwargs={"reason": "", "outdated": outdated}).run()
    assert ["inf analyze leakage --run 1" in each.value for each in page.info] == [True]
    assert not AppTest.from_function(leakage_page, kwargs={"reason": ""}).run().info


@pytest.mark.long
def test_a_finished_run_is_decided_again_on_its_page(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(faults={"wrong_candidate": 0.08}, seed=5) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        add_dataset(sqlite_store, pairs=12)
        votes = ["model=small", "validation.votes=3"]
        run = run_curation(sqlite_store, dataset="small", provider="openai", settings=votes)
    run_id = run["run_id"]
    at = open_page("curate", run=str(run_id))
    assert f"curate.rules-{run_id}" not in {each.key for each in at.text_area}
    at.session_state["curate.versions_box"] = True
    at.run()
    at.text_area(key=f"curate.rules-{run_id}").set_value("validation.agree=3").run()
    at.button(key="curate.rules_preview").click().run()
    assert "**Preview** of" in words(at), [each.value for each in at.error] + [words(at)[-900:]]
    with sqlite_store.read() as session:
        assert get_run(session, run_id).verdict_version == 1
    at.button(key="curate.rules_decide").click().run()
    assert not at.exception
    with sqlite_store.read() as session:
        assert get_run(session, run_id).verdict_version == 2
        kept = funnel(session, run_id).kept
    assert kept < run["kept"]
    sums = [each.value for each in at.markdown if "kept in both" in each.value]
    assert sums and all(f"**12 groups**: {kept:,} kept in both" in each for each in sums), sums
    changed = {reason for each in at.dataframe for reason in each.value.get("second", ())}
    assert "judge_ambiguous" in changed
    at.button(key="curate.use_version").click().run()
    with sqlite_store.read() as session:
        assert get_run(session, run_id).verdict_version == 1
        assert funnel(session, run_id).kept == run["kept"]
    at.button(key="curate.remove_version").click().run()
    assert "is deleted" in words(at) or not at.error
    at.text_area(key=f"curate.rules-{run_id}").set_value("validation.model=other").run()
    at.button(key="curate.rules_decide").click().run()
    assert any("never requested" in each.value for each in at.error), words(at)


def test_texts_that_come_back_are_named_on_the_page(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(schema="taken") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        add_dataset(sqlite_store, pairs=12)
        asked = {"dataset": "small", "provider": "openai", "recipe": "promptriever"}
        run_id = run_curation(sqlite_store, **asked, settings=["model=small"])["run_id"]
    at = open_page("curate", run=str(run_id))
    at.session_state["curate.versions_box"] = True
    at.run()
    rule = "checks.fits.expected.N=any"
    at.text_area(key=f"curate.rules-{run_id}").set_value(rule).run()
    at.button(key="curate.rules_decide").click().run()
    assert not at.exception and not at.error
    tables = [each.value for each in at.dataframe if "texts" in each.value]
    assert [list(each["first"]) == ["check_fits"] for each in tables] == [True, True]
    captions = [each.value for each in at.caption if "→" in each.value]
    assert captions and all(each.endswith("→ kept") for each in captions), captions


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('["Q", "P+", "style"', '["N", "style"', "are a cycle"),
        ("medium = 2", "medium = 0", "is no weight"),
    ],
)
def test_a_wrong_recipe_is_one_sentence_with_file_and_line_on_the_page(
    sqlite_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    sentence: str,
) -> None:
    add_dataset(sqlite_store, pairs=3)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    text = (recipe.FOLDER / "promptriever.toml").read_text()
    (tmp_path / "mine.toml").write_text(text.replace(old, new, 1))
    monkeypatch.setattr(recipe, "FOLDER", tmp_path)
    at = open_page("curate")
    at.selectbox(key="curate.provider").select("openai").run()
    at.selectbox(key="curate.recipe").select("mine").run()
    at.toggle(key="curate.estimate").set_value(True).run()
    assert not at.exception
    shown = " ".join(words(at).replace("\\", "").split())
    shown += " ".join(each.value.replace("\\", "") for each in at.error)
    assert re.search(r"the recipe mine\.toml, line \d+, ", shown) and sentence in shown, shown
