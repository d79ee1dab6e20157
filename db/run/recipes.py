"""Recipes as runs used them, and their versions as people wrote and saved them."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from db.errors import NotFound, Refused
from db.tables import Prompt, Recipe, RecipeVersion, Run


def store_recipe(
    session: Session,
    *,
    name: str,
    sha256: str,
    body: dict[str, Any],
    prompts: Mapping[str, tuple[str, str]],
) -> Recipe:
    """The recipe row of this body, created once, with its prompts: sha256 to (name, text).

    Does not commit.
    """
    for prompt_sha256, (prompt_name, text) in prompts.items():
        if session.get(Prompt, prompt_sha256) is None:
            session.add(Prompt(sha256=prompt_sha256, name=prompt_name, text=text))
    found = session.scalars(select(Recipe).where(Recipe.sha256 == sha256)).first()
    if found is not None:
        return found
    recipe = Recipe(name=name, sha256=sha256, body=body)
    session.add(recipe)
    session.flush()
    return recipe


def list_newest(session: Session) -> list[RecipeVersion]:
    """The newest version of every recipe of the store, by name."""
    newest = select(func.max(RecipeVersion.id)).group_by(RecipeVersion.name)
    query = select(RecipeVersion).where(RecipeVersion.id.in_(newest)).order_by(RecipeVersion.name)
    return list(session.scalars(query))


def list_versions(session: Session, name: str) -> list[RecipeVersion]:
    """The versions of a recipe of the store, newest first; none of a name that it does not have."""
    query = select(RecipeVersion).where(RecipeVersion.name == name)
    return list(session.scalars(query.order_by(RecipeVersion.number.desc())))


def get_version(session: Session, name: str, number: int | None = None) -> RecipeVersion:
    """That version of a recipe, or its newest. Raises NotFound."""
    query = select(RecipeVersion).where(RecipeVersion.name == name)
    if number is not None:
        query = query.where(RecipeVersion.number == number)
    found = session.scalars(query.order_by(RecipeVersion.number.desc()).limit(1)).first()
    if found is None:
        wanted = f"the recipe {name!r}" + (f" as version {number}" if number is not None else "")
        raise NotFound(
            f"the store does not have {wanted}",
            "`recipes list` has all, `recipes versions NAME` those of one",
            code="recipe_unknown",
        )
    return found


def add_version(
    session: Session,
    *,
    name: str,
    files: Mapping[str, str],
    sha256: str,
    note: str = "",
    base: int | None = None,
    created_by: str = "",
) -> RecipeVersion:
    """The next version of a recipe; the newest itself where its files are the same.

    base: the version that was edited, None for whichever is newest. Raises Refused where another
    was saved since, or is at this moment. Does not commit.
    """
    newest = next(iter(list_versions(session, name)), None)
    number = newest.number if newest is not None else 0
    if newest is not None and newest.files == dict(files):
        return newest
    outdated = Refused(
        f"another version of {name} was saved meanwhile",
        "compare with it (`recipes diff NAME`), then save again on the newest",
        code="recipe_version_outdated",
        name=name,
        number=number,
    )
    if base is not None and base != number:
        raise outdated
    made = RecipeVersion(
        name=name,
        number=number + 1,
        files=dict(files),
        sha256=sha256,
        note=note,
        created_by=created_by,
    )
    session.add(made)
    try:
        session.flush()
    except IntegrityError as error:  # the pair of name and number is unique
        raise outdated from error
    return made


def count_runs(session: Session, name: str) -> dict[int, int]:
    """How many runs, previews left out, took which version of a recipe."""
    query = (
        select(Run.recipe_version, func.count())
        .join(Recipe, Recipe.id == Run.recipe_id)
        .where(Recipe.name == name, Run.recipe_version.is_not(None), ~Run.preview)
        .group_by(Run.recipe_version)
    )
    return {number: count for number, count in session.execute(query) if number is not None}
