"""What a training reports besides curves: a batch as the model sees it, and probe items."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from analysis.figures.dots import Dot, known, slopes
from analysis.figures.figures import DROPPED, KEPT
from analysis.figures.numbers import Cells
from analysis.figures.printed import printed
from app.access.language import language_of_items
from app.access.session_user import failures_shown, signed_in_user
from app.jobs_page.actions import read_job
from app.jobs_page.card import LIVE
from app.jobs_page.curves import PROBE
from app.kit.figure import draw_downloads, draw_plot, draw_rows
from app.kit.page import draw_drawer, draw_hand_off
from app.models.try_it import draw_change
from app.models.verdict import shared_with_control
from app.operations import jobs, try_it
from app.operations.try_it import LOST, UNCHANGED, Examples
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from app.training.sweeps import MEASURES
from app.training.wording import measured_text
from db.tables import Job
from trainer.evaluate.following import INSTRUCTION_CONTROL, INSTRUCTION_FLIP
from trainer.evaluate.intervals import HELD_OUT_INTERVALS
from trainer.report.compared.measures import NAMES, SOMETIMES
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
IN_FIGURE = (SOMETIMES | NAMES) | MEASURES | {"natural-first": "Natural probe: right first"}
PROBE_TEXTS = {  # the groups' own signs are their shape's
    "instruction_positive": "Instruction",
    "instruction_negative": "Contrasting instruction",
    "passage": "Right passage",
}
UNDER = {"asked": "under its instruction", "other": "under the contrasting one"}
EVERY_SECONDS = 4.0
FEW_STEPS = 2  # a line of so few points is no curve
FEW_RANKS = 8  # up to this rank, every rank has a tick
Ranks = Mapping[str, Sequence[tuple[int, float]]]


def probe_rows(probes: Sequence[Mapping[str, Any]], ranks: Ranks) -> list[Cells]:
    """A row per probe: its query and the right passage's ranks under both instructions."""
    rows = []
    for number, probe in enumerate(probes):
        row: Cells = {"Item": number + 1, "Query": probe["query"]}
        for name, title in UNDER.items():
            values = [int(rank) for _, rank in ranks.get(f"{PROBE}{number}/{name}", ())]
            row[f"Rank {title}"] = f"{values[0]} → {values[-1]}" if values else ""
        rows.append({**row, "of": probe["passages"]})
    return rows


