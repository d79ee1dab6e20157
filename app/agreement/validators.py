"""Model judges as validators: kappa against cost, and the groups each would keep."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from analysis.agreement.judging_figures import is_placed, kappa_against_cost, kept_sets
from analysis.agreement.validators import TITLES, kept_rows, validator_row
from app.kit.figure import Origin, draw_figure, draw_rows
from app.kit.page import draw_drawer
from app.text.plain import plain


def draw_validators(report: Mapping[str, Any], origin: Origin) -> None:
    """Kappa against price, then the kept groups, each as a figure and, folded, a table."""
    validators = report["validators"]
    st.header("Agreement with people and price", anchor=False)
    rows = [validator_row(row) for row in validators]
    has_figure = any(is_placed(row) for row in validators)
    if has_figure:
        draw_figure(kappa_against_cost(validators), rows, origin, key="validators.cost")
    for row in validators:
        if reason := why_not_placed(row):
            lacks = "is not in the figure" if has_figure else "cannot be placed"
            st.caption(plain(f"{row['judge']} {lacks}: {reason}."))
    number = st.column_config.NumberColumn(format="%.4f")
    names = ("Kappa with people", "95 % from", "to", "USD per 1,000 items")
    columns = dict.fromkeys(names, number)
    columns["Items passed, %"] = st.column_config.NumberColumn(format="%.1f")
    key = "validators.prices"
    draw = partial(draw_rows, rows, origin, key=key, column_config=columns)
    draw_drawer("The judges as a table", draw, key=f"{key}_drawer")
    draw_kept(report, origin)
    _draw_unused_models(report["not_asked"], origin)


def _draw_unused_models(models: Sequence[Mapping[str, Any]], origin: Origin) -> None:
    """The estimated cost of models in the price table that have not judged yet."""
    if not models:
        return
    key = "validators.not_asked"

    def draw() -> None:
        rows = [
            {"Model": row["model"], "USD per 1,000 items": row["usd_per_1000_items"]}
            for row in sorted(models, key=lambda row: row["usd_per_1000_items"])
        ]
        number = st.column_config.NumberColumn(format="%.4f")
        draw_rows(rows, origin, key=key, column_config={"USD per 1,000 items": number})
        st.caption(
            "Estimated from the price table and the length of this run's items, without any call. "
            "Their agreement with people is known once they have judged a study."
        )

    draw_drawer("Estimated cost of other models", draw, key=f"{key}_drawer")


def draw_kept(report: Mapping[str, Any], origin: Origin) -> None:
    """What each judge and each vote would keep, next to what the run kept."""
    st.header("Groups kept by each validator", anchor=False)
    rows = kept_rows([*report["validators"], *report["policies"]])
    complete = [row for row in rows if row["groups"]]
    st.caption(
        f"The run kept {report['kept']:,} of {report['groups']:,} groups. Only groups "
        "whose items were all answered by the judge, or by every voter, are counted."
    )
    if complete:
        draw_figure(kept_sets(complete), rows, origin, key="validators.kept")
    else:
        st.caption("No judge has answered every item of a group, so no verdicts are known.")
    if not report["policies"]:
        st.caption("A vote needs two model judges that answered every item of a group.")
    shown = [{TITLES[name]: row[name] for name in TITLES} for row in rows]
    columns = {
        TITLES["kept_groups_in_part"]: st.column_config.NumberColumn(
            help="Groups that the run kept, not all of whose items were judged here."
        ),
        TITLES["surely_dropped_of_them"]: st.column_config.NumberColumn(
            help="Of those judged in part: dropped whatever the missing answers are."
        ),
    }
    key = "validators.kept_table"
    draw = partial(draw_rows, shown, origin, key=key, column_config=columns)
    draw_drawer("The groups as a table", draw, key=f"{key}_drawer", is_open=not complete)


def why_not_placed(row: Mapping[str, Any]) -> str:
    """Why a judge is not in the figure; "" if it is."""
    if row["usd_per_1000_items"] is None:
        return str(row["price_reason"])
    if "human_kappa" not in row:
        return "it has no kappa with people from a study that samples the run"
    if row["human_kappa"]["value"] is None:
        return str(row["human_kappa"]["reason"])
    return ""


def validators_sentence(report: Mapping[str, Any]) -> str:
    """The judge that agrees best with people, those as good within the intervals, the cheapest."""
    rated = [row for row in report["validators"] if _kappa(row) is not None]
    if not rated:
        return f"No judge can be recommended yet: {_why_not(report)}."
    best = max(rated, key=lambda row: float(row["human_kappa"]["value"]))
    if len(rated) == 1:
        only = f"{best['judge']} agrees with people at {_kappa_text(best)}."
        return f"{only} No other judge is rated yet."
    sentence = f"{best['judge']} agrees best with people: {_kappa_text(best)}."
    close = [row for row in rated if row is not best and _overlap(row, best)]
    if not close:
        return sentence
    others = ", ".join(f"{row['judge']} ({_kappa_text(row)})" for row in close)
    sentence += f" These items do not show that it is better than {others}."
    priced = [row for row in (best, *close) if row["usd_per_1000_items"] is not None]
    if len(priced) < len(close) + 1:
        return sentence
    cheapest = min(priced, key=lambda row: float(row["usd_per_1000_items"]))
    cost = float(cheapest["usd_per_1000_items"])
    return f"{sentence} Cheapest of them: {cheapest['judge']}, ${cost:,.4f} per 1,000 items."


def _kappa(row: Mapping[str, Any]) -> float | None:
    kappa = row.get("human_kappa", {}).get("value")
    return None if kappa is None else float(kappa)


def _kappa_text(row: Mapping[str, Any]) -> str:
    interval = row["human_kappa"].get("interval")
    between = f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
    return f"kappa {_kappa(row):.2f}{between}"


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the intervals overlap; without both, neither is better."""
    first, second = (row["human_kappa"].get("interval") for row in (one, other))
    if not first or not second:
        return True
    return bool(first[1] >= second[0] and second[1] >= first[0])


def _why_not(report: Mapping[str, Any]) -> str:
    means = [row["human_kappa"] for row in report["validators"] if "human_kappa" in row]
    if means:
        return str(means[0]["reason"])
    return "no study that samples the run has judgments by people"
