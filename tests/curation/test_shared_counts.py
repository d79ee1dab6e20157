"""One worker counts a run's groups for all that read it; exact where it is not at work."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from curation_runs import add_dataset, group_reads, run_curation
from sqlalchemy import event, select, update

from curation.run.starting import resume_run, start_run
from db.run import progress, runs
from db.run.progress import latest_funnel, list_runs, shared_funnel
from db.run.runs import STAGES, funnel, set_run_status
from db.run.versions import DecidedGroup, add_version, use_version
from db.run.workers import add_worker, end_workers, leave
from db.store.store import Store
from db.tables import Group, Run, RunWorker, utc_now

PAIRS = 12


@pytest.fixture
def run_id(store: Store) -> int:
    add_dataset(store, pairs=PAIRS)
    with store.write() as session:
        found = start_run(session, dataset="small", provider="offline").id
        set_run_status(session, found, "running")
        for owner in ("first", "second"):
            add_worker(session, found, owner)
        session.commit()
    return found


@contextmanager
def counts_in(store: Store) -> Iterator[list[str]]:
    """The statements that read every group of a run."""
    seen: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if "GROUP BY" in statement and "drop_reason" in statement:
            seen.append(statement)

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(store.engine, "before_cursor_execute", note)


def age(store: Store, seconds: float) -> None:
    with store.write() as session:
        at = utc_now() - timedelta(seconds=seconds)
        counted = RunWorker.counted_at.is_not(None)
        session.execute(update(RunWorker).where(counted).values(counted_at=at))
        session.commit()


def test_however_many_read_one_worker_counts(store: Store, run_id: int) -> None:
    with store.write() as session:
        shared_funnel(session, run_id, "first")
        session.commit()
    with counts_in(store) as counts, store.write() as session:
        for _ in range(50):
            assert shared_funnel(session, run_id, "second").pairs == PAIRS
            assert latest_funnel(session, run_id).waiting == PAIRS
        assert shared_funnel(session, run_id, "first").pairs == PAIRS
    assert not counts
    age(store, progress.COUNT_SECONDS + 1)
    with counts_in(store) as counts, store.write() as session:
        shared_funnel(session, run_id, "second")
        latest_funnel(session, run_id)
        assert not counts, "it is the first one's turn"
        shared_funnel(session, run_id, "first")
        session.commit()
    assert len(counts) == 1


def test_a_slow_count_is_made_less_often(
    store: Store, run_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter([0.0, 6.0])
    age(store, 1000)  # what was kept as the run was created
    with monkeypatch.context() as slow, store.write() as session:
        slow.setattr(runs.time, "monotonic", lambda: next(moments))
        shared_funnel(session, run_id, "first")
        session.commit()
    for seconds, expected in ((progress.SHARE * 6 - 5, 0), (progress.SHARE * 6 + 5, 1)):
        age(store, seconds)
        with counts_in(store) as counts, store.write() as session:
            shared_funnel(session, run_id, "first")
        assert len(counts) == expected


def test_when_the_worker_that_counts_is_gone_the_next_one_does(store: Store, run_id: int) -> None:
    with store.write() as session:
        shared_funnel(session, run_id, "first")
        end_workers(session, ["first"])
        with counts_in(store) as counts:
            shared_funnel(session, run_id, "second")
            shared_funnel(session, run_id, "second")
        session.commit()
    assert len(counts) == 1
    with store.read() as session:
        owner = select(RunWorker.owner).where(RunWorker.counted_at.is_not(None))
        assert "second" in session.scalars(owner).all()


@pytest.mark.parametrize("seed", range(6))
def test_a_count_is_exact_once_it_is_due_and_when_the_run_is_not_at_work(
    store: Store, run_id: int, seed: int
) -> None:
    """After any verdicts, claims, retries and re-decisions, stops, resumes and deaths."""
    draw = random.Random(seed)
    with store.read() as session:
        ids = list(session.scalars(select(Group.id).where(Group.run_id == run_id)))
    for step in range(30):
        state = draw.choice(["waiting", "leased", "done"])
        verdict = draw.choice(["kept", "dropped"]) if state == "done" else None
        reason = draw.choice(["refused", "check_fits"]) if verdict == "dropped" else None
        ended = {"verdict": verdict, "drop_reason": reason}
        stage = draw.choice(["", *STAGES])
        with store.write() as session:
            changed = Group.id.in_(draw.sample(ids, 3))
            session.execute(update(Group).where(changed).values(state=state, stage=stage, **ended))
            match draw.choice(["count", "count", "stop", "die"]):
                case "count":
                    owner = draw.choice(["first", "second", f"later {step}"])
                    add_worker(session, run_id, owner)
                    shared_funnel(session, run_id, owner)
                case "stop":
                    set_run_status(session, run_id, "paused")
                    assert latest_funnel(session, run_id) == funnel(session, run_id)
                    set_run_status(session, run_id, "running")
                case "die":
                    owners = session.scalars(select(RunWorker.owner)).all()
                    end_workers(session, owners)
                    assert latest_funnel(session, run_id) == funnel(session, run_id)
            session.commit()
        age(store, 1000)
        with store.read() as session:
            assert latest_funnel(session, run_id) == funnel(session, run_id)


@pytest.mark.long
def test_a_run_that_ended_or_is_resumed_is_counted_in_full(sqlite_store: Store) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    result = run_curation(sqlite_store, dataset="small", provider="offline")
    ended = result["run_id"]
    with sqlite_store.write() as session:
        found = latest_funnel(session, ended)
        assert found == funnel(session, ended) and found.kept == result["kept"]
        if found.dropped:
            resume_run(session, ended, retry=next(iter(found.dropped)))
        set_run_status(session, ended, "running")
        assert latest_funnel(session, ended) == funnel(session, ended)


def listed(store: Store, run_id: int) -> tuple[int, int, int]:
    """Pairs, kept and dropped of a run as a list has them, which must read no group."""
    with group_reads(store) as reads, store.read() as session:
        (found,) = [each for each in list_runs(session) if each.id == run_id]
        assert latest_funnel(session, run_id).pairs == found.pairs
    assert not reads
    return found.pairs, found.kept, found.dropped


def test_a_list_of_runs_reads_no_group_and_is_exact_at_every_end(store: Store) -> None:
    def exact(run_id: int) -> tuple[int, int, int]:
        with store.read() as session:
            now = funnel(session, run_id)
        return now.pairs, now.kept, sum(now.dropped.values())

    add_dataset(store, pairs=PAIRS)
    with store.write() as session:
        created = start_run(session, dataset="small", provider="offline").id
        session.commit()
    assert listed(store, created) == (PAIRS, 0, 0) == exact(created)
    ended = run_curation(store, dataset="small", provider="offline")["run_id"]
    assert listed(store, ended) == exact(ended) and sum(exact(ended)[1:]) == PAIRS
    with store.write() as session:  # dropped ones are tried again
        first = session.scalars(select(Group.id).where(Group.run_id == ended)).first()
        lost = {"verdict": "dropped", "drop_reason": "server_error"}
        session.execute(update(Group).where(Group.id == first).values(**lost))
        resume_run(session, ended, retry="server_error")
        session.commit()
    assert listed(store, ended) == exact(ended) and sum(exact(ended)[1:]) == PAIRS - 1
    with store.write() as session:
        set_run_status(session, ended, "running")
        for owner in ("first", "second"):
            add_worker(session, ended, owner)
        session.commit()
    assert listed(store, ended) == exact(ended), "what was known passes to the first worker"
    for owner in ("first", "second"):
        with store.write() as session:
            waiting = Group.run_id == ended, Group.state == "waiting"
            session.execute(update(Group).where(*waiting).values(state="done", verdict="kept"))
            set_run_status(session, ended, "paused")
            leave(session, ended, owner)
            session.commit()
    assert listed(store, ended) == exact(ended) and sum(exact(ended)[1:]) == PAIRS


def test_a_list_counts_however_many_runs_without_a_count_in_one_statement(
    store: Store, run_id: int
) -> None:
    """Of four runs: one whose worker counted, two whose workers have not, one with a kept count."""
    with store.write() as session:
        shared_funnel(session, run_id, "first")
        created = [start_run(session, dataset="small", provider="offline").id for _ in range(3)]
        for number, each in enumerate(created[:2]):
            set_run_status(session, each, "running")
            add_worker(session, each, f"of {each}")
            some = select(Group.id).where(Group.run_id == each).limit(number + 1)
            lost = {"state": "done", "verdict": "dropped", "drop_reason": "refused"}
            session.execute(update(Group).where(Group.id.in_(some)).values(**lost))
            session.execute(update(RunWorker).where(RunWorker.run_id == each).values(counted=None))
        session.commit()
    statements: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        with group_reads(store) as reads, store.read() as session:
            found = {each.id: (each.pairs, each.dropped) for each in list_runs(session)}
    finally:
        event.remove(store.engine, "before_cursor_execute", note)
    assert found == {
        **{run_id: (PAIRS, 0), created[0]: (PAIRS, 1)},
        **{created[1]: (PAIRS, 2), created[2]: (PAIRS, 0)},
    }
    assert len(reads) == 1 and len(statements) <= 6, statements


def test_verdicts_decided_again_are_counted_once(store: Store) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id = run_curation(store, dataset="small", provider="offline")["run_id"]
    with store.write() as session:
        finished = session.scalars(select(Run.finished_at).where(Run.id == run_id)).one()
        ids = session.scalars(select(Group.id).where(Group.run_id == run_id)).all()
        reasons = ["judge_label"] * 5 + [None] * (PAIRS - 5)
        decided = [DecidedGroup(*each, None, {}) for each in zip(ids, reasons, strict=True)]
        version = add_version(
            session,
            run_id,
            decided,
            settings=["x"],
            expected={},
            created_by="",
            finished_at=finished,
        )
        use_version(session, run_id, version.number)
        session.commit()
    assert listed(store, run_id) == (PAIRS, PAIRS - 5, 5)
