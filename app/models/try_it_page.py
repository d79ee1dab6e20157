"""The Try it page: search with two models and compare rankings after a changed instruction."""

from typing import Literal

import streamlit as st

from app.access.language import language_of_items
from app.access.session_user import failures_shown, require_permission
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_heading
from app.models.try_it import draw_examples, moves
from app.operations import try_it
from app.operations.try_it import Search, Searched
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from trainer.report.compared.measures import model_name
from trainer.settings.table import DEFAULT_BASE_MODEL

BEFORE = "try_it.before"
MOVE_COLORS: dict[str, Literal["green", "red", "gray"]] = {"▲": "green", "▼": "red"}


def draw_ranking(found: Searched, before: list[str] | None) -> None:
    """The passages in rank order, with their rank change since the last search."""
    st.caption(f"{counted(found.passages, 'passage')} searched in {1000 * found.seconds:.0f} ms")
    if found.note:
        st.caption(plain(f"Your index: {found.note}."))
    names = [hit.passage_id for hit in found.hits]
    for place, (hit, move) in enumerate(zip(found.hits, moves(names, before), strict=True), 1):
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption(plain(f"{place} · {hit.passage_id} · {hit.score:.3f}"), width="content")
                if before is not None:
                    st.badge(move or "=", color=MOVE_COLORS.get(move[:1], "gray"))
            if hit.text:
                draw_text(hit.text)


def show_search(wanted: Search) -> None:
    """Search with each model and show the rankings side by side."""
    models = wanted.models
    earlier = st.session_state.get(BEFORE, {})
    now: dict[str, list[str]] = {}
    for model, column in zip(models, st.columns(len(models)), strict=True):
        column.markdown(
            f"**{plain(model_name(model))}**"
        )  # a row of its own, so that the rankings start at the same height
    for number, (model, column) in enumerate(zip(models, st.columns(len(models)), strict=True)):
        with column, failures_shown(), st.spinner(f"Searching with {model_name(model)} …"):
            one = wanted.model_copy(update={"models": (model,)})
            (found,) = try_it.search(user, one).data
            key = f"{number} {model} {wanted.dataset} {wanted.index} {wanted.query}"
            draw_ranking(found, earlier.get(key))
            now[key] = [hit.passage_id for hit in found.hits]
    st.session_state[BEFORE] = now


chosen, user = chosen_dataset(), require_permission(try_it.RIGHT)
options = try_it.options(user, None if chosen is None else chosen.id)
draw_heading(
    "Try it",
    "What the newest training changed on held-out groups, and a search with two models of your own "
    "choice.",
    offline=any(each.offline for each in options.models),
)
if chosen is None or not options.is_ready:
    draw_empty(
        "No passages to search yet.",
        "Import a dataset with passages first.",
        view="datasets",
        link="Datasets",
    )
    st.stop()
draw_examples(try_it.examples(user, language=language_of_items()))
st.header("Your own search", anchor=False)
st.caption("Change the instruction and search again: arrows then show rank changes.")
names = [DEFAULT_BASE_MODEL, *dict.fromkeys(each.path for each in options.models)]
with st.form("try_it.form"):
    first, second = st.columns(2)
    left = first.selectbox("Model", names, format_func=model_name, key="try_it.left")
    right = second.selectbox(
        "Compare with",
        (None, *names),
        index=2 if len(names) > 1 else 0,
        format_func=lambda name: model_name(name) if name else "none",
        key="try_it.right",
    )
    instruction = st.text_input("Instruction", key="try_it.instruction")
    query = st.text_input("Query", key="try_it.query")
    index = ""
    if user.is_admin:  # a place of the server
        field = Search.model_fields["index"]
        index = st.text_input(
            str(field.title), key="try_it.index", placeholder="optional", help=field.description
        )
    submitted = st.form_submit_button("Search", type="primary", key="try_it.search")
if submitted and left:
    show_search(
        Search(
            models=(left, right) if right else (left,),
            dataset=chosen.name,
            index=(index or "").strip() or None,
            instruction=instruction or "",
            query=query or "",
        )
    )
