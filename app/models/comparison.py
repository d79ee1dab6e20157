"""Comparison of models on one benchmark: ranking plot, paired differences, downloads."""

import shlex
from collections.abc import Collection, Mapping, Sequence

import streamlit as st

from analysis.figures.dots import Dot, dots, known
from analysis.figures.figures import wrapped
from analysis.figures.paired import P_MRR
from analysis.files.csv_writer import csv_text
from app.access.identity import Actor
from app.access.session_user import signed_in_user
from app.kit.figure import Origin, draw_figure, draw_rows
from app.models.ranking_plot import ranking_figure, ranking_rows
from app.operations import evaluations as operations
from app.operations.acting import store_address
from app.text.plain import plain
from db.outcome.evaluations import rows_by_query
from db.tables import Evaluation
from trainer.evaluate.following import FOLLOWING, STABILITY
from trainer.evaluate.measures.compliance import SICR, WISE
from trainer.evaluate.request import EvaluationStart
from trainer.report.compared.conditions import library_notes, unlike
from trainer.report.compared.differences import (
    CONTROLS,
    LABELS,
    METHOD,
    Difference,
    difference_rows,
)
from trainer.report.compared.measures import NAMES, SOMETIMES, is_trained, model_name
from trainer.settings.sizes import named_parameters, parameters_of

PARTS = GOALS, GUARDS, CONTROLLED = "Goals", "Guards", "Controls"
ABOUT_PARTS = (
    "Goals: following instructions. Guards: ranking that must not fall. Controls, hollow: flips "
    "of the instruction or the query alone; a gain that they share is no joint reading."
)
MAX_BENCHMARKS = 4  # of a forest
TITLE_CHARACTERS = 24  # of a line below it: of a phone's 390 px it has two thirds
Ident = tuple[int, str]  # of an evaluation: its number, which SQLite may give again, and model
FOLLOWED = {
    (SOMETIMES | NAMES)[name]
    for name in (*FOLLOWING, STABILITY, SICR, WISE, P_MRR)
    if name in SOMETIMES | NAMES
}


