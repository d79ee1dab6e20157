"""Runs: command, operation and page show the same rows; each operation asks for its right."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from curation_runs import add_dataset
from sqlalchemy import func, select
from study_world import make_world

from app.access.identity import Actor, owner
from app.operations import recipes, runs
from curation.recipe.recipe import FOLDER, load_recipe
from curation.recipe.recipe import list_recipes as recipe_names
from curation.rules.deciding import RunDecide
from curation.run.starting import RunResume, RunStart, RunWork
from db.corpus.datasets import get_dataset
from db.errors import BadInput, NotFound, Refused
from db.jobs import jobs
from db.people.rights import Rights
from db.run.versions import VersionChoice, VersionComparison
from db.store.store import Store
from db.tables import Event, Job, Run

NAME = "small"
START = RunStart(dataset=NAME, provider="offline")


def unlaunched(*_: Any) -> Any:
    raise AssertionError("it was launched")


NEEDING_CURATE: dict[str, Callable[[Actor], Any]] = {
    "create": lambda actor: runs.create(actor, START, unlaunched),
    "resume": lambda actor: runs.resume(actor, RunResume(run_id=1), unlaunched),
    "work_on": lambda actor: runs.work_on(actor, RunWork(run_id=1), unlaunched),
    "join": lambda actor: runs.join(actor, RunWork(run_id=1), unlaunched),
    "check": lambda actor: runs.check(actor, 1, unlaunched),
    "idle": lambda actor: runs.idle(actor, RunWork(run_id=1)),
    "reuse": lambda actor: runs.reuse(actor, 1),
    "reuse_if_created": lambda actor: runs.reuse_if_created(actor, START, ""),
    "unpriced": lambda actor: runs.unpriced(actor, START),
    "estimate": lambda actor: runs.estimate(actor, START),
    "list_all": runs.list_all,
    "show": lambda actor: runs.show(actor, 1),
    "recipe": lambda actor: runs.recipe(actor, 1),
    "preview": lambda actor: runs.preview(
        actor, runs.RunPreview(recipe="offline", dataset=NAME), unlaunched
    ),
    "previewed": lambda actor: runs.previewed(actor, (1,)),
    "recipe_of_start": lambda actor: runs.recipe_of_start(actor, START),
    "stop": lambda actor: runs.stop(actor, 1),
    "shrink": lambda actor: runs.shrink(actor, runs.RunShrink(run_id=1)),
    "decide": lambda actor: runs.decide(
        actor, RunDecide(run_id=1, settings=("validation.agree=1",))
    ),
    "list_versions": lambda actor: runs.list_versions(actor, 1),
    "use_version": lambda actor: runs.use_version(actor, VersionChoice(run_id=1, number=1)),
    "remove_version": lambda actor: runs.remove_version(actor, VersionChoice(run_id=1, number=2)),
    "compare_versions": lambda actor: runs.compare_versions(actor, VersionComparison(run_id=1)),
    "change_concurrency": lambda actor: runs.change_concurrency(actor, 1, 2),
}


@pytest.fixture
def world(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    make_world(sqlite_store, groups=3, name=NAME)
    return sqlite_store


@pytest.mark.parametrize("name", NEEDING_CURATE)
def test_an_operation_on_runs_needs_curate_on_their_dataset(world: Store, name: str) -> None:
    def state() -> tuple[Any, ...]:
        with world.read() as session:
            return tuple(session.scalar(select(func.count(of.id))) for of in (Event, Run, Job))

    before = state()
    trainer = Actor("eve", rights=Rights(everywhere=frozenset({"train", "release", "review"})))
    with pytest.raises(Refused, match="requires curate"):
        NEEDING_CURATE[name](trainer)
    elsewhere = Actor("ann", rights=Rights(on_datasets={77: frozenset({"curate"})}))
    if name == "list_all":
        assert runs.list_all(elsewhere).total == 0
    else:
        with pytest.raises(Exception, match=r"no (dataset|run)"):
            NEEDING_CURATE[name](elsewhere)
    assert state() == before


def test_every_operation_on_runs_is_among_them() -> None:
    own = {name for name, each in vars(runs).items() if callable(each)}
    named = {name for name in own if getattr(runs, name).__module__ == runs.__name__}
    operations = {name for name in named if name[0] != "_" and name[0].islower()}
    assert operations <= NEEDING_CURATE.keys()


def test_a_recipe_that_is_a_file_of_the_server_is_read_by_admins_alone(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text((FOLDER / "offline.toml").read_text(encoding="utf-8"), encoding="utf-8")
    eve = Actor("eve", rights=Rights(everywhere=frozenset({"curate"})))
    judge = Actor("ann", rights=Rights(everywhere=frozenset({"judge"})))
    for ask in (
        lambda actor, name: recipes.show(actor, recipes.RecipeShow(recipe=name)).sha256,
        lambda actor, name: recipes.check(actor, recipes.RecipeCheck(recipe=name)).sha256,
    ):
        assert ask(eve, "offline") == ask(owner("ada"), "offline")
        assert ask(owner("ada"), str(file))
        for actor, name in ((eve, str(file)), (judge, "offline"), (judge, str(file))):
            with pytest.raises(Refused):
                ask(actor, name)


def test_a_recipe_begins_as_one_of_ours_in_a_new_folder_of_an_admin(
    tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    for like in recipe_names():
        made = inf("recipes", "new", str(tmp_path / f"as-{like}"), "--like", like, "--json").json
        mine, ours = load_recipe(made["recipe"]), load_recipe(like)
        assert mine.name == f"as-{like}" and replace(mine, name=like) == ours
        assert inf("recipes", "check", made["recipe"]).code == 0
        assert len(made["files"]) == 1 + len({name for name, _ in ours.prompts().values()})
    folder = str(tmp_path / "as-promptriever")
    again = inf("recipes", "new", folder)
    assert again.code == 1 and "exists: name a new folder" in again.err
    assert inf("recipes", "new", str(tmp_path / "x"), "--like", "../x").code == 1
    eve = Actor("eve", rights=Rights(everywhere=frozenset({"curate"})))
    with pytest.raises(Refused):
        recipes.new(eve, recipes.RecipeNew(folder=str(tmp_path / "eve")))
    assert not (tmp_path / "eve").exists() and not (tmp_path / "x").exists()


def test_command_and_operation_print_the_same_rows(world: Store, inf: Callable[..., Ran]) -> None:
    listed, rows = inf("runs", "list", "--json").json, runs.list_all(owner("ada")).as_json()
    assert {key: listed[key] for key in rows} == rows and rows["total"] == 1
    assert listed["runs"] == [row | {"run_id": row["id"]} for row in rows["data"]]
    shown = runs.show(owner("ada"), 1).as_json()
    assert inf("runs", "show", 1, "--json").json == shown | {"run_id": 1}


def test_recipes_are_listed_as_every_noun(inf: Callable[..., Ran]) -> None:
    listed = inf("recipes", "list", "--json").json
    assert listed["total"] == len(listed["data"]) > 2 and listed["recipes"] == listed["data"]


def test_kept_and_dropped_are_said_in_words_and_shares(
    world: Store, inf: Callable[..., Ran]
) -> None:
    out = inf("runs", "show", 1).out
    assert "2 (66.7%)" in out and "1 (33.3%)" in out
    (reason,) = runs.show(owner("ada"), 1).funnel.dropped
    assert f"1 (33.3%) {reason}: " in out


def test_a_new_run_is_estimated_created_resumed_and_joined(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=3)
    launched: list[dict[str, Any]] = []

    def work(_: Store, kind: str, config: dict[str, Any], **how: Any) -> dict[str, Any]:
        assert kind == "curate"
        launched.append(config)
        return {"job_id": 1}

    monkeypatch.setattr("app.cli.kit.report.work", work)
    more = ("--provider", "openai", "--set", "model=mine", "--concurrency", 4)
    found = inf("runs", "estimate", NAME, *more, "--json").json
    former = inf("curate", "--dataset", NAME, *more, "--estimate", "--json")
    assert former.json == found and found["concurrency"] == 4 and found["pairs"] == 3
    assert "`inf runs estimate` now" in former.err
    assert "4 calls at once" in inf("runs", "estimate", NAME, *more).out
    offline = ("--provider", "offline", "--limit", 2, "--json")
    for number, words in enumerate(
        (("runs", "create", NAME), ("curate", NAME), ("curate", "--dataset", NAME)), start=1
    ):
        done = inf(*words, *offline)
        assert done.json == {"job_id": 1, "run_id": number} and "note:" not in done.err
    for words, note in (
        (("runs", "resume", 1), ""),
        (("curate", "--resume", 1), "runs resume"),
        (("runs", "join", 1), ""),
        (("curate", "--worker", 1), "runs join"),
    ):
        done = inf(*words, "--concurrency", 5)
        assert done.code == 0 and (note in done.err if note else "note:" not in done.err), words
    assert launched == [
        *({"run_id": number} for number in (1, 2, 3)),
        *[{"run_id": 1}] * 2,
        *[{"run_id": 1, "concurrency": 5, "joins": True}] * 2,
    ]
    for wrong in (
        ("curate", "--resume", 1, "--batch"),
        ("curate", "--worker", 1, "--resume", 1),
        ("curate", "--worker", 1, "--budget-usd", 1),
        ("curate", NAME, "--provider", "offline", "--retry", "empty"),
        ("curate", NAME, "--provider", "offline", "--batch"),
        ("runs", "create", NAME),
    ):
        assert inf(*wrong).code == 2, wrong


def test_a_finished_run_says_what_comes_next(sqlite_store: Store, inf: Callable[..., Ran]) -> None:
    add_dataset(sqlite_store, pairs=2)
    done = inf("runs", "create", NAME, "--provider", "offline")
    assert done.code == 0
    assert done.out.splitlines()[-1].startswith(f"next: inf studies create {NAME} --run 1 ")
    with sqlite_store.read() as session:
        stored = session.get_one(Job, 1).result
    shown = runs.show(owner("ada"), 1)
    assert stored is not None
    assert (stored["kept"], stored["dropped"]) == (shown.kept, shown.funnel.dropped)


def test_a_job_queued_by_an_earlier_version_opens(world: Store) -> None:
    for config in ({"run_id": 1}, {"run_id": 1, "concurrency": 3, "joins": True}):
        assert RunWork.read(config).config() == config
    assert RunWork.read({"run_id": 1, "only": "leakage"}).only == "leakage"
    with pytest.raises(BadInput, match="did you mean 'concurrency'"):
        RunWork.read({"run_id": 1, "concurency": 3})
    with world.read() as session:
        assert jobs.list_jobs(session) == []


@pytest.mark.parametrize(
    ("recipe", "setting"),
    [
        ("/etc/passwd", None),
        ("recipe.toml", None),
        (None, "validation.prompt=/etc/passwd"),
        (None, "prompt=../../../secret.md"),
        (None, ' validation . prompt ="/etc/pass\\u0077d"'),
        (None, "validation.model=/checkpoints/of-another"),
    ],
)
def test_a_file_of_the_server_is_an_admin_s(
    world: Store, tmp_path: Path, recipe: str | None, setting: str | None
) -> None:
    """What is wrong with it, or that it is not there, would say what is on the server."""
    given = () if setting is None else (setting,)
    wanted = START.model_copy(update={"recipe": recipe, "settings": given})
    with world.read() as session:
        dataset_id = get_dataset(session, NAME).id
    ann = Actor("ann", rights=Rights(on_datasets={dataset_id: frozenset({"curate"})}))
    for call in (
        lambda: runs.estimate(ann, wanted),
        lambda: runs.create(ann, wanted, unlaunched),
        lambda: runs.reuse_if_created(ann, wanted, ""),
        lambda: runs.recipe_of_start(ann, wanted),
    ):
        with pytest.raises((Refused, NotFound)) as refused:
            call()
        assert refused.value.code in ("admin_only", "not_visible")
    own = tmp_path / "own.toml"
    own.write_text((FOLDER / "offline.toml").read_text(encoding="utf-8"), encoding="utf-8")
    mine = START.model_copy(update={"recipe": str(own)})
    assert runs.estimate(owner("ada"), mine).pairs == runs.estimate(ann, START).pairs
