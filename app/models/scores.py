"""Scores of models on one benchmark as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from analysis.figures.numbers import Cells
from app.kit.figure import draw_rows
from app.models.headline import HELP
from app.operations.evaluations import EvaluationRow, row_of
from app.text.plain import plain
from db.tables import Evaluation
from trainer.report.compared.conditions import marked
from trainer.report.compared.measures import NAMES, SOMETIMES, model_name


def score_rows(evaluations: Sequence[Evaluation], names: Sequence[str]) -> list[Cells]:
    """A row per evaluation, and behind its keys what people read: p-MRR times 100 as in the papers,
    nothing where a value is undefined.

    names: the models', in the same order.
    """
    sometimes = {
        name: title
        for name, title in SOMETIMES.items()
        if any(name in each.metrics for each in evaluations)
    }
    titles = {**sometimes, "p-mrr": NAMES["p-mrr"], **NAMES}  # most important first
    return [
        row_of(each).as_json()
        | {
            "Model": name,
            **{title: _shown(measure, each.metrics) for measure, title in titles.items()},
        }
        for name, each in zip(names, evaluations, strict=True)
    ]


def _shown(name: str, metrics: Mapping[str, Any]) -> float | None:
    value = metrics.get(name)
    if value is None:
        return None
    return float(value) * (100 if name == "p-mrr" else 1)


def bm25_sentence(evaluations: Sequence[Evaluation]) -> str:
    """How BM25 is defined where it scored or chose candidates; empty where no record names it."""
    named = {
        model_name(each.model): str(each.record["bm25"])
        for each in evaluations
        if each.record.get("bm25")
    }
    conventions = list(dict.fromkeys(named.values()))
    if len(conventions) == 1:
        return f"{', '.join(named)}: {conventions[0]}."
    return " ".join(f"{model}: {convention}." for model, convention in named.items())


def draw_scores(evaluations: Sequence[Evaluation]) -> None:
    """Render the table."""
    names, lines = marked(evaluations)
    rows, own = score_rows(evaluations, names), EvaluationRow.model_fields
    draw_rows(
        rows,
        None,
        key="evaluations.scores",
        labels={"trained": "Trained", "created_at": "Evaluated"},
        column_order=(*(each for each in rows[0] if each not in own), "trained", "created_at"),
        column_config={
            **dict.fromkeys(own),
            "trained": {},
            "created_at": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
            **{
                title: st.column_config.NumberColumn(format="%.3f", help=HELP.get(name))
                for name, title in (NAMES | SOMETIMES).items()
            },
            NAMES["p-mrr"]: st.column_config.NumberColumn(format="%+.1f", help=HELP["p-mrr"]),
        },
    )
    for line in lines:
        st.caption(plain(line))
    if sentence := bm25_sentence(evaluations):
        st.caption(plain(sentence))
