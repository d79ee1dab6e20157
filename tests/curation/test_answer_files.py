"""Answers between their arrival and their commit: in files that outlive a killed worker."""

import errno
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation, start_worker, stored_calls, wait_for
from openai_server import Server
from sqlalchemy import select, text

from curation.run.answer_files import MAX_FILE_BYTES, AnswerFiles, folder_of, store_left_answers
from curation.run.starting import start_run
from db.errors import Refused
from db.run.runs import get_run
from db.run.workers import Account, add_worker, end_workers, store_account
from db.store.store import Store, open_store
from db.tables import Call, utc_now

PAIRS = 30
CALLS = PAIRS * 8
IN_FLIGHT = 16
CALLS_AT_ONCE = 3  # of one group: its three scenarios are judged side by side


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


def die(worker: AnswerFiles) -> None:
    """What the system does to the files of a process that ends."""
    for file in worker._files.values():
        os.close(file.descriptor)
    worker._files.clear()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("dies", ["process", "machine"])
def test_answers_that_wait_behind_a_locked_store_survive_a_kill(
    store: Store, server: Server, dies: str
) -> None:
    run_id = new_run(store, PAIRS)
    server.latency_seconds = 0.3  # SQLite's lock is not fair: the run must not end before it is had
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
    lost = 0
    if dies == "machine":  # with its disk: what was not committed is nowhere else
        assert IN_FLIGHT // 2 <= len(server.answered) - stored <= IN_FLIGHT * CALLS_AT_ONCE
        lost = len(server.answered) - stored
        shutil.rmtree(folder_of(store))
    server.latency_seconds = 0.02
    assert run_curation(store, run_id)["kept"] == PAIRS
    assert server.answered.total() == CALLS + lost, "what was answered and not lost is asked once"
    assert files(store) == []


