"""A stored diversity analysis: which corpus has more varied texts, in words, bars and tables."""

import shlex
from collections.abc import Sequence

import streamlit as st

from analysis.figures.figures import METRIC_NAMES, diversity_bars, drop_bars
from analysis.figures.numbers import Cells
from analysis.found.texts import CorpusDiversity, DiversityFound, Spread
from analysis.text.diversity_tables import (
    PAPER,
    drop_rows,
    filter_pairs,
    filter_rows,
    number_rows,
    published_rows,
    table_one,
)
from app.kit.figure import Origin, draw_figure, draw_rows, side_by_side
from app.kit.page import draw_command, draw_labels
from app.text.numbers import counted
from app.text.plain import plain

NUMBER = st.column_config.NumberColumn(format="%.4f")
ONE_DIGIT = st.column_config.NumberColumn(format="%.1f")
TWO_DIGITS = st.column_config.NumberColumn(format="%.2f")


def draw_bars(corpora: Sequence[CorpusDiversity], origin: Origin, *, key: str) -> None:
    """A figure per metric, a bar per corpus, side by side."""
    columns = side_by_side(len(METRIC_NAMES), key=f"{key}.bars")
    for column, metric in zip(columns, METRIC_NAMES, strict=True):
        with column:
            figure, rows = diversity_bars(corpora, metric), bar_rows(corpora, metric)
            draw_figure(figure, rows, origin, key=f"{key}.{metric}")


def draw_diversity(result: DiversityFound, origin: Origin) -> None:
    """Bars per metric, Table 1, filtered against unfiltered, then all values."""
    corpora = result.corpora
    draw_labels(offline=any(corpus.offline for corpus in corpora))
    st.markdown(plain(diversity_sentence(corpora)))
    rows = number_rows(corpora)
    reasons = sorted({reason for row in rows for reason in row.pop("reasons")})
    draw_bars(corpora, origin, key="diversity.figure")
    st.caption(plain(sample_text(corpora)))
    st.header("Counts and lengths", anchor=False)
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
    st.header("All values", anchor=False)
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


def draw_filtered(filtered: CorpusDiversity, unfiltered: CorpusDiversity, origin: Origin) -> None:
    """Figure 6: the effect of the filter on size and diversity, and the drop reasons."""
    name = filtered.corpus.removesuffix(", filtered")
    st.header(f"Filtered against unfiltered: {plain(name)}", anchor=False)
    left, right = side_by_side(2, key=f"diversity.{name}")
    with left:
        dropped = drop_rows(filtered, unfiltered)
        draw_figure(drop_bars(dropped), dropped, origin, key=f"diversity.drops.{name}")
    with right:
        rows = filter_rows(filtered, unfiltered)
        draw_rows(rows, origin, key=f"diversity.filtered.{name}", height=340)
    st.caption("Export one release of each, to train two models for equal steps and compare them:")
    draw_command(export_commands(name, filtered.run_id))


def export_commands(name: str, run_id: int | None) -> str:
    """The commands that export the filtered and the unfiltered corpus."""
    dataset, _, source = name.partition("/")
    command = ["inf", "releases", "create", dataset, "--run", str(run_id)]
    command += ["--source", source] if source else []
    kept = shlex.join([*command, "--out", "releases/filtered"])
    every = shlex.join([*command, "--out", "releases/unfiltered", "--include-dropped"])
    return f"{kept}\n{every}"


def sample_text(corpora: Sequence[CorpusDiversity]) -> str:
    """The samples that the bars are computed from."""
    samples = {
        (field, numbers.sampled.size, numbers.sampled.repeats)
        for corpus in corpora
        for field, numbers in corpus.fields.items()
        if numbers.sampled
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


def bar_rows(corpora: Sequence[CorpusDiversity], metric: str) -> list[Cells]:
    """The values of a metric: on the whole corpus and, if sampled, on the samples."""
    rows = []
    for corpus in corpora:
        for field, numbers in corpus.fields.items():
            sampled, reason = numbers.sampled, numbers.reason.get(metric, "")
            spread: Spread | None = getattr(sampled, metric, None)
            if sampled and not reason:
                reason = sampled.reason.get(metric, "")
            rows.append(
                {
                    "corpus": corpus.corpus,
                    "field": field,
                    "whole": getattr(numbers, metric),
                    "sample size": sampled.size if sampled else None,
                    "repeats": sampled.repeats if sampled else None,
                    "mean of samples": spread.mean if spread else None,
                    "standard deviation": spread.sd if spread else None,
                    "draws": spread.draws if spread else None,
                    "reason if undefined": reason,
                }
            )
    return rows


PLURAL = {"instruction": "instructions", "query": "queries", "passage": "passages", "text": "texts"}


def diversity_sentence(corpora: Sequence[CorpusDiversity]) -> str:
    """What the average pairwise similarity says, a sentence per kind of text; "" without any.

    Of several corpora the samples are compared, as only those are of one size. Two corpora that
    differ by no more than two disjoint samples of one corpus do are alike.
    """
    fields = dict.fromkeys(field for corpus in corpora for field in corpus.fields)
    if len(corpora) == 1:
        return _of_one(corpora[0], list(fields))
    found = (_of_several(corpora, field) for field in fields)
    return " ".join(sentence for sentence in found if sentence)


def _of_one(corpus: CorpusDiversity, fields: Sequence[str]) -> str:
    values = {_plural(field): corpus.fields[field].aps for field in fields}
    shown = [f"{value:.3f} ({name})" for name, value in values.items() if value is not None]
    if not shown:
        return ""
    return (
        f"Two texts of {corpus.corpus} have an average similarity (APS; 0: unrelated, 1: the "
        f"same) of {', '.join(shown)}. Measure it with another corpus to know whether that is much."
    )


def _of_several(corpora: Sequence[CorpusDiversity], field: str) -> str:
    values = []
    for corpus in corpora:
        numbers = corpus.fields.get(field)
        aps = numbers.sampled.aps if numbers and numbers.sampled else None
        if numbers and aps is not None:
            halves = numbers.halves.aps if numbers.halves else None
            values.append((aps.mean, corpus.corpus, halves))
    if len(values) < 2:
        return ""
    (best, first, one), (next_best, second, other) = sorted(values, key=lambda each: each[:2])[:2]
    both = f"APS {best:.3f} and {next_best:.3f}"
    known = [halves for halves in (one, other) if halves is not None]
    if not known:
        return f"The {_plural(field)} of {first} and {second} are too few to compare ({both})."
    if next_best - best <= max(known):
        return f"{first} and {second} have equally varied {_plural(field)} ({both})."
    return f"{first} has the most varied {_plural(field)}, before {second} ({both})."


def _plural(field: str) -> str:
    return PLURAL.get(field, field)
