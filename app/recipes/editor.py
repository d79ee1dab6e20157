"""The files of a recipe as fields, what is wrong with them at its place, saving and taking them."""

from collections.abc import Mapping

import streamlit as st

from app.access.identity import SessionUser
from app.kit.fields import draw_wrong
from app.kit.page import draw_table
from app.operations import recipes
from app.operations.recipes import RecipeRow, RecipeShown, RecipeVersionRow
from app.recipes import actions
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.hub.archive import zipped
from db.errors import InfError

AROUND = 2  # lines shown before and after the one that is wrong
LINE, MIN_LINES, MAX_LINES = 23, 8, 30  # px of a line in a field; lines that it shows


def draw_editor(user: SessionUser, row: RecipeRow, shown: RecipeShown) -> bool:
    """Draw the files of a recipe to be edited; whether they are a recipe as they are now."""
    key = actions.key_of(row)
    added = st.session_state.get(actions.ADDED.format(key), {})
    files = {**shown.files, **added}
    for name, tab in zip(files, st.tabs(list(files)), strict=True):
        with tab:
            lines = files[name].count("\n") + 2
            files[name] = st.text_area(
                name,
                files[name],
                key=actions.TEXT.format(key, name),
                height=LINE * min(max(lines, MIN_LINES), MAX_LINES),
                label_visibility="collapsed",
            )
    is_valid = _draw_checked(user, files)
    _draw_saving(row, files, changed=files != shown.files)
    return is_valid


def _draw_checked(user: SessionUser, files: Mapping[str, str]) -> bool:
    """Check the files and draw what they are, or what is wrong and where."""
    try:
        found = recipes.check(user, recipes.RecipeCheck(files=files))
    except InfError as error:
        draw_problem(error, files)
        return False
    parts = (counted(len(found.stages), "prompt"), ", ".join(found.models), found.sha256[:10])
    st.caption(plain(f"Valid · {' · '.join(parts)}"))
    return True


def draw_problem(error: InfError, files: Mapping[str, str]) -> None:
    """Draw an error in the words of the command, and the lines around the one that it is about."""
    st.error(plain(in_pages(str(error))), icon=":material/error:")
    name, line = error.values.get("file"), error.values.get("line")
    if not isinstance(line, int) or name not in files:
        return
    lines = files[str(name)].split("\n")
    first = max(line - AROUND, 1)
    near = range(first, min(line + AROUND, len(lines)) + 1)
    width = len(str(near[-1])) if near else 1
    st.caption(plain(f"{name}, line {line}"))
    st.code(
        "\n".join(f"{'→' if n == line else ' '} {n:>{width}}  {lines[n - 1]}" for n in near),
        language=None,
    )


def _draw_saving(row: RecipeRow, files: dict[str, str], *, changed: bool) -> None:
    key = actions.key_of(row)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if row.version is None:
            with st.container(width="content"):
                st.text_input("Name of your copy", f"my-{row.name}", key=actions.NAME.format(key))
                draw_wrong(actions.NAME.format(key))
        st.text_input(
            "What is new", key=actions.NOTE.format(key), placeholder="one line, for the list"
        )
        st.button(
            "Save as a new version" if row.version else "Save as a recipe of yours",
            key="recipes.save",
            type="primary",
            icon=":material/save:",
            disabled=row.version is not None and not changed,
            on_click=actions.save,
            args=(row,),
        )
        st.download_button(
            "Download files",
            b"".join(zipped(files)),
            file_name=f"{row.name}.zip",
            mime="application/zip",
            key="recipes.download",
            icon=":material/download:",
            on_click="ignore",
        )
        with st.popover("Add a prompt"):
            st.text_input("File name", key=actions.NEW_FILE.format(key), placeholder="fits.md")
            draw_wrong(actions.NEW_FILE.format(key))
            st.button("Add", key="recipes.add", on_click=actions.add_file, args=(row,))


def draw_versions(user: SessionUser, name: str, listed: tuple[RecipeVersionRow, ...]) -> None:
    """Draw the versions of a recipe, and how one differs from another."""
    draw_table(
        [each.as_json() for each in listed],
        column_order=("number", "note", "runs", "created_by", "created_at", "sha256"),
        column_config={
            "number": "Version",
            "note": "What is new",
            "runs": st.column_config.NumberColumn("Runs", format="localized"),
            "created_by": "By",
            "created_at": st.column_config.DatetimeColumn("Saved", format="YYYY-MM-DD HH:mm"),
            "sha256": "Hash",
        },
    )
    if len(listed) < 2:
        return
    numbers = [each.number for each in listed]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        second = st.selectbox("Version", numbers, key=f"recipes.second-{name}", width=120)
        others = [each for each in numbers if each != second]
        before = next((place for place, each in enumerate(others) if each < second), 0)
        first = st.selectbox(
            "compared with", others, index=before, key=f"recipes.first-{name}-{second}", width=140
        )
        st.button(
            f"Make version {second} the newest again",
            key="recipes.restore",
            disabled=second == numbers[0],
            on_click=actions.restore,
            args=(name, second),
        )
    draw_differences(user, f"{name}@{first}", f"{name}@{second}")


def draw_differences(user: SessionUser, first: str, second: str) -> None:
    """Draw how the files of two recipes differ."""
    found = recipes.diff(user, recipes.RecipeDiff(recipe=first, other=second))
    if not any(file.lines for file in found.files):
        st.caption("No differences.")
    for file in found.files:
        if file.lines:
            st.caption(plain(f"{file.file}: {file.added} added, {file.removed} removed"))
            st.code("\n".join(file.lines), language="diff", wrap_lines=True)
