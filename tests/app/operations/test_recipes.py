"""Recipes of the store: who may write what, versions, differences, previews."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from curation_runs import add_dataset
from sqlalchemy import func, select

from app.access.identity import Actor, owner
from app.operations import recipes, releases, runs
from app.operations.recipes import RecipeCheck, RecipeDiff, RecipeSave, RecipeShow
from app.operations.runs import RunPreview
from curation.recipe.recipe import files_of, list_recipes, load_recipe, renamed
from curation.run.starting import RunStart
from db.errors import BadInput, InfError, NotFound, Refused
from db.people.rights import Rights
from db.store.store import Store
from db.tables import Event, Job, RecipeVersion, Run

ADA = owner("ada")
ANN = Actor("ann", rights=Rights(everywhere=frozenset({"curate"})))
JUDGE = Actor("eve", rights=Rights(everywhere=frozenset({"judge", "review", "train", "release"})))
MINE = renamed(files_of("promptriever"), "mine")
OFFLINE = renamed(files_of("offline"), "plain")


def edited(files: dict[str, str], before: str, after: str) -> dict[str, str]:
    own = next(name for name in files if name.endswith(".toml"))
    assert before in files[own]
    return files | {own: files[own].replace(before, after)}


@pytest.fixture
def store(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    return sqlite_store


def counts(store: Store) -> tuple[Any, ...]:
    with store.read() as session:
        tables = (RecipeVersion, Run, Job, Event)
        return tuple(session.scalar(select(func.count(of.id))) for of in tables)


def unlaunched(*_: Any) -> Any:
    raise AssertionError("it was launched")


def test_a_saved_recipe_is_the_one_of_its_files_and_runs_by_its_name(store: Store) -> None:
    add_dataset(store, pairs=2)
    saved = recipes.save(ANN, RecipeSave(files=MINE, note="as theirs"))
    assert (saved.name, saved.number, saved.created_by, saved.runs) == ("mine", 1, "ann", 0)
    shown = recipes.show(ANN, RecipeShow(recipe="mine"))
    ours = replace(load_recipe("promptriever"), name="mine")
    assert shown.files == MINE and shown.sha256 == saved.sha256 == ours.sha256
    started = RunStart(dataset="small", provider="offline", recipe="mine")
    runs.create(ANN, started, lambda *_: None)
    row = runs.list_all(ANN).data[0]
    assert (row.recipe, row.recipe_version) == ("mine", 1)
    assert recipes.versions(ANN, "mine").data[0].runs == 1
    listed = {each.name: each for each in recipes.list_all(ANN).data}
    assert set(list_recipes()) < set(listed) and listed["mine"].version == 1
    assert listed["offline"].version is None


def test_versions_are_numbered_kept_and_named_by_runs(store: Store) -> None:
    add_dataset(store, pairs=1)
    recipes.save(ADA, RecipeSave(files=MINE))
    again = recipes.save(ADA, RecipeSave(files=MINE, note="nothing new"))
    assert again.number == 1 and again.note == ""
    second = edited(MINE, "negation = 1", "negation = 9")
    assert recipes.save(ANN, RecipeSave(files=second, base=1)).number == 2
    for named, number in (("mine", 2), ("mine@1", 1), ("mine@2", 2)):
        runs.create(
            ADA,
            RunStart(dataset="small", provider="offline", recipe=named),
            lambda *_: None,
        )
        assert runs.list_all(ADA).data[0].recipe_version == number
    with pytest.raises(NotFound):
        recipes.show(ADA, RecipeShow(recipe="mine@3"))
    found = recipes.diff(ADA, RecipeDiff(recipe="mine"))
    assert (found.first, found.second) == ("mine@1", "mine@2")
    (own,) = [each for each in found.files if each.lines]
    assert (own.file, own.added, own.removed) == ("mine.toml", 1, 1)
    assert any(line.startswith("+") and "negation = 9" in line for line in own.lines)
    back = recipes.save(ADA, RecipeSave(recipe="mine@1"))
    assert back.number == 3 and recipes.show(ADA, RecipeShow(recipe="mine")).files == MINE
    with store.read() as session:
        events = session.scalars(select(Event.name).where(Event.noun == "recipe")).all()
    assert list(events) == ["recipe.save"] * 4


def test_who_saves_what_another_has_changed_meanwhile_is_refused(store: Store) -> None:
    recipes.save(ADA, RecipeSave(files=MINE))
    recipes.save(ANN, RecipeSave(files=edited(MINE, "negation = 1", "negation = 2"), base=1))
    with pytest.raises(Refused) as refused:
        recipes.save(ADA, RecipeSave(files=edited(MINE, "negation = 1", "negation = 3"), base=1))
    assert refused.value.code == "recipe_version_outdated"
    assert recipes.versions(ADA, "mine").total == 2


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda files: edited(files, 'name = "mine"', 'name = "offline"'), "recipe_name_taken"),
        (lambda files: edited(files, 'name = "mine"', 'name = "../up"'), "recipe_name_invalid"),
        (lambda files: edited(files, 'name = "mine"', 'name = "a@1"'), "recipe_name_invalid"),
        (lambda files: files | {"../../etc.md": "x"}, "recipe_file_name_invalid"),
        (lambda files: files | {"two.toml": ""}, "recipe_files_invalid"),
        (lambda files: {"only.md": "x"}, "recipe_files_invalid"),
        (lambda files: files | {"long.md": "x" * 400_001}, "recipe_files_invalid"),
        (lambda files: edited(files, "[claims]", "[claims"), "recipe_unreadable"),
        (
            lambda files: edited(files, '"promptriever_fits.md"', '"/etc/passwd"'),
            "prompt_unknown",
        ),
        (
            lambda files: edited(files, '"promptriever_fits.md"', '"../recipe.py"'),
            "prompt_unknown",
        ),
    ],
)
def test_what_is_no_recipe_or_leads_elsewhere_is_not_saved(
    store: Store, change: Callable[[dict[str, str]], dict[str, str]], code: str
) -> None:
    before = counts(store)
    for actor in (ADA, ANN):
        with pytest.raises(BadInput) as refused:
            recipes.save(actor, RecipeSave(files=change(MINE)))
        assert refused.value.code == code and refused.value.remedy
    assert counts(store) == before


def test_only_an_admin_writes_addresses_of_servers_and_local_models(
    store: Store, tmp_path: Path
) -> None:
    add_dataset(store, pairs=1)
    (tmp_path / "model").mkdir()
    elsewhere = edited(OFFLINE, 'name = "plain"', 'name = "plain"\nendpoints = ["http://e.test"]')
    own = next(name for name in OFFLINE if name.endswith(".toml"))
    model = next(line for line in OFFLINE[own].split("\n") if line.startswith("model ="))
    local = edited(OFFLINE, model, f'model = "{tmp_path / "model"}"')
    for files in (elsewhere, local):
        with pytest.raises(InfError):
            recipes.save(ANN, RecipeSave(files=files))
        with pytest.raises(InfError):
            runs.preview(ANN, RunPreview(files=files, dataset="small"), unlaunched)
        assert recipes.save(ADA, RecipeSave(files=files)).number
    # the version with a local model, once an admin saved it, is no way around for others
    with pytest.raises(InfError):
        runs.create(
            ANN, RunStart(dataset="small", provider="offline", recipe="plain@2"), unlaunched
        )


def test_who_may_not_curate_reads_and_writes_no_recipe(store: Store, tmp_path: Path) -> None:
    add_dataset(store, pairs=1)
    recipes.save(ADA, RecipeSave(files=MINE))
    before = counts(store)
    for ask in (
        lambda: recipes.list_all(JUDGE),
        lambda: recipes.show(JUDGE, RecipeShow(recipe="mine")),
        lambda: recipes.show(JUDGE, RecipeShow(recipe="offline")),
        lambda: recipes.check(JUDGE, RecipeCheck(files=MINE)),
        lambda: recipes.versions(JUDGE, "mine"),
        lambda: recipes.save(JUDGE, RecipeSave(files=OFFLINE)),
        lambda: recipes.diff(JUDGE, RecipeDiff(recipe="mine", other="offline")),
        lambda: runs.preview(JUDGE, RunPreview(recipe="mine", dataset="small"), unlaunched),
        lambda: recipes.export(
            ANN, recipes.RecipeExport(recipe="mine", folder=str(tmp_path / "x"))
        ),
        lambda: recipes.save(ANN, RecipeSave(recipe=str(tmp_path / "own.toml"))),
    ):
        with pytest.raises(Refused):
            ask()
    assert counts(store) == before and not (tmp_path / "x").exists()


def test_the_error_of_a_wrong_recipe_is_the_same_at_every_door(
    store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    wrong = edited(MINE, 'over = ["P+", "B", "N"]', 'over = ["P+", "B", "X"]')
    with pytest.raises(BadInput) as raised:
        recipes.check(ANN, RecipeCheck(files=wrong))
    error = raised.value
    lines = wrong["mine.toml"].split("\n")
    assert error.values["file"] == "mine.toml"
    assert '"X"' in lines[int(str(error.values["line"])) - 1]
    for name, text in wrong.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    said = inf("recipes", "check", str(tmp_path / "mine.toml"), "--json").json
    assert (said["error"], said["code"]) == (str(error), error.code)
    prompt = MINE | {"promptriever_fits.md": "---\n{query} {instruction}\n{passage} {nothing}\n"}
    with pytest.raises(BadInput) as raised:
        recipes.check(ANN, RecipeCheck(files=prompt))
    assert raised.value.values == {"file": "promptriever_fits.md", "line": 3}


@pytest.mark.long
def test_a_preview_compares_two_recipes_and_no_list_or_release_has_its_runs(
    store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    add_dataset(store, pairs=7)
    recipes.save(ADA, RecipeSave(files=MINE))
    found = inf(
        *("recipes", "preview", "mine", "--with", "offline", "--dataset", "small"),
        "--json",
    ).json
    first, second = found["runs"]
    assert (first["recipe"], first["version"], second["recipe"]) == ("mine", 1, "offline")
    assert first["offline"] and first["status"] == second["status"] == "done"
    assert len(found["pairs"]) == 5 and first["kept"] + first["dropped"] == 5
    for pair in found["pairs"]:
        ours, theirs = pair["groups"]
        assert {"Q", "P+"} <= set(ours["texts"]) and "Q+" in theirs["texts"]
        assert ours["verdict"] in ("kept", "dropped")
    assert runs.list_all(ADA).total == 0 and recipes.versions(ADA, "mine").data[0].runs == 0
    assert inf("releases", "create", "small", "--out", str(tmp_path / "r")).code == 1
    assert releases.list_all(ADA).total == 0
    shown = runs.previewed(ADA, (first["run_id"], second["run_id"])).as_json()
    assert json.dumps(shown) == json.dumps(found)
    # a run that follows takes the answers of the preview
    made = inf(
        *("runs", "create", "small", "--provider", "offline", "--recipe", "mine", "--limit", "5"),
        "--json",
    ).json
    assert made["calls"]["reused"] > 0 and made["calls"]["made"] == 0


def test_a_preview_of_unsaved_files_leaves_no_version(store: Store) -> None:
    add_dataset(store, pairs=6)
    launched: list[int] = []
    made = runs.preview(
        ANN,
        RunPreview(files=MINE, dataset="small", pairs=2),
        lambda *given: launched.append(given[2].run_id),
    )
    assert list(made.runs) == launched and len(launched) == 1
    shown = runs.previewed(ANN, made.runs)
    assert shown.runs[0].status == "created" and shown.pairs == ()
    with pytest.raises(NotFound):
        recipes.versions(ANN, "mine")
    with store.read() as session:
        run = session.get_one(Run, made.runs[0])
        assert run.preview and run.archived_at is not None and run.recipe_version is None


def test_exported_files_are_those_that_were_saved(
    store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    recipes.save(ANN, RecipeSave(files=MINE))
    made = inf("recipes", "export", "mine", str(tmp_path / "out"), "--json").json
    written = {each.name: each.read_text(encoding="utf-8") for each in (tmp_path / "out").iterdir()}
    assert written == MINE and made["files"] == sorted(MINE)
    assert inf("recipes", "save", made["recipe"], "--json").json["number"] == 1
