"""Models compared on one benchmark: ranking plot, paired differences, the table to download."""

import shlex
from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st

from analysis.paired import paired_difference
from app.components.figure import Origin, as_csv, draw_figure
from app.components.scores import NAMES, model_name
from db import jobs
from db.store import open_store
from db.tables import Evaluation

ACCENT, GREY = "#2a9490", "#9aa7a7"


def newest_of_each(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The newest evaluation of each model, in the order of the models' first mention."""
    found: dict[str, Evaluation] = {}
    for each in evaluations:  # newest first
        found.setdefault(each.model, each)
    return list(found.values())


def ranking_figure(evaluations: Sequence[Evaluation]) -> go.Figure:
    """Figure 5: models ranked by p-MRR, with nDCG@10 as a dot; undefined p-MRR is left out."""
    known = [each for each in evaluations if each.metrics.get("p-mrr") is not None]
    ranked = sorted(known, key=lambda each: each.metrics["p-mrr"])
    names = [model_name(each.model) for each in ranked]
    figure = go.Figure()
    figure.add_bar(
        y=names,
        x=[100 * each.metrics["p-mrr"] for each in ranked],
        orientation="h",
        name="p-MRR ×100",
        marker_color=[ACCENT if each.checkpoint_id else GREY for each in ranked],
    )
    figure.add_scatter(
        y=names,
        x=[100 * (each.metrics.get("ndcg@10") or 0.0) for each in ranked],
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": "#d1722c"},
        name="nDCG@10 ×100",
    )
    figure.update_layout(
        height=130 + 42 * len(ranked),
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": -0.3},
    )
    figure.update_yaxes(automargin=True, type="category")
    return figure


def ranking_rows(evaluations: Sequence[Evaluation]) -> list[dict[str, object]]:
    """What the ranking plot shows, the best p-MRR first; unrounded, not times 100."""
    known = [each for each in evaluations if each.metrics.get("p-mrr") is not None]
    return [
        {
            "model": each.model,
            "checkpoint": each.checkpoint_id,
            "p-mrr": each.metrics["p-mrr"],
            "ndcg@10": each.metrics.get("ndcg@10"),
        }
        for each in sorted(known, key=lambda each: -each.metrics["p-mrr"])
    ]


def _origin(evaluations: Sequence[Evaluation]) -> Origin:
    """Which evaluations, and the command that makes them again."""
    first = evaluations[0]
    given = ["--benchmark", first.benchmark]
    if first.job_id is not None:
        with open_store().read() as session:
            config = jobs.get_job(session, first.job_id).config
        if config.get("release"):
            given = ["--release", str(config["release"])]
        elif config.get("benchmark"):
            given = ["--benchmark", str(config["benchmark"])]
    words = [word for each in evaluations for word in ("--model", each.model)]
    return Origin(
        version=first.benchmark,
        at=max(each.created_at for each in evaluations),
        command=shlex.join(["inf", "evaluate", *words, *given]),
    )


def difference_rows(base: Evaluation, others: Sequence[Evaluation]) -> list[dict[str, object]]:
    """A row per model and metric: how far it is from the base, with its interval."""
    rows: list[dict[str, object]] = []
    for each in others:
        for metric, title in NAMES.items():
            found = paired_difference(base.per_query, each.per_query, metric)
            if found.value is None:
                continue
            scale = 100 if metric == "p-mrr" else 1
            rows.append(
                {
                    "Model": model_name(each.model),
                    "Metric": title,
                    "Difference": found.value * scale,
                    "from": None if found.low is None else found.low * scale,
                    "to": None if found.high is None else found.high * scale,
                    "Clear": found.is_clear,
                    "Queries": found.queries,
                }
            )
    return rows


def draw_comparison(evaluations: Sequence[Evaluation]) -> None:
    """Where two or more models were evaluated: the plot and the differences to one of them."""
    found = newest_of_each(evaluations)
    if len(found) < 2:
        return
    st.subheader("Compare", anchor=False)
    if any(each.metrics.get("p-mrr") is not None for each in found):
        draw_figure(
            ranking_figure(found), ranking_rows(found), _origin(found), key="evaluations.ranking"
        )
    if not any(each.per_query for each in found):
        st.caption(
            "This is a mean over the sets of a suite. Differences with intervals stand with each "
            "set, over its queries: choose one above."
        )
        return
    by_model = {each.model: each for each in found}
    untrained = [each.model for each in found if each.checkpoint_id is None]
    base = st.selectbox(
        "Compared with",
        list(by_model),
        index=list(by_model).index(untrained[0]) if untrained else 0,
        format_func=model_name,
        key="evaluations.base",
    )
    rows = difference_rows(by_model[base], [each for each in found if each.model != base])
    number = st.column_config.NumberColumn(format="%+.4f")
    st.dataframe(
        rows,
        hide_index=True,
        column_config={"Difference": number, "from": number, "to": number},
    )
    st.caption(
        "Paired over the same queries; 95 % interval by bootstrap over groups. Clear: the interval "
        "leaves zero out."
    )
    st.download_button(
        "Download as CSV", as_csv(rows), "comparison.csv", "text/csv", key="evaluations.csv"
    )
