"""The first sentences of the Agreement page, and the estimates about the run behind them."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from analysis.agreement.flagged import (
    WITHOUT,
    WITHOUT_HIGH,
    WITHOUT_LOW,
    flag_note,
    flag_sentence,
    persons_of,
    rows_without,
)
from analysis.agreement.headline import COHEN, figure_text
from analysis.figures.numbers import Cells
from analysis.study import run_text
from app.agreement.report import draw_flag_note
from app.kit.figure import Origin, draw_origin, draw_rows
from app.kit.page import draw_wrapped
from app.text.plain import plain
from curation.judging.scope import Scope

SHARE = st.column_config.NumberColumn(format="percent")
SHARES = (
    *("Estimate", "At least", "At most", "95 % from", "to", "Confirmed"),
    *(WITHOUT, WITHOUT_LOW, WITHOUT_HIGH),
)


def draw_verdict(
    report: Mapping[str, Any],
    about: Mapping[str, Any] | None,
    scope: Scope,
    circular: str,
    *,
    compared: bool = True,
) -> None:
    """What the study says: about the run, and how much judges agree on which items.

    compared: whether any item has two judges; without one, there is no agreement to tell of.
    """
    if about is not None and about["known"] and about["precision"]["value"] is not None:
        st.markdown(f"**{plain(run_text.headline(about))}**")
    elif about is not None:
        st.markdown(plain(run_text.headline(about)))
    if compared:
        st.markdown(plain(agreement_sentence(report, scope)))
    if scope.of_run:
        st.caption(plain(scope.sentence))
    else:
        st.warning(plain(scope.sentence), icon=":material/filter_alt:")
    if circular:
        st.info(plain(circular), icon=":material/sync_problem:")


def agreement_sentence(report: Mapping[str, Any], scope: Scope) -> str:
    """How much people (or their simulated stand-ins) agree with each other, the model that agrees
    most with them, and who of them is flagged."""
    where = "" if scope.of_run else " on these chosen items"
    who = persons_of(report).lower()
    found = report["human_human"]
    if found["value"] is None:
        first = f"Agreement of {who} is undefined: {found['reason']}."
    else:
        first = f"{who.capitalize()} agree with each other{where} at {figure_text(found)}."
        first = f"{first} {flag_sentence(found)}".rstrip()
    models = {
        name: each for name, each in report["human_model"].items() if each["value"] is not None
    }
    if not models:
        pairs = [pair for pair in report["pairs"] if pair["kappa"] is not None]
        if found["value"] is not None or not pairs:
            return first
        pair = max(pairs, key=lambda pair: pair["kappa"])
        text = figure_text({**pair, "coefficient": COHEN.name, "value": pair["kappa"]})
        second = f"{pair['judge_a']} and {pair['judge_b']} agree{where} at {text}."
        return f"{first} {second} {flag_note([pair])}".rstrip()
    best = max(models, key=lambda name: models[name]["value"])
    sentence = f"{first} Of the models, {best} agrees most with them: {figure_text(models[best])}."
    return f"{sentence} {flag_sentence(models[best], with_reasons=False)}".rstrip()


def draw_about_run(about: Mapping[str, Any], origin: Origin) -> None:
    """The tables of the estimates: per item, whole groups, and parts of the run."""
    if not about["known"]:
        return
    st.header("The validator over the whole run", anchor=False)
    st.caption(plain(run_text.basis(about)))
    for key, rows in (
        ("agreement.run", run_text.rows(about)),
        ("agreement.run_groups", run_text.group_rows(about)),
    ):
        draw_wrapped(rows, dict.fromkeys(SHARES, "{:.1%}"))
        draw_origin(rows, origin, key=key)
    st.caption(run_text.WHY_BOUNDS)
    if parts := run_text.part_rows(about):
        with st.expander("By scenario, source and drop reason"):
            _draw(parts, origin, "agreement.run_parts")


def _draw(rows: list[Cells], origin: Origin, key: str) -> None:
    columns: dict[str, Any] = dict.fromkeys(SHARES, SHARE)
    if any(isinstance(row.get(WITHOUT), str) for row in rows):
        del columns[WITHOUT]  # bounds, as text
    columns["Figure"] = st.column_config.TextColumn(width="large")
    if not any(row["Reason if undefined"] for row in rows):
        columns["Reason if undefined"] = None
    draw_rows(rows, origin, key=key, column_config=columns)


def draw_thresholds(explored: Mapping[str, Any], origin: Origin) -> None:
    """A table per strictness: what a stricter filter would keep, and how good that would be."""
    if not explored["explored"]:
        st.caption(plain(f"No threshold to explore: {explored['reason']}."))
    for each in explored["explored"]:
        st.markdown(plain(f"By {each['by']}"))
        if not each["rows"]:
            st.caption(plain(each["reason"]))
            continue
        rows = [
            {
                "At least": row["threshold"],
                "Groups kept": row["kept_groups"],
                "Of the kept": row["size"],
                "Precision": row["precision"]["value"],
                "Recall": row["recall"]["value"],
                "Precision with interval": run_text.estimate(row["precision"]),
                "Recall with interval": run_text.estimate(row["recall"]),
            }
            for row in each["rows"]
        ]
        columns: dict[str, Any] = dict.fromkeys(
            ("Of the kept", "Precision", "Recall", WITHOUT_LOW, WITHOUT_HIGH), SHARE
        )
        columns["At least"] = st.column_config.NumberColumn(
            format="%.3f", help="Empty: the filter as it is."
        )
        precisions = [row["precision"] for row in each["rows"]]
        rows = rows_without(rows, precisions)
        if WITHOUT in rows[0]:
            columns[WITHOUT] = st.column_config.NumberColumn(
                f"Precision {WITHOUT.lower()}", format="percent"
            )
        draw_rows(rows, origin, key=f"agreement.by_{each['by']}", column_config=columns)
        draw_flag_note(precisions)
