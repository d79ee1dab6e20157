"""The figures of agreement, diversity and coverage: results in, Plotly figures out. Pure.

A value that is undefined is not drawn: its cell or bar is left out and its reason is shown on
hover or as a note, so that it is not read as zero.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

from analysis.found.texts import CorpusDiversity, FieldNumbers, Spread

# A family per field, in the order of its texts: I+, I- blue; Q+, Q- green and yellow; P+, P1-, P2-
# vermilion, orange, purple. The first of each are Okabe and Ito's seven colours, which stay apart
# for people who do not see red and green (tests/colour_vision.py); shades of red and green did not.
SHADES: Final = {
    "instruction": ("#0072b2", "#56b4e9", "#003f63", "#a5d8f3"),
    "query": ("#009e73", "#f0e442", "#004d38", "#b8b22e"),
    "passage": ("#d55e00", "#e69f00", "#cc79a7", "#7a3500", "#f3d08a"),
    "text": ("#666666",),
}
KEPT, DROPPED = "#0072b2", "#d55e00"
CATEGORY_COLOURS: Final = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#ccbb44",
    "#66ccee",
    "#aa3377",
    "#bbbbbb",
    "#7755bb",
)
METRIC_NAMES: Final = {
    "aps": "APS (lower is more diverse)",
    "ingf_2": "INGF, 2-grams (higher is more diverse)",
    "ingf_3": "INGF, 3-grams (higher is more diverse)",
}


def human_model_bars(report: Mapping[str, Any]) -> go.Figure:
    """Figure 4: agreement of each model with the people, next to that of the people.

    Each bar is the headline coefficient of its judges: `analysis.agreement.headline`.
    """
    who = "simulated judges" if report.get("simulated") else "people"
    bars = [(f"{who} among themselves", report["human_human"], "#999999")]
    bars += [(model, mean, "#4477aa") for model, mean in report["human_model"].items()]
    defined = [bar for bar in bars if bar[1]["value"] is not None]
    figure = go.Figure(
        go.Bar(
            x=[escape(name) for name, _, _ in defined],
            y=[mean["value"] for _, mean, _ in defined],
            marker_color=[colour for _, _, colour in defined],
            text=[f"{mean['value']:.2f}" for _, mean, _ in defined],
            textposition="inside",
            insidetextanchor="start",  # at the foot of the bar: the interval is at its head
            error_y=_intervals([mean for _, mean, _ in defined]),
            customdata=[
                f"{escape(name)}<br>{escape(mean['label'])} over {mean['items']:,} items, "
                f"raw agreement {mean['agreement']:.3f}"
                for name, mean, _ in defined
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    figure.update_layout(height=380)
    _note(figure, [f"{name}: {mean['reason']}" for name, mean, _ in bars if mean["value"] is None])
    figure.update_yaxes(title="agreement beyond chance")
    figure.update_xaxes(type="category")
    return figure


def confusion_heatmap(
    labels: Sequence[str], counts: "np.ndarray", one: str, other: str
) -> go.Figure:
    """Labels of two judges on the same items: rows the one, columns the other."""
    shown = [label.replace("_", " ") for label in labels]
    figure = go.Figure(
        go.Heatmap(
            z=counts,
            x=shown,
            y=shown,
            texttemplate="%{z}",
            colorscale="Blues",
            autocolorscale=True,  # on a page its theme's, printed these
            showscale=False,
            xgap=2,
            ygap=2,
            hovertemplate="%{y} – %{x}: %{z} items<extra></extra>",
        )
    )
    figure.update_layout(height=max(300, 44 * len(labels) + 120))
    figure.update_xaxes(title=escape(other), automargin=True, showgrid=False, type="category")
    figure.update_yaxes(
        title=escape(one), autorange="reversed", automargin=True, showgrid=False, type="category"
    )
    return figure


def diversity_bars(corpora: Sequence[CorpusDiversity], metric: str) -> go.Figure:
    """Figure 3b: one metric by field, a bar per corpus; equal-sized samples where there are any."""
    fields = list(dict.fromkeys(field for corpus in corpora for field in corpus.fields))
    figure, missing = go.Figure(), []
    for place, corpus in enumerate(corpora):
        values, spreads = [], []
        for field in fields:
            numbers = corpus.fields.get(field)
            value, spread = (None, None) if numbers is None else _shown_metric(numbers, metric)
            values.append(value)
            spreads.append(spread)
            if numbers is not None and value is None:
                shown = numbers.sampled or numbers
                missing.append(f"{corpus.corpus}, {field}: {shown.reason[metric]}")
        figure.add_bar(
            name=escape(corpus.corpus),
            x=fields,
            y=values,
            error_y={"type": "data", "array": spreads} if any(spreads) else None,
            marker_color=CATEGORY_COLOURS[place % len(CATEGORY_COLOURS)],
            hovertemplate="%{fullData.name}<br>%{x}: %{y:.4f}<extra></extra>",
        )
    figure.update_layout(barmode="group", height=340, showlegend=len(corpora) > 1)
    _note(figure, missing)
    figure.update_yaxes(title=METRIC_NAMES[metric])
    return figure


def drop_bars(rows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """What became of a run's groups: kept, and dropped by reason."""
    figure = go.Figure(
        go.Bar(
            y=[escape(str(row["groups"])).replace("_", " ") for row in rows],
            x=[row["count"] for row in rows],
            orientation="h",
            text=[f"{row['count']:,}" for row in rows],
            marker_color=[KEPT if row["groups"] == "kept" else DROPPED for row in rows],
            hovertemplate="%{y}: %{x:,} groups<extra></extra>",
        )
    )
    figure.update_layout(height=max(240, 40 * len(rows) + 120))
    figure.update_yaxes(autorange="reversed", automargin=True, type="category")
    figure.update_xaxes(title="groups")
    return figure


