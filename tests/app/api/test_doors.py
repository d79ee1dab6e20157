"""Python in process, Python remote, REST and `--json`: the same rows, byte for byte, by noun."""

import json
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pandas as pd
import pyarrow as pa
import pytest
from api_world import API, COMMAND, ApiWorld, make_api_world, new_token
from conftest import Ran
from sqlalchemy import select

import inf_studio
from app.api import streams
from app.api.routes import by_name
from app.jobs import supervisors
from app.operations.judging import studies
from curation.judging.request import StudyChange
from db.errors import NOUNS, BadInput, NotFound, Refused
from db.store.scope import unscoped
from db.store.settings import owners_process
from db.store.store import Store
from db.tables import Group, Item, Job, Judgment, Review, StudyItem, utc_now
from inf_studio import transport
from inf_studio.client import Event, Recipe, Rows, Studio, _show_in_notebook, records
from inf_studio.transport import InProcess, OverHttp


@pytest.fixture
def world(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiWorld]:
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # no job is to run
    yield make_api_world(sqlite_store)
    owners_process(True)


def remote(world: ApiWorld, person: str = "cora") -> Studio:
    return Studio(OverHttp("http://localhost", world.tokens[person], world.client))


# By noun: the command, the operation, its path; `{run}` is of the first place.
LISTS: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "datasets": (("datasets", "list"), {}, "/datasets"),
    "recipes": (("recipes", "list"), {}, "/recipes"),
    "connections": (("connections", "list"), {}, "/connections"),
    "runs": (("runs", "list"), {}, "/runs"),
    "groups": (("groups", "list", "--run", "{run}"), {"run_id": "{run}"}, "/runs/{run}/groups"),
    "reviews": (("reviews", "list", "{run}"), {"run_id": "{run}"}, "/runs/{run}/reviews"),
    "studies": (("studies", "list"), {}, "/studies"),
    "judgments": (
        ("judgments", "list", "--study", "{study}"),
        {"study_id": "{study}"},
        "/studies/{study}/judgments",
    ),
    "releases": (("releases", "list"), {}, "/releases"),
    "trainings": (("trainings", "list"), {}, "/trainings"),
    "models": (("models", "list"), {}, "/models"),
    "evaluations": (("evaluations", "list"), {}, "/evaluations"),
    "jobs": (("jobs", "list"), {}, "/jobs"),
    "people": (("people", "list"), {}, "/people"),
    "webhooks": (("webhooks", "list"), {}, "/webhooks"),
}
READ_BY_ADMINS = {"people", "webhooks"}
SHOWN = {
    "datasets": "dataset",
    "runs": "run",
    "groups": "group",
    "studies": "study",
    "releases": "release",
    "trainings": "training",
    "models": "model",
    "evaluations": "evaluation",
    "jobs": "job",
    "reviews": "review",
    "judgments": "judgment",
    "tokens": "token",
    "webhooks": "webhook",
}
# By noun: the name of a thing that is shown by it, and which field that is.
BY_NAME = {
    "recipes": ("msmarco", "recipe"),
    "connections": ("environment", "name"),
    "people": ("mina", "name"),
}


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def of_command(inf: Callable[..., Ran], *words: object, keys: set[str]) -> str:
    """The JSON of a command, without keys that lists had formerly."""
    ran = inf(*words, "--json")
    assert ran.code == 0, ran.err
    return text({name: value for name, value in ran.json.items() if name in keys})


@pytest.mark.parametrize("noun", LISTS)
def test_lists(world: ApiWorld, inf: Callable[..., Ran], noun: str) -> None:
    command, fields, path = LISTS[noun]
    place = {"run": world.mine.run, "study": world.mine.study}
    given = {name: value.format(**place) for name, value in fields.items()}
    if noun == "groups":  # else cora, whom the study may give some, does not see those
        studies.change(COMMAND, StudyChange(study_id=world.mine.study, status="closed"))
    here = InProcess().text(f"{noun} list", given)
    listed = json.loads(here)
    assert set(listed) == {"data", "next", "total"}
    assert listed["data"] or noun == "judgments"
    words = [word.format(**place) for word in command]
    assert of_command(inf, *words, keys=set(listed)) == here
    owners_process(False)
    person = "boss" if noun in READ_BY_ADMINS else "cora"
    assert remote(world, person).transport.text(f"{noun} list", given) == here
    assert world.ask(person, "GET", path.format(**place)).text == here


