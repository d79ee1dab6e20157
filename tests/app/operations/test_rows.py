"""Releases, models and jobs: page, command, operation and job have the same rows, byte for byte."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page
from conftest import Ran
from records_world import make_run

from app.access.identity import owner
from app.kit import page as page_kit
from app.operations import jobs, models, releases, runs
from db.outcome.checkpoints import record_checkpoint
from db.store.store import Store

ADA = owner("ada")


def as_bytes(rows: Any) -> bytes:
    return json.dumps(rows, ensure_ascii=False).encode()


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[list[dict[str, Any]]]:
    """The rows that pages hand to their tables."""
    found: list[list[dict[str, Any]]] = []
    true_table = page_kit.draw_table

    def table(rows: Any, *given: Any, **more: Any) -> Any:
        found.append(list(rows))
        return true_table(rows, *given, **more)

    monkeypatch.setattr(page_kit, "draw_table", table)
    return found


@pytest.fixture
def released(sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path) -> Ran:
    make_run(sqlite_store)
    return inf("releases", "create", "books", "--out", tmp_path / "one", "--json")


def test_releases(
    released: Ran,
    inf: Callable[..., Ran],
    drawn: list[Any],
    sqlite_store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert released.code == 0, released.err
    listed = inf("releases", "list", "--json").json
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    rows = releases.list_all(ADA).as_json()
    assert as_bytes({name: listed[name] for name in rows}) == as_bytes(rows)
    assert rows["total"] == 1
    shown = inf("releases", "show", rows["data"][0]["id"], "--json").json
    one = releases.show(ADA, rows["data"][0]["id"]).as_json()
    assert as_bytes({name: shown[name] for name in one}) == as_bytes(one)
    assert one.items() >= rows["data"][0].items()
    open_page("releases")
    assert as_bytes(rows["data"]) in [as_bytes(table) for table in drawn]
    stored = jobs.show(ADA, released.json["job_id"]).result
    assert stored is not None and stored["release_id"] == one["id"]
    told = {name: value for name, value in released.json.items() if name != "job_id"}
    assert as_bytes(told) == as_bytes({name: stored[name] for name in told})
    assert told.keys() == stored.keys()


def test_jobs(
    released: Ran,
    inf: Callable[..., Ran],
    drawn: list[Any],
    sqlite_store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = inf("jobs", "list", "--json").json
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    rows = jobs.list_some(ADA).as_json()
    assert as_bytes({name: listed[name] for name in rows}) == as_bytes(rows)
    (row,) = rows["data"]
    one = jobs.show(ADA, row["id"]).as_json()
    shown = inf("jobs", "show", row["id"], "--json").json
    assert as_bytes({name: shown[name] for name in one}) == as_bytes(one)
    assert one.items() >= row.items()
    open_page("jobs")
    of_page = [{name: each[name] for name in row if name in each} for each in drawn[0]]
    assert as_bytes(of_page) == as_bytes([row])


def test_models_and_runs(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(sqlite_store)
    with sqlite_store.write() as session:
        record_checkpoint(session, path="/m/one", base_model="base", config={}, summary={"a": 1})
        session.commit()
    listed = {noun: inf(noun, "list", "--json").json for noun in ("models", "runs")}
    shown = {noun: inf(noun, "show", 1, "--json").json for noun in listed}
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    for noun, rows, one in (
        ("models", models.list_some(ADA).as_json(), models.show(ADA, 1).as_json()),
        ("runs", runs.list_all(ADA).as_json(), runs.show(ADA, 1).as_json()),
    ):
        assert as_bytes({name: listed[noun][name] for name in rows}) == as_bytes(rows)
        assert as_bytes({name: shown[noun][name] for name in one}) == as_bytes(one)
        assert one.items() >= rows["data"][0].items() and rows["total"] == 1
