"""Figure 5: models grouped by number of parameters, ranked by p-MRR within a group.

As printed, the retrieval score (times 100) is divided by 10 to fit the scale of p-MRR (times
100). The paper's score is FollowIR's; other benchmarks use nDCG@10.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from analysis.figures.figures import DROPPED, KEPT, escape
from db.tables import Evaluation
from trainer.report.compared.measures import model_name

ACCENT, GREY, SCORE = KEPT, "#bbbbbb", DROPPED
GROUPS = ("below 1 B", "1 to 5 B", "above 5 B", "size unknown")


def size_group(parameters: float | None) -> str:
    """The paper's size groups: below 1 billion parameters, 1 to 5 billion, above."""
    if parameters is None:
        return GROUPS[3]
    return GROUPS[0] if parameters < 1e9 else GROUPS[1] if parameters <= 5e9 else GROUPS[2]


def ranking_rows(
    evaluations: Sequence[Evaluation], sizes: Mapping[str, float | None]
) -> list[dict[str, Any]]:
    """The rows of the plot in its order, unscaled; models with undefined p-MRR are left out."""
    rows = [
        {
            "model": each.model,
            "checkpoint": each.checkpoint_id,
            "parameters": sizes.get(each.model),
            "group": size_group(sizes.get(each.model)),
            "p-mrr": each.metrics["p-mrr"],
            "score": each.metrics.get("followir score", each.metrics.get("ndcg@10")),
        }
        for each in evaluations
        if each.metrics.get("p-mrr") is not None
    ]
    return sorted(rows, key=lambda row: (GROUPS.index(row["group"]), -row["p-mrr"]))


def ranking_figure(rows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """The plot: a bar for p-MRR × 100 (our checkpoints in colour), a marker for score × 10."""
    names = [[row["group"] for row in rows], [escape(model_name(row["model"])) for row in rows]]
    figure = go.Figure()
    figure.add_bar(
        y=names,
        x=[100 * row["p-mrr"] for row in rows],
        orientation="h",
        name="p-MRR ×100",
        marker_color=[ACCENT if row["checkpoint"] else GREY for row in rows],
    )
    figure.add_scatter(
        y=names,
        x=[None if row["score"] is None else 10 * row["score"] for row in rows],
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": SCORE},
        name="score ×100 / 10",
    )
    figure.update_layout(
        height=130 + 42 * len(rows),
    )
    figure.update_yaxes(automargin=True, type="multicategory", autorange="reversed")
    return figure
