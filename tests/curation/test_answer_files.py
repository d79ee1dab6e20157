"""Answers between their arrival and their commit: in files that outlive a killed worker."""

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation, start_worker, stored_calls, wait_for
from openai_server import Server
from sqlalchemy import select, text

from curation.answer_files import LONGEST_FILE, AnswerFiles, folder_of, store_left_answers
from curation.starting import start_run
from db.runs import get_run
from db.store import Store, open_store
from db.tables import Call, utc_now

PAIRS = 30
CALLS = PAIRS * 8
IN_FLIGHT = 16


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(latency_seconds=0.02, usage=(100, 10)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def new_run(store: Store, pairs: int = 1) -> int:
    add_dataset(store, pairs=pairs)
    with store.write() as session:
        run_id = start_run(
            session,
            dataset="small",
            provider="openai",
            settings=["model=small"],
            concurrency=IN_FLIGHT,
        ).id
        session.commit()
    return run_id


def answer(number: int, *, words: str = "yes", usd: float = 0.25) -> dict[str, Any]:
    """A row of the journal."""
    return {
        "key": f"key {number}",
        "task": "instruction_positive",
        "provider": "openai",
        "model": "small",
        "prompt_sha256": "0" * 64,
        "request": {"inputs": {"document": "d"}},
        "answer": words,
        "finish_reason": "stop",
        "input_tokens": 1,
        "output_tokens": 1,
        "reasoning_tokens": 0,
        "cost_usd": usd,
        "attempts": 1,
        "latency_seconds": 0.1,
        "created_at": utc_now(),
    }


def files(store: Store) -> list[Path]:
    return sorted(folder_of(store).glob("*"))


def spent(store: Store, run_id: int) -> float:
    with store.read() as session:
        return get_run(session, run_id).spent_usd


def everyone(_owner: str) -> bool:
    return True


@pytest.mark.slow
def test_answers_that_wait_behind_a_locked_store_survive_a_kill(
    store: Store, server: Server
) -> None:
    run_id = new_run(store, PAIRS)
    worker = start_worker(store, run_id, base_url=server.url)
    wait_for(lambda: stored_calls(store) > CALLS // 4)
    with open_store(store.url).write() as locked:  # nothing is committed from here on
        lock = "SELECT 1" if store.is_sqlite else "LOCK TABLE call IN EXCLUSIVE MODE"
        locked.execute(text(lock))
        stored = stored_calls(store)
        wait_for(lambda: lines(store) >= stored + IN_FLIGHT // 2 and at_rest(store, server))
        worker.kill()
        worker.join()
    assert worker.exitcode == -9 and len(server.answered) < CALLS
    assert run_curation(store, run_id)["kept"] == PAIRS
    assert server.answered.total() == CALLS, "nothing that was answered is asked again"
    assert files(store) == []


def lines(store: Store) -> int:
    """How many answers files hold, those of the same file that are stored among them."""
    return sum(len(path.read_bytes().splitlines()) for path in files(store))


def at_rest(store: Store, server: Server) -> bool:
    """Whether every answer is in a file and none comes any more."""
    before = server.asked.total()
    time.sleep(0.3)
    return server.asked.total() == before == server.answered.total() == lines(store)


def test_an_answer_is_in_a_file_until_it_is_committed(store: Store) -> None:
    mine = AnswerFiles(store, 1, "host:1:2.0:a")
    numbers = [mine.append(answer(number)) for number in range(3)]
    (path,) = files(store)
    assert len(path.read_bytes().splitlines()) == 3 and path.stat().st_mode & 0o777 == 0o600
    mine.release(numbers[:2])
    mine.close()
    assert files(store) == [path], "one of three is not committed"
    mine.release(numbers[2:])
    mine.close()
    assert files(store) == []


def test_long_runs_leave_short_files(store: Store) -> None:
    mine = AnswerFiles(store, 1, "host:1:2.0:a")
    long = "x" * (LONGEST_FILE // 4)
    for number in range(40):
        mine.release([mine.append(answer(number, words=long))])
        assert len(files(store)) == 1
        assert files(store)[0].stat().st_size < 2 * LONGEST_FILE
    mine.close()
    assert files(store) == []


def test_what_a_dead_worker_left_is_stored_and_paid_for_once(store: Store) -> None:
    run_id = new_run(store)
    dead = AnswerFiles(store, run_id, "host:1:2.0:a")
    for number in range(3):
        dead.append(answer(number))
    again = AnswerFiles(store, run_id, "host:1:2.0:b")
    for number in range(2, 5):  # one of them two workers asked at the same moment
        again.append(answer(number, words="no"))
    assert store_left_answers(store, lambda owner: owner.endswith("a")) == 3
    assert len(files(store)) == 1, "the other worker lives"
    assert store_left_answers(store, everyone) == 2
    assert store_left_answers(store, everyone) == 0
    assert files(store) == [] and spent(store, run_id) == pytest.approx(5 * 0.25)
    with store.read() as session:
        found = dict(session.execute(select(Call.key, Call.answer)).all())
        times = set(session.scalars(select(Call.created_at)))
    assert found == {f"key {n}": "yes" if n < 3 else "no" for n in range(5)}
    assert all(abs((utc_now() - time).total_seconds()) < 600 for time in times)


def test_a_line_that_a_kill_tore_off_costs_itself_alone(
    sqlite_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    dead = AnswerFiles(sqlite_store, new_run(sqlite_store), "host:1:2.0:a")
    for number in range(3):
        dead.append(answer(number))
    (path,) = files(sqlite_store)
    path.write_bytes(path.read_bytes()[:-20])
    with caplog.at_level(logging.WARNING):
        assert store_left_answers(sqlite_store, everyone) == 2
    assert f"{path}:3 is no whole answer" in caplog.text


def test_stores_do_not_share_their_answers(sqlite_store: Store, tmp_path: Path) -> None:
    other = open_store(f"sqlite:///{tmp_path}/other.db")
    AnswerFiles(other, 1, "host:1:2.0:a").append(answer(1))
    assert files(sqlite_store) == [] and len(files(other)) == 1
    assert store_left_answers(sqlite_store, everyone) == 0 and len(files(other)) == 1
    here = open_store(f"sqlite:///{os.path.relpath(tmp_path)}/other.db")
    assert folder_of(here) == folder_of(other), "however the store's file is named"


def test_where_no_file_can_be_written_the_run_goes_on_and_says_so_once(
    sqlite_store: Store, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    folder = folder_of(sqlite_store)
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING):
        result = run_curation(sqlite_store, new_run(sqlite_store, 3))
    assert result["kept"] == 3 and stored_calls(sqlite_store) == 24
    assert caplog.text.count("answers cannot be kept in") == 1


def test_a_run_tells_how_long_answers_waited_and_leaves_no_file(
    sqlite_store: Store, server: Server
) -> None:
    result = run_curation(sqlite_store, new_run(sqlite_store, 3))
    assert list(result["kept_ms"]) == list(result["commit_ms"])
    assert 0 < result["kept_ms"]["p50"] <= result["commit_ms"]["p50"]
    assert files(sqlite_store) == []
