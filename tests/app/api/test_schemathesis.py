"""The OpenAPI document by schemathesis: every operation × who asks × whose dataset.

Right and wrong requests are made of the document alone. What comes back has to be what it says
(status, content type, headers, schema), never a failure of the server, and nothing of a dataset
that is another's. Ids in paths, and names of datasets in bodies, are those of a place: random ones
would nearly all be of nothing. `.ci/run` installs schemathesis in a folder of its own.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_world import (
    BODIES,
    NAMES,
    OF_NOTHING,
    OPERATIONS,
    PLACES,
    ApiWorld,
    Place,
    filled,
    rows,
    world_in,
)
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from app.access.identity import TokenHolder
from app.api import limits, streams
from app.api.document import document
from app.jobs import supervisors
from db.events import record_event
from db.people.rights import PRESETS
from db.store.scope import unscoped
from db.store.settings import owners_process

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi import checks  # noqa: E402

CHECKS = (
    *(not_a_server_error, checks.status_code_conformance, checks.content_type_conformance),
    *(checks.response_headers_conformance, checks.response_schema_conformance),
    checks.negative_data_rejection,
)
EXAMPLES = 6
NEGATIVE = schemathesis.GenerationMode.NEGATIVE
# Endless answers: here each ends after one look at what is new.
STREAMS = ("events_follow", "jobs_follow")
ASKING = {
    "nobody": "mine",
    "ann": "mine",
    "mina": "other",
    "lim": "other",
    "cora": "mine",
    "boss": "other",
}
# Without its security: who asks is said by `ask`.
OPEN = {name: each for name, each in document().items() if name != "security"}
FUZZED = {
    one.ok().definition.raw["operationId"]: one.ok()
    for one in schemathesis.openapi.from_dict(OPEN).get_all_operations()
}


@pytest.fixture(scope="module")
def world(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiWorld]:
    with world_in(tmp_path_factory.mktemp("fuzzed"), sqlite_template) as made:
        yield made


@pytest.fixture(autouse=True)
def in_a_server(world: ApiWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in the server; what is launched stays in the queue, and no token has to wait."""
    monkeypatch.setenv("INF_HOME", str(Path(world.store.url.removeprefix("sqlite:///")).parent))
    monkeypatch.setenv("INF_DATABASE_URL", world.store.url)
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)
    monkeypatch.setattr(limits, "PER_MINUTE", 10**9)
    looks: dict[str, int] = {}

    async def once(api: Any, holder: TokenHolder) -> TokenHolder | None:
        looks[holder.name] = looks.get(holder.name, 0) + 1
        return holder if looks[holder.name] % 2 else None

    monkeypatch.setattr(streams, "_still", once)
    monkeypatch.setattr(streams, "EVERY_SECONDS", 0.0)
    owners_process(False)
    yield
    owners_process(True)


@schemathesis.serializer("application/x-ndjson")
def as_lines(_: Any, value: Any) -> bytes:
    """A body of JSON lines: a line that can be imported, then what was made."""
    line = {"query_id": "1", "query": "q", "passage_id": "p", "passage": "text"}
    other = getattr(value, "data", None) or str(value).encode("utf-8", "surrogatepass")
    return json.dumps(line).encode() + b"\n" + other


def placed(case: Any, name: str, place: Place, whole: bool) -> None:
    """Make the case one about a place: its ids in the path, its name for that of a dataset.

    whole: a body that would do, with one field of the case's.
    """
    noun = case.operation.path.split("/")[1].partition(":")[0]
    for parameter in case.path_parameters:
        if parameter != "name":  # that of a connection
            ident = getattr(place, PLACES[noun]) if noun in PLACES else 10**6
            case.path_parameters[parameter] = ident
    if isinstance(case.query.get("name"), str) and name == "datasets_import":
        case.query["name"] = place.name
    if name in STREAMS and whole:
        case.headers["Last-Event-ID"] = "0"
    if isinstance(case.body, dict) and whole and name in BODIES:
        first = dict(list(case.body.items())[:1])
        case.body = first | filled(BODIES[name], place)
    if isinstance(case.body, dict) and "dataset" in case.body:
        case.body["dataset"] = place.name


def foreign_events(world: ApiWorld, text: str) -> list[Any]:
    """What a stream has of runs and jobs of the other place."""
    found = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    other = {("run", str(world.other.run)), ("job", str(world.other.job))}
    return [one for one in found if (one.get("noun"), one.get("noun_id")) in other]


def ask(world: ApiWorld, person: str, case: Any) -> Any:
    """The answer to a case; its own `Authorization`, if any, is that of the person."""
    given = case.as_transport_kwargs("http://localhost/api/v1")
    headers = {k: v for k, v in given.pop("headers").items() if k.lower() != "authorization"}
    if person != "nobody":
        headers["Authorization"] = f"Bearer {world.tokens[person]}"
    given["content"] = given.pop("data", None)
    del given["cookies"]  # none is read, and none is described
    return world.client.request(headers=headers, **given)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_answered_is_what_the_document_says(world: ApiWorld, name: str) -> None:
    operation, (_, _, described) = FUZZED[name], OPERATIONS[NAMES.index(name)]
    is_beyond_ann = not set(described["x-rights"]) & set(PRESETS["annotator"])
    is_of_a_place = not (name.endswith("_list") or name in OF_NOTHING)
    if name in STREAMS:
        with unscoped(), world.store.write() as session:
            for place in (world.other, world.mine):
                record_event(session, "somebody", "run.finished", place.run)
                record_event(session, "somebody", "job.done", place.job)
            session.commit()

    seen: set[str] = set()  # who was sent events of the other place

    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(operation.as_strategy() | operation.as_strategy(generation_mode=NEGATIVE), st.booleans())
    def every(case: Any, whole: bool) -> None:
        for person, place_name in ASKING.items():
            place = world.mine if place_name == "mine" else world.other
            is_refused = person == "nobody" or (person == "ann" and is_beyond_ann)
            is_foreign = person in ("mina", "lim") and is_of_a_place
            before = rows(world) if is_refused or is_foreign else ()
            placed(case, name, place, whole)
            answer = ask(world, person, case)
            note(f"{person}: {answer.status_code} {answer.text[:300]}")
            case.validate_response(answer, checks=CHECKS)
            assert (answer.status_code == 401) == (person == "nobody")
            if name in STREAMS and answer.is_success and foreign_events(world, answer.text):
                seen.add(person)
            if is_refused or is_foreign:
                assert answer.status_code >= 400
                assert "other study" not in answer.text and "/releases/other" not in answer.text
                assert rows(world) == before

    every()
    if name == "events_follow":
        assert seen == {"cora", "boss"}