@pytest.mark.parametrize("noun", SHOWN)
def test_things(world: ApiWorld, inf: Callable[..., Ran], noun: str) -> None:
    number = getattr(world.mine, SHOWN[noun], 1)  # the first token is boss's, as the endpoint
    if noun == "tokens":  # its first use is in its row
        world.ask("boss", "GET", "/me")
    here = InProcess().text(f"{noun} show", {"id": number})
    named = "mine" if noun == "datasets" else number
    assert of_command(inf, noun, "show", named, keys=set(json.loads(here))) == here
    owners_process(False)
    assert remote(world, "boss").transport.text(f"{noun} show", {"id": number}) == here
    assert world.ask("boss", "GET", f"/{noun}/{number}").text == here


@pytest.mark.parametrize("noun", BY_NAME)
def test_things_by_name(world: ApiWorld, inf: Callable[..., Ran], noun: str) -> None:
    name, field = BY_NAME[noun]
    here = InProcess().text(f"{noun} show", {field: name})
    assert of_command(inf, noun, "show", name, keys=set(json.loads(here))) == here
    owners_process(False)
    person = "boss" if noun in READ_BY_ADMINS else "mina"
    assert remote(world, person).transport.text(f"{noun} show", {field: name}) == here
    assert world.ask(person, "GET", f"/{noun}/{name}").text == here


def test_tokens_which_each_person_sees_of_their_own(
    world: ApiWorld, inf: Callable[..., Ran]
) -> None:
    owners_process(False)
    there = remote(world, "mina").transport.text("tokens list", {})
    assert world.ask("mina", "GET", "/tokens").text == there
    owners_process(True)
    here = InProcess().text("tokens list", {})
    assert of_command(inf, "tokens", "list", keys=set(json.loads(here))) == here
    (own,) = json.loads(there)["data"]
    assert own["person"] == "mina" and text(own) in here


def test_no_noun_of_commands_is_missing() -> None:
    others = {"analyses", "settings", "store"}  # no lists of things
    assert set(NOUNS.split("|")) - {*LISTS, "tokens"} == others
    shown = {name.partition(" ")[0] for name in by_name() if name.endswith(" show")}
    assert shown == {*SHOWN, *BY_NAME, "me"}


FRAME = pd.DataFrame(
    {
        "query_id": ["1", "2"],
        "query": ["what is tea", "what is rain"],
        "passage_id": ["a", "b"],
        "passage": ["Tea is a drink made of leaves.", "Rain is water that falls."],
    }
)


