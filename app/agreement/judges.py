"""Judges of a study: pace, agreement with others, gold accuracy, bias, errors by consensus."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import streamlit as st

from analysis.agreement.flagged import WITHOUT, WITHOUT_HIGH, WITHOUT_LOW, profile_rows
from analysis.figures.dots import Dot, dots
from analysis.figures.numbers import Cells
from analysis.files.csv_writer import csv_text
from app.agreement.report import MAX_DOTS
from app.kit.figure import Origin, draw_figure, draw_rows
from app.text.plain import plain
from curation.judging.consensus import SURE, flagged_note, judge_rows, outlier_sentences

SHARE = st.column_config.NumberColumn(format="percent")
GOLD = ("Gold seen", "Gold accuracy")
MEASURES = {
    "with_people": "Kappa with people",
    "with_models": "Kappa with models",
    "position_bias": "Position bias",
}


def draw_judges(profiles: Sequence[Mapping[str, Any]], origin: Origin) -> None:
    """A row per judge; the reasons of undefined values follow the table."""
    rows = profile_rows(profiles)
    if not rows:
        return
    st.header("Per judge", anchor=False)
    if found := judge_dots(profiles):
        title = "kappa with the other people"
        figure = dots(found, title=title, from_zero=True, is_sorted=True)
        draw_figure(figure, rows, origin, key="agreement.judge_dots")
    kappa = st.column_config.NumberColumn(format="%.3f")
    is_flagged = any(row["Flagged"] for row in rows)
    flagged = st.column_config.TextColumn(width="medium") if is_flagged else None
    gold = st.column_config.NumberColumn(format="percent")
    has_gold = any(row.get("Gold seen") for row in rows)
    draw_rows(
        rows,
        origin,
        key="agreement.judges",
        column_config={
            "Flagged": flagged,
            "Kappa with people": st.column_config.NumberColumn(
                format="%.3f", help="Kappa with the group of the other people; 95 % interval next."
            ),
            "95 % from": kappa,
            "to": kappa,
            "Kappa with models": kappa,
            WITHOUT: st.column_config.NumberColumn(
                f"Kappa {WITHOUT.lower()}",
                format="%.3f",
                help="Kappa with the other people who are not flagged.",
            ),
            WITHOUT_LOW: kappa,
            WITHOUT_HIGH: kappa,
            "Seconds": st.column_config.NumberColumn(
                format="%.1f", help="Median time from display to decision, last 200 answers."
            ),
            **({"Gold accuracy": gold} if has_gold else dict.fromkeys(GOLD)),
            "Positions chosen": st.column_config.BarChartColumn(
                y_min=0, y_max=1, help="Share of each screen position among the choices."
            ),
            "Bias p": st.column_config.NumberColumn(
                format="%.4f",
                help="Chi-squared test of equal shares; a small p means a position preference.",
            ),
        },
    )
    if reasons := undefined_reasons(profiles):
        st.caption(plain("\n".join(reasons)))


def judge_dots(profiles: Sequence[Mapping[str, Any]]) -> dict[str, list[Dot]]:
    """Each judge with the other people, the highest first; next to it the same without those of
    them who are flagged, where anybody is."""
    found: dict[str, list[Dot]] = {}
    with_value = [each for each in profiles if each["with_people"]["value"] is not None]
    for each in sorted(with_value, key=lambda each: -each["with_people"]["value"])[:MAX_DOTS]:
        name = each["judge"] + (" (flagged)" if each["flagged"] else "")
        for group, of in (
            ("all people", each["with_people"]),
            (WITHOUT.lower(), each["with_people"].get("without_flagged") or {}),
        ):
            if of.get("value") is not None:
                about = f"{of['items']:,} items"
                found.setdefault(group, []).append(Dot(name, of["value"], of["interval"], about))
    return found


def undefined_reasons(profiles: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why values are undefined: a line per reason, with the judges it applies to."""
    found: dict[str, list[str]] = {}
    for each in profiles:
        for key, label in MEASURES.items():
            if "reason" in each[key]:
                found.setdefault(f"{label} undefined: {each[key]['reason']}", []).append(
                    each["judge"]
                )
    return [f"{reason} ({', '.join(judges)})" for reason, judges in found.items()]


def draw_consensus(report: Mapping[str, Any], hidden: Collection[int], origin: Origin) -> None:
    """Outliers in words, a row per judge, and the consensus labels least certain first; no labels
    of `hidden` items."""
    if not report["items"]:
        return
    st.header("Consensus and judges' errors", anchor=False)
    st.caption(
        "Dawid and Skene's model weighs each person by their errors on items that others judged. "
        f"{report['sure']:,} of {len(report['items']):,} items have a label with a probability of "
        f"{SURE} or more."
    )
    if note := flagged_note(report):
        st.caption(plain(note))
    for sentence in outlier_sentences(dict(report)):
        st.warning(plain(sentence), icon=":material/person_alert:")
    rows = judge_rows(report)
    columns: dict[str, Any] = {
        "p": st.column_config.NumberColumn(
            format="%.4f", help="Paired t over items against the others, adjusted by Holm's method."
        )
    }
    if not any(row["Reason if undefined"] for row in rows):
        columns["Reason if undefined"] = None
    draw_rows(rows, origin, key="agreement.consensus_judges", column_config=columns)
    with st.expander("Consensus labels, least certain first"):
        items = [row for row in item_rows(report) if row["Item"] not in hidden]
        draw_rows(
            items[:200],
            origin,
            key="agreement.consensus_items",
            whole=lambda: csv_text(items),
            column_config={"Probability": SHARE},
        )


def item_rows(report: Mapping[str, Any]) -> list[Cells]:
    """A row per item, the least certain first."""
    return [
        {
            "Item": row["item"],
            "Scenario": row["scenario"],
            "Consensus": row["label"],
            "Probability": row["probability"],
            "Votes": ", ".join(f"{label} {n}" for label, n in sorted(row["votes"].items())),
        }
        for row in sorted(report["items"], key=lambda row: (row["probability"], row["item"]))
    ]
