"""Recipes: list, show, check, write, save as versions, compare; previews are of `runs`."""

import difflib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from pydantic import ConfigDict, Field, computed_field, model_validator
from sqlalchemy.orm import Session

from app.access.identity import Actor
from app.access.permissions import require
from app.jobs.places import require_own_recipe
from app.operations.acting import is_new_store, reading, writing
from app.operations.runs import NAMED, SETTINGS, OfRecipe
from curation.recipe.prices import load_prices
from curation.recipe.recipe import (
    Recipe,
    files_of,
    list_recipes,
    load_recipe,
    read_recipe,
    renamed,
    toml_of,
    write_recipe,
)
from curation.run.recipes import (
    AT,
    Chosen,
    checked_files,
    is_built_in,
    is_file,
    named_files,
    named_recipe,
    save_version,
    version_named,
)
from curation.run.starting import RunStart, recipe_of
from db.errors import BadInput, InfError, NotFound
from db.events import record_event
from db.requests import Request, option
from db.rows import Json, Listed, Number, Row, SparseRow
from db.run.recipes import count_runs, get_version, list_newest, list_versions
from db.run.runs import get_run
from db.tables import RecipeVersion

RIGHT = "curate"


class RecipeRow(Row):
    """A recipe in a list: built-in, or the newest version of one of the store (`version`)."""

    name: str
    description: str
    models: tuple[str, ...]
    sha256: str
    version: int | None
    created_by: str | None
    created_at: datetime | None
    problem: str | None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """What operations take as `recipe`."""
        return f"{self.name}@{self.version}" if self.version else self.name


class RecipeCheck(OfRecipe):
    """Check a recipe and its prompts without a run."""

    settings: tuple[str, ...] = SETTINGS


class RecipeNew(Request):
    """A new folder with a recipe and its prompts, to be edited."""

    folder: str = option(..., "The folder, which is made.", names=(), metavar="FOLDER")
    like: str = option(
        "promptriever",
        "The recipe that it begins as: built-in, or one of the store.",
        metavar="RECIPE",
    )


class RecipeExport(Request):
    """A new folder with the files of a recipe as they are."""

    recipe: str = option(..., NAMED, names=(), metavar="RECIPE")
    folder: str = option(..., "The folder, which is made.", names=(), metavar="FOLDER")


class RecipeSave(OfRecipe):
    """A recipe, by name or as files, as the next version of the name that it gives itself."""

    note: str = option("", "What is new in it.", metavar="TEXT", max_length=500)
    base: int | None = option(
        None, "The version that was edited: refused where another was saved since.", ge=0
    )


class RecipeDiff(Request):
    """Two recipes, file by file; by default what the newest version of one changed."""

    recipe: str = option(..., NAMED, names=(), metavar="RECIPE")
    other: str | None = option(None, "The one it is compared with.", names=(), metavar="OTHER")


class RecipeFiles(Row):
    """A recipe's file and those next to it."""

    recipe: str
    files: tuple[str, ...]


class RecipeShow(Request):
    """Show a recipe: a built-in one, one of the store, a TOML file, or that of a run."""

    recipe: str | None = option(None, NAMED, names=(), metavar="RECIPE")
    run_id: int | None = option(None, "The recipe of this run, as it was stored.", names=("--run",))
    settings: tuple[str, ...] = SETTINGS

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.recipe is None) == (self.run_id is None):
            raise ValueError("give either the name or file of a recipe, or a run")
        if self.settings and self.recipe is None:
            raise ValueError("settings are of a recipe that is named, not of a run's")
        return self


class StageBody(SparseRow):
    """A task's model, prompt and sampling, and how its calls are made."""

    model: str
    prompt: str
    prompt_sha256: str
    temperature: Number | None = None
    top_p: Number | None = None
    max_output_tokens: int | None = None
    reasoning_effort: str | None = None
    seed: int | None = None
    output: str | None = None
    extra_body: Json | None = None
    timeout_seconds: Number | None = None
    max_retry_after_seconds: Number | None = None
    headers: dict[str, str] | None = None
    limit_name: str | None = None
    answers_as: str | None = None


class CheckBody(SparseRow):
    """A question about texts of a group, and the answers that are expected, by text."""

    model_config = ConfigDict(populate_by_name=True)

    name: str
    question: str
    over: tuple[str, ...]
    given: tuple[str, ...] = Field(alias="with")
    votes: int
    expected: Json
    labels: dict[str, str] | None = None


class ScenarioBody(SparseRow):
    """A scenario of a shape: its texts by their signs."""

    role: str
    title: str
    instruction: str | None
    query: str
    passage: str


class StepBody(SparseRow):
    """A step of a shape: the texts that it gives, and what it reads."""

    name: str
    gives: tuple[str, ...]
    inputs: tuple[str, ...]


class TextBody(SparseRow):
    """A text of a shape; what follows `from_source` is of a list of texts."""

    sign: str
    field: str
    column: str
    meaning: str = ""
    from_source: bool = False
    count: int = 1
    at_least: int = 0
    introduced_by: str = ""
    grade: int | None = None
    stands_in_for: str = ""
    drops_group: bool = True


