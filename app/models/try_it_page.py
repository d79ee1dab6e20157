"""Try it: search with two models side by side, change the instruction, see what moves."""

from typing import Literal

import streamlit as st

from app.access.session_user import failures_shown, require_permission
from app.kit.page import draw_empty, draw_heading
from app.models.client import Searched, search_with
from app.models.ranks import moves
from app.models.scores import model_name
from app.text.plain import plain
from app.text.texts import draw_text
from db.corpus.datasets import list_datasets
from db.outcome.checkpoints import list_checkpoints
from db.store.store import open_store
from trainer.settings.table import DEFAULT_BASE_MODEL

BEFORE = "try_it.before"
MOVE_COLORS: dict[str, Literal["green", "red", "gray"]] = {"▲": "green", "▼": "red"}


def draw_ranking(found: Searched, before: list[str] | None) -> None:
    """The passages, best first, with how they moved since the last search."""
    st.caption(f"{found.passages:,} passages in {1000 * found.seconds:.0f} ms")
    names = [hit.passage_id for hit in found.hits]
    for place, (hit, move) in enumerate(zip(found.hits, moves(names, before), strict=True), 1):
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption(plain(f"{place} · {hit.passage_id} · {hit.score:.3f}"), width="content")
                if before is not None:
                    st.badge(move or "=", color=MOVE_COLORS.get(move[:1], "gray"))
            draw_text(hit.text)


def search(models: list[str], dataset: str, instruction: str, query: str) -> None:
    """Ask each model and show the answers beside each other."""
    require_permission("try")
    earlier = st.session_state.get(BEFORE, {})
    now: dict[str, list[str]] = {}
    for model, column in zip(models, st.columns(len(models)), strict=True):
        column.markdown(f"**{plain(model_name(model))}**")  # may be as high as it needs
    for number, (model, column) in enumerate(zip(models, st.columns(len(models)), strict=True)):
        with column, failures_shown(), st.spinner(f"searching with {model_name(model)}"):
            found = search_with(open_store(), model, dataset, instruction=instruction, query=query)
            key = f"{number} {model} {dataset} {query}"
            draw_ranking(found, earlier.get(key))
            now[key] = [hit.passage_id for hit in found.hits]
    st.session_state[BEFORE] = now


with open_store().read() as session:
    datasets = [each.name for each in list_datasets(session) if each.passages]
    checkpoints = list_checkpoints(session)
draw_heading(
    "Try it",
    "Search with two models. Change only the instruction and search again: arrows show what moved.",
    offline=any((each.summary.get("release") or {}).get("offline") for each in checkpoints),
)
if not datasets:
    draw_empty(
        "There is nothing to search in yet.",
        "Import a dataset with passages first.",
        view="datasets",
        link="Datasets",
    )
    st.stop()
names = [DEFAULT_BASE_MODEL, *dict.fromkeys(each.path for each in checkpoints)]
with st.form("try_it.form"):
    first, second, third = st.columns(3)
    dataset = first.selectbox("Dataset", datasets, key="try_it.dataset")
    left = second.selectbox("Model", names, format_func=model_name, key="try_it.left")
    right = third.selectbox(
        "Beside it",
        (None, *names),
        index=2 if len(names) > 1 else 0,
        format_func=lambda name: model_name(name) if name else "none",
        key="try_it.right",
    )
    instruction = st.text_input("Instruction", key="try_it.instruction")
    query = st.text_input("Query", key="try_it.query")
    asked = st.form_submit_button("Search", type="primary", key="try_it.search")
if asked and dataset and left:
    search([left, right] if right else [left], dataset, instruction or "", query or "")
