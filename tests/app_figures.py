"""Every figure of the app, on ordinary values, on hostile names and on nothing."""

import plotly.graph_objects as go

from analysis.agreement.judging_figures import kappa_against_cost, kept_sets, over_time_lines
from analysis.figures.dots import Dot, dots, slopes
from analysis.figures.figures import (
    confusion_heatmap,
    diversity_bars,
    drop_bars,
    human_model_bars,
)
from analysis.figures.flow import Stream, flow
from analysis.found.texts import CorpusDiversity, FieldNumbers
from app.jobs_page.curves import curve_figure
from app.models.ranking_plot import ranking_figure
from app.training.watched import probe_figure

MEAN = {
    "coefficient": "krippendorff_alpha",
    "label": "Krippendorff's alpha",
    "value": 0.6,
    "interval": [0.5, 0.7],
    "items": 30,
    "agreement": 0.8,
}
UNKNOWN = MEAN | {"value": None, "reason": "one category only", "items": 0, "agreement": None}
REPORT = {
    "human_human": MEAN,
    "human_model": {"o3-mini": MEAN, "offline": UNKNOWN},
}


def _corpus(name: str, aps: float | None) -> CorpusDiversity:
    numbers = FieldNumbers(
        **{"texts": 9, "different": 9, "mean_words": 2.0, "aps": aps},
        **{"ingf_2": None, "ingf_3": None, "reason": {"aps": "one text"}},
    )
    return CorpusDiversity(corpus=name, offline=False, fields={"query": numbers})


CORPORA = [_corpus("demo", 0.2), _corpus("other", None)]
VALIDATOR = {
    "judge": "o3_mini",
    "human_kappa": MEAN,
    "usd_per_1000_items": 2.0,
    "price_from": "estimate",
}
KEPT_ROW = {"name": "o3", "kept_by_both": 5, "only_here": 2, "only_by_the_run": 1}
WINDOW = {
    "window": 1,
    "items": 9,
    "until": "2026-11-01",
    "human_human": MEAN,
    "human_model": {"o3": UNKNOWN},
}
RANKED = [
    {"model": "e5", "group": "below 1 B", "checkpoint": 1, "p-mrr": 0.05, "score": 0.2},
    {"model": "big", "group": "above 5 B", "checkpoint": None, "p-mrr": -0.02, "score": None},
]
DOTS = [
    Dot("ann $x$ – <b>bob</b>", 0.5, (0.3, 0.7), "10 items"),
    Dot("cas – dan", -0.1, is_hollow=True),
]
FIGURES = {
    "dots": dots({"pairs": DOTS}, title="kappa", from_zero=True),
    "two lanes": dots({"all": DOTS, "without": DOTS[:1]}, title="kappa"),
    "slopes": slopes([(DOTS[0], DOTS[0]), (DOTS[1], DOTS[1])], ends=("base", "trained"), title=""),
    "confusion": confusion_heatmap(["positive", "none"], [[3, 0], [1, 2]], "ann", "bob"),
    "bars": human_model_bars(REPORT),
    "diversity": diversity_bars(CORPORA, "aps"),
    "drops": drop_bars([{"groups": "kept", "count": 9}, {"groups": "judge_none", "count": 4}]),
    "cost": kappa_against_cost([VALIDATOR]),
    "kept": kept_sets([KEPT_ROW]),
    "time": over_time_lines([WINDOW]),
    "ranking": ranking_figure(RANKED),
    "curve": curve_figure({"job 1": [(1, 0.5), (2, 0.4)], "job 2": [(1, 0.6)]}, title="Loss"),
    "flow": flow(
        [
            Stream("Pairs", "Kept", 7, "on"),
            Stream("Pairs", "too <long>", 2, "out"),
            Stream("Kept", "Not reviewed", 3, "waits"),
            Stream("Kept", "Approved", 4, "on"),
            Stream("Approved", "Released", 4, "on"),
        ]
    ),
    "probe": probe_figure(0, {"probe/0/asked": [(1, 2)], "probe/0/other": [(1, 1)]}),
}

HOSTILE = [
    "$\\frac{",
    "a & b",
    "<b>bob</b>",
    "<script>alert(1)</script>",
    "-- > <!-- x",
    "\\input{x}_^%#~",
    "50 % of $1$",
    "tab\tbell\x07",
]


def hostile_figures() -> list[go.Figure]:
    """Every figure with the names on all its places."""
    report = {
        "human_human": MEAN,
        "human_model": dict.fromkeys(HOSTILE, MEAN),
    }
    corpora = [_corpus(name, 0.1) for name in HOSTILE]
    return [
        dots({name: [Dot(name, 0.5, None, name)] for name in HOSTILE}, title="kappa"),
        human_model_bars(report),
        confusion_heatmap(["a"], [[1]], " ".join(HOSTILE[:4]), " ".join(HOSTILE[4:])),
        diversity_bars(corpora, "aps"),
        drop_bars([{"groups": name, "count": 4} for name in HOSTILE]),
        kappa_against_cost([VALIDATOR | {"judge": name} for name in HOSTILE]),
        kept_sets([KEPT_ROW | {"name": name} for name in HOSTILE]),
        over_time_lines([WINDOW | {"human_model": dict.fromkeys(HOSTILE, MEAN)}]),
        ranking_figure([row | {"model": name} for row in RANKED for name in HOSTILE]),
        curve_figure({name: [(1, 2.0)] for name in HOSTILE}, title="loss"),
    ]


EMPTY = {
    "nothing": go.Figure(),
    "no bars": go.Figure(go.Bar(x=[], y=[])),
    "bars without a value": go.Figure(go.Bar(x=["a", "b"], y=[None, None])),
    "no points": go.Figure(go.Scatter(x=[], y=[])),
    "points without a value": go.Figure(go.Scatter(x=[1, 2], y=[None, None], mode="markers+text")),
    "no dots": dots({}, title="kappa"),
    "no slopes": slopes([], ends=("base", "trained"), title=""),
    "no models": ranking_figure([]),
    "no windows": over_time_lines([]),
    "no curve": curve_figure({}, title=""),
    "no corpora": diversity_bars([], "aps"),
}
