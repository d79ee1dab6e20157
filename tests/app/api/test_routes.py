"""Every route of the OpenAPI document × who asks × whose dataset: 401, 403, 404, and no trace."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_world import (
    API,
    BODIES,
    COMMAND,
    NAMES,
    OF_NOTHING,
    OPERATIONS,
    PLACES,
    ApiWorld,
    Place,
    filled,
    new_token,
    rows,
    world_in,
)
from httpx import Response

from app.access.permissions import NEEDS
from app.api.document import document
from app.api.routes import by_name
from app.operations.doors import tokens as token_operations
from db.people.rights import PRESETS
from db.store.settings import owners_process

QUERIES: dict[str, dict[str, Any]] = {
    "evaluations_compare": {"base": "{evaluation}", "others": "{evaluation}"},
    "datasets_import": {"name": "{name}"},
}
# What is no place's: a recipe, or a connection, which only `show` reaches.
NAMED = {
    **{"name": "lab", "recipe": "offline"},
    **{"connections_show": "environment", "people_show": "mina"},
}


def chosen(is_it: Callable[[str, list[str]], bool]) -> list[int]:
    """The numbers of the operations with such a name and such rights."""
    return [n for n, (_, _, one) in enumerate(OPERATIONS) if is_it(NAMES[n], one["x-rights"])]


def operation_rights(number: int) -> list[str]:
    """The rights that an operation asks for."""
    found: list[str] = OPERATIONS[number][2]["x-rights"]
    return found


def is_read(name: str) -> bool:
    """Whether the operation is a GET."""
    return OPERATIONS[NAMES.index(name)][0] == "GET"


@pytest.fixture(scope="module")
def world(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiWorld]:
    with world_in(tmp_path_factory.mktemp("api"), sqlite_template) as made:
        yield made


@pytest.fixture(autouse=True)
def in_a_server(world: ApiWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in the server: a session without an actor sees nothing and raises."""
    monkeypatch.setenv("INF_HOME", str(Path(world.store.url.removeprefix("sqlite:///")).parent))
    monkeypatch.setenv("INF_DATABASE_URL", world.store.url)
    owners_process(False)
    yield
    owners_process(True)


def ask(world: ApiWorld, person: str | None, number: int, place: Place, **more: Any) -> Response:
    """A whole request of an operation, about a place."""
    method, path, operation = OPERATIONS[number]
    name = operation["operationId"]
    noun = path.split("/")[1].partition(":")[0]
    ident = getattr(place, PLACES[noun]) if noun in PLACES else 1
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            value = NAMED.get(name) or NAMED.get(parameter["name"], ident)
            path = path.replace(f"{{{parameter['name']}}}", str(value))
    headers = dict(more.pop("headers", {}))
    if method == "PATCH":
        headers["If-Match"] = "*"
    given: dict[str, Any] = {"params": filled(QUERIES.get(name, {}), place)}
    if name == "datasets_import":
        line = {"query_id": "1", "query": "q", "passage_id": "p", "passage": "text"}
        given["content"] = json.dumps(line)
        headers["Content-Type"] = "application/x-ndjson"
    elif "requestBody" in operation:
        given["json"] = filled(BODIES.get(name, {}), place)
    return world.ask(person, method, path, headers=headers, **given | more)


def is_problem(answer: Response) -> bool:
    found = answer.json()
    return (
        answer.headers["content-type"] == "application/problem+json"
        and found["status"] == answer.status_code
        and bool(found["code"])
        and isinstance(found["remedy"], str)
    )


def test_the_document_is_of_openapi_3_1_and_names_every_route_once() -> None:
    found = document()
    assert found["openapi"].startswith("3.1") and len(OPERATIONS) > 45
    assert len(set(NAMES)) == len(NAMES)
    assert {name.replace(" ", "_") for name in by_name()} <= set(NAMES)
    text = json.dumps(found)
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.partition('"')[0] in found["components"]["schemas"]
    for _, _, operation in OPERATIONS:
        assert operation["x-permission"] in NEEDS
        for parameter in operation["parameters"]:
            if parameter["in"] == "path":  # there is no null in a path
                assert parameter["schema"]["type"] in ("integer", "string"), parameter


@pytest.mark.parametrize("number", range(len(OPERATIONS)), ids=NAMES)
def test_nobody_is_answered_without_a_valid_token(world: ApiWorld, number: int) -> None:
    before = rows(world)
    for headers in (
        {},
        {"Authorization": "Bearer inf_" + "x" * 43},
        {"Authorization": "Basic Ym9zczpjb3JyZWN0"},
        {"Authorization": world.tokens["boss"]},
        {"Cookie": "inf_session=abc"},
    ):
        answer = ask(world, None, number, world.mine, headers=headers)
        assert answer.status_code == 401 and is_problem(answer)
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert rows(world) == before


