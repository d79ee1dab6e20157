"""Secrets come from the environment or a file, and are nowhere afterwards."""

from collections.abc import Callable
from pathlib import Path

import pytest
from app_pages import open_page, words
from conftest import Ran
from hypothesis import given
from hypothesis import strategies as st

from app.access.identity import owner
from app.jobs import launching, processes
from db.errors import BadInput, InfError, Refused
from db.home import home
from db.jobs import jobs
from db.store import secrets
from db.store.store import Store

SECRET = 'sk-toy-0123456789-"quoted"'
TESTS = Path(__file__).resolve().parent.parent


def write_secrets(text: str, mode: int = 0o600) -> Path:
    path = home() / secrets.FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test loads is forgotten after it."""
    monkeypatch.setattr(secrets, "_of_the_file", set())
    for name in ("TOY_API_KEY", "TOY_WORD"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.long
def test_a_job_that_tells_its_secret_leaves_it_in_no_row_page_or_log(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ENTRY", "toy_jobs")
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    write_secrets(f"TOY_API_KEY = '{SECRET}'\n")
    with pytest.raises(InfError, match=r"refused \[TOY_API_KEY\]"):
        launching.run_in_foreground(sqlite_store, "curate", {"ending": "leaks"}, actor=owner("me"))
    with sqlite_store.read() as session:
        job = jobs.get_job(session, 1)
    assert job.message == "asking with [TOY_API_KEY]"
    log = Path(job.log_path or "").read_text()
    for told in ("asked with", "answer to", "refused"):
        assert f"{told} [TOY_API_KEY]" in log
    for file in home().rglob("*"):
        if file.is_file() and file.name != secrets.FILE:
            assert SECRET.encode() not in file.read_bytes(), file
    shown = words(open_page("jobs", job="1"))
    assert SECRET not in shown and "[TOY_API_KEY]" in shown
    assert "Fix the cause" in shown


def test_a_log_that_a_library_wrote_past_us_is_shown_without_the_secret(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_API_KEY", SECRET)
    log = tmp_path / "job.log"
    log.write_text(f"GET /?key={SECRET}\n")
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "curate", {})
        job.log_path = str(log)
        assert launching.log_tail(job) == "GET /?key=[TOY_API_KEY]"


def test_a_config_that_holds_a_secret_never_becomes_a_job(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_API_KEY", SECRET)
    with sqlite_store.write() as session:
        with pytest.raises(Refused, match="holds the secret TOY_API_KEY") as refused:
            jobs.enqueue_job(session, "curate", {"deep": [{"key": f"Bearer {SECRET}"}]})
        assert SECRET not in str(refused.value)
        assert jobs.count_jobs(session) == {}


def test_the_environment_goes_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_API_KEY", "from-the-environment")
    write_secrets('TOY_API_KEY = "from-the-file"\nTOY_WORD = "also-a-secret"\n')
    secrets.load_secrets()
    assert secrets.redacted("from-the-environment also-a-secret") == "[TOY_API_KEY] [TOY_WORD]"


def test_what_is_written_to_the_file_later_is_a_secret_by_then() -> None:
    """A connection was refused a new entry's name until the server was restarted."""
    write_secrets('TOY_WORD = "here-from-the-start"\n')
    secrets.load_secrets()
    assert not secrets.is_secret_now("TOY_LATER")
    write_secrets('TOY_WORD = "here-from-the-start"\nTOY_LATER = "written-afterwards"\n')
    assert secrets.is_secret_now("TOY_LATER") and not secrets.is_secret_now("HOME")
    assert secrets.secret_now("TOY_LATER") == "written-afterwards"


def test_a_file_that_others_can_read_is_refused_with_the_remedy(
    inf: Callable[..., Ran],
) -> None:
    path = write_secrets(f"TOY_API_KEY = '{SECRET}'\n", mode=0o640)
    done = inf("jobs", "list")
    assert done.code == 1
    assert f"{path} can be read by others (mode 640): chmod 600 {path}" in done.err
    assert "Traceback" not in done.err and SECRET not in done.err + done.out
    assert "can be read by others" in inf("jobs", "list", "--json").json["error"]


@pytest.mark.parametrize(
    "text",
    ["TOY_API_KEY = 5\n", "toy = 'x'\n", "[section]\nA = 'b'\n", "TOY_API_KEY = 'never ended"],
)
def test_a_file_that_is_no_list_of_secrets_is_refused_without_telling_them(text: str) -> None:
    write_secrets(text)
    with pytest.raises(BadInput, match=r"secrets\.toml") as refused:
        secrets.load_secrets()
    assert "never ended" not in str(refused.value)


@given(before=st.text(max_size=20), after=st.text(max_size=20))
def test_no_text_keeps_a_secret(before: str, after: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOY_API_KEY", SECRET)
        patch.setenv("TOY_TOKEN", SECRET[:12])  # one secret inside another
        found = secrets.redacted(before + SECRET + after)
    assert SECRET[:12] not in found and "[TOY_API_KEY]" in found
