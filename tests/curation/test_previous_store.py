"""A store that commit 68196d8 made opens after the added migrations and exports the same files.

`tests/data/previous_store` holds the store of a small demo (made offline, judges simulated) and
what that commit exported from it: the sha256 of each data file, and the verdict of each pair.
A new run over the same pairs is compared with what the rules of today wrote.
"""

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from curation_runs import run_curation
from exporting import export
from sqlalchemy import select

from curation.importing.importing import import_dataset
from db.review.reviews import undo_review
from db.store import schema
from db.store.store import Store, open_store
from db.tables import Group, Pair, Review

FROZEN = Path(__file__).resolve().parent.parent / "data" / "previous_store"
EXPECTED: dict[str, Any] = json.loads((FROZEN / "expected.json").read_text())
DEMO = Path(__file__).resolve().parent.parent / "data" / "first_demo"
OFFLINE_RUN = DEMO / "offline_run.json"  # what the rules write and MiniLM keeps today
PAIRS, POOL = 24, 16  # of the demo set's files: the first pairs, their passages, and a few more


@pytest.fixture
def previous(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store as the previous commit left it."""
    own_home.mkdir(parents=True, exist_ok=True)
    path = own_home / "previous.db"
    path.write_bytes(gzip.decompress((FROZEN / "store.db.gz").read_bytes()))
    monkeypatch.setenv("INF_DATABASE_URL", f"sqlite:///{path}")
    return open_store()


ADDED = re.compile(r',"confidence":[^,}]+')  # a column of provenance since


def hashes(release: Path) -> dict[str, str]:
    """The sha256 of each data file, without columns that were added since."""
    return {
        str(path.relative_to(release)): hashlib.sha256(without_added(path).encode()).hexdigest()
        for path in sorted(release.rglob("*.jsonl"))
    }


def without_added(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.parent.name != "provenance":
        return text
    without, count = ADDED.subn("", text)
    assert count == text.count("\n")
    return without


def verdicts(store: Store) -> dict[str, list[str | None]]:
    with store.read() as session:
        query = select(Pair.external_id, Group.verdict, Group.drop_reason)
        rows = session.execute(query.join(Group, Group.pair_id == Pair.id))
        return {pair: [verdict, reason] for pair, verdict, reason in rows}


def test_a_previous_store_is_refused_until_it_is_upgraded(previous: Store) -> None:
    with pytest.raises(schema.StoreBehind, match="revision 0001"):
        schema.require_current(previous)
    schema.upgrade(previous)
    schema.require_current(previous)


def test_a_previous_store_exports_the_same_data_files(previous: Store, tmp_path: Path) -> None:
    schema.upgrade(previous)
    rescued = export(previous, tmp_path / "rescued", dataset="demo", format="jsonl")
    with previous.write() as session:  # that commit left out a group that is dropped and approved
        review = session.scalars(select(Review).where(Review.action == "approve")).one()
        group_id = review.group_id
        assert session.get_one(Group, group_id).verdict == "dropped"
        undo_review(session, group_id, reviewed_by=review.reviewed_by)
        session.commit()
    done = export(previous, tmp_path / "again", dataset="demo", format="jsonl")
    assert hashes(tmp_path / "again") == EXPECTED["files"]
    assert done["content_sha256"] == EXPECTED["content_sha256"]
    assert verdicts(previous) == EXPECTED["verdicts"]
    assert (rescued["groups"], rescued["rescued"]) == (done["groups"] + 1, 1)
    for path in (tmp_path / "again").rglob("*.jsonl"):
        mine, others = f'"group_id":{group_id},', path.read_text().splitlines()
        file = tmp_path / "rescued" / path.relative_to(tmp_path / "again")
        assert [line for line in file.read_text().splitlines() if mine not in line] == others


@pytest.mark.long
def test_an_offline_run_gives_the_recorded_verdicts_and_texts(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """Where the rules change on purpose, write the file anew and say why in the commit."""
    pairs = (DEMO / "pairs.jsonl").read_text().splitlines()[:PAIRS]
    wanted = {json.loads(line)["passage_id"] for line in pairs}
    passages = (DEMO / "passages.jsonl").read_text().splitlines()
    used = [line for line in passages if json.loads(line)["passage_id"] in wanted]
    others = [line for line in passages if json.loads(line)["passage_id"] not in wanted][:POOL]
    (tmp_path / "pairs.jsonl").write_text("\n".join(pairs) + "\n")
    (tmp_path / "passages.jsonl").write_text("\n".join([*used, *others]) + "\n")
    import_dataset(
        sqlite_store,
        name="demo",
        pairs=tmp_path / "pairs.jsonl",
        passages=tmp_path / "passages.jsonl",
        source="InF Studio demo set",
        licence="cc0-1.0",
    )
    run_curation(sqlite_store, dataset="demo", provider="offline", seed=1)
    export(sqlite_store, tmp_path / "new", dataset="demo", format="jsonl")
    files = {name: of for name, of in hashes(tmp_path / "new").items() if "triplets" in name}
    found = {"verdicts": verdicts(sqlite_store), "files": files}
    assert found == json.loads(OFFLINE_RUN.read_text())
