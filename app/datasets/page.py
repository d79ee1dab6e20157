"""Datasets page: the list, import, and browsing of pairs and passages."""

import streamlit as st

from app.datasets.import_form import draw_import_form
from app.kit.choice import draw_pages, page_offset
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_hand_off, draw_heading, draw_table
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from db.corpus.browsing import list_pairs, list_passages
from db.corpus.datasets import DatasetSummary, list_datasets
from db.store.store import open_store

PAIRS, PASSAGES = "Pairs", "Passages"
ORIGINS = {"all": None, "seed": "seed", "pool": "pool", "generated": "generated"}


def draw_list(found: list[DatasetSummary]) -> None:
    rows = [
        {
            "Name": each.name,
            "Pairs": each.pairs,
            "Passages": each.passages,
            "Generated passages": each.generated,
            "Source": each.source,
            "Licence": each.licence,
            "Imported": each.created_at,
        }
        for each in found
    ]
    columns = {
        "Passages": st.column_config.NumberColumn(
            format="localized", help="Imported with the pairs or for searching."
        ),
        "Generated passages": st.column_config.NumberColumn(
            format="localized",
            help="Written by runs as hard negatives; not counted among the imported passages.",
        ),
        "Imported": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
    }
    draw_table(rows, column_config=columns)


def draw_pairs(dataset_id: int) -> None:
    search = st.text_input(
        "Search in queries",
        key="datasets.pair_search",
        type="search",
        placeholder="text to find",
    )
    with open_store().read() as session:
        pairs, total = list_pairs(
            session, dataset_id, search=search or "", offset=page_offset("datasets.pair_page")
        )
    st.caption(counted(total, "pair"))
    for pair in pairs:
        with st.container(border=True):
            draw_text(pair.query, label=f"Query · {pair.query_id}")
            draw_text(pair.passage, label=f"Passage · {pair.passage_id}")
    draw_pages(total, key="datasets.pair_page")


def draw_passages(dataset_id: int) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            "Search in passages",
            key="datasets.passage_search",
            type="search",
            placeholder="text to find",
        )
        origin = st.selectbox("Origin", list(ORIGINS), key="datasets.origin", width=160)
    with open_store().read() as session:
        passages, total = list_passages(
            session,
            dataset_id,
            origin=ORIGINS[origin or "all"],
            search=search or "",
            offset=page_offset("datasets.passage_page"),
        )
    st.caption(counted(total, "passage"))
    for passage in passages:
        with st.container(border=True):
            about = " · ".join(filter(None, [passage.external_id, passage.origin, passage.title]))
            draw_text(passage.text, label=about)
    draw_pages(total, key="datasets.passage_page")


draw_heading("Datasets", "Named collections of passages and pairs, with source and licence.")
with open_store().read() as session:
    found = list_datasets(session)
if found:
    draw_list(found)
else:
    draw_empty(
        "No datasets yet.",
        "Import a file of queries with the passages that answer them, below or by command.",
        command="inf import --dataset NAME --pairs pairs.jsonl --passages passages.jsonl",
    )
with st.expander("Import", icon=":material/upload_file:", expanded=not found):
    draw_import_form()
chosen = chosen_dataset()
if chosen is not None:
    if any(each.id == chosen.id and each.pairs for each in found):
        draw_hand_off("curate", f"Curate the pairs of {chosen.name}", new=1)
    st.subheader(f"Browse {plain(chosen.name)}", anchor=False)
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
