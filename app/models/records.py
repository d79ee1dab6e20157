"""Under the results: ordinary retrieval, what evaluations were made of, and their TREC files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from analysis.figures.numbers import Cells
from app.kit.figure import draw_rows
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.hub.archive import zipped
from db.tables import Evaluation
from trainer.evaluate.request import EvaluationStart
from trainer.records.likeness import FORMAT
from trainer.report.compared.differences import LABELS
from trainer.report.compared.measures import is_trained, model_name
from trainer.report.compared.ordinary import MEASURE, NOT_MEASURED, TITLE, ordinary_rows
from trainer.trec.files import trec_files


def draw_ordinary(
    evaluations: Sequence[Evaluation], ordinary: Callable[[set[str]], list[Evaluation]]
) -> None:
    """Whether ordinary retrieval suffered, next to scores with instructions; else nothing.

    ordinary: the evaluations of models on benchmarks without instructions.
    """
    if not any(each.record.get("instructions") for each in evaluations):
        return
    # untrained models first: the others are compared with the first one
    ordered = sorted(evaluations, key=lambda each: bool(is_trained(each)))
    rows = ordinary_rows(ordered, ordinary({each.model for each in evaluations}))
    if not rows:
        said = in_pages(NOT_MEASURED)
        st.caption(plain(f"{said[0].upper()}{said[1:]}."))
        return
    number = st.column_config.NumberColumn(format="%+.3f")
    draw_rows(
        rows,
        None,
        key="evaluations.ordinary_table",
        labels=LABELS | {"benchmark": "Ordinary retrieval", MEASURE: TITLE},
        column_config={
            "id": None,
            MEASURE: st.column_config.NumberColumn(format="%.3f"),
            **dict.fromkeys(("difference", "low", "high"), number),
        },
    )
    st.caption(
        "Ordinary retrieval: queries without instructions. Differences are to the first model, "
        "untrained ones first."
    )


MAX_NAMED = 10
NO_RECORD = "no record"


def record_rows(evaluations: Sequence[Evaluation]) -> list[Cells]:
    """A row per evaluation; one without a record, or with one of another format, has one cell."""
    return [{"Model": model_name(each.model), **_cells(each.record)} for each in evaluations]


def _cells(record: Mapping[str, Any]) -> Cells:
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


MAX_BYTES = 200_000_000  # in memory while it is packed


def kept_files(
    evaluations: Sequence[Evaluation], requested: Mapping[int, EvaluationStart]
) -> dict[str, Path]:
    """{name in the archive: file} of the runs and the qrels that are on this machine.

    requested: of the jobs that made the evaluations.
    """
    found: dict[str, Path] = {}
    for each in evaluations:
        wanted = requested.get(each.job_id or 0)
        if wanted is None or not wanted.trec:
            continue
        for file in trec_files(wanted.trec, each.benchmark, each.model):
            if file.is_file():  # judgments of two evaluations may differ
                found[f"job-{each.job_id}/{file.name}"] = file
    return found


def draw_trec_files(
    evaluations: Sequence[Evaluation], requested: Mapping[int, EvaluationStart]
) -> None:
    """The download of run and qrels files; nothing where none were kept."""
    files = kept_files(evaluations, requested)
    if not files:
        return
    size = sum(file.stat().st_size for file in files.values())
    if size > MAX_BYTES:
        folders = ", ".join(sorted({str(file.parent) for file in files.values()}))
        st.caption(plain(f"Run and qrels files (TREC, {size / 1e6:,.0f} MB) are in {folders}."))
        return
    st.download_button(
        "Download runs and qrels (TREC)",
        lambda: b"".join(zipped(files)),
        "trec.zip",
        "application/zip",
        key="evaluations.trec_zip",
        on_click="ignore",
        icon=":material/download:",
        help="Run files of the models that kept one, and the judgments, as trec_eval reads them.",
    )
