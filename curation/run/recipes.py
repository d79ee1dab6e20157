"""Recipes by the name that a run gives them: built-in, of the store, or a file; saving versions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from curation.recipe.recipe import (
    Recipe,
    files_of,
    list_recipes,
    load_recipe,
    read_recipe,
    renamed,
    toml_of,
)
from db.errors import BadInput, NotFound
from db.run.recipes import add_version, get_version
from db.tables import RecipeVersion

MAX_CHARACTERS = 400_000  # of all files of a version together
MAX_FILES = 40
AT = "@"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True)
class Chosen:
    """A recipe, and the number of its version where it is of the store."""

    recipe: Recipe
    version: int | None = None

    def with_rules_as_models(self) -> "Chosen":
        """As `Recipe.with_rules_as_models`."""
        return replace(self, recipe=self.recipe.with_rules_as_models())


def is_built_in(named: str) -> bool:
    """Whether a recipe of this name comes with us."""
    return named in list_recipes()


def is_file(named: str) -> bool:
    """Whether this can only be a file: no recipe of the store is called so."""
    return named.endswith(".toml") or "/" in named or "\\" in named


def version_named(session: Session, named: str) -> RecipeVersion | None:
    """The version that NAME (the newest) or NAME@NUMBER is in the store; None where it is none.

    Raises NotFound for another number of a recipe that the store has.
    """
    name, at, number = named.partition(AT)
    if (
        is_built_in(named)
        or is_file(named)
        or (at and not (number.isdecimal() and len(number) < 10))
    ):
        return None
    try:
        newest = get_version(session, name)
    except NotFound:
        return None
    return get_version(session, name, int(number)) if at else newest


def named_recipe(session: Session, named: str, settings: Sequence[str] = ()) -> Chosen:
    """The built-in recipe of that name, or that of the store, or the file. Raises BadInput,
    NotFound."""
    if (version := version_named(session, named)) is not None:
        return Chosen(read_recipe(version.files, settings), version.number)
    return Chosen(load_recipe(named, settings))


def named_files(session: Session, named: str) -> dict[str, str]:
    """The files of such a recipe, its own first. Raises as `named_recipe`."""
    version = version_named(session, named)
    if version is None:
        return files_of(named)
    own = toml_of(version.files)  # JSON of PostgreSQL keeps no order
    return {own: version.files[own]} | dict(sorted(version.files.items()))


def checked_files(files: Mapping[str, str]) -> Recipe:
    """The recipe of files that may be saved. Raises BadInput: they are no recipe, there are too
    many or too long ones, or their name is taken by a recipe that comes with us."""
    if len(files) > MAX_FILES or sum(map(len, files.values())) > MAX_CHARACTERS:
        raise BadInput(
            f"the files of a recipe are at most {MAX_FILES}, of {MAX_CHARACTERS:,} characters",
            "leave out what is no prompt of it",
            code="recipe_files_invalid",
        )
    recipe = read_recipe(files)
    if is_built_in(recipe.name):
        raise BadInput(
            f"{recipe.name} is a recipe that comes with us",
            "give yours another name in the first line of its file",
            code="recipe_name_taken",
            file=toml_of(files),
            line=1,
        )
    if not NAME.fullmatch(recipe.name) or is_file(recipe.name):
        raise BadInput(
            f"a recipe cannot be saved as {recipe.name!r}",
            "use letters, digits, dots, hyphens and underscores",
            code="recipe_name_invalid",
        )
    return recipe


def save_version(
    session: Session,
    files: Mapping[str, str],
    *,
    note: str = "",
    base: int | None = None,
    created_by: str = "",
) -> RecipeVersion:
    """The files as the next version of the name that they give. Does not commit.

    Raises as `checked_files` and `db.run.recipes.add_version`.
    """
    recipe = checked_files(files)
    return add_version(
        session,
        name=recipe.name,
        files=renamed(files, recipe.name),
        sha256=recipe.sha256,
        note=note,
        base=base,
        created_by=created_by,
    )
