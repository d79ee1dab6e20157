"""Datasets: page, command, job and operation give the same; each operation asks for its right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page, sign_in
from conftest import Ran, count_rows
from study_world import make_world

from app.access.identity import Actor, SessionUser, owner
from app.operations import datasets
from curation.hub.request import DatasetPull
from curation.importing.job import import_files
from curation.importing.request import DatasetImport
from curation.mining.request import NegativesMine
from db.corpus.datasets import get_dataset
from db.errors import Refused
from db.events import list_events
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.people.accounts import add_account
from db.people.rights import Rights, rights_of
from db.store.store import Store

ADA = owner("ada")
ROW = '{"query_id": "q1", "query": "who", "passage_id": "p1", "passage": "me"}\n'


def nothing(*_: Any, **__: Any) -> Any:
    raise AssertionError("it was launched")


PULL = DatasetPull(repo="ada/set", name="new")
IMPORT = DatasetImport(name="new", pairs="/nowhere/pairs.jsonl")
MINE = NegativesMine(name="world")
NEEDING: dict[str, Callable[[Actor], Any]] = {
    "list_all": datasets.list_all,
    "show": lambda actor: datasets.show(actor, "world"),
    "name_of": lambda actor: datasets.name_of(actor, 1),
    "pairs": lambda actor: datasets.pairs(actor, 1),
    "passages": lambda actor: datasets.passages(actor, 1),
    "import_files": lambda actor: datasets.import_files(actor, IMPORT, nothing),
    "preview": lambda actor: datasets.preview(actor, IMPORT),
    "import_judgments": lambda actor: datasets.import_judgments(
        actor, datasets.JudgmentsImport(path="x.json", study_id=1)
    ),
    "pull": lambda actor: datasets.pull(actor, PULL, nothing),
    "mine": lambda actor: datasets.mine(actor, MINE, nothing),
    "archive": lambda actor: datasets.archive(actor, dataset="world"),
    "unarchive": lambda actor: datasets.unarchive(actor, dataset="world"),
    "purge": lambda actor: datasets.purge(actor, dataset="world", backup=None, progress=nothing),
    "purging_admin": lambda actor: datasets.purging_admin(actor, "ada", nothing),
    "depending": lambda actor: datasets.depending(actor, dataset="world"),
}


@pytest.fixture
def world(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    make_world(sqlite_store, groups=3, name="world")
    return sqlite_store


@pytest.mark.parametrize("name", NEEDING)
def test_an_operation_on_datasets_is_refused_without_the_right(world: Store, name: str) -> None:
    eve = Actor("eve", rights=Rights(everywhere=frozenset(("judge", "train", "release", "review"))))
    with pytest.raises(Refused, match=r"lacks a right|for admins"):
        NEEDING[name](eve)


def test_every_operation_on_datasets_is_among_them() -> None:
    found = {
        name
        for module in (datasets,)
        for name, each in vars(module).items()
        if callable(each) and getattr(each, "__module__", "") == module.__name__
        if name[0] != "_" and name[0].islower()
    }
    assert found - {"here"} == set(NEEDING)  # `here` only makes a launch


def test_page_command_and_operation_give_the_same_rows(
    world: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = inf("datasets", "list", "--json").json
    rows = datasets.list_all(ADA).as_json()
    assert {name: listed[name] for name in rows} == rows and rows["total"] == 1
    (former,) = listed["datasets"]
    assert (former["dataset"], former["dataset_id"]) == ("world", rows["data"][0]["id"])
    shown = inf("datasets", "show", "world", "--json").json
    assert {name: shown[name] for name in rows["data"][0]} == rows["data"][0]
    assert shown.items() >= datasets.show(ADA, "world").as_json().items()
    sign_in(world, monkeypatch, "admin")
    (drawn,) = open_page("datasets").dataframe[0].value.to_dict("records")
    assert {name: drawn[name] for name in rows["data"][0] if name != "archived_at"} == {
        name: value for name, value in rows["data"][0].items() if name != "archived_at"
    }


def test_command_and_job_report_the_same_and_are_in_the_audit_log(
    world: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(ROW)
    short = inf("import", "--dataset", "two words", "--pairs", path, "--preview", "--json").json
    assert (short["pairs"], count_rows(world, "dataset")) == (1, 1)
    told = inf("datasets", "import", "two words", "--pairs", path, "--json")
    assert (told.code, told.json["imported"], told.err) == (0, 1, "")
    request = DatasetImport(name=" two words ", pairs=str(path))
    with world.write() as session:
        jobs.enqueue_job(session, "import", request.config(), started_by="ada")
        claimed = jobs.claim_job(session, 1)
        session.commit()
    assert claimed is not None
    again = import_files(JobHandle(world, claimed.id, claimed.attempt))
    assert again.as_json() == told.json | {"imported": 0, "imported_passages": 0, "unchanged": 1}
    with world.read() as session:
        found = [(each.name, each.subject) for each in list_events(session)[0]]
    assert found.count(("import", "two words")) == 2
    human = inf("datasets", "import", "two words", "--pairs", path)
    assert human.out.splitlines()[-1] == "next: inf datasets show 'two words'"


def test_configs_of_before_are_read(tmp_path: Path) -> None:
    old = {
        **{"name": "mine", "source": "", "licence": "", "skip_bad": False, "groups": []},
        **{"pairs": "/x/pairs.jsonl", "passages": None, "columns": {"query": "Frage"}},
        **{"layout": None, "split": "train", "usual_columns": False},
    }
    request = DatasetImport.read(old)
    assert request.config() == old and DatasetImport.read(request.config()) == request
    earliest = {"name": "a", "source": "", "licence": "", "skip_bad": True, "pairs": "/x"}
    assert DatasetImport.read(earliest).read_by["columns"] == {}
    wanted = {"layout": "pairs", "columns": {}, "split": None, "limit": 3, "negatives": False}
    about = {"repo": "./set", "name": "a", "revision": None, "licence": None, "skip_bad": False}
    pulled = DatasetPull.read(about | {"wanted": wanted})
    assert (pulled.layout, pulled.limit, pulled.without_negatives) == ("pairs", 3, True)
    assert pulled.repo == str(Path("set").absolute())
    assert DatasetPull.read(about | {"wanted": None}).without_negatives is False


def test_the_layouts_of_a_pull_are_those_that_are_read() -> None:
    from curation.hub.layouts import LAYOUTS
    from db.requests import choices_of

    assert choices_of(DatasetPull, "layout") == LAYOUTS


def test_former_names_work_with_a_note(
    world: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    done = inf("datasets", "delete", "world", "--json")
    assert done.json == {"dataset": "world", "archived": True, "purged": False}
    assert "`inf datasets archive | purge`" in done.err
    assert inf("datasets", "unarchive", "world", "--json").json["archived"] is False
    new = inf("datasets", "archive", "world", "--json")
    assert (new.json, new.err) == (done.json, "")
    purged = inf("datasets", "purge", "world", "--backup", tmp_path / "b.zip", "--json").json
    assert purged["purged"] and (tmp_path / "b.zip").is_file()
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "rows.jsonl").write_text(ROW)
    old = inf("hub", "pull", tmp_path / "set", "--dataset", "one", "--json")
    new = inf("datasets", "pull", tmp_path / "set", "--dataset", "two", "--json")
    assert "`inf datasets pull`" in old.err and new.err == ""
    assert old.json.keys() == new.json.keys() and (old.code, new.code) == (0, 0)


def test_who_imports_a_new_dataset_has_their_rights_on_it_and_no_other_s(
    world: Store, tmp_path: Path
) -> None:
    uploads = tmp_path / "pairs.jsonl"
    uploads.write_text(ROW)
    with world.write() as session:
        other = get_dataset(session, "world").id
        account = add_account(
            session, "cleo", "correct horse battery", role="annotator", actor="test"
        )
        session.commit()
        rights = Rights(on_datasets={other + 90: frozenset({"curate"})})
    cleo = SessionUser("cleo", "annotator", account.id, None, rights=rights)
    with pytest.raises(Refused, match="you have no right to it"):
        request = DatasetImport(name="world", pairs=str(uploads))
        datasets.import_files(cleo, request, nothing, uploads=tmp_path)
    request = DatasetImport(name="own", pairs=str(uploads))
    done = datasets.import_files(cleo, request, datasets.here(lambda *_: None), uploads=tmp_path)
    with world.read() as session:
        held = rights_of(session, account)
    assert held.datasets("curate") == frozenset({done.dataset_id})


def test_a_curator_of_one_dataset_learns_nothing_of_another(world: Store, tmp_path: Path) -> None:
    """A preview compares ids and texts with a dataset: it is refused like the import itself."""
    own = Actor("ann", rights=Rights(on_datasets={99: frozenset({"curate"})}))
    file = tmp_path / "pairs.jsonl"
    file.write_text(ROW)
    guess = DatasetImport(name="world", pairs=str(file))
    with pytest.raises(Refused, match="no right to it"):
        datasets.preview(own, guess, uploads=tmp_path)
    assert datasets.preview(own, guess.model_copy(update={"name": "new"}), uploads=tmp_path).pairs


def test_a_folder_of_the_server_is_pulled_by_an_admin_only(world: Store) -> None:
    curator = Actor("ann", rights=Rights(everywhere=frozenset({"curate"})))
    for place in ("/etc", "~/secrets", "s3://bucket/folder"):
        with pytest.raises(Refused, match="requires admin"):
            datasets.pull(curator, DatasetPull(repo=place, name="new"), nothing)