def stage_lanes(lanes: Mapping[str, Sequence[int]], ends: Sequence[datetime]) -> go.Figure:
    """A lane per stage of a run over time: bluer where more answers came, on either theme.

    lanes: answers by stage, T each; ends: of the T equal intervals, in the reader's time zone.
    """
    figure = go.Figure(
        go.Heatmap(
            z=list(lanes.values()),
            x=[moment.replace(tzinfo=None) for moment in ends],
            y=list(lanes),
            zmin=0,
            colorscale=[(0, "rgba(68,119,170,0.08)"), (1, "rgba(68,119,170,1)")],
            showscale=False,
            xgap=1,
            ygap=6,
            hovertemplate="%{y}, %{x|%H:%M:%S}: %{z} answers<extra></extra>",
        )
    )
    totals = ", ".join(f"{name} {sum(row):,}" for name, row in lanes.items())
    figure.update_layout(height=44 * len(lanes) + 60, meta=f"Answers by stage: {totals}")
    figure.update_yaxes(autorange="reversed", automargin=True, showgrid=False, type="category")
    figure.update_xaxes(showgrid=False, nticks=6)
    return figure


def _shown_metric(numbers: FieldNumbers, metric: str) -> tuple[float | None, float | None]:
    """The value to draw and its standard deviation: the sampled one where there is one."""
    if numbers.sampled is None:
        return getattr(numbers, metric), None
    found: Spread | None = getattr(numbers.sampled, metric)
    return (None, None) if found is None else (found.mean, found.sd)


def escape(text: str) -> str:
    """A text as Plotly shows it verbatim: its hover reads a little HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def wrapped(text: str, width: int = 60) -> str:
    """A text in lines for a hover, verbatim."""
    words, lines = text.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += f"{word} "
    return "<br>".join(escape(line.rstrip()) for line in lines)


def _intervals(means: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    if not any(mean.get("interval") for mean in means):
        return None
    known = [mean.get("interval") or (mean["value"], mean["value"]) for mean in means]
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - mean["value"] for mean, (_, high) in zip(means, known, strict=True)],
        "arrayminus": [mean["value"] - low for mean, (low, _) in zip(means, known, strict=True)],
    }


def _note(figure: go.Figure, missing: Sequence[str]) -> None:
    if missing:
        text = "<br>".join(wrapped(f"undefined: {line}", 44) for line in missing)
        figure.add_annotation(text=text)
