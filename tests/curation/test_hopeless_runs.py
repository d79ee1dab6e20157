"""Outages lose no group with several workers, rows that always fail end no run, hopeless runs
pause, and dropped groups can be tried again.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp import web
from curation_runs import add_dataset, claimed_job, run_curation, work_on
from openai_server import Server
from sqlalchemy import func, select

from curation.run.engine import curate
from curation.run.guard import GUARDED_GROUPS
from curation.run.starting import resume_run, start_run
from db.errors import BadInput, InfError, ProviderError, Refused
from db.review.reviews import approve_group
from db.run.runs import get_run
from db.run.workers import worker_totals
from db.store.store import Store
from db.study.studies import add_study
from db.tables import Call, Group, Item, Judgment, Pair, Passage, SlotText

ASKED: dict[str, Any] = {
    "dataset": "small",
    "provider": "openai",
    "settings": ["model=small"],
    "concurrency": 4,
}
PROBE = "Reply with OK."


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(list_models=False) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)
        monkeypatch.setattr("curation.providers.openai_server.MAX_BACKOFF_SECONDS", 0.02)
        yield server


def new_run(store: Store, **more: Any) -> int:
    with store.write() as session:
        run_id = start_run(session, **(ASKED | more)).id
        session.commit()
    return run_id


def queries(store: Store, count: int) -> tuple[str, ...]:
    """The queries of the last pairs."""
    with store.read() as session:
        return tuple(session.scalars(select(Pair.query).order_by(Pair.id.desc()).limit(count)))


def states(store: Store, run_id: int) -> dict[str, int]:
    with store.read() as session:
        rows = session.execute(
            select(Group.state, func.count()).where(Group.run_id == run_id).group_by(Group.state)
        )
        return dict(rows.all())


def reopen(store: Store, run_id: int, **how: Any) -> None:
    with store.write() as session:
        resume_run(session, run_id, **how)
        session.commit()


def work_with(workers: int, store: Store, run_id: int) -> list[dict[str, Any] | InfError]:
    """Work on a run with several workers at once, in threads; what each returned or raised."""
    ended: list[dict[str, Any] | InfError] = []

    def work() -> None:
        try:
            ended.append(work_on(store, run_id))
        except InfError as error:
            ended.append(error)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(ended) == workers
    return ended


@pytest.mark.long
@pytest.mark.parametrize(
    ("status", "code"), [(503, ""), (402, ""), (429, "insufficient_quota"), (401, "no")]
)
def test_an_outage_with_two_workers_leaves_groups_waiting_and_the_error_on_the_run(
    store: Store, server: Server, status: int, code: str
) -> None:
    add_dataset(store, pairs=12)
    run_id = new_run(store)
    server.down = (40, status, code)
    ended = work_with(2, store, run_id)
    assert all(isinstance(each, ProviderError) for each in ended)
    found = states(store, run_id)
    assert found.get("waiting", 0) > 0 and "leased" not in found
    with store.read() as session:
        assert not session.scalars(select(Group.id).where(Group.verdict == "dropped")).all()
        assert get_run(session, run_id).status == "failed"
        trouble = worker_totals(session, run_id).trouble
    assert trouble.last_error is not None and "out of order" in trouble.last_error
    assert trouble.last_error_at is not None
    server.down = None
    reopen(store, run_id)
    work_with(2, store, run_id)
    assert states(store, run_id) == {"done": 12}
    with store.read() as session:
        assert get_run(session, run_id).status == "done"
        assert session.scalar(select(func.count()).where(Group.verdict == "kept")) == 12


@pytest.mark.parametrize("rows", [1, 3])
def test_the_last_rows_that_always_fail_are_dropped_and_the_run_ends(
    store: Store, server: Server, rows: int
) -> None:
    add_dataset(store, pairs=6)
    server.poison = queries(store, rows)  # nothing else is open when they fail
    run_id = new_run(store)
    result = work_on(store, run_id)
    assert result["status"] == "done"
    assert result["dropped"] == {"server_error": rows} and result["kept"] == 6 - rows
    with store.read() as session:
        details = session.scalars(select(Group.drop_detail).where(Group.verdict == "dropped")).all()
    assert all("this prompt breaks the server" in str(each) for each in details)


@pytest.mark.long
def test_the_first_row_of_all_is_dropped_once_others_of_its_task_are_answered(
    store: Store, server: Server
) -> None:
    """It held the only place, and the run stopped four times before it was dropped."""
    add_dataset(store, pairs=6)
    server.poison = (PROBE, queries(store, 6)[-1])  # nor does a probe tell that the server works
    run_id = new_run(store, concurrency=1)
    result = work_on(store, run_id)
    assert result["status"] == "done" and result["kept"] == 5
    assert result["dropped"] == {"server_error": 1}


@pytest.mark.long
def test_a_row_that_brings_the_server_down_each_time_is_dropped(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.providers.openai_server.PROBE_EVERY_SECONDS", (0.02, 0.05))
    add_dataset(sqlite_store, pairs=6)
    (first,) = queries(sqlite_store, 6)[-1:]
    falls: list[float] = []

    async def reply(_: Any, __: Any, prompt: str, ___: int) -> web.Response | None:
        if first in prompt and (not falls or time.monotonic() - falls[-1] > 0.3):
            falls.append(time.monotonic())
        if first in prompt or (falls and time.monotonic() - falls[-1] < 0.3):
            return web.json_response({"error": {"message": "out of memory"}}, status=503)
        return None

    server.reply = reply
    result = curate(claimed_job(sqlite_store, new_run(sqlite_store), patience_minutes=5)).as_json()
    assert result["status"] == "done" and result["kept"] == 5
    assert result["dropped"] == {"server_error": 1} and len(falls) <= 24


@pytest.mark.long
def test_an_outage_that_lasts_over_many_resumes_drops_nothing(store: Store, server: Server) -> None:
    add_dataset(store, pairs=4)
    server.down = (20, 500, "")
    run_id = new_run(store)
    for _ in range(6):
        with pytest.raises(ProviderError):
            work_on(store, run_id)
        reopen(store, run_id)
    with store.read() as session:
        assert not session.scalars(select(Group.id).where(Group.verdict == "dropped")).all()
    server.down = None
    assert work_on(store, run_id)["kept"] == 4


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_drops_its_first_groups_for_one_reason_pauses_and_says_what_to_change(
    store: Store, server: Server, workers: int
) -> None:
    add_dataset(store, pairs=60)
    server.faults = {"no_agreement": 1.0}
    run_id = new_run(store)
    ended = work_with(workers, store, run_id)
    assert all(isinstance(each, dict) and each["paused"] for each in ended)
    done = states(store, run_id)["done"]
    assert GUARDED_GROUPS <= done <= GUARDED_GROUPS + 8 * workers, "only what was in flight"
    with store.read() as session:
        message = get_run(session, run_id).error or ""
    for part in ("the judge found no passage", "look at dropped", "no_guard=yes"):
        assert part in message
    reopen(store, run_id, guard=False)
    work_with(workers, store, run_id)
    assert states(store, run_id) == {"done": 60}


@pytest.mark.long
def test_the_command_exits_with_3_for_a_guarded_run_and_goes_on_without_guard(
    sqlite_store: Store, server: Server, inf: Callable[..., Any]
) -> None:
    add_dataset(sqlite_store, pairs=40)
    server.faults = {"no_agreement": 1.0}
    words = ["--dataset", "small", "--provider", "openai", "--set", "model=small"]
    done = inf("curate", *words, "--concurrency", 4, "--json")
    assert done.code == 3 and done.json["paused"] and "no_guard=yes" in done.json["reason"]
    assert done.json["unpriced"] == ["small"]
    done = inf("curate", "--resume", done.json["run_id"], "--no-guard", "--json")
    assert done.code == 0 and done.json["dropped"] == {"judge_none": 40}
    server.faults = {}
    done = inf("curate", "--resume", 1, "--retry", "judge_none", "--json")
    assert done.code == 0 and done.json["kept"] == 40, done.err
    assert inf("curate", *words, "--retry", "judge_none").code == 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("pairs", "faults", "more"),
    [
        (25, {"no_agreement": 1.0}, {}),
        (40, {"no_agreement": 0.5, "wrong_candidate": 0.5}, {}),
        (40, {"no_agreement": 1.0}, {"guard": False}),
    ],
    ids=["all of them", "two reasons", "off"],
)
def test_the_guard_does_not_stop_other_runs(
    sqlite_store: Store,
    server: Server,
    pairs: int,
    faults: dict[str, float],
    more: dict[str, Any],
) -> None:
    add_dataset(sqlite_store, pairs=pairs)
    server.faults = faults
    result = work_on(sqlite_store, new_run(sqlite_store, **more))
    assert result["status"] == "done" and result["kept"] == 0


@pytest.mark.long
def test_a_retried_group_asks_anew_what_led_to_its_drop_and_nothing_else(
    store: Store, server: Server
) -> None:
    add_dataset(store, pairs=8)
    server.faults = {"wrong_form": 1.0}
    run_id = new_run(store)
    result = work_on(store, run_id)
    assert result["dropped"] == {"unparsable": 8} and result["calls"]["made"] == 8
    server.faults = {"no_agreement": 1.0}
    with pytest.raises(Refused, match="nothing to resume"):
        reopen(store, run_id)
    with pytest.raises(BadInput, match=r"no group dropped as 'cut_off': unparsable \(8\)"):
        reopen(store, run_id, retry="cut_off")
    reopen(store, run_id, retry="unparsable")
    result = work_on(store, run_id)
    assert result["calls"] == {"made": 8 * 8, "reused": 0}, "the same bad answer is not replayed"
    assert result["dropped"] == {"judge_none": 8}
    server.faults = {}
    reopen(store, run_id, retry="judge_none")
    result = work_on(store, run_id)
    assert result["kept"] == 8
    # the two passages and the judge's three answers; instructions and the query are reused
    assert result["calls"] == {"made": 8 * 5, "reused": 8 * 3}
    with store.read() as session:
        counts = [
            session.scalar(select(func.count()).select_from(table))
            for table in (SlotText, Item, Judgment, Call)
        ]
        written = session.scalar(
            select(func.count()).select_from(Passage).where(Passage.origin == "generated")
        )
    assert counts == [56, 24, 24, 8 + 64 + 40] and written == 16, "nothing is left of what was"


@pytest.mark.long
def test_a_retry_keeps_its_number_when_its_worker_stops(store: Store, server: Server) -> None:
    add_dataset(store, pairs=6)
    server.faults = {"wrong_form": 1.0}
    run_id = new_run(store)
    work_on(store, run_id)
    server.faults = {}
    reopen(store, run_id, retry="unparsable")
    server.down = (6 + 20, 503, "")
    with pytest.raises(ProviderError):
        work_on(store, run_id)
    server.down = None
    reopen(store, run_id)
    result = work_on(store, run_id)
    assert result["kept"] == 6
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(Call)) == 6 + 6 * 8


def test_groups_that_people_have_reviewed_are_not_opened_again(
    store: Store, server: Server
) -> None:
    add_dataset(store, pairs=3)
    server.faults = {"no_agreement": 1.0}
    run_id = new_run(store)
    work_on(store, run_id)
    with store.write() as session:
        first, second, third = session.scalars(select(Group.id).order_by(Group.id)).all()
        approve_group(session, first, reviewed_by="Ada")
        session.commit()
    server.faults = {}
    reopen(store, run_id, retry="judge_none")
    assert work_on(store, run_id)["kept"] == 2
    with store.write() as session:
        assert session.get_one(Group, first).drop_reason == "judge_none"
        for each in (second, third):
            assert session.get_one(Group, each).verdict == "kept"
    with pytest.raises(Refused, match="all 1 groups"):
        reopen(store, run_id, retry="judge_none")


@pytest.mark.long
def test_other_runs_and_studies_keep_no_group_of_this_run_closed(
    store: Store, server: Server
) -> None:
    add_dataset(store, pairs=3)
    work_on(store, other := new_run(store, seed=5))
    with store.write() as session:
        one_each = session.scalars(select(func.min(Item.id)).group_by(Item.group_id)).all()
        add_study(session, run_id=other, item_ids=one_each, overlap=1)
        session.commit()
    server.faults = {"no_agreement": 1.0}
    run_id = new_run(store)
    work_on(store, run_id)
    server.faults = {}
    reopen(store, run_id, retry="judge_none")
    assert work_on(store, run_id)["kept"] == 3


def test_what_a_run_reuses_it_does_not_ask_again_after_a_retry(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=4)
    first = run_curation(sqlite_store, **ASKED)
    again = run_curation(sqlite_store, **ASKED)
    assert first["kept"] == again["kept"] == 4 and again["calls"] == {"made": 0, "reused": 32}
