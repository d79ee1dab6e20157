"""The form of a study from a file: its questions in a table, and the card as judges will see it.

The preview is the judging card itself with the first item of the file; its answers go nowhere.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from app.access.language import language_now
from app.access.session_user import action, failures_shown, notify, signed_in_user
from app.judge.actions import DWELL_MS
from app.judge.card import CARD
from app.kit.fields import draw_fields
from app.kit.outbox_card import draw_outbox_card, list_in, outbox_scope
from app.operations.judging import studies
from app.text.numbers import counted
from curation.judging.request import StudyFilePlan
from curation.questions.questions_file import ABOUT
from curation.questions.templates import TEMPLATES
from db.question import KINDS

FIRST = StudyFilePlan(items_file="", questions="", overlap=2)
MADE = "studies.made_of_file"
SEPARATOR = " | "


@st.fragment(key="studies-file-form")
def draw_file_form() -> None:
    """The questions, the file, and the card; a study that was made is shown by the page."""
    if st.session_state.pop(MADE, False):
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        template = st.selectbox(
            "Questions like",
            list(TEMPLATES),
            format_func=lambda name: str(TEMPLATES[name]["name"]),
            key="studies.template",
        )
        draw_fields(StudyFilePlan, ("name", "overlap"), key="studies.file", now=FIRST)
    rows = st.data_editor(
        [as_row(one) for one in TEMPLATES[template]["questions"]],
        key=f"studies.questions_{template}",
        num_rows="dynamic",
        column_config={
            "key": st.column_config.TextColumn("Key", help="Its name in figures and files."),
            "type": st.column_config.SelectboxColumn("Type", options=list(KINDS)),
            "about": st.column_config.SelectboxColumn("About", options=list(ABOUT)),
            "text": st.column_config.TextColumn("Question", width="medium"),
            "labels": st.column_config.TextColumn(
                "Grades", width="medium", help="0: does not answer | 1: answers"
            ),
            "expected": st.column_config.TextColumn(
                "Right answer", help="yes, or by kind of passage: positive: 2 | hard_negative: 0"
            ),
        },
    )
    file = st.file_uploader(
        "Items",
        type=["jsonl", "csv", "parquet"],
        key="studies.items_file",
        help="A row has `id`, `query`, `instruction` and `passages`.",
    )
    questions = as_questions(str(TEMPLATES[template]["name"]), rows)
    with failures_shown(language_now()):
        upload = None if file is None else (file.name, file.getvalue())
        if st.toggle("Preview of the card", key="studies.previewed"):
            found = studies.preview(signed_in_user(), questions, upload)
            items = [one.as_json() for one in found]
            st.caption(
                "One item as judges see it; click it to answer by keys. Nothing of it is kept."
            )
            scope = outbox_scope("preview", json.dumps(items))
            with st.container(border=True, key="studies-preview"):
                draw_outbox_card(CARD, partial(_card, items, scope), key="studies.preview")
        st.button(
            "Create study",
            type="primary",
            key="studies.create_of_file",
            on_click=create,
            args=(questions,),
            disabled=file is None,
        )


@action
def create(questions: str) -> None:
    """Create the study of the uploaded file."""
    file = st.session_state["studies.items_file"]
    given = {name: st.session_state[f"studies.file.{name}"] for name in ("name", "overlap")}
    wanted = StudyFilePlan.read({"items_file": file.name, "questions": questions, **given})
    made = studies.create_from_file(signed_in_user(), wanted, upload=(file.name, file.getvalue()))
    st.query_params["study"] = str(made.id)
    st.session_state[MADE] = True
    st.session_state.pop("studies.chosen", None)
    notify(f"{made.name} has {counted(made.items, 'item')}. Judges find it on the Judge page.")


def as_row(question: Mapping[str, Any]) -> dict[str, str]:
    """A question as a row of the table."""
    return {
        name: SEPARATOR.join(f"{key}: {one}" for key, one in value.items())
        if isinstance(value, Mapping)
        else str(value)
        for name in ("key", "type", "about", "text", "labels", "expected")
        for value in [question.get(name, "")]
    }


def as_questions(name: str, rows: list[dict[str, Any]]) -> str:
    """The table's rows as the JSON of a file of questions; empty cells are left out."""
    found = []
    for row in rows:
        one: dict[str, Any] = {key: value for key, value in row.items() if value}
        for key in {"labels", "expected"} & one.keys():
            pairs = [part.partition(":") for part in str(one[key]).split("|")]
            if key == "labels" or all(colon for _, colon, _ in pairs):
                one[key] = {label.strip(): meaning.strip() for label, _, meaning in pairs}
        found.append(one)
    return json.dumps({"name": name, "questions": found})


def _card(items: list[dict[str, Any]], scope: str, outbox: Mapping[str, Any]) -> dict[str, Any]:
    """What the card receives: every answer is acknowledged, and none is stored."""
    events = [each for each in list_in(outbox, "events") if isinstance(each, dict)]
    return {
        "items": items,
        "acknowledged": {str(each.get("event")): "" for each in events},
        "language": language_now(),
        "scope": scope,
        "formerly": scope,
        "dwell_ms": DWELL_MS,
        "study": 0,
        "past": [],
        "finished": True,
        "done": 0,
        "left": len(items),
        "pace": None,
    }
