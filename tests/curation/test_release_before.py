"""A store that the release before wrote (commit d64fb84, revision 0023) goes on as it was.

`tests/data/release_before/make.py` wrote `store.sql.gz` and `expected.json` with that commit's
code: ten pairs of the demo set, run 1 from the recording and run 2 on the test server, a study
that two models judged, an approved, a rejected, an edited and a rescued group, a release of each.
`formats.py` beside it wrote `expected_formats.json`: the same releases as Parquet and CSV, and as
pushed to the Hub. Bytes are compared, but of Parquet what no version of its library changes: schema
with its metadata, compression, and the rows of every row group (`tests/described_files.py`).
"""

import gzip
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from curation_runs import run_curation, texts_of
from described_files import OF_THE_VERSION, files_of, of_repository
from earlier_stores import fill_from
from exporting import export
from hub_server import Hub
from openai_server import Server
from sqlalchemy import select

from curation.recipe.tasks import tasks_of
from db.servers.groups import join_group
from db.shape import INF_IR
from db.store import schema
from db.store.store import Store, open_store
from db.store.upgrading import upgrade_store
from db.tables import ServerGroup

pytestmark = pytest.mark.long

FROZEN = Path(__file__).resolve().parent.parent / "data" / "release_before"
EXPECTED: dict[str, Any] = json.loads((FROZEN / "expected.json").read_text())
REVISION, PAIRS, CALLS = "0023", 10, 80
RUNS = {1: ("recorded", []), 2: ("openai", ["model=small"])}
FORMATS: dict[str, Any] = json.loads((FROZEN / "expected_formats.json").read_text())
VIEWS = ["sentence-transformers", "tevatron"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def before(
    request: pytest.FixtureRequest, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """The store as d64fb84 left it; its rows on PostgreSQL, too."""
    own_home.mkdir(parents=True, exist_ok=True)
    path = own_home / "before.db"
    with sqlite3.connect(path) as database:
        database.executescript(gzip.decompress((FROZEN / "store.sql.gz").read_bytes()).decode())
    database.close()
    store = open_store(f"sqlite:///{path}")
    if request.param == "postgres":
        cluster = request.getfixturevalue("postgres_cluster")
        there = open_store(cluster.create())
        schema.upgrade(there, REVISION)
        fill_from(store, there)
        store.close()
        store = there
    monkeypatch.setenv("INF_DATABASE_URL", store.url)
    yield store
    store.close()
    if request.param == "postgres":
        cluster.drop(store.url)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def in_order_of_tasks(line: str) -> str:
    """A row of provenance with its models in the recipe's order: PostgreSQL stores JSON by key."""
    row = json.loads(line)
    models = json.loads(row["models"])
    row["models"] = json.dumps({task: models[task] for task in tasks_of(INF_IR)})
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def data_of(path: Path) -> bytes:
    if path.parent.name != "provenance":
        return path.read_bytes()
    lines = path.read_text(encoding="utf-8").splitlines()
    return "".join(f"{in_order_of_tasks(line)}\n" for line in lines).encode()


def texts_sha256(store: Store, run_id: int) -> str:
    return sha256(json.dumps(texts_of(store, run_id), sort_keys=True).encode())


def test_it_upgrades_exports_the_same_bytes_and_asks_nothing_again(
    before: Store, tmp_path: Path, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert schema.current(before) == REVISION
    with pytest.raises(schema.StoreBehind):
        schema.require_current(before)
    upgrade_store(before)
    schema.require_current(before)
    for run_id in RUNS:
        assert texts_sha256(before, run_id) == EXPECTED["texts"][str(run_id)]
        out = tmp_path / f"release{run_id}"
        made = export(
            before,
            out,
            dataset="demo",
            runs=[run_id],
            format="jsonl",
            views=VIEWS,
            split_by="train",
        )
        found = {
            path.relative_to(out).as_posix(): sha256(data_of(path))
            for path in out.rglob("*")
            if path.is_file()
        }
        same = EXPECTED["files"][str(run_id)]
        assert found.keys() == same.keys()
        assert {name for name in same if found[name] != same[name]} <= OF_THE_VERSION
        assert made["content_sha256"] == EXPECTED["content_sha256"][str(run_id)]

    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with before.write() as session:  # the same server at another port
            (name,) = session.scalars(select(ServerGroup.name))
            join_group(session, [server.url], name)
            session.commit()
        for run_id, (provider, settings) in RUNS.items():
            again = run_curation(
                before, dataset="demo", provider=provider, settings=settings, limit=PAIRS
            )
            assert again["calls"] == {"made": 0, "reused": CALLS}
            assert texts_sha256(before, again["run_id"]) == EXPECTED["texts"][str(run_id)]
        assert not server.asked

        judge = ("study", "judge", "--judge", "openai:judge", "--json")
        once = inf(*judge, "--study", 1).json
        assert (once["judged"], once["judged_before"]) == (0, 6)
        assert not server.asked
        assert inf(*judge, "--run", 2).json["judged"] == 3 * PAIRS
        assert server.asked


def as_read(found: dict[str, Any]) -> Any:
    """As a file of JSON has it."""
    return json.loads(json.dumps(found))


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_it_exports_the_same_rows_in_every_format(before: Store, tmp_path: Path, form: str) -> None:
    upgrade_store(before)
    for run_id in RUNS:
        out = tmp_path / f"release{run_id}"
        config = {"views": VIEWS} if form == "parquet" else {}
        export(before, out, dataset="demo", runs=[run_id], format=form, split_by="train", **config)
        assert as_read(files_of(out)) == FORMATS[form][str(run_id)]


@pytest.mark.long
def test_it_is_laid_out_on_the_hub_as_before(
    before: Store, tmp_path: Path, hub: Hub, there: dict[str, str], inf: Callable[..., Ran]
) -> None:
    upgrade_store(before)
    for run_id in RUNS:
        out = tmp_path / f"release{run_id}"
        made = export(before, out, dataset="demo", runs=[run_id], format="jsonl", split_by="train")
        repo = f"ada/before{run_id}"
        pushed = inf("releases", "push", made["release_id"], "--repo", repo, "--json", **there)
        assert pushed.code == 0, pushed.out + pushed.err
        found = as_read(of_repository(hub.files(f"datasets/{repo}")))
        assert found == FORMATS["hub"][str(run_id)]
