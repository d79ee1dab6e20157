"""The first sentence of the Validators page: which judge to choose, as far as it is known. Pure."""

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]


def validators_sentence(report: Mapping[str, Any]) -> str:
    """The judge that agrees best with people, those as good within the intervals, the cheapest."""
    rated = [row for row in report["validators"] if _kappa(row) is not None]
    if not rated:
        return f"No judge can be recommended yet: {_why_not(report)}."
    best = max(rated, key=lambda row: float(row["human_kappa"]["kappa"]))
    if len(rated) == 1:
        return f"{best['judge']} agrees with people at {_text(best)}. No other judge is rated yet."
    sentence = f"{best['judge']} agrees best with people: {_text(best)}."
    close = [row for row in rated if row is not best and _overlap(row, best)]
    if not close:
        return sentence
    others = ", ".join(f"{row['judge']} ({_text(row)})" for row in close)
    sentence += f" These items do not show that it is better than {others}."
    priced = [row for row in (best, *close) if row["usd_per_1000_items"] is not None]
    if len(priced) < len(close) + 1:
        return sentence
    cheapest = min(priced, key=lambda row: float(row["usd_per_1000_items"]))
    cost = float(cheapest["usd_per_1000_items"])
    return f"{sentence} Cheapest of them: {cheapest['judge']}, ${cost:,.4f} per 1,000 items."


def _kappa(row: Row) -> float | None:
    kappa = row.get("human_kappa", {}).get("kappa")
    return None if kappa is None else float(kappa)


def _text(row: Row) -> str:
    interval = row["human_kappa"].get("interval")
    between = f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
    return f"kappa {_kappa(row):.2f}{between}"


def _overlap(one: Row, other: Row) -> bool:
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
