"""An agreement report as figures and tables; undefined values come with their reason."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from analysis.agreement.agreement import interval_caption
from analysis.agreement.flagged import (
    WITHOUT,
    WITHOUT_HIGH,
    WITHOUT_LOW,
    bar_rows,
    difference_rows,
    flag_note,
    flag_sentence,
    measure_rows,
    measures_of,
    pair_rows,
    pairs_sentence,
    persons_of,
)
from analysis.agreement.headline import COEFFICIENTS, COHEN, rest_sentence
from analysis.agreement.measures import MEASURES
from analysis.figures.dots import Dot, dots
from analysis.figures.numbers import Cells
from app.kit.figure import Origin, draw_figure, draw_rows
from app.kit.page import draw_drawer
from app.text.numbers import counted
from app.text.plain import plain

MAX_PAIR_CARDS = 6
MAX_DOTS = 40  # rows of a figure; the table has all
KAPPA = st.column_config.NumberColumn(format="%.4f")


def draw_report(report: dict[str, Any]) -> None:
    """The headline values; where none is defined, the pairs of judges that have a value."""
    if report["simulated"]:
        st.warning(
            "The people of this study are simulated judges: a demonstration, not evidence.",
            icon=":material/smart_toy:",
        )
    elif report["simulated_left_out"]:
        st.info("People have judged too: simulated judges appear as pairs but not in the means.")
    who = persons_of(report)
    figures = [(f"{who} with {who[0].lower()}{who[1:]}", report["human_human"])]
    figures += [(f"{who} with {name}", each) for name, each in report["human_model"].items()]
    is_known = any(each["value"] is not None for _, each in figures)
    defined = [pair for pair in report["pairs"] if pair["kappa"] is not None]
    pairs = [
        (
            f"{pair['judge_a']} with {pair['judge_b']}",
            {**pair, "coefficient": COHEN.name, "value": pair["kappa"]},
        )
        for pair in defined[:MAX_PAIR_CARDS]
    ]
    with st.container(horizontal=True):
        for label, each in figures if is_known or not pairs else pairs:
            draw_figure_card(label, each)
    brackets = interval_caption(report)
    st.caption(
        f"{report['judgments']:,} judgments of {report['items']:,} items"
        + (f" · in brackets: {brackets}" if brackets else "")
    )
    if sentence := rest_sentence(report):
        st.caption(plain(sentence))


def draw_headlines(report: dict[str, Any], origin: Origin) -> None:
    """People with each other and models with them, as dots."""
    st.header(f"Models with {persons_of(report).lower()}", anchor=False)
    figure = dots(
        headline_dots(report), title="agreement beyond chance", from_zero=True, is_sorted=True
    )
    draw_figure(figure, bar_rows(report), origin, key="agreement.headlines")


def headline_dots(report: Mapping[str, Any]) -> dict[str, list[Dot]]:
    """People with each other and each model with them, the highest first; next to it the same
    without those who are flagged, where anybody is."""
    who = persons_of(report)
    figures = {f"{who} with each other": report["human_human"]}
    figures |= {f"{name} with {who.lower()}": each for name, each in report["human_model"].items()}
    defined = {name: each for name, each in figures.items() if each["value"] is not None}
    found: dict[str, list[Dot]] = {}
    for name, each in sorted(defined.items(), key=lambda one: -one[1]["value"]):
        for group, of in (("all", each), (WITHOUT.lower(), each.get("without_flagged") or {})):
            if of.get("value") is not None:
                about = f"{of['label']}, {of['items']:,} items"
                found.setdefault(group, []).append(
                    Dot(name, of["value"], of.get("interval"), about)
                )
    return found


def draw_pairs(report: dict[str, Any], origin: Origin) -> None:
    """Every pair of judges as dots and, behind a click, a table."""
    st.header("Pairs of judges", anchor=False)
    pairs = pair_rows(report["pairs"])
    if not pairs:
        st.caption("No pairs: fewer than two judges have answered.")
    else:
        st.caption(plain(pairs_sentence(report["pairs_counted"])))
    if found := pair_dots(report["pairs"]):
        figure = dots(found, title="Cohen's kappa", from_zero=True, is_sorted=True)
        draw_figure(figure, pairs, origin, key="agreement.pair_dots")
    if pairs:
        key = "agreement.pairs"
        draw = partial(draw_values, pairs, origin, key=key, reasons=report["pairs"])
        draw_drawer("The pairs as a table", draw, key=f"{key}_drawer", is_open=not found)


def pair_dots(pairs: Sequence[Mapping[str, Any]]) -> dict[str, list[Dot]]:
    """The pairs that have a value, the highest first and of many the first; apart those of whom
    one is flagged."""
    defined = sorted(
        (pair for pair in pairs if pair["kappa"] is not None),
        key=lambda pair: (-pair["kappa"], pair["judge_a"], pair["judge_b"]),
    )
    found: dict[str, list[Dot]] = {}
    for pair in defined[:MAX_DOTS]:
        group = "with someone who is flagged" if pair.get("flagged") else "pairs"
        name = f"{pair['judge_a']} – {pair['judge_b']}"
        about = f"{pair['items']:,} items, raw agreement {pair['agreement']:.3f}"
        found.setdefault(group, []).append(Dot(name, pair["kappa"], pair.get("interval"), about))
    return found


def draw_figure_card(label: str, found: Mapping[str, Any]) -> None:
    """A headline figure: its value and coefficient, and itself without the people flagged."""
    with st.container(border=True, width=266):
        value = found["value"]
        coefficient = COEFFICIENTS[found["coefficient"]]
        st.metric(
            label,
            "undefined" if value is None else f"{value:.3f}",
            help=f"{coefficient.label}. {coefficient.help}",
        )
        if value is None:
            st.caption(plain(found["reason"]))
        else:
            raw = found["agreement"]
            parts = [
                coefficient.label,
                interval_text(found),
                "" if raw is None else f"raw agreement {raw:.1%}",
                counted(found["items"], "item"),
            ]
            st.caption(plain(" · ".join(part for part in parts if part)))
        if sentence := flag_sentence(found, with_reasons=False):
            st.caption(f":material/flag: {plain(sentence)}")


def interval_text(numbers: Mapping[str, Any]) -> str:
    """The interval in brackets; empty if there is none."""
    if not numbers.get("interval"):
        return ""
    low, high = numbers["interval"]
    return f"[{low:.3f}, {high:.3f}]"


def draw_differences(
    differences: list[dict[str, Any]], origin: Origin, *, who: str = "people"
) -> None:
    """A row per pair of models: the difference of their agreement with people, or who stands for
    them."""
    if not differences:
        return
    st.header(f"Which model agrees more with {who}?", anchor=False)
    rows = difference_rows(differences)
    draw_values(rows, origin, key="agreement.differences", reasons=differences)
    st.caption(f"Paired: both models are compared with {who} on the same posterior draws.")


def draw_measures(report: dict[str, Any], origin: Origin) -> None:
    """Differences of models, then the registered measures, among people and among all judges."""
    draw_differences(report["differences"], origin, who=persons_of(report).lower())
    st.header("All judges together", anchor=False)
    rows, figures = measure_rows(report), [dict(each) for _, _, each in measures_of(report)]
    draw_values(rows, origin, key="agreement.coefficients", reasons=figures)
    with st.expander("What the measures say"):
        for measure in MEASURES.values():
            low, high = measure.bounds
            st.caption(
                plain(
                    f"{measure.label} ({low:g} to {high:g}; needs {measure.needs}): {measure.help}"
                )
            )


def draw_values(
    rows: list[Cells], origin: Origin, *, key: str, reasons: list[dict[str, Any]]
) -> None:
    """Values with four digits; the column of reasons only if one is given; who is flagged.

    reasons: the figures behind the rows.
    """
    numbers = (
        "Kappa",
        "Std. error",
        "Raw agreement",
        "95 % from",
        "to",
        "Value",
        "Difference of kappa",
        WITHOUT,
        WITHOUT_LOW,
        WITHOUT_HIGH,
    )
    columns = dict.fromkeys(numbers, KAPPA)
    if not any(row.get("reason") for row in reasons):
        columns["Reason if undefined"] = None  # type: ignore[assignment]
    draw_rows(rows, origin, key=key, column_config=columns)
    draw_flag_note(reasons)


def draw_flag_note(figures: Sequence[Mapping[str, Any]]) -> None:
    """Below a table: which people behind its figures are flagged."""
    if note := flag_note(figures):
        st.caption(f":material/flag: {plain(note)}")
