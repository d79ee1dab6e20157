"""One layer: sessions have an actor, operations check rights, a field is an option everywhere."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import operation_requests
import pytest
from click.testing import CliRunner
from exporting import export
from records_world import make_run
from reference_pages import request_schemas, requests_page

from analysis.request import DiversityStart
from app.access.identity import Actor, SessionUser, owner
from app.cli.kit.formerly import formerly
from app.cli.kit.options import request_options
from app.jobs import launching, supervisors
from app.operations import jobs as job_operations
from app.operations import releases
from app.operations.acting import queued, writing
from curation.importing.request import DatasetImport
from curation.release.request import ReleasePlan
from db.errors import BadInput, NotFound, Refused
from db.events import list_events, record_event
from db.jobs import jobs
from db.people.rights import Rights
from db.requests import Request, default_of, option
from db.store import settings
from db.store.scope import NoActor, unscoped
from db.store.store import Store
from db.tables import Dataset
from trainer.evaluate.request import EvaluationStart
from trainer.launch.request import TrainStart


@pytest.fixture
def server(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store in a process that nobody owns: as in the server."""
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # what is queued stays so
    settings.owners_process(False)
    yield sqlite_store
    settings.owners_process(True)


def with_rights(*rights: str, datasets: tuple[int, ...] = ()) -> Actor:
    held = frozenset(rights)
    found = Rights(everywhere=frozenset() if datasets else held)
    if datasets:
        found = Rights(on_datasets=dict.fromkeys(datasets, held))
    return Actor("eve", rights=found)


def test_a_session_without_an_actor_raises_in_every_thread(server: Store) -> None:
    raised: list[BaseException] = []

    def open_one() -> None:
        for opened in (server.read, server.write):
            try:
                with opened():
                    pass
            except NoActor as error:
                raised.append(error)

    open_one()
    other = threading.Thread(target=open_one)
    with unscoped():  # of this thread, not of the other
        other.start()
        other.join()
        with server.read() as session:
            assert session.info
    assert len(raised) == 4


def test_an_operation_without_the_right_reads_and_launches_nothing(server: Store) -> None:
    with unscoped():
        run_id = make_run(server)
    wanted = ReleasePlan(runs=(run_id,), out="/nowhere/out")
    for actor in (with_rights("judge"), with_rights("train"), SessionUser("ann", "annotator")):
        for call in (
            lambda actor=actor: releases.list_all(actor),
            lambda actor=actor: releases.create(actor, wanted, queued),
            lambda actor=actor: launching.launch(server, "export", wanted.config(), actor=actor),
        ):
            with pytest.raises(Refused, match="lacks a right"):
                call()
    with unscoped(), server.read() as session:
        assert jobs.list_jobs(session) == []


def test_an_actor_sees_and_launches_only_on_what_they_have_the_right(server: Store) -> None:
    with unscoped():
        mine, other = make_run(server), make_run(server, name="films")
        with server.read() as session:
            dataset = session.query(Dataset).filter_by(name="books").one().id
    eve = with_rights("release", datasets=(dataset,))
    out = str(settings.home() / "releases" / "out")
    assert releases.create(eve, ReleasePlan(runs=(mine,), out=out), queued)
    for elsewhere in ("/nowhere/out", f"{out}/../../out", str(settings.home() / "releases")):
        with pytest.raises(Refused, match="only an admin"):
            releases.create(eve, ReleasePlan(runs=(mine,), out=elsewhere), queued)
    for wanted in (
        ReleasePlan(runs=(other,), out=out),
        ReleasePlan(datasets=("films",), out=out),
    ):
        with pytest.raises(NotFound):
            releases.create(eve, wanted, queued)
        with pytest.raises(NotFound):
            launching.launch(server, "export", wanted.config(), actor=eve)
    with pytest.raises(BadInput, match="no dataset and no run is named"):
        releases.create(eve, ReleasePlan(out=out), queued)  # not a job that ends in it
    with unscoped(), server.read() as session:
        assert [job.config["runs"] for job in jobs.list_jobs(session)] == [[mine]]


def test_who_signed_out_meanwhile_writes_nothing(server: Store) -> None:
    gone = SessionUser("ann", "admin", 1, 77, rights=owner("ann").rights)
    with pytest.raises(Refused, match="signed out"), writing(gone, "export"):
        raise AssertionError("the session was given")


