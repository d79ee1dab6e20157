"""What is made of a verdict version: releases, lists, commands; and what a purge deletes."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from decided_runs import ME, decide, require_whole, voted
from exporting import export
from openai_server import Server
from sqlalchemy import func, select, update

from app.operations import groups, runs
from curation.release import job
from db.archive.purging import purge
from db.errors import BadInput, NotFound, Refused
from db.people.rights import ALL_RIGHTS
from db.review.queue import QueueFilter
from db.run.versions import VersionChoice, VersionComparison
from db.store.store import Store
from db.tables import Group, GroupVerdict, Job, Run, VerdictVersion


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(**wanted: Any) -> Server:
        one = Server(**wanted).__enter__()
        running.append(one)
        monkeypatch.setenv("OPENAI_BASE_URL", one.url)
        return one

    yield start
    for one in running:
        one.__exit__()


def released(store: Store, out: Path, run_id: int, **more: Any) -> dict[str, Any]:
    done = export(store, out, dataset=None, runs=[run_id], format="jsonl", **more)
    manifest: dict[str, Any] = json.loads((out / "release.json").read_text())
    return done | {"manifest": manifest, "card": (out / "README.md").read_text()}


def files_of(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.jsonl"))}


@pytest.mark.long
def test_a_release_says_which_version_it_is_of_and_stays_valid(
    store: Store, server: Callable[..., Server], tmp_path: Path
) -> None:
    run_id = voted(store, server)["run_id"]
    first = released(store, tmp_path / "first", run_id)
    assert "verdict_versions" not in first["manifest"]["filter"]
    assert "verdicts of version" not in first["card"]
    decide(run_id, "validation.agree=3")
    second = released(store, tmp_path / "second", run_id)
    assert second["manifest"]["filter"]["verdict_versions"] == {str(run_id): 2}
    assert "verdicts of version 2" in second["card"] and "validation.agree=3" in second["card"]
    assert second["groups"] < first["groups"]
    by_version = {row.number: row.releases for row in runs.list_versions(ME, run_id).data}
    assert by_version == {1: (first["release_id"],), 2: (second["release_id"],)}
    runs.use_version(ME, VersionChoice(run_id=run_id, number=1))
    with pytest.raises(Refused, match="is made of version 2"):
        runs.remove_version(ME, VersionChoice(run_id=run_id, number=2))
    again = released(store, tmp_path / "again", run_id)
    assert files_of(tmp_path / "again") == files_of(tmp_path / "first")
    assert again["manifest"]["filter"] == first["manifest"]["filter"]
    assert again["content_sha256"] == first["content_sha256"] != second["content_sha256"]


@pytest.mark.long
@pytest.mark.parametrize("moment", ["before the snapshot", "in the snapshot"])
def test_a_release_is_never_of_two_versions(
    store: Store,
    server: Callable[..., Server],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    run_id = voted(store, server)["run_id"]
    first = released(store, tmp_path / "first", run_id)
    name = "_adopt_leftovers" if moment == "before the snapshot" else "write_groups"
    whole = getattr(job, name)

    def meanwhile(*given: Any) -> Any:
        thread = threading.Thread(target=decide, args=(run_id, "validation.agree=3"))
        thread.start()
        thread.join()
        return whole(*given)

    monkeypatch.setattr(job, name, meanwhile)
    if moment == "before the snapshot":
        with pytest.raises(Refused, match="was decided again while"):
            released(store, tmp_path / "out", run_id)
        assert not (tmp_path / "out").exists()
    else:
        done = released(store, tmp_path / "out", run_id)
        assert done["content_sha256"] == first["content_sha256"]
        assert "verdict_versions" not in done["manifest"]["filter"]
    assert require_whole(store, run_id) == 2


def test_groups_are_listed_by_the_verdicts_of_any_version(
    store: Store, server: Callable[..., Server]
) -> None:
    run_id = voted(store, server)["run_id"]
    decide(run_id, "validation.agree=3")
    one, two = runs.list_versions(ME, run_id).data

    def listed(**wanted: Any) -> Any:
        return groups.list_some(ME, QueueFilter(run_id=run_id, **wanted), limit=None)

    for version in (one, two):
        of = {"verdict_version": version.number}
        assert listed(**of, verdict="kept").total == version.kept
        for reason, number in version.dropped.items():
            found = listed(**of, verdict="dropped", reason=reason)
            assert found.total == number
            assert {row.drop_reason for row in found.data} == {reason}
    assert listed().data == listed(verdict_version=2).data
    with pytest.raises(NotFound, match="no verdict version 9"):
        listed(verdict_version=9)
    only_new = next(reason for reason in two.dropped if reason not in one.dropped)
    with pytest.raises(BadInput, match="no drop reason"):
        listed(verdict_version=1, reason=only_new)


def test_a_run_with_versions_is_purged_whole(
    store: Store, server: Callable[..., Server], tmp_path: Path
) -> None:
    run_id = voted(store, server, pairs=4)["run_id"]
    decide(run_id, "validation.agree=3")
    with store.write() as session:
        session.execute(update(Job).values(status="done"))  # nothing is at work on it
        session.commit()
    purge(store, run_id=run_id, rights=ALL_RIGHTS, actor="me", backup=tmp_path / "b.zip")
    with store.read() as session:
        for table in (VerdictVersion, GroupVerdict, Run, Group):
            assert session.scalar(select(func.count()).select_from(table)) == 0


def test_commands_decide_list_compare_and_switch(
    sqlite_store: Store, server: Callable[..., Server], inf: Callable[..., Any]
) -> None:
    run_id = str(voted(sqlite_store, server)["run_id"])
    rule = ("--set", "validation.agree=3")
    assert "a preview" in inf("runs", "decide", run_id, *rule, "--preview").out
    done = inf("runs", "decide", run_id, *rule)
    assert done.code == 0 and f"run {run_id} has verdict version 2 now" in done.out
    listed = json.loads(inf("runs", "versions", run_id, "--json").out)
    assert listed == runs.list_versions(ME, int(run_id)).as_json()
    compared = json.loads(inf("runs", "compare-versions", run_id, "1", "2", "--json").out)
    wanted = VersionComparison(run_id=int(run_id), first=1, second=2)
    assert compared == runs.compare_versions(ME, wanted).as_json()
    assert "version 1 (the recipe’s rules)" in inf("runs", "compare-versions", run_id).out
    assert json.loads(inf("runs", "show", run_id, "--json").out)["verdict_version"] == 2
    assert "2*" in inf("runs", "versions", run_id).out
    assert "1*" in inf("runs", "use-version", run_id, "1").out
    assert inf("runs", "remove-version", run_id, "2").code == 0
    refused = inf("runs", "decide", run_id, "--set", "validation.model=other")
    assert refused.code == 1 and "inf runs create" in refused.err
