"""Comparison of models on one benchmark: ranking plot, paired differences, downloads."""

import shlex
from collections.abc import Mapping, Sequence

import streamlit as st

from analysis.figures.paired import Difference, holm, paired_difference
from app.kit.figure import Origin, as_csv, draw_figure
from app.models import actions
from app.models.conditions import Conditions, unlike
from app.models.ranking_plot import ranking_figure, ranking_rows
from app.models.scores import NAMES, model_name
from app.models.sizes import named_parameters, parameters_of
from app.text.plain import plain
from db.outcome.evaluations import rows_by_query
from db.tables import Evaluation

SIGNIFICANT = 0.05  # of p adjusted for the number of models


def newest_of_each(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The latest evaluation of each model, in order of first appearance."""
    found: dict[str, Evaluation] = {}
    for each in evaluations:  # newest first
        found.setdefault(each.model, each)
    return list(found.values())


def _origin(evaluations: Sequence[Evaluation]) -> Origin:
    """The evaluations and the command that repeats them."""
    first = evaluations[0]
    given = ["--benchmark", first.benchmark]
    if first.job_id is not None:
        config = actions.read_job_config(first.job_id)
        if config.get("release"):
            given = ["--release", str(config["release"])]
        elif config.get("benchmark"):
            given = ["--benchmark", str(config["benchmark"])]
            given += ["--subset", str(config["subset"])] if config.get("subset") else []
    models = [word for each in evaluations for word in ("--model", each.model)]
    return Origin(
        version=first.benchmark,
        at=max(each.created_at for each in evaluations),
        command=shlex.join(["inf", "evaluate", *models, *given]),
    )


def difference_rows(base: Evaluation, others: Sequence[Evaluation]) -> list[dict[str, object]]:
    """A row per model and metric: the difference to the base, its interval, p and a verdict.

    p is adjusted by Holm for the number of models compared with the base on that metric.
    """
    found = {
        metric: [
            paired_difference(
                base.per_query, each.per_query, metric, each.questions or base.questions
            )
            for each in others
        ]
        for metric in NAMES
    }
    adjusted = {metric: holm([each.p for each in row]) for metric, row in found.items()}
    rows: list[dict[str, object]] = []
    for place, each in enumerate(others):
        for metric, title in NAMES.items():
            difference, p = found[metric][place], adjusted[metric][place]
            if difference.value is None:
                continue
            scale = 100 if metric == "p-mrr" else 1
            low, high = difference.low, difference.high
            rows.append(
                {
                    "Model": model_name(each.model),
                    "Metric": title,
                    "Difference": difference.value * scale,
                    "from": None if low is None else low * scale,
                    "to": None if high is None else high * scale,
                    "p (Holm)": p,
                    "Verdict": verdict(difference, p),
                    "Queries": difference.queries,
                }
            )
    return rows


def verdict(difference: Difference, p: float | None) -> str:
    """What a difference shows: higher, lower, no clear difference, or why that is unknown.

    `p` is the one adjusted for the number of models.
    """
    if difference.value is None or p is None:
        return f"unknown: {difference.reason}"
    if p > SIGNIFICANT or not difference.is_clear:
        return "no clear difference"
    return "higher" if difference.value > 0 else "lower"


def sizes_of(evaluations: Sequence[Evaluation]) -> dict[str, float | None]:
    """Parameters of each model; of its base model if a checkpoint is not on this machine."""
    bases = actions.read_base_models()
    found: dict[str, float | None] = {}
    for each in evaluations:
        base = bases.get(each.checkpoint_id or 0, each.model)
        found[each.model] = (
            parameters_of(each.model) or parameters_of(base) or named_parameters(base)
        )
    return found


def _comparable(
    base: Evaluation, found: Sequence[Evaluation], conditions: Mapping[int, Conditions]
) -> list[Evaluation]:
    """The evaluations under the same conditions as the base; the page lists why others are not."""
    reasons = unlike(base, found, conditions)
    if reasons:
        lines = [
            f"{model_name(each.model)}: {', '.join(reasons[each.id])}."
            for each in found
            if each.id in reasons
        ]
        st.warning(
            plain("\n".join([f"Not comparable with {model_name(base.model)}:", *lines])),
            icon=":material/difference:",
        )
    return [each for each in found if each.id not in reasons]


def draw_comparison(evaluations: Sequence[Evaluation]) -> None:
    """The ranking plot and the differences to a base; nothing for fewer than two models."""
    found = newest_of_each(evaluations)
    if len(found) < 2:
        return
    st.subheader("Compare", anchor=False)
    by_model = {each.model: each for each in found}
    chosen = st.multiselect(
        "Models",
        list(by_model),
        default=list(by_model),
        format_func=model_name,
        key=f"evaluations.compared.{found[0].benchmark}",
        help="Checkpoints and baselines evaluated on this benchmark.",
    )
    found = [by_model[model] for model in chosen]
    if len(found) < 2:
        st.caption("Choose at least two models.")
        return
    conditions = actions.read_conditions(found)
    is_mean = not any(each.per_query for each in found)
    if not is_mean or unlike(found[0], found[1:], conditions):
        untrained = [each.model for each in found if each.checkpoint_id is None]
        chosen_base = st.selectbox(
            "Compared with",
            chosen,
            index=chosen.index(untrained[0]) if untrained else 0,
            format_func=model_name,
            key="evaluations.base",
        )
        found = _comparable(by_model[chosen_base], found, conditions)
        if len(found) < 2:
            return
    if any(each.metrics.get("p-mrr") is not None for each in found):
        rows = ranking_rows(found, sizes_of(found))
        draw_figure(ranking_figure(rows), rows, _origin(found), key="evaluations.ranking")
        st.caption(
            "Grouped by number of parameters, then by p-MRR. The score is FollowIR's mean over its "
            "sets, elsewhere nDCG@10, divided by 10 as in Figure 5 of the paper."
        )
    if is_mean:
        st.caption(
            "This is a mean over the sets of a suite. Differences with intervals are shown for "
            "each set: choose one above."
        )
        return
    base = by_model[chosen_base]
    rows = difference_rows(base, [each for each in found if each is not base])
    number = st.column_config.NumberColumn(format="%+.4f")
    st.dataframe(
        rows,
        hide_index=True,
        column_config={
            "Difference": number,
            "from": number,
            "to": number,
            "p (Holm)": st.column_config.NumberColumn(format="%.4f"),
        },
    )
    st.caption(
        "Paired over the same queries; 95 % interval by bootstrap-t over groups of queries that "
        "belong together, p adjusted by Holm for the number of models. Higher and lower: the "
        "interval excludes zero and the adjusted p is at most 0.05. An evaluation made before "
        "these groups were recorded has no differences: evaluate again."
    )
    with st.container(horizontal=True):
        st.download_button(
            "Download as CSV", as_csv(rows), "comparison.csv", "text/csv", key="evaluations.csv"
        )
        st.download_button(
            "Download per-query values",
            lambda: as_csv([row for each in found for row in rows_by_query(each)]),
            "queries.csv",
            "text/csv",
            key="evaluations.queries_csv",
            on_click="ignore",
            help="Unrounded values of each model for each query, as CSV.",
        )