def newest_of_each(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The latest evaluation of each model, in order of first appearance."""
    found: dict[str, Evaluation] = {}
    for each in evaluations:  # newest first
        found.setdefault(each.model, each)
    return list(found.values())


def _origin(evaluations: Sequence[Evaluation], requested: Mapping[int, EvaluationStart]) -> Origin:
    """The evaluations and the command that repeats them."""
    first = evaluations[0]
    given = ["--benchmark", first.benchmark]
    if wanted := requested.get(first.job_id or 0):
        if wanted.release:
            given = ["--release", wanted.release]
        elif wanted.benchmark:
            given = ["--benchmark", wanted.benchmark]
            given += ["--subset", wanted.subset] if wanted.subset else []
    models = [word for each in evaluations for word in ("--model", each.model)]
    return Origin(
        version=first.benchmark,
        at=max(each.created_at for each in evaluations),
        command=shlex.join(["inf", "evaluations", "create", *models, *given]),
    )


def sizes_of(
    evaluations: Sequence[Evaluation], bases: Mapping[int, str]
) -> dict[str, float | None]:
    """Parameters of each model; of its base model if a checkpoint is not on this machine.

    bases: the base model of a checkpoint, by its id.
    """
    found: dict[str, float | None] = {}
    for each in evaluations:
        base = bases.get(each.checkpoint_id or 0, each.model)
        found[each.model] = (
            parameters_of(each.model) or parameters_of(base) or named_parameters(base)
        )
    return found


def _comparable(base: Evaluation, found: Sequence[Evaluation]) -> list[Evaluation]:
    """The evaluations whose records are like the base's; the page lists why others are not."""
    reasons = unlike(base, found)
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
    compared = [each for each in found if each.id not in reasons]
    for ident, libraries in library_notes(base, compared).items():
        (model,) = [each.model for each in compared if each.id == ident]
        st.caption(plain(f"{model_name(model)} was evaluated with {', '.join(libraries)}."))
    return compared


@st.cache_data(max_entries=64, show_spinner=False)
def differences_to(
    store: str, base: Ident, others: tuple[Ident, ...], _actor: Actor
) -> list[Difference]:
    """The paired differences of evaluations to a base, of those that are like it: computed once."""
    found, *rest = operations.stored(_actor, [ident for ident, _ in (base, *others)])
    reasons = unlike(found, rest)
    return difference_rows(found, [each for each in rest if each.id not in reasons])


def on_other_benchmarks(
    actor: Actor, base: str, models: Collection[str], benchmark: str
) -> dict[str, list[Difference]]:
    """{benchmark: the differences of these models to the base}, where both are evaluated on it."""
    scores: dict[str, dict[str, Ident]] = {}
    for each in operations.scores(actor):
        if each.benchmark != benchmark and each.model in models and each.evaluation_id is not None:
            scores.setdefault(each.benchmark, {})[each.model] = (each.evaluation_id, each.model)
    found: dict[str, list[Difference]] = {}
    for name, of in scores.items():
        if base in of and len(of) > 1 and len(found) < MAX_BENCHMARKS - 1:
            others = tuple(each for model, each in of.items() if model != base)
            if rows := differences_to(store_address(), of[base], others, actor):
                found[name] = rows
    return found


def part_of(measure: str) -> str:
    """The part of the forest that a measure stands in."""
    if measure in CONTROLS.values():
        return CONTROLLED
    return GOALS if measure in FOLLOWED else GUARDS


def in_parts(rows: Sequence[Difference]) -> list[Difference]:
    """The differences by the parts of the forest."""
    return sorted(rows, key=lambda row: PARTS.index(part_of(row.measure)))


def forest_of(compared: Mapping[str, Sequence[Difference]]) -> dict[str, list[Dot]]:
    """{model: its paired differences}, by benchmark goals, guards, then controls; p-MRR on the
    others' scale."""
    found: dict[str, list[Dot]] = {}
    for benchmark, rows in compared.items():
        for row in in_parts(rows):
            scale = 100 if row.measure == NAMES[P_MRR] else 1
            low, high = (None if end is None else end / scale for end in (row.low, row.high))
            dot = Dot(
                "p-MRR" if scale == 100 else row.measure,
                row.difference / scale,
                known(low, high),
                f"{row.verdict}; {row.gained:,} gained, {row.lost:,} lost"
                if row.queries
                else row.verdict,
                f"{part_of(row.measure)}: {benchmark}",
                part_of(row.measure) == CONTROLLED,
            )
            found.setdefault(row.name, []).append(dot)
    return found


def draw_differences(
    compared: Mapping[str, Sequence[Difference]], origin: Origin, *, base: str
) -> None:
    """The forest of all benchmarks, and its table behind it."""
    rows = [
        {**each.as_json(), "part": part_of(each.measure)}  # behind the operation's own keys
        for found in compared.values()
        for each in in_parts(found)
    ]
    if rows:
        title = wrapped(f"difference to {base.rpartition('/')[2]}", TITLE_CHARACTERS)
        figure = dots(forest_of(compared), title=title, from_zero=True)
        draw_figure(figure, rows, origin, key="evaluations.forest")
        st.caption(ABOUT_PARTS)
    number = st.column_config.NumberColumn(format="%+.3f")
    with st.expander("The differences as a table"):
        draw_rows(
            rows,
            None,
            key="evaluations.differences",
            labels={"benchmark": "Benchmark", "part": "Part"} | LABELS,
            column_config={
                **dict.fromkeys(("id", "model")),
                "difference": number,
                "low": number,
                "high": number,
                "p_holm": st.column_config.NumberColumn(format="%.3f"),
            },
        )


def draw_comparison(
    evaluations: Sequence[Evaluation],
    requested: Mapping[int, EvaluationStart],
    bases: Mapping[int, str],
) -> None:
    """The ranking plot and the differences to a base; nothing for fewer than two models."""
    found = newest_of_each(evaluations)
    if len(found) < 2:
        return
    st.header("Compare", anchor=False)
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
    is_mean = not any(each.per_query for each in found)
    if not is_mean or unlike(found[0], found[1:]):
        untrained = [each.model for each in found if not is_trained(each)]
        chosen_base = st.selectbox(
            "Compared with",
            chosen,
            index=chosen.index(untrained[0]) if untrained else 0,
            format_func=model_name,
            key="evaluations.base",
        )
        found = _comparable(by_model[chosen_base], found)
        if len(found) < 2:
            return
    if is_mean:
        st.caption(
            "This is a mean over the sets of a suite. Differences with intervals are shown for "
            "each set: choose one above."
        )
        _draw_ranking(found, requested, bases)
        return
    base = by_model[chosen_base]
    user = signed_in_user()
    others = tuple((each.id, each.model) for each in found if each is not base)
    own = differences_to(store_address(), (base.id, base.model), others, user)
    compared = {base.benchmark: own}
    compared |= on_other_benchmarks(user, base.model, chosen, base.benchmark)
    draw_differences(compared, _origin(found, requested), base=model_name(base.model))
    st.caption(METHOD)
    with st.container(horizontal=True):
        st.download_button(
            "Download per-query values",
            lambda: csv_text([row for each in found for row in rows_by_query(each)]),
            "queries.csv",
            "text/csv",
            key="evaluations.queries_csv",
            on_click="ignore",
            help="Unrounded values of each model for each query, as CSV.",
        )
    _draw_ranking(found, requested, bases)


def _draw_ranking(
    found: Sequence[Evaluation],
    requested: Mapping[int, EvaluationStart],
    bases: Mapping[int, str],
) -> None:
    """Figure 5 of the paper, where any model has p-MRR."""
    if not any(each.metrics.get("p-mrr") is not None for each in found):
        return
    rows = ranking_rows(found, sizes_of(found, bases))
    origin = _origin(found, requested)
    draw_figure(ranking_figure(rows), rows, origin, key="evaluations.ranking")
    st.caption(
        "Grouped by number of parameters, then by p-MRR. The score is FollowIR's mean over its "
        "sets, elsewhere nDCG@10, divided by 10 as in Figure 5 of the paper."
    )
