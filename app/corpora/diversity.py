"""A stored diversity analysis as bars and tables."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from analysis.figures.figures import METRIC_NAMES, diversity_bars, drop_bars
from analysis.text.diversity_tables import (
    PAPER,
    drop_rows,
    filter_pairs,
    filter_rows,
    number_rows,
    published_rows,
    table_one,
)
from app.corpora.diversity_verdict import diversity_sentence
from app.kit.figure import Origin, draw_figure, draw_rows, side_by_side
from app.kit.page import draw_labels
from app.text.numbers import counted
from app.text.plain import plain

NUMBER = st.column_config.NumberColumn(format="%.4f")
ONE_DIGIT = st.column_config.NumberColumn(format="%.1f")
TWO_DIGITS = st.column_config.NumberColumn(format="%.2f")


def draw_bars(corpora: Sequence[Mapping[str, Any]], origin: Origin, *, key: str) -> None:
    """A figure per metric, a bar per corpus, side by side."""
    columns = side_by_side(len(METRIC_NAMES), key=f"{key}.bars")
    for column, metric in zip(columns, METRIC_NAMES, strict=True):
        with column:
            figure, rows = diversity_bars(corpora, metric), bar_rows(corpora, metric)
            draw_figure(figure, rows, origin, key=f"{key}.{metric}")


def draw_diversity(result: Mapping[str, Any], origin: Origin) -> None:
    """Bars per metric, Table 1, filtered against unfiltered, then all values."""
    corpora = result["corpora"]
    draw_labels(offline=any(corpus["offline"] for corpus in corpora))
    st.markdown(plain(diversity_sentence(corpora)))
    rows = number_rows(corpora)
    reasons = sorted({reason for row in rows for reason in row.pop("reasons")})
    draw_bars(corpora, origin, key="diversity.figure")
    st.caption(plain(sample_text(corpora)))
    st.subheader("Counts and lengths", anchor=False)
    counts = [*table_one(corpora), *published_rows(corpora)]
    lengths = {name: ONE_DIGIT for name in counts[0] if name.startswith("words per")}
    draw_rows(counts, origin, key="diversity.table_one", column_config=lengths)
    if any(str(row["corpus"]).endswith(PAPER) for row in counts):
        st.caption(
            "Rows “(paper)” are printed in Table 1 of the paper. Its Figure 3b prints no values: "
            "on 10,000 samples each, InF-IR has a lower APS and a higher INGF than FollowIR and "
            "Promptriever; the bars above are of samples of equal size, too."
        )
    for filtered, unfiltered in filter_pairs(corpora):
        draw_filtered(filtered, unfiltered, origin)
    st.subheader("All values", anchor=False)
    draw_rows(
        rows,
        origin,
        key="diversity.numbers",
        column_config={
            "Mean words": ONE_DIGIT,
            "APS": NUMBER,
            "INGF 2": TWO_DIGITS,
            "INGF 3": TWO_DIGITS,
            "APS, samples": NUMBER,
            "APS ±": NUMBER,
            "APS, halves differ by": NUMBER,
            "INGF 2, halves differ by": TWO_DIGITS,
            "INGF 3, halves differ by": TWO_DIGITS,
            "INGF 2, samples": TWO_DIGITS,
            "INGF 2 ±": TWO_DIGITS,
            "INGF 3, samples": TWO_DIGITS,
            "INGF 3 ±": TWO_DIGITS,
        },
    )
    for reason in reasons:
        st.caption(plain(reason))


def draw_filtered(
    filtered: Mapping[str, Any], unfiltered: Mapping[str, Any], origin: Origin
) -> None:
    """Figure 6: the effect of the filter on size and diversity, and the drop reasons."""
    name = filtered["corpus"].removesuffix(", filtered")
    st.subheader(f"Filtered against unfiltered: {plain(name)}", anchor=False)
    left, right = side_by_side(2, key=f"diversity.{name}")
    with left:
        dropped = drop_rows(filtered, unfiltered)
        draw_figure(drop_bars(dropped), dropped, origin, key=f"diversity.drops.{name}")
    with right:
        rows = filter_rows(filtered, unfiltered)
        draw_rows(rows, origin, key=f"diversity.filtered.{name}", height=340)
    st.caption("Export one release of each, to train two models for equal steps and compare them:")
    st.code(export_commands(name, filtered["run_id"]), language=None, wrap_lines=True)


def export_commands(name: str, run_id: int) -> str:
    """The commands that export the filtered and the unfiltered corpus."""
    dataset, _, source = name.partition("/")
    command = ["inf", "releases", "create", dataset, "--run", str(run_id)]
    command += ["--source", source] if source else []
    kept = shlex.join([*command, "--out", "releases/filtered"])
    every = shlex.join([*command, "--out", "releases/unfiltered", "--include-dropped"])
    return f"{kept}\n{every}"


def sample_text(corpora: Sequence[Mapping[str, Any]]) -> str:
    """The samples that the bars are computed from."""
    samples = {
        (field, numbers["sampled"]["size"], numbers["sampled"]["repeats"])
        for corpus in corpora
        for field, numbers in corpus["fields"].items()
        if "sampled" in numbers
    }
    if not samples:
        return (
            "Computed on the whole corpora. Several corpora are compared on samples of equal size."
        )
    sizes = ", ".join(
        f"{field} {size:,} ({counted(repeats, 'repeat')})"
        for field, size, repeats in sorted(samples)
    )
    return (
        f"Samples of equal size: {sizes}. Mean and standard deviation over the repeats. Halves "
        "differ by: mean difference of two disjoint samples of one corpus; two corpora that differ "
        "by no more are alike."
    )


def bar_rows(corpora: Sequence[Mapping[str, Any]], metric: str) -> list[dict[str, Any]]:
    """The values of a metric: on the whole corpus and, if sampled, on the samples."""
    rows = []
    for corpus in corpora:
        for field, numbers in corpus["fields"].items():
            sampled = numbers.get("sampled") or {}
            values = sampled.get(metric) or {}
            rows.append(
                {
                    "corpus": corpus["corpus"],
                    "field": field,
                    "whole": numbers[metric],
                    "sample size": sampled.get("size"),
                    "repeats": sampled.get("repeats"),
                    "mean of samples": values.get("mean"),
                    "standard deviation": values.get("sd"),
                    "draws": values.get("draws"),
                    "reason if undefined": numbers.get("reason", {}).get(metric)
                    or sampled.get("reason", {}).get(metric, ""),
                }
            )
    return rows
