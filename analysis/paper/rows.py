"""Rows of ours next to the paper's, in its columns. Pure.

Every row says where it is from: `published` (printed in the paper) or `ours` (measured here). A
cell of ours that nobody ran is None: a published value never stands in it, and none is estimated.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from analysis.paper.published import Cell, columns_of, published
from db.outcome.evaluations import Scored
from db.tables import Checkpoint

SOURCE, MODEL, PUBLISHED, OURS = "Source", "Model", "published", "ours"
NOTHING_RUN: Final = "nothing run yet"
Row = dict[str, Cell]

# The paper's columns of a set: the measures of an evaluation, in its order.
FOLLOWIR: Final = {"robust04": ("Robust04", "map"), "news21": ("News21", "ndcg@5")} | {
    "core17": ("Core17", "map")
}
RANKED: Final = {
    "dd2015": "DD-15 nDCG",
    "dd2016": "DD-16 nDCG",
    "dd2017": "DD-17 nDCG",
    "fairranking2021": "FR-21 nDCG",
    "fairranking2022": "FR-22 nDCG",
    "bright": "Bright nDCG",
}
MAIR: Final = tuple(RANKED.values())[:5]
TITLES: Final = {"map": "MAP", "ndcg@5": "nDCG"}


class Trained(NamedTuple):
    """A checkpoint of ours and what Tables 3, 4 and 6 vary."""

    model: str
    base: str
    objective: str
    encoders: str
    pooling: str
    epochs: float


def trained_of(checkpoints: Sequence[Checkpoint]) -> list[Trained]:
    """What Tables 3, 4 and 6 vary, of each checkpoint."""
    found = []
    for each in checkpoints:
        settings = each.config.get("settings") or each.config
        pooling = str(settings.get("pooling", "auto"))
        found.append(
            Trained(
                model=each.path,
                base=each.base_model,
                objective=str(settings.get("objective", "")),
                encoders=str(settings.get("encoders", "shared")),
                # auto: Table 4's base model is a decoder, whose pooling is that of the last token
                pooling="last" if pooling == "auto" else pooling,
                epochs=float(settings.get("epochs") or 0),
            )
        )
    return found


def cells_of(scores: Iterable[Scored]) -> dict[str, Row]:
    """{model: {column of Tables 2, 5 and 6: value}} times 100, the newest evaluation of each."""
    found: dict[str, Row] = {}
    for each in sorted(scores, key=lambda score: score.evaluation_id or 0):
        found.setdefault(each.model, {}).update(_cells(each))
    for cells in found.values():
        parts = [cells.get(column) for column in MAIR]
        known = [part for part in parts if isinstance(part, float)]
        if len(known) == len(parts):
            cells["MAIR nDCG"] = fmean(known)
    return found


def _cells(scored: Scored) -> Row:
    name, metrics = letters(scored.benchmark.rsplit("/", 1)[-1]), scored.metrics
    p_mrr = metrics.get("p-mrr")
    wanted: dict[str, object] = {}
    if metrics.get("followir score") is not None:
        wanted = {"FollowIR score": metrics["followir score"], "FollowIR p-MRR": p_mrr}
    elif p_mrr is not None:
        for key, (title, measure) in FOLLOWIR.items():
            if key in name:
                wanted = {
                    f"{title} {TITLES[measure]}": metrics.get(measure),
                    f"{title} p-MRR": p_mrr,
                }
    elif column := RANKED.get(name):
        wanted = {column: metrics.get("ndcg@10")}
    return {
        column: 100 * float(value)
        for column, value in wanted.items()
        if isinstance(value, int | float)
    }


def model_rows(
    table: str, ours: Mapping[str, Row], bases: Mapping[str, str], names: Mapping[str, str]
) -> list[Row]:
    """Table 2 or 5: ours first, unless the paper has the same model: then below its row.

    bases: {model of ours: its base model} for checkpoints; names: as models are shown.
    """
    columns = [name for name in columns_of(table) if name not in ABOUT_MODELS]
    left = dict(ours)
    rows: list[Row] = []
    for row in published(table):
        is_trained = row["trained"] == "yes"
        printed = {name: row[name] for name in columns}
        rows.append({SOURCE: PUBLISHED, MODEL: row["model"]} | printed)
        for model in [model for model in left if (model in bases) == is_trained]:
            if same_model(str(row["base model"]), bases.get(model, model)):
                rows.append(_our_row(names.get(model, model), left.pop(model), columns))
    own = [_our_row(names.get(model, model), cells, columns) for model, cells in left.items()]
    if not ours:
        own = [_our_row(NOTHING_RUN, {}, columns)]
    return [*own, *rows]


ABOUT_MODELS: Final = ("size", "model", "base model", "trained")


def _our_row(name: str, cells: Mapping[str, Cell], columns: Sequence[str]) -> Row:
    return {SOURCE: OURS, MODEL: name, **{column: cells.get(column) for column in columns}}


def objective_rows(ours: Mapping[str, Row], trained: Sequence[Trained]) -> list[Row]:
    """Table 3: per objective the published row and ours; score and p-MRR of FollowIR by base."""
    rows: list[Row] = []
    for row in published("table_3"):
        objective = str(row["objective"])
        rows.append({SOURCE: PUBLISHED, **row})
        mine: Row = {SOURCE: OURS, "objective": objective}
        for column in columns_of("table_3")[1:]:
            base, measure = column.rsplit(" ", 1)
            mine[column] = _of_objective(ours, trained, base, objective).get(f"FollowIR {measure}")
        rows.append(mine)
    return rows


def backbone_rows(backbone: str, ours: Mapping[str, Row], trained: Sequence[Trained]) -> list[Row]:
    """Table 6 of one base model: per objective the published row and ours."""
    columns = columns_of("table_6")[2:]
    rows: list[Row] = []
    for row in published("table_6"):
        if row["base model"] == backbone:
            objective = str(row["objective"])
            printed = {name: row[name] for name in ("objective", *columns)}
            rows.append({SOURCE: PUBLISHED, **printed})
            cells = _of_objective(ours, trained, backbone, objective)
            mine: Row = {SOURCE: OURS, "objective": objective}
            rows.append(mine | {column: cells.get(column) for column in columns})
    return rows


def design_rows(ours: Mapping[str, Row], trained: Sequence[Trained]) -> list[Row]:
    """Table 4: encoders, pooling and epochs with Qwen2.5-1.5B and the objective P."""
    rows: list[Row] = []
    for row in published("table_4"):
        rows.append({SOURCE: PUBLISHED, **row})
        found = [
            ours.get(each.model, {}).get("FollowIR p-MRR")
            for each in trained
            if same_model("Qwen2.5-1.5B", each.base)
            and each.objective == "P"
            and (each.encoders, each.pooling, each.epochs)
            == (row["encoders"], row["pooling"], row["epochs"])
        ]
        value = next((each for each in found if each is not None), None)
        rows.append({SOURCE: OURS, **row, "p-MRR": value})
    return rows


def published_ranking() -> list[Row]:
    """Figure 5's rows as printed in Table 5: p-MRR and score as shares, by size of the model."""
    return [
        {
            "model": f"{row['model']} · {PUBLISHED}",
            "group": row["size"],
            "checkpoint": None,
            "parameters": None,
            "p-mrr": float(row["FollowIR p-MRR"]) / 100,
            "score": float(row["FollowIR score"] or 0) / 100,
        }
        for row in published("table_5")
        if row["FollowIR p-MRR"] is not None
    ]


