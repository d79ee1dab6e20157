"""What operators see of a real server: `/health`, and the log of what fails, by broken stores."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml
from conftest import require
from live_server import Server, serving
from postgres_cluster import Cluster
from sqlalchemy import text

from app.server.health import LIMIT_SECONDS, HealthCheck, find_failing
from db.people.accounts import add_account, get_account
from db.store import schema
from db.store.store import Store, open_store

ROOT = Path(__file__).resolve().parents[2]
HTML = {"accept": "text/html"}
PASSWORD = "correct horse battery"
LINE = re.compile(r"(\S+T\S+Z) ERROR (\d+) (\w+) (\S+) account=(\S+) error=(\w{8}) (.*)")


def team(store: Store) -> int:
    """An admin named root in the store; returns their id."""
    with store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        session.commit()
        return get_account(session, "root").id


def health(server: Server, *, until: int = 0) -> httpx.Response:
    """What /health answers; waits for the status `until`, as the answer is kept for a moment."""
    deadline = time.monotonic() + 30
    while True:
        answer = httpx.get(f"{server.url}/health", timeout=10)
        if until in (0, answer.status_code) or time.monotonic() > deadline:
            return answer
        time.sleep(0.2)


@contextmanager
def signed_in(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        answer = client.post("/sign-in", data={"name": "root", "password": PASSWORD})
        assert answer.status_code == 303
        yield client


@pytest.fixture
def served(sqlite_store: Store, tmp_path: Path) -> Iterator[tuple[Server, Store, int]]:
    account_id = team(sqlite_store)
    with serving(tmp_path / "served") as server:
        yield server, sqlite_store, account_id


@pytest.mark.long
def test_a_server_whose_store_moved_on_refuses_to_write_and_its_health_names_the_schema(
    served: tuple[Server, Store, int],
) -> None:
    server, store, _ = served
    assert (health(server).status_code, health(server).json()) == (200, {"status": "ok"})
    with schema.changing(store) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    refused = httpx.post(
        f"{server.url}/sign-in", data={"name": "root", "password": PASSWORD}, headers=HTML
    )
    assert refused.status_code == 503
    assert "Nothing was stored" in refused.text and "9999" not in refused.text
    answer = health(server, until=503)
    assert (answer.status_code, answer.json()) == (
        503,
        {"status": "failing", "failing": ["schema"]},
    )
    log = server.log.read_text()
    assert "health: schema: the store is at revision 9999" in log
    assert "Traceback" not in log


@pytest.mark.long
def test_a_failed_answer_is_one_line_with_a_code_and_each_error_has_one_traceback(
    served: tuple[Server, Store, int],
) -> None:
    server, store, _ = served
    with signed_in(server) as client:
        assert client.get("/account").status_code == 200
        with store.engine.connect() as connection:
            connection.exec_driver_sql("DROP TABLE password_link")
            connection.exec_driver_sql("ALTER TABLE account_session RENAME COLUMN device TO gone")
            connection.commit()
        answers = [client.get("/account", headers=HTML) for _ in range(3)]
        token = "a-secret-token-of-a-link-that-is-long-enough"
        answers.append(client.get(f"/password/{token}%0Ax"))
    assert [answer.status_code for answer in answers] == [500] * 4
    log = server.log.read_text()
    found = LINE.findall(log)
    assert [(one[1], one[2], one[3]) for one in found] == [
        *[("500", "GET", "/account")] * 3,
        ("500", "GET", "/password/…"),
    ]
    codes = [one[5] for one in found]
    assert len(set(codes[:3])) == 1 and codes[3] != codes[0]
    assert all(code in answer.text for code, answer in zip(codes, answers, strict=True))
    assert log.count("Traceback (most recent call last)") <= 4  # each is chained from the driver's
    assert token not in log and "\x1b[" not in log and "Exception in ASGI" not in log
    assert "sqlite3" not in answers[0].text


@pytest.mark.long
def test_a_line_names_the_account(served: tuple[Server, Store, int]) -> None:
    server, store, account_id = served
    with signed_in(server) as client:
        with store.engine.connect() as connection:
            connection.exec_driver_sql("ALTER TABLE event RENAME TO gone")
            connection.commit()
        assert client.post("/account/session", data={"session": "1"}).status_code == 500
    (found,) = LINE.findall(server.log.read_text())
    assert found[1:5] == ("500", "POST", "/account/session", str(account_id))


@pytest.mark.long
@pytest.mark.postgres
def test_health_reports_a_store_that_is_away_and_answers_again_when_it_is_back(
    tmp_path: Path, postgres_cluster: Cluster
) -> None:
    url = postgres_cluster.create(template="inf_template")
    team(open_store(url))
    open_store(url).close()
    with serving(tmp_path / "served", INF_DATABASE_URL=url) as server:
        assert health(server).status_code == 200
        postgres_cluster.allow(url, False)
        try:
            answer = health(server, until=503)
            assert answer.json() == {"status": "failing", "failing": ["store"]}
            assert httpx.get(f"{server.url}/_stcore/health").status_code == 200  # why not that one
            page = httpx.get(f"{server.url}/account", headers={**HTML, "cookie": "inf_session=x"})
            assert page.status_code == 503 and str(postgres_cluster.folder) not in page.text
            assert re.search(r"database since [\d:]{8}, next attempt at [\d:]{8}", page.text)
            log = server.log.read_text()
            assert re.search(r"waiting for the store since \S+, next attempt at \S+ \(", log)
        finally:
            postgres_cluster.allow(url, True)
        assert health(server, until=200).status_code == 200
        assert " 503 GET /account " in server.log.read_text()
    postgres_cluster.drop(url)


def test_a_store_that_is_being_written_is_not_an_absent_store(sqlite_store: Store) -> None:
    """A writer waits for another one up to BUSY_TIMEOUT_SECONDS: /health was 503 after 4 s."""
    began = time.monotonic()
    with sqlite_store.write() as session:
        session.execute(text("SELECT 1"))  # begins: the write lock is held from here
        assert find_failing() == {}
    assert time.monotonic() - began < LIMIT_SECONDS / 2
    assert find_failing() == {}


def test_a_store_that_nobody_may_write_fails_also_while_it_can_be_read(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite_store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
        connection.rollback()
    try:
        assert "store" in find_failing()
    finally:
        with sqlite_store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only = OFF")
    assert find_failing() == {}


def test_the_containers_check_waits_longer_than_the_answer_takes() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    docker, python = (
        re.search(r"--timeout=(\d+)s", dockerfile),
        re.search(r"timeout=(\d+)\)", dockerfile),
    )
    assert docker is not None and python is not None
    assert int(docker[1]) > int(python[1]) > LIMIT_SECONDS


@pytest.mark.long
def test_health_reports_a_full_disk(sqlite_store: Store, tmp_path: Path) -> None:
    """A file system of 1 MB; where none can be mounted, one of a smaller limit is simulated."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True
    )
    if mounted.returncode:
        require("mount", "no file system of its own can be mounted here")
    try:
        team(sqlite_store)
        with serving(tmp_path / "served", INF_HOME=str(folder)) as server:
            answer = health(server, until=503)
            assert answer.json() == {"status": "failing", "failing": ["disk"]}
            assert "health: disk: " in server.log.read_text()
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.long
def test_the_containers_health_check_fails_with_the_store(
    served: tuple[Server, Store, int],
) -> None:
    """The command of the Dockerfile, against a server whose store is gone."""
    server, store, _ = served
    text = (ROOT / "Dockerfile").read_text()
    words = yaml.safe_load(text.partition("HEALTHCHECK")[2].partition("CMD ")[2].splitlines()[0])
    words = [word.replace("http://127.0.0.1:8501", server.url) for word in words]
    assert words.pop(0) == "python"

    def check() -> int:
        return subprocess.run([sys.executable, *words], capture_output=True).returncode

    assert check() == 0
    with store.engine.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE alembic_version RENAME TO gone")
        connection.commit()
    assert health(server, until=503).status_code == 503
    assert check() == 1


def test_many_requests_cost_one_check_and_a_store_that_hangs_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checks: list[float] = []

    def find_failing() -> dict[str, str]:
        checks.append(time.monotonic())
        time.sleep(0.5)
        return {}

    async def many(check: HealthCheck) -> list[dict[str, str]]:
        found = await asyncio.gather(*(check.failing() for _ in range(50)))
        return [*found, await check.failing()]

    monkeypatch.setattr("app.server.health.find_failing", find_failing)
    assert asyncio.run(many(HealthCheck())) == [{}] * 51
    assert len(checks) == 1
    monkeypatch.setattr("app.server.health.LIMIT_SECONDS", 0.1)
    hanging = asyncio.run(many(HealthCheck()))
    assert all(list(one) == ["store"] for one in hanging) and len(checks) == 2
