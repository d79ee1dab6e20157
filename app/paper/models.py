"""The paper's figures and tables of models: Tables 2 to 6 and Figure 5."""

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from analysis.figures.numbers import Cells
from analysis.figures.printed import printed
from analysis.paper.published import MISPRINTS, published
from analysis.paper.rows import (
    MODEL,
    OURS,
    Row,
    Trained,
    backbone_rows,
    cells_of,
    design_rows,
    model_rows,
    objective_rows,
    published_ranking,
)
from app.kit.figure import draw_downloads, draw_plot, draw_rows
from app.models.ranking_plot import GROUPS, ranking_figure, size_group
from app.text.plain import plain
from db.outcome.evaluations import Scored
from trainer.report.compared.measures import model_name
from trainer.settings.sizes import named_parameters, parameters_of

TITLES = {
    "table_2": "Table 2: base models and InF-Embed",
    "table_3": "Table 3: objectives and base models, FollowIR",
    "table_4": "Table 4: designs with Qwen2.5-1.5B",
    "table_5": "Table 5: further models",
    "table_6": "Table 6: objectives on each set of FollowIR",
}
TIMES_100 = "Times 100."


class Ours:
    """The scores of this project in the paper's columns."""

    def __init__(self, scores: Sequence[Scored], trained: Sequence[Trained]) -> None:
        self.trained = trained
        self.cells = cells_of(scores)
        self.bases = {each.model: each.base for each in trained}
        self.names = {model: model_name(model) for model in self.cells}

    def ranked(self) -> list[Cells]:
        """Our rows of Figure 5: every model with a p-MRR on FollowIR."""
        rows: list[Cells] = []
        for model, cells in self.cells.items():
            p_mrr, score = cells.get("FollowIR p-MRR"), cells.get("FollowIR score")
            if p_mrr is None:
                continue
            base = self.bases.get(model, model)
            parameters = parameters_of(model) or parameters_of(base) or named_parameters(base)
            rows.append(
                {
                    "model": f"{self.names[model]} · {OURS}",
                    "group": size_group(parameters),
                    "checkpoint": self.names[model],
                    "parameters": parameters,
                    "p-mrr": float(p_mrr) / 100,
                    "score": None if score is None else float(score) / 100,
                }
            )
        return rows


def draw_models(table: str, ours: Ours) -> None:
    """Table 2 or 5."""
    _draw(table, model_rows(table, ours.cells, ours.bases, ours.names), TIMES_100)


def draw_ranking(ours: Ours) -> None:
    """Figure 5: p-MRR and score of published models and of ours, by size."""
    st.header("Figure 5: instruction following by size of the model", anchor=False)
    rows = [*ours.ranked(), *published_ranking()]
    rows.sort(key=_rank)
    figure = ranking_figure(rows)
    draw_plot(figure, key="paper.figure_5.figure")
    draw_downloads(rows, key="paper.figure_5", picture=partial(printed, figure))
    st.caption(
        "Grey: published, with the values of Table 5. Blue: ours. The score is divided by 10, as "
        "in the paper."
    )
    if not ours.ranked():
        st.caption("No model of this project has a p-MRR on FollowIR yet.")


def _rank(row: Mapping[str, object]) -> tuple[int, float]:
    return GROUPS.index(str(row["group"])), -float(str(row["p-mrr"]))


def draw_objectives(ours: Ours) -> None:
    """Table 3."""
    _draw("table_3", objective_rows(ours.cells, ours.trained), f"{TIMES_100} {NEWEST}")


def draw_designs(ours: Ours) -> None:
    """Table 4."""
    _draw("table_4", design_rows(ours.cells, ours.trained), f"p-MRR on FollowIR. {TIMES_100}")


def draw_backbone(ours: Ours) -> None:
    """Table 6 of a chosen base model."""
    st.header(TITLES["table_6"], anchor=False)
    bases = list(dict.fromkeys(str(row["base model"]) for row in published("table_6")))
    backbone = st.selectbox("Base model", bases, key="paper.backbone", width=320)
    rows = backbone_rows(str(backbone), ours.cells, ours.trained)
    _draw("table_6", rows, f"{TIMES_100} {NEWEST}", is_headed=True)


def in_sight_first(row: Mapping[str, object]) -> list[str]:
    """The columns of a table on the page: the means over FollowIR before those of each set.

    The files keep the paper's order.
    """
    of_all = [name for name in row if name.startswith("FollowIR ")]
    named = [name for name in row if name in ("Source", MODEL, "objective")]
    return list(dict.fromkeys([*named, *of_all, *row]))


NEWEST = "Ours: the newest checkpoint with that base model and objective."


def _draw(table: str, rows: Sequence[Row], about: str, *, is_headed: bool = False) -> None:
    if not is_headed:
        st.header(TITLES[table], anchor=False)
    number = st.column_config.NumberColumn(format="%.2f")
    texts = {MODEL, "Source", "objective", "encoders", "pooling", "epochs"}
    columns = {name: number for name in rows[0] if name not in texts}
    draw_rows(
        rows,
        None,
        key=f"paper.{table}",
        column_config=columns,
        column_order=in_sight_first(rows[0]),
    )
    st.caption(plain(" ".join([about, *MISPRINTS.get(table, ())])))