def _of_objective(
    ours: Mapping[str, Row], trained: Sequence[Trained], base: str, objective: str
) -> Row:
    """The newest scores of ours with this base model and objective; `base`: not trained."""
    if objective == "base":
        bases = [model for model in ours if model not in {each.model for each in trained}]
        found = [model for model in bases if same_model(base, model)]
    else:
        found = [
            each.model
            for each in trained
            if each.objective == objective and same_model(base, each.base)
        ]
    return next((ours[model] for model in found if ours.get(model)), {})


def same_model(printed: str, model: str) -> bool:
    """Whether a model of ours (`Qwen/Qwen2.5-1.5B`) is the one that the paper names."""
    return letters(printed) == letters(model.rstrip("/").rsplit("/", 1)[-1])


def letters(name: str) -> str:
    """A name without case and punctuation."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def corpus_rows(counts: Sequence[Mapping[str, Cell]]) -> list[Row]:
    """Table 1: ours first (`analysis.text.diversity_tables.table_one`), then as printed."""
    columns = columns_of("table_1")
    own: list[Row] = [
        {SOURCE: OURS, "dataset": row["corpus"]} | {name: row.get(name) for name in columns[1:]}
        for row in counts
    ] or [{SOURCE: OURS, "dataset": NOTHING_RUN} | dict.fromkeys(columns[1:])]
    return [*own, *({SOURCE: PUBLISHED, **row} for row in published("table_1"))]
