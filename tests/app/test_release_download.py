"""A release as a zip: the exported files, only for those with the right, and streamed."""

import io
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from exporting import export
from records_world import make_run
from sqlalchemy import select
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.access.identity import COOKIE
from app.server.routes import ROUTES
from curation.hub.archive import zipped
from db.people.accounts import add_account
from db.people.rights import set_rights
from db.people.sign_ins import start_session
from db.store.store import Store
from db.tables import Account, Dataset, Event

PASSWORD = "correct horse battery"
FILES = {"README.md", "release.json", "croissant.json"}


@pytest.fixture
def release(sqlite_store: Store, tmp_path: Path) -> int:
    runs = [make_run(sqlite_store), make_run(sqlite_store, name="films")]
    out = tmp_path / "out"
    return int(export(sqlite_store, out, runs=runs, held_out=0.5, name='a "b"\r\n/c')["release_id"])


def signed_in(store: Store, name: str, *datasets: str, right: str = "release") -> TestClient:
    with store.write() as session:
        if session.scalar(select(Account.id)) is None:
            add_account(session, "root", PASSWORD, role="admin", actor="test")
        account = add_account(session, name, PASSWORD, role="annotator", actor="test")
        set_rights(session, account, [], actor="test")
        ids = {each.name: each.id for each in session.scalars(select(Dataset))}
        for dataset in datasets:
            set_rights(session, account, [right], actor="test", dataset_id=ids[dataset])
        token = start_session(session, account)
        session.commit()
    return TestClient(Starlette(routes=ROUTES), cookies={COOKIE: token})


def test_the_zip_is_exactly_the_folder(sqlite_store: Store, release: int, tmp_path: Path) -> None:
    with TestClient(Starlette(routes=ROUTES)) as client:
        answer = client.get(f"/download/release/{release}")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="a-b-c.zip"'
    folder = tmp_path / "out"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None and set(archive.namelist()) > FILES
        for path in (path for path in folder.rglob("*") if path.is_file()):
            assert archive.read(path.relative_to(folder).as_posix()) == path.read_bytes()
    with sqlite_store.read() as session:
        actions = session.scalars(select(Event.name)).all()
    assert "release.download" in actions


def test_only_the_right_release_on_all_its_datasets_opens_it(
    sqlite_store: Store, release: int
) -> None:
    path = f"/download/release/{release}"
    for name, datasets, right, status in (
        ("ada", ("books", "films"), "release", 200),
        ("bob", ("books",), "release", 404),
        ("eve", ("books", "films"), "train", 403),
        ("ned", (), "release", 403),
    ):
        with signed_in(sqlite_store, name, *datasets, right=right) as client:
            assert client.get(path).status_code == status, name
    with TestClient(Starlette(routes=ROUTES)) as nobody:
        assert nobody.get(path).status_code == 403
        assert nobody.get("/download/release/99").status_code == 403


def test_a_folder_that_was_changed_is_refused_with_the_file(
    sqlite_store: Store, release: int, tmp_path: Path
) -> None:
    (tmp_path / "out" / "private.txt").write_text("not of the release")
    with TestClient(Starlette(routes=ROUTES)) as client:
        answer = client.get(f"/download/release/{release}")
        assert answer.status_code == 409 and "private.txt was added" in answer.text
        assert client.get("/download/release/99").status_code == 404


def test_a_large_file_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    tracemalloc.start()
    try:
        sent = sum(map(len, zipped({"data/large.parquet": path})))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sent > 64 << 20 and peak < 16 << 20


def test_the_zip_of_texts_follows_from_them_alone() -> None:
    texts = {"recipe.toml": "name = 'mine'\n", "prompts/fits.md": "Ja: ü\n"}
    one, again = (b"".join(zipped(texts)) for _ in range(2))
    assert one == again
    with zipfile.ZipFile(io.BytesIO(one)) as packed:
        assert {name: packed.read(name).decode() for name in packed.namelist()} == texts
