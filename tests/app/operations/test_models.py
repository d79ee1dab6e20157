"""Models: the numbers that other commands take can be listed; the same rows for every door."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran

from app.access.identity import Actor, owner
from app.operations import models
from app.operations.models import ModelExport
from db.errors import NotFound, Refused
from db.outcome.checkpoints import record_checkpoint
from db.people.rights import Rights
from db.store.store import Store


def fill(store: Store) -> list[int]:
    with store.write() as session:
        made = [
            record_checkpoint(
                session,
                path=f"/nowhere/checkpoints/{name}",
                base_model="base",
                config={"objective": "infonce", "seed": 3},
                summary={"release": {"offline": name == "one"}, "steps": 7},
            )
            for name in ("one", "two")
        ]
        session.commit()
        return [each.id for each in made]


def test_the_number_that_export_takes_is_listed_and_shown(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    one, two = fill(sqlite_store)
    found = inf("models", "list", "--json").json
    assert found["data"] == models.list_some(owner("ada")).as_json()["data"]
    assert [(row["id"], row["name"], row["offline"]) for row in found["data"]] == [
        (two, "checkpoints/two", False),
        (one, "checkpoints/one", True),
    ]
    assert (found["total"], found["next"]) == (2, None)
    part = models.list_some(owner("ada"), limit=1, offset=1)
    assert (part.data[0].id, part.next, part.total) == (one, None, 2)
    shown = inf("models", "show", one, "--json").json
    assert {key: shown[key] for key in found["data"][1]} == found["data"][1]
    assert shown["settings"]["seed"] == 3 and shown["summary"]["steps"] == 7
    assert "checkpoints/two" in inf("models", "list").out
    assert models.folder_of(owner("ada"), str(one)) == "/nowhere/checkpoints/one"
    assert models.folder_of(owner("ada"), "some/name") == "some/name"


def test_an_unknown_number_and_dataset_are_refused(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    fill(sqlite_store)
    assert inf("models", "show", 9, "--json").json["code"] == "checkpoint_unknown"
    assert inf("models", "list", "--dataset", "none", "--json").code == 1
    ran = inf("models", "push", 9, "--repo", "ada/m", "--dry-run", "--json")
    assert ran.code == 1 and "no checkpoint 9" in ran.json["error"]
    with pytest.raises(NotFound):
        models.folder_of(owner("ada"), "9")


def test_who_may_train_but_is_no_admin_writes_no_folder_of_the_server(
    sqlite_store: Store, tmp_path: Path
) -> None:
    one, _ = fill(sqlite_store)
    trainer = Actor("eve", rights=Rights(everywhere=frozenset({"train"})))
    with pytest.raises(Refused, match="lacks a right"):
        models.export(trainer, ModelExport(model=str(one), out=str(tmp_path / "out")), say=print)
    with pytest.raises(Refused, match="lacks a right"):
        wanted = models.ModelIndex(model=str(one), dataset="books")
        models.index(trainer, wanted, progress=lambda done, total: None)


@pytest.mark.parametrize(("noun", "short"), [("create", "train"), ("search", "tune")])
def test_a_training_is_a_noun_with_short_forms(
    sqlite_store: Store, inf: Callable[..., Ran], noun: str, short: str
) -> None:
    long_form, short_form = inf("trainings", noun, "--help"), inf(short, "--help")
    assert long_form.code == 0
    options = [line for line in short_form.out.splitlines() if line.startswith("  --")]
    assert len(options) > 5
    assert [line for line in long_form.out.splitlines() if line.startswith("  --")] == options