def test_jobs_are_cancelled_resumed_and_measured_only_within_the_right_of_their_kind(
    server: Store,
) -> None:
    with unscoped():
        mine, other = make_run(server), make_run(server, name="films")
        with server.write() as session:
            books = session.query(Dataset).filter_by(name="books").one().id
            films = session.query(Dataset).filter_by(name="films").one().id
            ids = [
                jobs.enqueue_job(session, kind, config, started_by="ada").id
                for kind, config in (
                    ("curate", {"run_id": other}),
                    ("export", {"runs": [mine], "out": "/nowhere/one"}),
                    ("export", {"runs": [mine, other], "out": "/nowhere/both"}),
                    ("curate", {"run_id": mine}),
                )
            ]
            jobs.record_metrics(session, ids[2], 1, {"loss": 0.5})
            jobs.record_metrics(session, ids[3], 1, {"loss": 0.5})
            session.commit()
    # may release from films, and curate books
    held = {books: frozenset({"curate"}), films: frozenset({"release"})}
    eve = Actor("eve", rights=Rights(on_datasets=held))
    for job_id in ids[:3]:
        for change in (job_operations.cancel, job_operations.resume):
            with pytest.raises((Refused, NotFound)):
                change(eve, job_id)
    assert list(job_operations.metrics(eve, ids)) == [ids[3]]
    assert job_operations.cancel(eve, ids[3]).status == "cancelled"
    with unscoped(), server.read() as session:
        assert [jobs.get_job(session, each).status for each in ids] == ["queued"] * 3 + [
            "cancelled"
        ]


def test_a_plugin_of_the_server_does_not_open_it_for_all(server: Store) -> None:
    import inf_studio

    assert inf_studio.open_store(server.url).url == server.url
    with pytest.raises(NoActor), server.read():
        pass


def test_what_raises_in_an_operation_is_not_committed(server: Store) -> None:
    with pytest.raises(ZeroDivisionError), writing(owner("ada"), "curate") as session:
        session.add(Dataset(name="half"))
        session.flush()
        raise ZeroDivisionError
    with unscoped(), server.read() as session:
        assert session.query(Dataset).count() == 0


def test_the_rows_of_the_page_and_of_the_command_are_the_same(
    sqlite_store: Store, tmp_path: Path, inf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app_pages import open_page

    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "out")
    export(sqlite_store, tmp_path / "two", format="jsonl")
    told = inf("releases", "list", "--json").json
    assert told["total"] == len(told["data"]) and told["next"] is None
    assert told["data"] == releases.list_all(owner("ada")).as_json()["data"]
    shown = open_page("releases", dataset="books").dataframe[0].value.to_dict("records")
    columns = set(told["data"][0]) & {"id", "name", "groups", "reviews", "format", "content_sha256"}
    assert [{key: row[key] for key in columns} for row in told["data"]] == [
        {key: row[key] for key in columns} for row in shown
    ]
    one = inf("releases", "show", 1, "--json").json
    assert {key: one[key] for key in told["data"][0]} == next(
        row for row in told["data"] if row["id"] == 1
    )


class Wider(ReleasePlan):
    """A stranger's change: an option of exports."""

    shout: bool = option(False, "Write the card in capitals.", title="Shout")


def test_a_new_field_is_an_option_a_widget_a_key_and_a_line_of_the_reference(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamlit.testing.v1 import AppTest

    assert "shout" not in requests_page() + request_schemas()
    monkeypatch.setattr(operation_requests, "REQUESTS", {"releases create": f"{__name__}:Wider"})
    monkeypatch.setattr(operation_requests, "load", lambda place: Wider)
    assert "| `shout` | `--shout` | `false` |  | Write the card in capitals. |" in (requests_page())
    assert json.loads(request_schemas())["releases create"]["properties"]["shout"]
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)
    wanted = Wider(runs=(make_run(sqlite_store),), out="/nowhere/out", shout=True)
    job_id = releases.create(owner("ada"), wanted, queued)
    assert job_operations.show(owner("ada"), job_id).config["shout"] is True

    @click.command()
    @request_options(Wider)
    def command(request: Wider) -> None:
        click.echo(request.shout)

    told = CliRunner().invoke(command, ["--out", "x", "--shout"])
    assert told.output == "True\n", told.output
    assert "Write the card in capitals." in CliRunner().invoke(command, ["--help"]).output
    assert Wider.read({"out": "x", "shout": True}).config()["shout"] is True
    assert Wider.read(ReleasePlan(out="x").config()).shout is False  # a job of before

    def page(model):  # type: ignore[no-untyped-def]
        from app.kit.fields import draw_fields
        from app.releases.form import more_options

        draw_fields(model, more_options(model), key="releases")

    at = AppTest.from_function(page, kwargs={"model": Wider}).run()
    assert not at.exception
    assert [each.label for each in at.checkbox] == ["Shout"]


def test_the_command_has_every_field_of_the_model_with_its_default_and_bounds() -> None:
    from app.cli.data.releases import create

    options = {each.name: each for each in create.params if isinstance(each, click.Option)}
    assert ReleasePlan.model_fields.keys() <= options.keys()
    for name in ReleasePlan.model_fields:
        if not options[name].required:
            assert (options[name].default or None) == (default_of(ReleasePlan, name) or None), name
    told = CliRunner().invoke(create, ["books", "--out", "x", "--held-out", "1"])
    assert told.exit_code == 2 and "0<=x<1" in told.output


def test_an_unknown_key_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(BadInput, match="no key 'heldout': did you mean 'held_out'"):
        ReleasePlan.read({"out": "x", "heldout": 0.2})
    with pytest.raises(BadInput, match="out is missing"):
        ReleasePlan.read({})
    with pytest.raises(BadInput, match="format='xml': it should be 'parquet', 'jsonl' or 'csv'"):
        ReleasePlan.read({"out": "x", "format": "xml"})


