"""Figures of judging besides matrix and Figure 4: over time, validators by cost, kept sets. Pure.

A value that is undefined is not drawn; its reason stands on the page.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from analysis.figures.figures import CATEGORY_COLOURS, DROPPED, KEPT, escape


def over_time_lines(windows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Agreement by window of items: people with people, and with each model."""
    figure = go.Figure()
    models = list(dict.fromkeys(name for row in windows for name in row["human_model"]))
    series = [("people among themselves", [row["human_human"] for row in windows], "#999999")]
    series += [
        (
            name,
            [row["human_model"].get(name, {"value": None}) for row in windows],
            CATEGORY_COLOURS[place % len(CATEGORY_COLOURS)],
        )
        for place, name in enumerate(models)
    ]
    for name, values, colour in series:
        figure.add_scatter(
            x=[row["until"] for row in windows],
            y=[value["value"] for value in values],
            name=escape(name),
            mode="lines+markers",
            connectgaps=False,
            line={"color": colour},
            customdata=[[row["window"], row["items"]] for row in windows],
            hovertemplate="%{y:.3f}<br>window %{customdata[0]}, %{customdata[1]} items"
            "<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(height=340, hovermode="closest")
    figure.update_xaxes(title="when the window's last item was finished (UTC)")
    figure.update_yaxes(title="agreement beyond chance", range=[-0.35, 1.05])
    return figure


def kappa_against_cost(validators: Sequence[Mapping[str, Any]]) -> go.Figure:
    """A point per model judge: USD per 1,000 items, kappa with the people and its interval.

    The axis of cost is linear, since judges on this machine cost nothing. An open point's price is
    estimated, a full one's comes from its calls.
    """
    figure = go.Figure()
    shown = [row for row in validators if is_placed(row)]
    for place, row in enumerate(shown):
        mean = row["human_kappa"]
        low, high = mean.get("interval") or (mean["value"], mean["value"])
        figure.add_scatter(
            x=[row["usd_per_1000_items"]],
            y=[mean["value"]],
            name=escape(row["judge"]),
            mode="markers+text",
            text=[escape(row["judge"])],
            textposition="top right",
            marker={
                "size": 12,
                "color": CATEGORY_COLOURS[place % len(CATEGORY_COLOURS)],
                "symbol": "circle-open" if row["price_from"] == "estimate" else "circle",
                "line": {"width": 2},
            },
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [high - mean["value"]],
                "arrayminus": [mean["value"] - low],
            },
            hovertemplate=f"%{{x:.4f}} USD per 1,000 items ({row['price_from']})"
            "<br>kappa %{y:.3f}<extra></extra>",
        )
    figure.update_layout(height=380, showlegend=False)
    most = max((row["usd_per_1000_items"] for row in shown), default=0.0) or 1.0
    figure.update_xaxes(  # with room for a name at either end
        title="USD per 1,000 items", range=[-0.05 * most, 1.3 * most]
    )
    figure.update_yaxes(title="kappa with people")
    return figure


def is_placed(row: Mapping[str, Any]) -> bool:
    """Whether a validator has both a price and a kappa, and so a place in the figure."""
    return (
        row["usd_per_1000_items"] is not None
        and row.get("human_kappa", {"value": None})["value"] is not None
    )


def kept_sets(rows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """A bar per judge or vote: groups it keeps as the run did, keeps alone, and would drop."""
    names = [escape(str(row["name"])) for row in rows]
    figure = go.Figure()
    for title, column, colour in (
        ("kept by both", "kept_by_both", KEPT),
        ("kept only here", "only_here", "#56b4e9"),
        ("kept only by the run", "only_by_the_run", DROPPED),
    ):
        figure.add_bar(
            name=title,
            y=names,
            x=[row[column] for row in rows],
            orientation="h",
            marker_color=colour,
            hovertemplate="%{x:,} groups<extra>" + title + "</extra>",
        )
    figure.update_layout(
        barmode="stack",
        height=max(240, 46 * len(names) + 130),
        legend_traceorder="normal",
    )
    figure.update_yaxes(autorange="reversed", automargin=True, type="category")
    figure.update_xaxes(title="groups")
    return figure
