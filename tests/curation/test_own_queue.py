"""A study's figures rest on its own queue, and part of a queue is compared with the rest."""

from collections.abc import Callable
from pathlib import Path

from conftest import Ran
from exporting import export
from made_study import make_study
from records_world import make_run
from sqlalchemy.orm import Session

from analysis.study import run_text
from curation.judging.about_run import about_run
from curation.judging.sampling import Sampling
from db.store import schema
from db.store.store import Store
from db.study.judgments import count_known, get_or_create_judge, judgment_frame, record_judgment
from db.study.run_items import queue_item_ids, run_item_kinds
from db.study.studies import add_study
from db.tables import CountedJudgment, Item, Job


def two_studies(store: Store) -> tuple[int, list[int]]:
    """Study 1 of 30 items at random, study 2 of the first 7 of them; returns the run and these."""
    run_id = make_run(store, kept=40, dropped=0)
    make_study(store, dataset="books", items=30, overlap=2, sampling=Sampling("random"))
    with store.write() as session:
        chosen = queue_item_ids(session, 1)[:7]
        add_study(
            session, run_id=run_id, item_ids=chosen, overlap=2, settings={"sampling": "random"}
        )
        session.commit()
    return run_id, chosen


def confirm(
    session: Session,
    items: list[int],
    *,
    study_id: int | None,
    name: str = "simulated:1",
    kind: str = "person",
) -> int:
    """Judgments of a program that confirm these items; returns the judge."""
    simulated = kind == "person"
    judge = get_or_create_judge(session, name, kind=kind, simulated=simulated)
    for item_id in items:
        item = session.get_one(Item, item_id)
        record_judgment(
            session,
            judge_id=judge.id,
            item_id=item_id,
            choice=item.scenario,
            order_shown=[each["label"] for each in item.candidates],
            event_id=f"{name} {item_id}",
            study_id=study_id,
        )
    return judge.id


def test_a_study_that_nobody_judged_takes_no_estimate_from_another_of_its_items(
    store: Store,
) -> None:
    _, chosen = two_studies(store)
    with store.write() as session:
        confirm(session, chosen, study_id=2)
        session.commit()
        assert about_run(session, 2)["precision"]["value"] == 1
        report = about_run(session, 1)
    assert report["precision"]["value"] is None and report["judged"] == 0
    assert (report["waiting"], report["imbalances"]) == (30, [])


def test_a_model_counts_where_it_was_to_judge_and_where_it_judged_a_whole_run(store: Store) -> None:
    _, chosen = two_studies(store)
    with store.write() as session:
        confirm(session, chosen, study_id=2, name="m", kind="model")
        validator = {row.judge for row in judgment_frame(session, 1)}
        assert validator == {"offline:embedding"}, "the run's validator answered outside of studies"
        confirm(session, queue_item_ids(session, 1), study_id=None, name="second", kind="model")
        assert {row.judge for row in judgment_frame(session, 1)} == validator | {"second"}
        judge = confirm(session, chosen, study_id=None, name="m", kind="model")
        count_known(session, 1, judge)
        count_known(session, 1, judge)  # a second job of the same judge
        mine = [row.item_id for row in judgment_frame(session, 1) if row.judge == "m"]
        assert mine == sorted(chosen)


def test_a_program_that_went_through_a_queue_counts_with_what_it_had_answered_before(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    two_studies(sqlite_store)
    inf("study", "judge", "--study", 2, "--judge", "simulated:1")
    done = inf("study", "judge", "--study", 1, "--judge", "simulated:1", "--json").json
    assert (done["judged"], done["judged_before"]) == (23, 7)
    with sqlite_store.read() as session:
        rows = [row for row in judgment_frame(session, 1) if row.judge == "simulated:1"]
        assert len(rows) == 30
        assert about_run(session, 1)["judged"] == 30


def test_judged_items_that_differ_from_the_rest_are_reported_beside_the_estimate(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    run_id, _ = two_studies(sqlite_store)
    with sqlite_store.write() as session:
        kinds = run_item_kinds(session, run_id)
        queue = queue_item_ids(session, 1)
        nq = [item for item in queue if kinds[item][1].source == "nq"]
        confirm(session, nq, study_id=1)
        session.commit()
        report = about_run(session, 1)
    (found,) = report["imbalances"]
    assert run_text.headline(report).endswith("another one when the queue is judged.")
    shares = (found["field"], found["value"], found["judged"], found["waiting"])
    assert shares == ("source", "nq", 1, 0)
    assert not found["weighted"]
    sentence = "The judged items are no random part of the queue"
    assert sentence in inf("study", "estimate", "--study", 1).out
    export(sqlite_store, tmp_path / "out", dataset="books")
    card = (tmp_path / "out" / "README.md").read_text()
    assert sentence in card and "No weight corrects that for source" in card


def test_a_store_of_before_keeps_what_its_finished_jobs_judged(store: Store) -> None:
    _, chosen = two_studies(store)
    with store.write() as session:
        confirm(session, chosen, study_id=2)
        result = {"study_id": 1, "judge": "simulated:1"}
        session.add(Job(kind="judge", config={"study_id": 1}, status="done", result=result))
        session.commit()
    schema.downgrade(store, "0021")
    schema.upgrade(store)
    with store.read() as session:
        assert session.query(CountedJudgment).count() == 7
        assert about_run(session, 1)["judged"] == 7
