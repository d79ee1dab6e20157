"""The Recipes page: the list, a recipe's files and their versions, a preview on a few pairs."""

from collections.abc import Sequence

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.choice import choose
from app.kit.page import draw_hand_off, draw_heading, draw_table
from app.operations import recipes
from app.operations.recipes import RecipeRow, RecipeShow
from app.recipes.editor import draw_editor, draw_versions
from app.recipes.preview import draw_preview
from app.text.plain import plain
from app.text.remedies import in_pages

COLUMNS = ("name", "version", "description", "models", "created_by", "created_at")


def draw_list(found: Sequence[RecipeRow]) -> None:
    draw_table(
        [each.as_json() for each in found],
        column_order=COLUMNS,
        column_config={
            "name": "Name",
            "version": st.column_config.NumberColumn("Version", help="– is built in."),
            "description": "Description",
            "models": st.column_config.ListColumn("Models"),
            "created_by": "Saved by",
            "created_at": st.column_config.DatetimeColumn("Saved", format="YYYY-MM-DD HH:mm"),
        },
    )


draw_heading("Recipes", "What a group is and how it is made: its texts, prompts, checks and rules.")
user = signed_in_user()
listed = recipes.list_all(user).data
draw_list(listed)
row = choose(
    "Recipe",
    listed,
    key="recipes.chosen",
    parameter="recipe",
    ident=lambda each: each.name,
    name=lambda each: each.name + (f" · version {each.version}" if each.version else ""),
)
if row.problem:
    st.error(plain(in_pages(row.problem)))
named = row.name if row.version is None else f"{row.name}@{row.version}"
versions = recipes.versions(user, row.name).data
if row.problem is None:
    shown = recipes.show(user, RecipeShow(recipe=named))
    if row.version is None:
        st.caption("It comes with InF Studio: what you change is saved as a recipe of yours.")
    is_valid = draw_editor(user, row, shown)
    draw_hand_off("curate", "Start a run with it", recipe=row.name, new=1)
if versions:
    st.header("Versions", anchor=False)
    draw_versions(user, row.name, versions)
if row.problem is None:
    st.header("Preview", anchor=False)
    others = [f"{each.name}@{each.number}" for each in versions]
    others += [each.name for each in listed if each.name != row.name or each.version is None]
    draw_preview(user, row, others, is_valid=is_valid)
