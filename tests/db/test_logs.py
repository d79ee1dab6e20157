"""Lines of logs as JSON: what was at work is named, secrets are not, a wrong format is refused."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from curation_runs import add_dataset, claimed_job

from curation.run.starting import start_run
from db.errors import BadInput
from db.jobs import jobs
from db.logs import JsonLines, formatter, wants_json
from db.store.store import Store


def test_a_record_is_one_line_of_json_even_with_a_traceback() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        record = logging.LogRecord("inf", 40, "f", 1, "a %s\nb", ("ü",), sys.exc_info())
    line = JsonLines().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert (found["level"], found["message"]) == ("ERROR", "a ü\nb")
    assert "ValueError: two" in found["traceback"] and found["at"].endswith("Z")


def test_a_format_that_is_neither_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = logging.Formatter()
    assert not wants_json() and formatter(text) is text
    monkeypatch.setenv("INF_LOG_FORMAT", "xml")
    with pytest.raises(BadInput) as raised:
        formatter(text)
    assert raised.value.code == "log_format"


@pytest.mark.long
def test_the_lines_of_a_run_s_job_name_run_worker_and_group(
    sqlite_store: Store, tmp_path: Path
) -> None:
    add_dataset(sqlite_store, pairs=6)
    with sqlite_store.write() as session:
        run_id = start_run(session, dataset="small", provider="offline").id
        session.commit()
    job = claimed_job(sqlite_store, run_id)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "app.jobs.entry", str(job.id), str(job.attempt)],
        env=os.environ
        | {"INF_DATABASE_URL": sqlite_store.url, "INF_HOME": str(tmp_path)}
        | {"INF_LOG_FORMAT": "json"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # a library's progress bar is no line of ours
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    groups = [line for line in lines if line["message"] == "group finished"]
    assert len(groups) == 6 and len({line["group"] for line in groups}) == 6
    assert {line["run"] for line in groups} == {run_id}
    assert len({line["worker"] for line in groups}) == 1
    assert all(line["verdict"] in ("kept", "dropped") for line in groups)


@pytest.mark.long
def test_a_supervisor_writes_lines_of_the_format_that_is_set(
    sqlite_store: Store, own_home: Path
) -> None:
    with sqlite_store.write() as session:
        jobs.enqueue_job(session, "embed", {})
        session.commit()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "app.cli.main", "jobs", "work", "--idle-seconds", "1"],
        env=os.environ | {"INF_DATABASE_URL": sqlite_store.url} | {"INF_LOG_FORMAT": "json"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    line = json.loads((done.stderr.splitlines() or [done.stdout])[0])
    assert (line["level"], line["logger"]) == ("INFO", "inf.jobs")
    assert "attempt 1" in line["message"]
