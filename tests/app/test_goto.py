"""The box behind Ctrl-K: what a person may open by name or number, and nothing else."""

from urllib.parse import parse_qs, urlsplit

import pytest
from api_world import PASSWORD, ApiWorld, make_api_world

from db.store.store import Store
from db.tables import Dataset, Run, utc_now

Found = list[dict[str, str]]


@pytest.fixture
def world(sqlite_store: Store) -> ApiWorld:
    return make_api_world(sqlite_store)


def ask(world: ApiWorld, name: str, typed: str) -> Found:
    """What the route lists for a person who signed in."""
    world.client.cookies.clear()
    form = {"name": name, "password": PASSWORD, "next": "/"}
    world.client.post("/sign-in", data=form, follow_redirects=False)
    answer = world.client.get("/goto", params={"q": typed})
    assert answer.status_code == 200, answer.text
    found: Found = answer.json()["data"]
    return found


def rows(found: Found) -> Found:
    return [one for one in found if one["kind"] != "Page"]


def test_rows_are_found_by_number_and_by_a_part_of_their_name(world: ApiWorld) -> None:
    number = str(world.mine.run)
    (first, *_) = [one for one in ask(world, "cora", number) if one["kind"] == "Run"]
    address = urlsplit(first["url"])
    assert address.path == "/curate" and parse_qs(address.query)["run"] == [number]
    assert rows(ask(world, "cora", f"#{number}"))[0]["kind"] == "Run"
    assert {"kind": "Dataset", "label": "mine", "url": "/datasets?dataset=mine"} in ask(
        world, "cora", "MIN"
    )
    assert "Run" in {one["kind"] for one in ask(world, "cora", "MIN")}, "as pages call it"
    assert any(one["kind"] == "Group" for one in ask(world, "cora", str(world.mine.group)))
    assert "mine" in {each["label"] for each in ask(world, "cora", f"dataset {world.mine.dataset}")}


def test_a_kind_alone_or_before_a_number_lists_rows_of_this_kind(world: ApiWorld) -> None:
    """Typing `run` found nothing: a run's row had its number and its provider alone."""
    number = str(world.mine.run)
    for typed in ("run", "RUNS", f"run {number}", f"run #{number}"):
        found = rows(ask(world, "cora", typed))
        assert {one["kind"] for one in found} == {"Run"}, typed
        assert any(f"run={number}" in one["url"].split("&") for one in found), typed
    assert {one["kind"] for one in rows(ask(world, "cora", "dataset MIN"))} == {"Dataset"}
    assert rows(ask(world, "cora", "group")) == []  # too many to list
    assert rows(ask(world, "ann", "run")) == []


def test_what_lists_hide_is_not_found(world: ApiWorld) -> None:
    """A preview is archived from its beginning: two of them took the places of real runs."""
    with world.store.write() as session:
        hidden = session.get_one(Run, world.mine.run)
        hidden.archived_at = utc_now()
        session.get_one(Dataset, world.other.dataset).archived_at = utc_now()
        session.commit()
    assert not [one for one in rows(ask(world, "cora", "run")) if f"run={hidden.id}" in one["url"]]
    assert rows(ask(world, "cora", "other")) == []
    assert rows(ask(world, "cora", str(world.other.group))) == [
        one for one in rows(ask(world, "cora", str(world.other.group))) if "other" not in one["url"]
    ]


def test_nobody_finds_what_they_may_not_open(world: ApiWorld) -> None:
    other = world.other
    assert any("other" in one["url"] for one in ask(world, "cora", "other"))
    for typed in ("other", str(other.run), str(other.study), str(other.group)):
        found = rows(ask(world, "mina", typed))
        assert not [one for one in found if "other" in one["url"]]
        assert not [one for one in found if f"group={other.group}" in one["url"].split("&")]
    assert rows(ask(world, "ann", "mine")) == []
    labels = {one["label"] for one in ask(world, "cora", "acc")}
    assert "Accounts" not in labels and "Accounts" in {
        one["label"] for one in ask(world, "boss", "acc")
    }


@pytest.mark.parametrize("typed", ["", "  ", "%", "_", "'", "9" * 40, "x" * 5000, "#"])
def test_odd_texts_find_nothing_and_break_nothing(world: ApiWorld, typed: str) -> None:
    assert rows(ask(world, "cora", typed)) == []


def test_pages_are_found_by_title_and_nothing_without_a_sign_in(world: ApiWorld) -> None:
    assert ask(world, "cora", "rele")[0] == {
        "kind": "Page",
        "label": "Releases",
        "url": "/releases",
    }
    world.client.cookies.clear()
    answer = world.client.get("/goto", params={"q": "mine"}, follow_redirects=False)
    assert answer.status_code in (303, 401) and "mine" not in answer.text
