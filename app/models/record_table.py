"""What evaluations were made of: data, pool, depth, template, first tokens, model and libraries."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.kit.figure import draw_rows
from app.text.plain import plain
from db.tables import Evaluation
from trainer.records.likeness import FORMAT
from trainer.report.compared.measures import model_name

MAX_NAMED = 10
NO_RECORD = "no record"


def record_rows(evaluations: Sequence[Evaluation]) -> list[dict[str, object]]:
    """A row per evaluation; one without a record, or with one of another format, has one cell."""
    return [{"Model": model_name(each.model), **_cells(each.record)} for each in evaluations]


def _cells(record: Mapping[str, Any]) -> dict[str, object]:
    if not record:
        return {"Data": NO_RECORD}
    if record.get("format") != FORMAT:
        return {"Data": f"record of format {record.get('format')}"}
    model, applied = record["model"], record["applied"]
    return {
        "Data": record["benchmark"]["sha256"],
        "Documents": record["benchmark"]["documents"],
        "Candidate pool": record["pool"],
        "Depth": record["depth"],
        "BM25": record.get("bm25"),
        "Template": record["template"],
        "Chat template": record["chat_template"],
        "Query as read": _first(applied.get("query")),
        "Document as read": _first(applied.get("document")),
        "Weights (sha256)": model["weights_sha256"],
        "Revision": model["revision"],
        "Libraries": ", ".join(f"{name} {of}" for name, of in record["libraries"].items()),
    }


def _first(read: Sequence[Mapping[str, Any]] | None) -> str | None:
    if not read:
        return None
    tokens = read[0]["tokens"]
    return str(read[0]["text"]) if tokens is None else " ".join(tokens)


def left_out_sentence(evaluations: Sequence[Evaluation]) -> str:
    """Which queries of the newest record are in no mean; empty where all are."""
    record = next((each.record for each in evaluations if each.record), {})
    left_out = record.get("benchmark", {}).get("without_relevant", [])
    if not left_out:
        return ""
    named = ", ".join(left_out[:MAX_NAMED]) + (", …" if len(left_out) > MAX_NAMED else "")
    noun = "query has" if len(left_out) == 1 else "queries have"
    return f"{len(left_out):,} {noun} no relevant document and are in no mean: {named}."


def draw_records(evaluations: Sequence[Evaluation]) -> None:
    """The queries left out, and the records folded away."""
    if sentence := left_out_sentence(evaluations):
        st.caption(plain(sentence))
    with st.expander("What was evaluated", icon=":material/fingerprint:"):
        st.caption(
            "Evaluations are compared only where data, pool, depth, template and prefixes are the "
            "same. Query and document as read: the first text as the model's tokens."
        )
        draw_rows(record_rows(evaluations), None, key="evaluations.records")