def probe_figure(number: int, ranks: Ranks) -> go.Figure:
    """The rank of one probe's right passage by step, rank 1 on top."""
    lowest = max((rank for points in ranks.values() for _, rank in points), default=1)
    whole = {"dtick": 1} if lowest <= FEW_RANKS else {}  # no ticks between ranks
    figure = go.Figure()
    for (name, title), colour in zip(UNDER.items(), (KEPT, DROPPED), strict=True):
        points = ranks.get(f"{PROBE}{number}/{name}", ())
        figure.add_scatter(
            x=[step for step, _ in points],
            y=[rank for _, rank in points],
            name=title.capitalize(),
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


def draw_result(job: Job) -> None:
    """What the training changed, once it is done."""
    _live(_draw_scores, job)


def draw_watched(job: Job) -> None:
    """The batch and the probes a training has reported; updates while it runs."""
    _live(_draw_shown, job)


def _live(draw: Callable[[Job], None], job: Job) -> None:
    def now() -> None:
        with failures_shown():
            draw(read_job(job.id))

    st.fragment(now, run_every=EVERY_SECONDS if job.status in LIVE else None)()


def _draw_shown(job: Job) -> None:
    if dtypes := job.shown.get("dtypes"):
        st.caption("Weights: " + ", ".join(f"{name} {kind}" for name, kind in dtypes.items()))
    if measured := (job.result or {}).get("estimate"):
        st.info(measured_text(measured))
    if batch := job.shown.get("batch"):
        label = "Texts of the first batch, as the model sees them"
        draw_drawer(label, partial(_draw_batch, batch), key="train.batch")
    if probes := job.shown.get("probes"):
        label = "Probe items: rank of the positive passage"
        draw = partial(_draw_probes, job.id, probes)
        draw_drawer(label, draw, key="train.probes_drawer", field="train.probe")


def _draw_batch(batch: Mapping[str, Sequence[str]]) -> None:
    for column, texts in batch.items():
        for text in texts:
            draw_text(text, label=TITLES.get(column, column))


def _draw_scores(job: Job) -> None:
    """The scores of a training that is done, each next to its controls and BM25."""
    rows = score_rows(job.result or {})
    if not rows:
        return
    if recorded := (job.result or {}).get("recorded"):
        st.info(plain(recorded), icon=":material/history:")
    intervals = interval_rows(job.result or {})
    held_out = (job.result or {}).get("held_out") or {}
    before, after = (held_out.get(when) or {} for when in ("before", "after"))
    control = before.get(INSTRUCTION_CONTROL), after.get(INSTRUCTION_CONTROL)
    if verdict := verdict_text(intervals, job.shown.get("examples") or {}, control):
        st.markdown(plain(verdict))
    if changed := changes_of(rows, intervals):
        figure = slopes(changed, ends=("base", "trained"), title="held-out groups and the probe")
        draw_plot(figure, key="train.slopes.figure")
        rows_of = [vars(row) for row in intervals]
        draw_downloads(rows_of, key="train.slopes", picture=partial(printed, figure))
    if UNCHANGED in (stored := job.shown.get("examples") or {}):
        with st.container(border=True, key="train-changes"):
            draw_change(stored, partial(_examples, job.id), key="train.change")
    if stored:
        draw_hand_off("try_it", "Try the model on a query of your own")
    draw_drawer(
        "Every measure, with its controls and intervals",
        partial(_draw_every_measure, rows, intervals, score_notes(job.result or {})),
        key="train.measures",
    )


def _draw_every_measure(
    rows: Sequence[MeasuredRow], intervals: Sequence[IntervalRow], notes: Sequence[str]
) -> None:
    _draw_measures(rows, SCORES, key="train.scores")
    st.caption(
        "Query alone, Instruction alone: the trained model reads one half of the text. A flip "
        "that one of them also reaches shows no joint reading of both."
    )
    if intervals:
        _draw_measures(intervals, INTERVALS, key="train.intervals")
        st.caption(HELD_OUT_INTERVALS)
    for note in notes:
        st.caption(plain(f"{note[0].upper()}{note[1:]}"))


def _examples(job_id: int, kind: str) -> Examples:
    language = language_of_items()
    return try_it.examples(signed_in_user(), job_id=job_id, kinds=(kind,), language=language)


def verdict_text(
    intervals: Sequence[IntervalRow],
    examples: Mapping[str, Any],
    control: tuple[float | None, float | None],
) -> str:
    """What the training changed, by instruction flip; empty where it was not measured.

    control: the flip by the instruction alone, before and after.
    """
    row = next((each for each in intervals if each.measure == INSTRUCTION_FLIP), None)
    if row is None or row.gain is None or row.base is None or row.trained is None:
        return ""
    says = f"Instruction flip {row.base:.3f} → {row.trained:.3f}: {row.gain:+.3f}"
    if row.gain_low is None or row.gain_high is None:
        said = f"{says}, without an interval."
    else:
        clear = "clearly higher" if row.gain_low > 0 else "clearly lower"
        is_clear = row.gain_low > 0 or row.gain_high < 0
        said = (
            f"{says} [{row.gain_low:+.3f}, {row.gain_high:+.3f}], "
            f"{clear if is_clear else 'no clear difference'}."
        )
        said = f"{said} {shared_with_control(*control, row.gain_low)}".rstrip()
    if LOST not in examples:
        return said
    gained, lost = examples["gained"], examples[LOST]["count"]
    return (
        f"{said} Of {counted(examples['groups'], 'held-out group')} {gained:,} gained, {lost:,} "
        f"lost, {examples['groups'] - gained - lost:,} unchanged."
    )


def changes_of(
    rows: Sequence[MeasuredRow], intervals: Sequence[IntervalRow]
) -> list[tuple[Dot, Dot]]:
    """Each measure before and after, with the intervals that are stored: a training from before
    2026-11-29 has none of nDCG, MAP and MRR."""
    known_of = {row.measure: row for row in intervals}
    found = []
    for row in rows:
        if row.base is not None and row.trained is not None:
            name = IN_FIGURE.get(row.measure, row.measure)
            of = known_of.get(row.measure)
            before = known(of.base_low, of.base_high) if of else None
            after = known(of.trained_low, of.trained_high) if of else None
            pair = Dot(name, row.base, before, "base"), Dot(name, row.trained, after, "trained")
            found.append(pair)
    return found


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
        "Fixed held-out groups. The right passage should rank first under its instruction and drop "
        "under the contrasting one, which excludes it. They are ranked before and after the "
        "training, and every `evaluate_steps` steps."
    )
    number = st.selectbox(
        "Item",
        range(len(probes)),
        format_func=lambda n: f"{n + 1} · {probes[n]['query']}",
        key="train.probe",
    )
    if number is None:
        return
    steps = [
        {"Step": step, "Right passage": UNDER[name], "Rank": rank}
        for name in UNDER
        for step, rank in ranks.get(f"{PROBE}{number}/{name}", ())
    ]
    if len({each["Step"] for each in steps}) > FEW_STEPS:  # else the table above says it all
        figure = probe_figure(number, ranks)
        draw_plot(figure, key="train.probe.figure")
        draw_downloads(steps, key="train.probe.steps", picture=partial(printed, figure))
    for name, label in PROBE_TEXTS.items():
        draw_text(probes[number][name], label=label)
