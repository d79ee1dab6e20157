"""An agreement report as figures and tables; undefined values come with their reason."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from analysis.agreement.agreement import interval_caption
from analysis.agreement.measures import MEASURES
from analysis.figures.figures import agreement_heatmap, human_model_bars
from app.kit.figure import Origin, draw_figure, draw_rows
from app.text.numbers import counted
from app.text.plain import plain

MAX_PAIR_CARDS = 6
KAPPA = st.column_config.NumberColumn(format="%.4f")


def draw_report(report: dict[str, Any], origin: Origin) -> None:
    """The means and their figure; where no mean is defined, the pairs of judges that have one."""
    if report["simulated"]:
        st.warning(
            "The people of this study are simulated judges: a demonstration, not evidence.",
            icon=":material/smart_toy:",
        )
    elif report["simulated_left_out"]:
        st.info("People have judged too: simulated judges appear as pairs but not in the means.")
    who = persons_of(report)
    means = [(f"{who} with {who[0].lower()}{who[1:]}", report["human_human"])]
    means += [(f"{who} with {name}", mean) for name, mean in report["human_model"].items()]
    is_known = any(mean["kappa"] is not None for _, mean in means)
    defined = [pair for pair in report["pairs"] if pair["kappa"] is not None]
    pairs = [(f"{pair['judge_a']} with {pair['judge_b']}", pair) for pair in defined]
    with st.container(horizontal=True):
        for label, mean in means if is_known or not pairs else pairs[:MAX_PAIR_CARDS]:
            draw_mean(label, mean)
    brackets = interval_caption(report)
    st.caption(
        f"{report['judgments']:,} judgments of {report['items']:,} items"
        + (f" · in brackets: {brackets}" if brackets else "")
    )
    if is_known:
        st.subheader(f"Models with {who[0].lower()}{who[1:]}", anchor=False)
        draw_figure(human_model_bars(report), bar_rows(report), origin, key="agreement.bars")


def persons_of(report: Mapping[str, Any]) -> str:
    """Who stands for people in the report's means."""
    return "Simulated judges" if report["simulated"] else "People"


def draw_pairs(report: dict[str, Any], origin: Origin) -> None:
    """Every pair of judges as a table and a matrix, differences of models, all judges together."""
    st.subheader("Pairs of judges", anchor=False)
    pairs = pair_rows(report["pairs"])
    if pairs:
        draw_values(pairs, origin, key="agreement.pairs", reasons=report["pairs"])
        draw_figure(agreement_heatmap(report), pairs, origin, key="agreement.heatmap")
    else:
        st.caption("No pairs: fewer than two judges have answered.")
    draw_differences(report["differences"], origin, who=persons_of(report).lower())
    draw_measures(report, origin)


def draw_mean(label: str, mean: dict[str, Any]) -> None:
    """Mean kappa over the pairs in which it is defined, or the kappa of one pair."""
    with st.container(border=True, width=260):
        kappa = mean["kappa"]
        st.metric(label, "undefined" if kappa is None else f"{kappa:.3f}")
        if kappa is None:
            st.caption(plain(mean["reason"]))
        else:
            undefined = mean.get("undefined_pairs")
            rest = f", {undefined} undefined" if undefined else ""
            raw = mean["agreement"]
            agreement = "" if raw is None else f"raw agreement {raw:.1%} · "
            basis = (
                counted(mean["pairs"], "pair")
                if "pairs" in mean
                else counted(mean["items"], "item")
            )
            st.caption(f"{interval_text(mean)}{agreement}{basis}{rest}")


def interval_text(numbers: dict[str, Any]) -> str:
    """The interval as a prefix; empty if there is none."""
    if not numbers.get("interval"):
        return ""
    low, high = numbers["interval"]
    return f"[{low:.3f}, {high:.3f}] · "


def interval_cells(numbers: dict[str, Any]) -> dict[str, float | None]:
    """The interval as two columns."""
    low, high = numbers.get("interval") or (None, None)
    return {"95 % from": low, "to": high}


def bar_rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The values of the bars of Figure 4: a row per mean."""
    who = persons_of(report).lower()
    return [
        {
            "Between": name,
            "Mean kappa": mean["kappa"],
            **interval_cells(mean),
            "Raw agreement": mean["agreement"],
            "Pairs": mean["pairs"],
            "Reason if undefined": mean.get("reason", ""),
        }
        for name, mean in {
            f"{who} with {who}": report["human_human"],
            **{f"{who} with {name}": mean for name, mean in report["human_model"].items()},
        }.items()
    ]


def pair_rows(pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per pair of judges."""
    return [
        {
            "Judge": pair["judge_a"],
            "With": pair["judge_b"],
            "Kappa": pair["kappa"],
            **interval_cells(pair),
            "Std. error": pair["standard_error"],
            "Raw agreement": pair["agreement"],
            "Items": pair["items"],
            "Reason if undefined": pair.get("reason", ""),
        }
        for pair in pairs
    ]


def draw_differences(
    differences: list[dict[str, Any]], origin: Origin, *, who: str = "people"
) -> None:
    """A row per pair of models: the difference of their agreement with people, or who stands for
    them."""
    if not differences:
        return
    st.subheader(f"Which model agrees more with {who}?", anchor=False)
    verdicts = {True: "yes", False: "no clear difference", None: ""}
    rows = [
        {
            "Model": row["model_a"],
            "Against": row["model_b"],
            "Difference of mean kappa": row["difference"],
            **interval_cells(row),
            "Differs": verdicts[row.get("differs")],
            "Reason if undefined": row.get("reason", ""),
        }
        for row in differences
    ]
    draw_values(rows, origin, key="agreement.differences", reasons=differences)
    st.caption(f"Paired: both models are compared with {who} on the same posterior draws.")


def draw_measures(report: dict[str, Any], origin: Origin) -> None:
    """The registered measures, among people and among all judges; help on each below."""
    st.subheader("All judges together", anchor=False)
    persons = persons_of(report).lower()
    found = [
        (who, MEASURES[name].label, numbers)
        for who, key in ((persons, "people"), (f"{persons} and models", "all_judges"))
        for name, numbers in report[key].items()
    ]
    rows = [
        {
            "Among": who,
            "Measure": measure,
            "Value": numbers["value"],
            **interval_cells(numbers),
            "Reason if undefined": numbers.get("reason", ""),
        }
        for who, measure, numbers in found
    ]
    draw_values(
        rows,
        origin,
        key="agreement.coefficients",
        reasons=[numbers for _, _, numbers in found],
    )
    with st.expander("What the measures say"):
        for measure in MEASURES.values():
            low, high = measure.bounds
            st.caption(
                plain(
                    f"{measure.label} ({low:g} to {high:g}; needs {measure.needs}): {measure.help}"
                )
            )


def draw_values(
    rows: list[dict[str, Any]], origin: Origin, *, key: str, reasons: list[dict[str, Any]]
) -> None:
    """Values with four digits; the column of reasons only if one is given."""
    numbers = (
        "Kappa",
        "Std. error",
        "Raw agreement",
        "95 % from",
        "to",
        "Value",
        "Difference of mean kappa",
    )
    columns = dict.fromkeys(numbers, KAPPA)
    if not any(row.get("reason") for row in reasons):
        columns["Reason if undefined"] = None  # type: ignore[assignment]
    draw_rows(rows, origin, key=key, column_config=columns)
