"""Run and qrels files of evaluations as one download, where the evaluation kept them."""

import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import streamlit as st

from app.text.plain import plain
from db.tables import Evaluation
from trainer.evaluate.request import EvaluationStart
from trainer.trec.files import trec_files

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


def archive(files: Mapping[str, Path]) -> bytes:
    """The files as a zip."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        for name, file in files.items():
            out.write(file, name)
    return packed.getvalue()


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
        lambda: archive(files),
        "trec.zip",
        "application/zip",
        key="evaluations.trec_zip",
        on_click="ignore",
        icon=":material/download:",
        help="Run files of the models that kept one, and the judgments, as trec_eval reads them.",
    )
