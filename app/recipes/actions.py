"""Actions of the Recipes page: save, restore, add a prompt, preview."""

import streamlit as st

from app.access.session_user import action, notify, require_permission, signed_in_user
from app.kit.fields import at_field
from app.kit.frame.dataset import require_dataset
from app.operations import recipes, runs
from app.operations.acting import queued
from app.operations.recipes import RecipeRow, RecipeSave, RecipeShow
from app.operations.runs import RunPreview
from curation.recipe.recipe import check_file_name, renamed

TEXT = "recipes.text-{0}-{1}"
ADDED = "recipes.added-{0}"
NAME = "recipes.name-{0}"
NOTE = "recipes.note-{0}"
NEW_FILE = "recipes.new_file-{0}"
FIELD = "recipes.{{}}-{0}"  # any of those, for `at_field`
PREVIEW = "recipes.preview"  # the runs of the preview that is shown, in the address as well


def key_of(row: RecipeRow) -> str:
    """Under which the page keeps what is edited of a recipe."""
    return f"{row.name}@{row.version or 0}"


def _files(row: RecipeRow) -> dict[str, str]:
    """The files of a recipe as the page's fields hold them."""
    named = row.name if row.version is None else key_of(row)
    stored = recipes.show(signed_in_user(), RecipeShow(recipe=named)).files
    stored |= st.session_state.get(ADDED.format(key_of(row)), {})
    return {
        name: st.session_state.get(TEXT.format(key_of(row), name), text)
        for name, text in stored.items()
    }


@action
def save(row: RecipeRow) -> None:
    """Save what is edited as the next version; of a built-in recipe as one under another name."""
    files, key = _files(row), key_of(row)
    with at_field(FIELD.format(key)):
        if row.version is None:
            files = renamed(files, str(st.session_state.get(NAME.format(key)) or "").strip())
        note = str(st.session_state.get(NOTE.format(key)) or "").strip()
        wanted = RecipeSave(files=files, note=note, base=row.version)
        found = recipes.save(signed_in_user(), wanted)
        st.query_params["recipe"] = found.name
        notify(f"{found.name} is saved as version {found.number}.")


@action
def restore(name: str, number: int) -> None:
    """Save an earlier version as the newest."""
    wanted = RecipeSave(recipe=f"{name}@{number}", note=f"as version {number}")
    found = recipes.save(signed_in_user(), wanted)
    notify(f"{name} is saved as version {found.number}, with the files of version {number}.")


@action
def add_file(row: RecipeRow) -> None:
    """Give the recipe an empty prompt file, to be written in its tab."""
    require_permission(recipes.RIGHT)
    key = key_of(row)
    name = str(st.session_state.get(NEW_FILE.format(key)) or "").strip()
    with at_field(NEW_FILE.format(key)):
        check_file_name(name := name if "." in name else f"{name}.md")
        st.session_state.setdefault(ADDED.format(key), {})[name] = ""


@action
def preview(row: RecipeRow) -> None:
    """Run what is edited, and the recipe to compare it with, on the first pairs of the dataset."""
    server = st.session_state.get("recipes.server")
    wanted = RunPreview(
        files=_files(row),
        dataset=require_dataset().name,
        other=st.session_state.get("recipes.other"),
        provider="" if server else "offline",
        connection=server,
    )
    found = runs.preview(signed_in_user(), wanted, queued)
    st.query_params[PREVIEW.partition(".")[2]] = ",".join(map(str, found.runs))
