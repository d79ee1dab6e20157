"""What a group is, shown on one of the demo set: the texts that come with the program.

The group is in no study that the demo makes. Where the user may be given an item of it in a
study of their own store, it is hidden from them like everywhere; who sees it is recorded as its
reader.
"""

import json
from functools import cache, partial
from pathlib import Path
from typing import Final

import streamlit as st

from app.access.identity import SessionUser
from app.access.language import language_of_items
from app.kit.page import draw_drawer
from app.operations.overview.home import EXAMPLES, may_show_example
from app.text.languages import DEFAULT
from app.text.plain import plain
from app.text.texts import draw_text
from curation.recorded.recording import GROUPS, SHIPPED

FILES = SHIPPED.parent
LEAD: Final = (
    "A person types “{}”. Which passage is right depends on what else they want: that is the "
    "instruction. From one query and the passage that answers it, InF Studio grows a group of "
    "three triplets. In each, another passage is right, though all are about nearly the same."
)
CHECK: Final = (
    "A judge who does not know the answer must pick the right passage in each of the three, among "
    "others like it; otherwise the group is dropped. A model that is trained on such groups learns "
    "to read the instruction. (Written by a language model for the demo.)"
)


@cache
def example_texts(query_id: str) -> dict[str, str]:
    """The texts of the group by column, and `passage_positive`."""
    pair = _row(FILES / "pairs.jsonl", "query_id", query_id)
    passage = _row(FILES / "passages.jsonl", "passage_id", pair["passage_id"])
    group = _row(SHIPPED / GROUPS, "query_id", query_id)
    return {**group, "passage_positive": passage["text"]}


def draw_example(user: SessionUser, *, is_open: bool) -> None:
    """The example in the user's language, or in English, in an expander; nothing where it is
    hidden from the user."""
    query_id = EXAMPLES.get(language_of_items(), EXAMPLES[DEFAULT])
    if not may_show_example(user, query_id):
        return
    label, draw = "What is a group?", partial(_draw, query_id)
    draw_drawer(label, draw, key="home.example", icon=":material/help:", is_open=is_open)


def _draw(query_id: str) -> None:
    texts = example_texts(query_id)
    query = texts["query"]
    st.markdown(plain(LEAD.format(query)))
    columns = st.container(key="side_by_side-home-example").columns(3)
    for column, title, instruction, of_query, passage in (
        (columns[0], "The real pair", "instruction_positive", query, "passage_positive"),
        (
            columns[1],
            "Another instruction",
            "instruction_negative",
            query,
            "passage_instruction_negative",
        ),
        (
            columns[2],
            "Another query",
            "instruction_positive",
            texts["query_negative"],
            "passage_query_negative",
        ),
    ):
        with column.container(border=True):
            st.markdown(f"**{title}**")
            draw_text(texts[instruction], label="Instruction", whole=True)
            draw_text(of_query, label="Query")
            draw_text(texts[passage], label="Right passage", whole=True)
    st.caption(CHECK)


def _row(path: Path, key: str, value: str) -> dict[str, str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row: dict[str, str] = json.loads(line)
        if row[key] == value:
            return row
    raise LookupError(f"{path} has no {key} {value!r}")