class ShapeBody(SparseRow):
    """The texts, scenarios, lists and steps of a recipe's groups."""

    texts: tuple[TextBody, ...]
    scenarios: tuple[ScenarioBody, ...]
    lists: tuple[TextBody, ...] = ()
    steps: tuple[StepBody, ...] = ()


class RecipeBody(SparseRow):
    """A recipe: `validation` and `filters` by the names of their settings."""

    name: str
    description: str
    stages: dict[str, StageBody]
    validation: Json
    filters: Json
    endpoints: tuple[str, ...] = ()
    server_group: str = ""
    shape: ShapeBody | None = None
    checks: tuple[CheckBody, ...] = ()
    vary: dict[str, dict[str, Number]] | None = None


class RecipeShown(Row):
    """A recipe with its prompts by sha256. `files`: as they were written, but for a run's."""

    recipe: RecipeBody
    sha256: str
    prompts: dict[str, str]
    version: int | None
    files: dict[str, str]


class RecipeChecked(Row):
    """A valid recipe: its stages and models, and those whose price is unknown."""

    name: str
    sha256: str
    stages: list[str]
    models: list[str]
    without_price: list[str]


class RecipeVersionRow(Row):
    """A version of a recipe of the store; `runs`: how many took it."""

    name: str
    number: int
    sha256: str
    note: str
    files: tuple[str, ...]
    runs: int
    created_by: str
    created_at: datetime

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """What operations take as `recipe`."""
        return f"{self.name}@{self.number}"


class FileDiff(Row):
    """How a file differs: lines as `diff -u` has them, none where it is the same."""

    file: str
    added: int
    removed: int
    lines: tuple[str, ...]


class RecipeDiffed(Row):
    """Two recipes, file by file; the recipe's own file is compared whatever it is called."""

    first: str
    second: str
    files: tuple[FileDiff, ...]


def needs_store(named: str) -> bool:
    """Whether a recipe of this name is looked for in the store."""
    return not (is_built_in(named) or is_file(named))


def _named(actor: Actor, named: str, settings: Any = ()) -> tuple[Chosen, dict[str, str]]:
    """The recipe of that name with its files; a file of the server is an admin's.

    The store is opened where the name may be of it. Raises NotFound, BadInput, Refused.
    """
    require(actor, "server" if is_file(named) else RIGHT)
    if not needs_store(named):
        return Chosen(load_recipe(named, settings)), files_of(named)
    with reading(actor, RIGHT) as session:
        _require_own(session, actor, named)
        return named_recipe(session, named, settings), named_files(session, named)


def _require_own(session: Session, actor: Actor, named: str) -> None:
    """Raise Refused where someone other than an admin names a file of the server, NotFound for a
    name that is none and that the store does not have."""
    if is_built_in(named) or version_named(session, named) is not None:
        return
    if is_file(named):
        require(actor, "server")
    elif not (actor.is_admin and Path(named).exists()):
        raise NotFound(
            f"no recipe {named!r}",
            f"give a TOML file or one of {', '.join(_listed_names(session))}",
            code="recipe_unknown",
        )


def list_all(actor: Actor) -> Listed[RecipeRow]:
    """List recipes: the built-in ones, then those of the store; any TOML file is one, too."""
    require(actor, RIGHT)
    stored: list[RecipeRow] = []
    if not is_new_store():
        with reading(actor, RIGHT) as session:
            stored = [_stored_row(each) for each in list_newest(session)]
    built_in = [
        RecipeRow.of(
            load_recipe(name), version=None, created_by=None, created_at=None, problem=None
        )
        for name in list_recipes()
    ]
    return Listed[RecipeRow].all([*built_in, *stored])


def names(actor: Actor) -> tuple[str, ...]:
    """The names of recipes, as in the list."""
    with reading(actor, RIGHT) as session:
        return _listed_names(session)


def _listed_names(session: Session) -> tuple[str, ...]:
    return (*list_recipes(), *(each.name for each in list_newest(session)))


def _stored_row(found: RecipeVersion) -> RecipeRow:
    """The row of a version; one that this version of the program refuses says why."""
    about: dict[str, Any] = {"version": found.number, "created_by": found.created_by}
    about |= {"created_at": found.created_at, "sha256": found.sha256}
    try:
        return RecipeRow.of(read_recipe(found.files), **about, problem=None)
    except InfError as error:
        about |= {"name": found.name, "description": "", "models": (), "problem": str(error)}
        return RecipeRow(**about)


def show(actor: Actor, wanted: RecipeShow) -> RecipeShown:
    """Show a recipe: of the list, a TOML file, or that of a run; JSON includes files and prompts.

    Raises NotFound, BadInput, and Refused where someone other than an admin names a file.
    """
    if wanted.run_id is None:
        found, files = _named(actor, str(wanted.recipe), wanted.settings)
    else:
        with reading(actor, RIGHT) as session:
            run = get_run(session, wanted.run_id)
            found, files = Chosen(recipe_of(session, run), run.recipe_version), {}
    return RecipeShown(
        recipe=RecipeBody.model_validate(found.recipe.body()),
        sha256=found.recipe.sha256,
        prompts=dict(found.recipe.prompts().values()),
        version=found.version,
        files=files,
    )