@pytest.mark.parametrize(
    "number",
    chosen(lambda name, rights: not set(rights) & set(PRESETS["annotator"])),
    ids=NAMES.__getitem__,
)
def test_who_lacks_the_right_is_refused(world: ApiWorld, number: int) -> None:
    """Of ann, who may judge and review on `mine`; her token names no more."""
    before = rows(world)
    answer = ask(world, "ann", number, world.mine)
    assert answer.status_code == 403 and is_problem(answer), answer.text
    assert rows(world) == before


@pytest.mark.parametrize("person", ["mina", "lim"])
@pytest.mark.parametrize(
    "number",
    chosen(lambda name, _: not name.endswith("_list") and name not in OF_NOTHING),
    ids=NAMES.__getitem__,
)
def test_another_dataset_is_not_there(world: ApiWorld, person: str, number: int) -> None:
    name = NAMES[number]
    before = rows(world)
    answer = ask(world, person, number, world.other)
    if name == "datasets_import":
        assert (answer.status_code, answer.json()["code"]) == (403, "dataset_right_missing")
    else:
        assert answer.status_code == 404 and is_problem(answer), answer.text
    assert "other" not in answer.text.replace("another", "") or name in BODIES | QUERIES
    assert rows(world) == before


@pytest.mark.parametrize("person", ["mina", "lim"])
@pytest.mark.parametrize(
    "number", [n for n, name in enumerate(NAMES) if name.endswith("_list")], ids=str
)
def test_lists_have_nothing_of_another_dataset(world: ApiWorld, person: str, number: int) -> None:
    name = NAMES[number]
    answer = ask(world, person, number, world.mine)
    if operation_rights(number) == ["audit"]:  # of administration: an admin's alone
        assert answer.status_code == 403
        return
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert set(found) == {"data", "next", "total"} and found["total"] >= len(found["data"])
    if name in OF_NOTHING or name == "tokens_list":
        return
    held = json.dumps(found["data"])
    assert '"other' not in held and "of other" not in held and "/other" not in held
    everything = ask(world, "cora", number, world.mine).json()["data"]
    ids = {row["id"] for row in found["data"]}
    noun = name.removesuffix("_list")
    if noun in PLACES and noun not in ("groups",):
        assert getattr(world.mine, PLACES[noun]) in {row["id"] for row in everything} or person
        assert getattr(world.other, PLACES[noun]) not in ids


@pytest.mark.parametrize("person", ["boss", "cora", "mina", "lim"])
@pytest.mark.parametrize(
    "number",
    chosen(
        lambda name, _: (
            name in ("runs_estimate", "runs_change")
            or (is_read(name) and not name.endswith("_follow"))
        )
    ),
    ids=NAMES.__getitem__,
)
def test_who_has_the_right_is_not_refused_for_want_of_one(
    world: ApiWorld, person: str, number: int
) -> None:
    name = NAMES[number]
    place = world.mine
    answer = ask(world, person, number, place)
    if operation_rights(number) == ["audit"]:
        assert answer.status_code == (200 if person == "boss" else 403)
        return
    own = name in ("trainings_show", "models_show", "evaluations_show", "evaluations_compare")
    if own and person == "lim":  # cora's: of another's job, through a release that she sees
        assert answer.status_code in (200, 404, 409, 422)
    elif name == "tokens_show":  # boss's
        assert answer.status_code == (200 if person == "boss" else 404)
    elif name == "releases_download":  # a release of which this world has a row alone
        assert answer.json()["code"] == "release_folder_missing"
    else:
        assert answer.status_code in (200, 409, 422), answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "number", [n for n, (_, _, op) in enumerate(OPERATIONS) if "requestBody" in op], ids=str
)
@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"nonsense": 1}', b'"x"', b"[" * 100_000, b"\xff\xfe", b'{"a": NaN}']
)
def test_a_body_that_cannot_be_read_is_422(world: ApiWorld, number: int, body: bytes) -> None:
    before = rows(world)
    headers = {"Content-Type": "application/json"}
    answer = ask(world, "cora", number, world.mine, content=body, json=None, headers=headers)
    assert answer.status_code in (415, 422) and is_problem(answer), answer.text
    assert rows(world) == before


def test_a_token_reads_of_itself_and_ends_itself(world: ApiWorld) -> None:
    owners_process(True)
    made = new_token("mina", name="short")
    mine = {"Authorization": f"Bearer {made.token}"}
    me = world.client.get(f"{API}/me", headers=mine).json()
    assert me["person"] == "mina" and me["rights"]["curate"] == [world.mine.dataset]
    listed = world.client.get(f"{API}/tokens", headers=mine).json()["data"]
    assert {row["person"] for row in listed} == {"mina"} and made.token not in json.dumps(listed)
    boss = next(
        row.id
        for row in token_operations.list_all(COMMAND, everybody=True).data
        if row.person == "boss"
    )
    assert world.client.delete(f"{API}/tokens/{boss}", headers=mine).status_code == 404
    assert world.client.delete(f"{API}/tokens/{made.id}", headers=mine).status_code == 200
    gone = world.client.get(f"{API}/me", headers=mine)
    assert (gone.status_code, gone.json()["code"]) == (401, "token_revoked")
    assert world.ask("mina", "POST", "/tokens", json={}).status_code == 405