@pytest.mark.parametrize("door", ["open", "connect"])
def test_one_studio_by_two_doors(
    world: ApiWorld, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies.change(
        COMMAND, StudyChange(study_id=world.mine.study, status="closed")
    )  # it hides no group from cora
    if door == "open":
        studio = inf_studio.open()
    else:
        owners_process(False)
        studio = remote(world)
    data = studio.datasets.create(
        *("logs",),
        pairs=FRAME,
        passages={"c": "Bread is baked of dough."},
        source="our logs",
        licence="cc-by-4.0",
    )
    assert (data.name, data.pairs, data.passages, data.licence) == ("logs", 2, 3, "cc-by-4.0")
    recipe = Recipe.builtin("offline")
    estimate = data.estimate(recipe, limit=2)
    assert estimate.pairs == 2 and "<table>" in estimate._repr_html_()
    assert repr(estimate).startswith("<Estimate: 2 pairs, ")
    paid = Recipe.builtin("msmarco").set(model="qwen3-32b")
    assert data.estimate(paid, limit=2).stages[0]["model"] == "qwen3-32b"
    with pytest.raises(BadInput, match="provider is missing"):
        data.curate(paid, limit=2)
    run = data.curate(recipe, provider="offline", limit=2, budget_usd=2)
    assert (run.provider, run.budget_usd, run.pairs) == ("offline", 2.0, 2)
    assert run.job is not None and run.job.status == "queued"
    end(world, run.job.id)
    assert [event.status for event in run.events()] == ["done"]
    assert run.wait() is run and isinstance(run.groups(), Rows)
    dropped = studio.runs.get(world.mine.run).groups(verdict="dropped")
    assert set(dropped.to_pandas()["verdict"]) == {"dropped"}
    assert dropped.to_arrow().num_rows == len(dropped) > 0
    study = studio.runs.get(world.mine.run).studies.create(items=2, overlap=3)
    assert (study.items, study.overlap) == (2, 3)
    assert "report" in repr(study.agreement().row) or study.agreement().row
    with pytest.raises(NotFound):
        studio.runs.get(10**6)
    with pytest.raises(BadInput, match="did you mean 'limit'"):
        data.curate(recipe, limitt=2)
    with pytest.raises(BadInput):
        Recipe.builtin("nothing of the kind")
    with pytest.raises(AttributeError, match="has no 'nonsense'"):
        _ = run.nonsense


class Notebook:
    """What IPython has in a kernel: `display` and its handle."""

    def __init__(self) -> None:
        self.kernel, self.shown = True, list[str]()

    def get_ipython(self) -> "Notebook":
        return self

    def display_(self, event: Any, *, display_id: bool) -> "Notebook":
        assert display_id
        return self.update(event)

    def update(self, event: Any) -> "Notebook":
        self.shown.append(event._repr_html_())
        return self


def test_a_notebook_shows_progress_in_one_place_and_a_script_nothing(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = inf_studio.open().job(world.mine.job)
    end(world, job.id)
    job.wait()
    assert capsys.readouterr().out == ""
    notebook = Notebook()
    shell = SimpleNamespace(
        get_ipython=notebook.get_ipython, display=SimpleNamespace(display=notebook.display_)
    )
    monkeypatch.setitem(sys.modules, "IPython", shell)
    job.wait()
    assert len(notebook.shown) == 1 and "done" in notebook.shown[0]
    _show_in_notebook([Event("running", 1, 4, "<b>"), Event("running", 9, 4, "")])
    assert '<progress value="1" max="4"></progress> 1 of 4' in notebook.shown[1]
    assert "&lt;b&gt;" in notebook.shown[1] and 'value="4"' in notebook.shown[2]


def end(world: ApiWorld, job_id: int) -> None:
    before = owners_process(True)
    with world.store.write() as session:
        job = session.get_one(Job, job_id)
        job.status, job.result, job.finished_at = "done", {}, utc_now()
        session.commit()
    assert before is None


def test_a_remote_studio_has_the_rights_of_its_token_and_does_not_show_it(world: ApiWorld) -> None:
    owners_process(False)
    mina = remote(world, "mina")
    assert [row["name"] for row in mina.datasets.list()] == ["mine"]
    with pytest.raises(NotFound):
        mina.datasets.get(world.other.dataset)
    with pytest.raises(Refused) as caught:
        remote(world, "ann").runs.list()
    assert caught.value.code == "no_right"
    assert world.tokens["mina"] not in repr(vars(mina)) + repr(mina.transport)
    owners_process(True)
    made = new_token("mina")
    wrong = Studio(OverHttp("http://localhost", made.token + "x", world.client))
    with pytest.raises(Refused) as caught:
        wrong.runs.list()
    assert caught.value.code == "token_unknown"
    with pytest.raises(BadInput):
        inf_studio.connect("localhost:8501", token=made.token)
    assert API in str(world.client.get(f"{API}/openapi.json").url)


@pytest.mark.parametrize("door", ["open", "connect"])
def test_dropped_groups_are_tried_again_and_pairs_are_listed(world: ApiWorld, door: str) -> None:
    if door == "connect":
        owners_process(False)
    studio = Studio(InProcess()) if door == "open" else remote(world)
    run = studio.runs.get(world.mine.run)
    (drop,) = run.drops()
    assert (drop["reason"], drop["groups"]) == ("validation_positive", run.dropped)
    with pytest.raises(Refused) as caught:  # they are in a study
        run.retry(drop["reason"])
    assert caught.value.code == "dropped_groups_in_use"
    with unscoped(), world.store.write() as session:
        used = select(Item.group_id).where(
            Item.id.in_(select(StudyItem.item_id).union(select(Judgment.item_id)))
        )
        of_run = select(Group).where(Group.run_id == run.id, Group.id.not_in(used))
        free = session.scalars(of_run.where(Group.id.not_in(select(Review.group_id)))).all()[0]
        free.verdict, free.drop_reason = "dropped", "too_short"
        session.commit()
    with pytest.raises(BadInput):
        run.retry("nothing of the kind")
    again = run.retry("too_short")
    assert again is run and [row["reason"] for row in run.drops()] == [drop["reason"]]
    assert run.job is not None and (run.job.kind, run.job.status) == ("curate", "queued")
    data = studio.datasets.get(world.mine.dataset)
    pairs = data.list_pairs()
    assert len(pairs) == data.pairs == 6
    assert pairs[0]["query"].startswith("what is") and pairs[0]["passage"].startswith(
        "The positive"
    )
    assert [row["query_id"] for row in data.list_pairs(search=pairs[3]["query"])] == ["3"]


class Cut(httpx.SyncByteStream):
    """The beginning of a stream, after which the connection is gone."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __iter__(self) -> Iterator[bytes]:
        yield self._text.encode()
        raise httpx.ReadError("cut")


def test_a_stream_that_is_cut_goes_on_after_its_last_whole_message(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own streams; in between its state changes, its connection is cut (in the middle
    of a message, too), it is away, and its proxy says so."""
    owners_process(False)
    monkeypatch.setattr(transport, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(streams, "EVERY_SECONDS", 0.01)
    asked: list[str] = []

    def become(status: str, done: int) -> None:
        with unscoped(), world.store.write() as session:
            job = session.get_one(Job, world.mine.job)
            job.status, job.done, job.result = status, done, {}
            session.commit()

    def served(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/events"):
            answer = world.client.request(request.method, request.url.path, headers=request.headers)
            return httpx.Response(answer.status_code, content=answer.content)
        asked.append(request.headers.get("last-event-id", ""))
        turn = len(asked)
        if turn == 3:
            raise httpx.ConnectError("nobody listens")
        if turn == 4:
            return httpx.Response(502, text="<html>bad gateway</html>")
        become(*{1: ("done", 1), 2: ("done", 2)}.get(turn, ("done", 3)))
        headers = {
            name: request.headers[name]
            for name in ("authorization", "last-event-id")
            if name in request.headers
        }
        whole = world.client.get(request.url.path, headers=headers).text
        first, rest = whole.split("\n\n", 1)
        if turn == 1:  # one whole message
            return httpx.Response(200, stream=Cut(f"{first}\n\n"))
        if turn == 2:  # the id of another one, and no data
            return httpx.Response(200, stream=Cut(first.partition("data: ")[0]))
        assert rest
        return httpx.Response(200, text=whole)

    http = httpx.Client(transport=httpx.MockTransport(served))
    studio = Studio(OverHttp("http://localhost", world.tokens["boss"], http))
    seen = [event.done for event in studio.job(world.mine.job).events()]
    assert seen == [1, 3]
    first = asked[1]
    assert asked == ["", first, first, first, first] and first.startswith("0-done-1-"), asked


def test_rows_of_any_table_become_lines() -> None:
    expected = FRAME.to_dict(orient="records")
    assert records(FRAME) == records(pa.Table.from_pandas(FRAME)) == records(expected) == expected
    assert records({"a": "text"}) == [{"passage_id": "a", "text": "text"}]
    missing = FRAME.assign(passage=[None, float("nan")])
    assert all("passage" not in row for row in records(missing))
    with pytest.raises(BadInput):
        records(["a text"])
    from datasets import Dataset

    dataset = Dataset.from_list(expected)
    assert records(dataset) == expected == list(Rows(expected).to_dataset())
    shown = Rows([{"a": "<script>", "b": None}] * 30)
    assert "<script>" not in shown._repr_html_() and "10 more rows" in shown._repr_html_()