def test_a_config_of_an_earlier_version_is_read() -> None:
    old = {"dataset": "books", "run_id": 3, "out": "x", "sources": [], "configs": ["triplets"]}
    assert ReleasePlan.read(old).runs == (3,) and ReleasePlan.read(old).datasets == ("books",)
    several = old | {"runs": [3, 5]}
    assert ReleasePlan.read(several).runs == (3, 5)


class Kind(Request):
    """One that shows what its fields become."""

    count: int | None = option(None, "How many.", ge=1)


class Moved(Request):
    """One that is named by an argument, with a field that no command has."""

    thing: int = option(..., "Which.", names=(), metavar="THING")
    what: str = option("move", "What is done.", names=())
    to: str = option(..., "Where.")


def test_an_argument_is_no_option_and_a_command_s_own_option_stands_for_a_field_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @click.command()
    @request_options(Moved)
    @click.option("--to", type=click.Choice(["here"]), required=True, help="By hand.")
    def move(request: Moved) -> None:
        click.echo(json.dumps(request.config()))

    options = [each.opts for each in move.params if isinstance(each, click.Option)]
    arguments = [each for each in move.params if isinstance(each, click.Argument)]
    assert options == [["--to"]] and [each.name for each in arguments] == ["thing"]
    told = CliRunner().invoke(move, ["3", "--to", "here"])
    assert json.loads(told.output) == {"thing": 3, "what": "move", "to": "here"}
    assert CliRunner().invoke(move, ["3", "--to", "there"]).exit_code == 2
    monkeypatch.setattr(operation_requests, "REQUESTS", {"things move": f"{__name__}:Moved"})
    monkeypatch.setattr(operation_requests, "load", lambda place: Moved)
    lines = requests_page().splitlines()[-3:]
    assert lines == [
        "| `thing` | `THING` | required |  | Which. |",
        '| `what` |  | `"move"` |  | What is done. |',
        "| `to` | `--to` | required |  | Where. |",
    ]


def test_an_event_says_through_which_door_it_came(server: Store) -> None:
    with unscoped():
        make_run(server)
    for via in ("page", "command", "token"):
        with writing(Actor("ada", rights=Rights(is_admin=True), via=via), "any") as session:
            record_event(session, "ada", "dataset.archive", "books")
    with unscoped(), server.read() as session:
        found = [each.data for each in list_events(session)[0]]
    assert found == [{"via": "token"}, {"via": "command"}, {"via": "page"}]


def test_a_former_name_works_and_names_the_new_one() -> None:
    @click.command()
    @request_options(Kind)
    def make(request: Kind) -> None:
        click.echo(str(request.count))

    old = formerly(make, "make-it", "things create")
    told = CliRunner().invoke(old, ["--count", "3"])
    assert told.stdout == "3\n" and "`inf things create`" in told.stderr
    assert CliRunner().invoke(old, ["--count", "0"]).exit_code == 2
    assert CliRunner().invoke(make, []).stdout == "None\n"


def test_the_reference_and_the_schemas_are_those_of_the_models() -> None:
    """Write them anew by tests/reference_pages.py, and say so in the changelog."""
    folder = Path(__file__).resolve().parents[2] / "docs" / "reference"
    assert (folder / "requests.md").read_text(encoding="utf-8") == requests_page()
    assert (folder / "requests.json").read_text(encoding="utf-8") == request_schemas()


def test_a_path_is_absolute_in_every_request_behind_every_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job runs in another folder; a number, a name and a URL stay what they are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "release").mkdir()
    (tmp_path / "run.txt").write_text("", encoding="utf-8")
    scored = EvaluationStart(models=("release", "trec:run.txt", "bm25", "7"), benchmark="dataset:d")
    assert scored.models == (f"{tmp_path}/release", f"trec:{tmp_path}/run.txt", "bm25", "7")
    assert scored.benchmark == "dataset:d"
    settings = {"more_releases": "release*2, 3", "guard": "release"}
    settings |= {"mined_negatives": "2", "mined_corpus": "release/more.jsonl"}
    trained = TrainStart(release="release", out="new", settings=settings)
    assert (trained.release, trained.out) == (f"{tmp_path}/release", f"{tmp_path}/new")
    assert trained.settings == {
        "more_releases": f"{tmp_path}/release*2, 3*1",
        "guard": f"{tmp_path}/release",
        "mined_negatives": "2",
        "mined_corpus": f"{tmp_path}/release/more.jsonl",
    }
    assert TrainStart(release="3", settings={"more_releases": "1, 2"}).settings == {
        "more_releases": "1, 2"
    }
    assert TrainStart.read(trained.config()) == trained
    assert DiversityStart.read({"texts": ["run.txt"]}).texts == (f"{tmp_path}/run.txt",)
    assert DatasetImport.read({"pairs": "s3://b/x"}).pairs == "s3://b/x"