def chosen(actor: Actor, wanted: RunStart) -> Recipe:
    """The recipe of a run's start, read once for it. Raises as `show`."""
    with reading(actor, RIGHT) as session:
        if wanted.recipe is not None:
            _require_own(session, actor, wanted.recipe)
        return wanted.chosen(session).recipe


def check(actor: Actor, wanted: RecipeCheck) -> RecipeChecked:
    """Check a recipe and its prompts without a run; an error names the place and the remedy.

    Raises as `show`.
    """
    if wanted.files:
        require(actor, RIGHT)
        found = read_recipe(wanted.files, wanted.settings)
    else:
        found = _named(actor, wanted.recipe, wanted.settings)[0].recipe
    prices = load_prices()
    without = [model for model in found.models if model not in prices]
    return RecipeChecked.of(found, stages=list(found.stages), without_price=without)


def new(actor: Actor, wanted: RecipeNew) -> RecipeFiles:
    """Write a recipe and its prompts under another name into a new folder of the server: an
    admin's.

    Raises Refused, NotFound, BadInput for a folder that exists or an unknown recipe.
    """
    require(actor, "server")
    files = _named(actor, wanted.like)[1]
    return _written(renamed(files, Path(wanted.folder).name), wanted.folder)


def export(actor: Actor, wanted: RecipeExport) -> RecipeFiles:
    """Write the files of a recipe, as they are, into a new folder of the server: an admin's.

    Raises as `new`.
    """
    require(actor, "server")
    files = _named(actor, wanted.recipe)[1]
    return _written(files, wanted.folder)


def _written(files: Mapping[str, str], folder: str) -> RecipeFiles:
    file = write_recipe(files, Path(folder))
    return RecipeFiles(recipe=str(file), files=tuple(sorted(files)))


def versions(actor: Actor, name: str) -> Listed[RecipeVersionRow]:
    """List the versions of a recipe of the store, newest first: who saved them, when, and how many
    runs took them. A built-in recipe has no versions. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        if not is_built_in(name):
            get_version(session, name)
        counts = count_runs(session, name)
        rows = [
            _version_row(each, counts.get(each.number, 0)) for each in list_versions(session, name)
        ]
    return Listed[RecipeVersionRow].all(rows)


def save(actor: Actor, wanted: RecipeSave) -> RecipeVersionRow:
    """Save a recipe as the next version of its name; files that are the newest's make none.

    Raises BadInput at the place that is wrong, Refused for another's file of the server, for
    addresses of servers by other than an admin, and where another version was saved since `base`.
    """
    files = dict(wanted.files) or _named(actor, wanted.recipe)[1]
    with writing(actor, RIGHT) as session:
        require_own_recipe(session, actor, checked_files(files))
        found = save_version(
            session, files, note=wanted.note, base=wanted.base, created_by=actor.name
        )
        record_event(
            session,
            actor.name,
            "recipe.save",
            found.id,
            recipe=found.name,
            version=found.number,
            sha256=found.sha256,
        )
        return _version_row(found, count_runs(session, found.name).get(found.number, 0))


def _version_row(found: RecipeVersion, runs: int) -> RecipeVersionRow:
    return RecipeVersionRow.of(found, files=tuple(sorted(found.files)), runs=runs)


def diff(actor: Actor, wanted: RecipeDiff) -> RecipeDiffed:
    """Compare two recipes file by file, by default the newest version of one with the one before.

    Raises NotFound, BadInput, and Refused where someone other than an admin names a file.
    """
    first, second = wanted.recipe, wanted.other
    if second is None:
        with reading(actor, RIGHT) as session:
            version = version_named(session, first)
            if version is None or version.number < 2:
                raise BadInput(
                    f"{first} has no version before it",
                    "name two recipes",
                    code="recipe_without_earlier_version",
                )
            first, second = (f"{version.name}{AT}{version.number - back}" for back in (1, 0))
    before, after = (_named(actor, each)[1] for each in (first, second))
    return RecipeDiffed(first=first, second=second, files=differing_files(before, after))


def differing_files(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[FileDiff, ...]:
    """How the files of two recipes differ: the recipe's own first, then prompts by name."""
    own = toml_of(before), toml_of(after)
    prompts = sorted((before.keys() | after.keys()) - {*own})
    return tuple(
        _file_diff(new, before.get(old, ""), after.get(new, ""))
        for old, new in (own, *((name, name) for name in prompts))
    )


def _file_diff(name: str, before: str, after: str) -> FileDiff:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm=""))
    body = lines[2:]  # without the two names
    return FileDiff(
        file=name,
        added=sum(line.startswith("+") for line in body),
        removed=sum(line.startswith("-") for line in body),
        lines=tuple(body),
    )
