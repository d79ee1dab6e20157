"""What a training reports besides curves: a batch as the model sees it, and probe items."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from analysis.figures.figures import DROPPED, KEPT
from analysis.figures.printed import printed
from app.access.session_user import failures_shown, signed_in_user
from app.jobs_page.actions import read_job
from app.jobs_page.card import LIVE
from app.jobs_page.curves import PROBE
from app.kit.figure import draw_downloads, draw_plot, draw_rows
from app.operations import jobs
from app.text.plain import plain
from app.text.texts import draw_text
from app.training.sweeps import MEASURES
from app.training.wording import measured_text
from db.shape import INF_IR
from db.tables import Job
from trainer.evaluate.intervals import HELD_OUT_INTERVALS
from trainer.report.scored import (
    IntervalRow,
    MeasuredRow,
    interval_rows,
    score_notes,
    score_rows,
)

TITLES = {
    "matched": "Instruction and query",
    "passages": "Passage",
    "crossed": "Another instruction with the query",
}
SCORES = {
    **{"measure": "Measure", "base": "Base", "trained": "Trained", "query_alone": "Query alone"},
    **{"instruction_alone": "Instruction alone", "bm25": "BM25"},
}
INTERVALS = {
    **{"measure": "Measure", "base": "Base", "base_low": "Base from", "base_high": "Base to"},
    **{"trained": "Trained", "trained_low": "from", "trained_high": "to"},
    **{"gain": "Gain", "gain_low": "Gain from", "gain_high": "Gain to"},
}
UNDER = {"asked": "under I+", "other": "under I-"}
EVERY_SECONDS = 4.0
FEW_RANKS = 8  # up to this rank, every rank has a tick
Ranks = Mapping[str, Sequence[tuple[int, float]]]


def probe_rows(probes: Sequence[Mapping[str, Any]], ranks: Ranks) -> list[dict[str, Any]]:
    """A row per probe: its query and the rank of P+ under I+ and I-, first → last."""
    rows = []
    for number, probe in enumerate(probes):
        row: dict[str, Any] = {"Item": number + 1, "Query": probe["query"]}
        for name, title in UNDER.items():
            values = [int(rank) for _, rank in ranks.get(f"{PROBE}{number}/{name}", ())]
            row[f"Rank {title}"] = f"{values[0]} → {values[-1]}" if values else ""
        rows.append({**row, "of": probe["passages"]})
    return rows


def probe_figure(number: int, ranks: Ranks) -> go.Figure:
    """The rank of one probe's P+ by step, rank 1 on top."""
    lowest = max((rank for points in ranks.values() for _, rank in points), default=1)
    whole = {"dtick": 1} if lowest <= FEW_RANKS else {}  # no ticks between ranks
    figure = go.Figure()
    for (name, title), colour in zip(UNDER.items(), (KEPT, DROPPED), strict=True):
        points = ranks.get(f"{PROBE}{number}/{name}", ())
        figure.add_scatter(
            x=[step for step, _ in points],
            y=[rank for _, rank in points],
            name=f"P+ {title}",
            mode="lines+markers",
            line={"dash": "dot" if name == "other" else "solid", "color": colour},
        )
    figure.update_layout(
        height=260,
        xaxis_title="step",
        yaxis={"title": "rank", "autorange": "reversed", "tickformat": ",d", **whole},
        hovermode="x unified",
    )
    return figure


def draw_watched(job: Job) -> None:
    """The batch and the probes a training has reported; updates while it runs."""
    st.fragment(_draw, run_every=EVERY_SECONDS if job.status in LIVE else None)(job.id)


def _draw(job_id: int) -> None:
    with failures_shown():
        _draw_shown(read_job(job_id))


def _draw_shown(job: Job) -> None:
    if dtypes := job.shown.get("dtypes"):
        st.caption("Weights: " + ", ".join(f"{name} {kind}" for name, kind in dtypes.items()))
    if measured := (job.result or {}).get("estimate"):
        st.info(measured_text(measured))
    _draw_scores(job)
    if batch := job.shown.get("batch"):
        with st.expander("Texts of the first batch, as the model sees them"):
            for column, texts in batch.items():
                for text in texts:
                    draw_text(text, label=TITLES.get(column, column))
    if probes := job.shown.get("probes"):
        with st.expander("Probe items: rank of the positive passage", expanded=True):
            _draw_probes(job.id, probes)


def _draw_scores(job: Job) -> None:
    """The scores of a training that is done, each next to its controls and BM25."""
    rows = score_rows(job.result or {})
    if not rows:
        return
    _draw_measures(rows, SCORES, key="train.scores")
    st.caption(
        "Query alone, Instruction alone: the trained model reads one half of the text. A flip that "
        "one of them also reaches shows no joint reading of both."
    )
    if intervals := interval_rows(job.result or {}):
        _draw_measures(intervals, INTERVALS, key="train.intervals")
        st.caption(HELD_OUT_INTERVALS)
    for note in score_notes(job.result or {}):
        st.caption(plain(f"{note[0].upper()}{note[1:]}"))


def _draw_measures(
    rows: Sequence[MeasuredRow] | Sequence[IntervalRow], labels: Mapping[str, str], *, key: str
) -> None:
    """The rows as the operation returns them; only the measure's name is put in words."""
    draw_rows(
        [vars(row) | {"measure": MEASURES.get(row.measure, row.measure)} for row in rows],
        None,
        key=key,
        labels=labels,
        column_config={
            name: st.column_config.NumberColumn(format="%.4f") for name in [*labels][1:]
        },
    )


def _draw_probes(job_id: int, probes: Sequence[Mapping[str, Any]]) -> None:
    names = [f"{PROBE}{number}/{name}" for number in range(len(probes)) for name in UNDER]
    ranks = jobs.metrics(signed_in_user(), [job_id], names=names).get(job_id, {})
    draw_rows(probe_rows(probes, ranks), None, key="train.probes")
    st.caption(
        "Fixed held-out groups. P+ should rank first under I+ and drop under I-, which excludes "
        "it. They are ranked before and after the training, and every `evaluate_steps` steps."
    )
    number = st.selectbox(
        "Item",
        range(len(probes)),
        format_func=lambda n: f"{n + 1} · {probes[n]['query']}",
        key="train.probe",
    )
    if number is None:
        return
    figure = probe_figure(number, ranks)
    draw_plot(figure, key="train.probe.figure")
    steps = [
        {"Step": step, "P+": UNDER[name], "Rank": rank}
        for name in UNDER
        for step, rank in ranks.get(f"{PROBE}{number}/{name}", ())
    ]
    draw_downloads(steps, key="train.probe.steps", picture=partial(printed, figure))
    for sign in ("I+", "I-"):
        draw_text(probes[number][INF_IR.texts[sign].column], label=sign)
    draw_text(probes[number]["passage"], label="P+")