@pytest.mark.long
def test_a_worker_that_has_enough_to_do_stores_what_another_left_all_the_same(
    sqlite_store: Store, server: Server
) -> None:
    run_id = new_run(sqlite_store, PAIRS)
    server.hold_after = CALLS // 4
    worker = start_worker(sqlite_store, run_id, base_url=server.url)
    wait_for(lambda: stored_calls(sqlite_store) >= CALLS // 8)  # it has begun, and cannot end
    dead = AnswerFiles(sqlite_store, run_id, "another")
    dead.append(answer(1))
    (left,) = [path for path in files(sqlite_store) if "another" in path.name]
    die(dead)
    wait_for(lambda: not left.exists())
    with sqlite_store.read() as session:
        assert session.scalars(select(Call.answer).where(Call.key == "key 1")).one() == "yes"
    assert server.answered.total() < CALLS
    server.hold_after = None
    worker.join(120)
    assert worker.exitcode == 0


def lines(store: Store) -> int:
    """How many answers files hold, those of the same file that are stored among them."""
    return sum(len(path.read_bytes().splitlines()) for path in files(store))


def at_rest(store: Store, server: Server) -> bool:
    """Whether every answer is in a file and none comes any more."""
    before = server.asked.total()
    time.sleep(0.3)
    return server.asked.total() == before == server.answered.total() == lines(store)


def test_an_answer_is_in_a_file_until_it_is_committed(store: Store) -> None:
    mine = AnswerFiles(store, 1, "us")
    numbers = [mine.append(answer(number)) for number in range(3)]
    (path,) = files(store)
    assert len(path.read_bytes().splitlines()) == 3 and path.stat().st_mode & 0o777 == 0o600
    mine.release(numbers[:2])
    assert files(store) == [path], "one of three is not committed"
    mine.release(numbers[2:])
    mine.close()
    assert files(store) == []


def test_what_is_not_committed_at_the_end_is_left_for_whoever_comes_next(store: Store) -> None:
    run_id = new_run(store)
    mine = AnswerFiles(store, run_id, "us")
    first, _ = mine.append(answer(1)), mine.append(answer(2))
    mine.release([first])
    assert store_left_answers(store, set()) == 0, "its worker lives"
    mine.close()
    assert store_left_answers(store, set()) == 2 and files(store) == []


def test_long_runs_leave_short_files(store: Store) -> None:
    mine = AnswerFiles(store, 1, "us")
    long = "x" * (MAX_FILE_BYTES // 4)
    for number in range(40):
        mine.release([mine.append(answer(number, words=long))])
        assert len(files(store)) == 1
        assert files(store)[0].stat().st_size < 2 * MAX_FILE_BYTES
    mine.close()
    assert files(store) == []


def test_what_a_dead_worker_left_is_stored_and_paid_for_once(store: Store) -> None:
    run_id = new_run(store)
    dead, again = AnswerFiles(store, run_id, "one"), AnswerFiles(store, run_id, "two")
    for number in range(3):
        dead.append(answer(number))
    for number in range(2, 5):  # one of them two workers asked at the same moment
        again.append(answer(number, words="no"))
    die(dead)
    assert store_left_answers(store, set()) == 3
    assert len(files(store)) == 1, "the other worker lives"
    die(again)
    assert store_left_answers(store, set()) == 2
    assert store_left_answers(store, set()) == 0
    assert files(store) == [] and spent(store, run_id) == pytest.approx(5 * 0.25)
    with store.read() as session:
        found = dict(session.execute(select(Call.key, Call.answer)).all())
        times = set(session.scalars(select(Call.created_at)))
    assert found == {f"key {n}": "yes" if n < 3 else "no" for n in range(5)}
    assert all(abs((utc_now() - time).total_seconds()) < 600 for time in times)


def test_an_answer_that_is_found_takes_the_place_of_what_was_reserved_for_it(store: Store) -> None:
    """Until then a dead worker's reservation counts as spent; so does that of a lost answer."""
    run_id = new_run(store)
    dead = AnswerFiles(store, run_id, "us:1")
    with store.write() as session:
        add_worker(session, run_id, "us:1")
        reserved = Account(leased_usd=5.0, spent_usd=1.0, reserved_usd=3.0)
        store_account(session, "us:1", reserved)
        session.commit()
    dead.append(answer(1), max_usd=1.0)
    die(dead)
    with store.write() as session:
        end_workers(session, ["us:1"])
        session.commit()
    assert spent(store, run_id) == pytest.approx(4.0)
    assert store_left_answers(store, set()) == 1
    assert spent(store, run_id) == pytest.approx(1.0 + 2.0 + 0.25)


def test_files_of_a_living_worker_are_its_own_also_those_it_has_finished(
    sqlite_store: Store,
) -> None:
    mine = AnswerFiles(sqlite_store, new_run(sqlite_store), "us")
    kept = [mine.append(answer(n, words="x" * (MAX_FILE_BYTES // 2))) for n in range(7)]
    assert len(set(kept)) > 2 and store_left_answers(sqlite_store, set()) == 0
    die(mine)
    assert store_left_answers(sqlite_store, set()) == 7 and files(sqlite_store) == []


def test_a_line_that_a_kill_tore_off_costs_itself_alone(
    sqlite_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    dead = AnswerFiles(sqlite_store, new_run(sqlite_store), "us")
    for number in range(3):
        dead.append(answer(number))
    die(dead)
    (path,) = files(sqlite_store)
    path.write_bytes(path.read_bytes()[:-20])
    with caplog.at_level(logging.WARNING):
        assert store_left_answers(sqlite_store, set()) == 2
    assert f"{path}:3 is incomplete" in caplog.text


def test_a_file_that_cannot_be_stored_is_told_and_holds_up_nobody(
    sqlite_store: Store, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = new_run(sqlite_store, 3)
    dead = AnswerFiles(sqlite_store, run_id, "us")
    dead.append({name: value for name, value in answer(1).items() if name != "task"})
    die(dead)
    (path,) = files(sqlite_store)
    with caplog.at_level(logging.WARNING):
        assert run_curation(sqlite_store, run_id)["kept"] == 3
    words = f"the answers in {path} cannot be stored and are left there"
    assert caplog.text.count(words) == 1
    assert files(sqlite_store) == [path]


@pytest.mark.long
@pytest.mark.slow
def test_a_full_disk_tears_no_answer_but_its_own(sqlite_store: Store, tmp_path: Path) -> None:
    """In a process whose files may not be longer than so much, as a full disk does it."""
    run_id = new_run(sqlite_store)
    script = f"""
import os, resource, signal
from curation.run.answer_files import NOT_KEPT, AnswerFiles
from inf_studio import open_store
from test_answer_files import answer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
mine = AnswerFiles(open_store({sqlite_store.url!r}), {run_id}, "us")
assert mine.append(answer(1)) == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
assert mine.append(answer(2, words="x" * 5000)) == NOT_KEPT
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert mine.append(answer(3)) == 2
os.kill(os.getpid(), signal.SIGKILL)
"""
    paths = [str(Path(__file__).parent), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert store_left_answers(sqlite_store, set()) == 2
    with sqlite_store.read() as session:
        assert set(session.scalars(select(Call.key))) == {"key 1", "key 3"}


def test_stores_do_not_share_their_answers(sqlite_store: Store, tmp_path: Path) -> None:
    other = open_store(f"sqlite:///{tmp_path}/other.db")
    theirs = AnswerFiles(other, 1, "us")
    theirs.append(answer(1))
    die(theirs)
    assert files(sqlite_store) == [] and len(files(other)) == 1
    assert store_left_answers(sqlite_store, set()) == 0 and len(files(other)) == 1
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
    assert caplog.text.count("answers cannot be written to") == 1


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_run_whose_folder_has_no_locks_ends_before_its_first_call(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    run_id = new_run(sqlite_store, 3)

    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as shared:
        shared.setattr("fcntl.flock", flock)
        with pytest.raises(Refused, match=os.strerror(number)):
            run_curation(sqlite_store, run_id)
    with sqlite_store.read() as session:
        run = get_run(session, run_id)
        assert run.status == "failed" and "set INF_HOME" in str(run.error)
    assert server.answered.total() == 0 and files(sqlite_store) == []
    assert run_curation(sqlite_store, run_id)["kept"] == 3


def test_a_run_tells_how_long_answers_waited_and_leaves_no_file(
    sqlite_store: Store, server: Server
) -> None:
    result = run_curation(sqlite_store, new_run(sqlite_store, 3))
    assert list(result["kept_ms"]) == list(result["commit_ms"])
    assert 0 < result["kept_ms"]["p50"] <= result["commit_ms"]["p50"]
    assert list(result["claim_ms"]) == list(result["commit_ms"])
    assert 0 < result["claim_ms"]["p50"] <= result["claim_ms"]["most"]
    assert files(sqlite_store) == []
