"""Datasets page: the list, import, and browsing of pairs and passages."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.access.session_user import require_permission
from app.datasets.import_form import draw_import_form
from app.kit.acting import acting
from app.kit.choice import draw_pages, page_offset
from app.kit.fields import draw_fields
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_hand_off, draw_heading, draw_table
from app.operations import datasets
from app.operations.datasets import DatasetRow
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from curation.mining.request import NegativesMine

PAIRS, PASSAGES = "Pairs", "Passages"
ORIGINS = {"all": None, "seed": "seed", "pool": "pool", "generated": "generated"}
ROW_CHARACTERS = 100

COLUMNS = ("name", "pairs", "passages", "generated", "source", "licence", "created_at")


mine = acting(
    datasets.mine,
    lambda job: f"Mining is queued as job {job}.",
    takes=("name",),
    form="datasets.mine",
)


def draw_list(found: Sequence[DatasetRow]) -> None:
    columns = {
        "name": "Name",
        "pairs": st.column_config.NumberColumn("Pairs", format="localized"),
        "passages": st.column_config.NumberColumn(
            "Passages", format="localized", help="Imported with the pairs or for searching."
        ),
        "generated": st.column_config.NumberColumn(
            "Generated passages",
            format="localized",
            help="Written by runs as hard negatives; not counted among the imported passages.",
        ),
        "source": "Source",
        "licence": "Licence",
        "created_at": st.column_config.DatetimeColumn("Imported", format="YYYY-MM-DD HH:mm"),
    }
    draw_table([each.as_json() for each in found], column_order=COLUMNS, column_config=columns)


def draw_row(*texts: str) -> DeltaGenerator:
    """The texts' beginnings in one line; it opens on what the caller puts inside."""
    line = " · ".join(" ".join(text.split()) or "(empty)" for text in texts)
    begins = line if len(line) <= ROW_CHARACTERS else f"{line[:ROW_CHARACTERS].rstrip()} …"
    return st.expander(plain(begins))


def draw_pairs(dataset_id: int) -> None:
    search = st.text_input(
        "Search in queries",
        key="datasets.pair_search",
        type="search",
        placeholder="text to find",
    )
    found = datasets.pairs(
        user, dataset_id, search=search or "", offset=page_offset("datasets.pair_page")
    )
    st.caption(counted(found.total, "pair"))
    for pair in found.data:
        with draw_row(pair.query, pair.passage):
            draw_text(pair.query, label=f"Query · {pair.query_id}")
            draw_text(pair.passage, label=f"Passage · {pair.passage_id}")
    draw_pages(found.total, key="datasets.pair_page")


def draw_passages(dataset_id: int) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            "Search in passages",
            key="datasets.passage_search",
            type="search",
            placeholder="text to find",
        )
        origin = st.selectbox("Origin", list(ORIGINS), key="datasets.origin", width=160)
    passages, total = datasets.passages(
        user,
        dataset_id,
        origin=ORIGINS[origin or "all"],
        search=search or "",
        offset=page_offset("datasets.passage_page"),
    )
    st.caption(counted(total, "passage"))
    for passage in passages:
        with draw_row(passage.text):
            about = " · ".join(filter(None, [passage.external_id, passage.origin, passage.title]))
            draw_text(passage.text, label=about)
    draw_pages(total, key="datasets.passage_page")


def draw_mining(name: str) -> None:
    """The form that queues the mining of hard negatives for the pairs of a dataset."""
    st.caption(
        "Passages that look like an answer and are none, given to the pairs: a recipe with a place "
        "for given negatives takes them into its groups, and its checks judge them."
    )
    corpora = [each.name for each in found if each.name != name]
    with st.form("datasets.mine", border=False):
        more = {"corpus": {"options": corpora, "placeholder": "The dataset's own passages"}}
        with st.container(horizontal=True):
            draw_fields(NegativesMine, ["by", "count", "corpus"], key="datasets.mine", more=more)
        more = {"judge": {"placeholder": "No check"}}
        draw_fields(NegativesMine, ["judge"], key="datasets.mine", more=more)
        st.form_submit_button(
            "Mine negatives",
            icon=":material/search:",
            key="datasets.mine_submit",
            on_click=mine,
            args=(name,),
        )


draw_heading("Datasets", "Named collections of passages and pairs, with source and licence.")
user = require_permission(datasets.RIGHT)
found = datasets.list_all(user).data
if found:
    draw_list(found)
else:
    draw_empty(
        "No datasets yet.",
        "Import a file of queries with the passages that answer them, below or by command.",
        command="inf datasets import NAME --pairs pairs.jsonl --passages passages.jsonl",
    )
with st.expander("Import", icon=":material/upload_file:", expanded=not found):
    draw_import_form()
chosen = chosen_dataset()
if chosen is not None:
    if any(each.id == chosen.id and each.pairs for each in found):
        draw_hand_off("curate", f"Curate the pairs of {chosen.name}", new=1)
        with st.expander("Mine hard negatives", icon=":material/search:"):
            draw_mining(chosen.name)
    st.header(f"Browse {plain(chosen.name)}", anchor=False)
    part = st.segmented_control(
        "Show",
        [PAIRS, PASSAGES],
        default=PAIRS,
        required=True,
        key="datasets.part",
        label_visibility="collapsed",
    )
    if part == PASSAGES:
        draw_passages(chosen.id)
    else:
        draw_pairs(chosen.id)
