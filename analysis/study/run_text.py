"""The estimates about a run in sentences and rows, the same on page, card and command. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from analysis.agreement.flagged import MAX_NAMED, WITHOUT, flag_note, rows_without
from analysis.figures.numbers import Cells, counted, share_text

FIGURES: Final = {
    "precision": "Items of kept groups that people confirm (precision)",
    "overturned": "Items the validator missed that people confirm (wrongly dropped)",
    "recall": "Confirmed items that the validator passed (recall)",
}
GROUP_FIGURES: Final = {
    "kept_groups": "Kept groups that people confirm as a whole",
    "dropped_groups": "Dropped groups that people would keep",
    "group_recall": "Groups people would keep that the run kept",
}
PARTS: Final = {"kept": "items of kept groups", "dropped": "missed items of dropped groups"}
TOO_FEW: Final = "too few groups for an interval"
WHY_BOUNDS: Final = (
    "A study asks about one item of a group, so of whole groups only bounds are known; the limits "
    "add the uncertainty of the sample."
)


def headline(report: Mapping[str, Any], *, limit: int = MAX_NAMED) -> str:
    """What the study says about the run, or why nothing, in one or two sentences.

    limit: how many flagged people are named; the others are counted.
    """
    precision, recall = report["precision"], report["recall"]
    if not report["known"]:
        return f"This study says nothing about the run as a whole: {report['reason']}."
    if precision["value"] is None and recall["value"] is None:
        reason = precision.get("reason") or recall.get("reason")
        return f"This study says nothing about the run yet: {reason}."
    who = "Simulated judges" if report["simulated"] else "People"
    parts = []
    if precision["value"] is not None:
        parts.append(f"{who} confirm {estimate(precision)} of the items in kept groups.")
    if recall["value"] is not None:
        parts.append(
            f"Of the items that {who.lower()} confirm, the validator passed {estimate(recall)}."
        )
    else:
        parts.append(f"Recall is not known: {recall['reason']}.")
    return " ".join(parts) + flagged(report, limit=limit) + imbalance(report)


def flagged(report: Mapping[str, Any], *, limit: int = MAX_NAMED) -> str:
    """Who behind the estimates is flagged, and precision without them; "" for nobody."""
    precision = report["precision"]
    if not (note := flag_note([precision], limit=limit)):
        return ""
    return f" {note} Precision without flagged people: {without_flagged(precision)}."


def without_flagged(found: Mapping[str, Any]) -> str:
    """An estimate, or the bounds of whole groups, without flagged people."""
    without = found["without_flagged"]
    return bounds(without) if "low" in without else estimate(without)


def estimate(share: Mapping[str, Any]) -> str:
    """A share with its interval, or why it has none; "undefined" without a value."""
    if share["value"] is not None and "no_interval" in share:
        return f"{share['value']:.1%} ({share['no_interval']})"
    return share_text(share["value"], share["interval"])


def bounds(found: Mapping[str, Any]) -> str:
    """A range with the limits of its sample."""
    if found["low"] is None:
        return "undefined"
    text = _range(found)
    if not found["interval"]:
        return f"{text} ({TOO_FEW})"
    low, high = found["interval"]
    return f"{text} (limits {low:.1%} to {high:.1%})"


def _range(found: Mapping[str, Any]) -> str:
    """A range without the limits of its sample."""
    if found["low"] is None:
        return "undefined"
    low, high = f"{found['low']:.1%}", f"{found['high']:.1%}"
    return low if low == high else f"{low} to {high}"


def _short(found: Mapping[str, Any]) -> str:
    """A range for a cell of a table: no value of its own where the sample is too small."""
    return _range(found) if found["low"] is None or found["interval"] else "too few groups"


def basis(report: Mapping[str, Any]) -> str:
    """What the estimates are made from."""
    groups = report["groups"]
    ties = f" {report['ties']:,} split evenly count half." if report["ties"] else ""
    weighted = f" within {' and '.join(report['strata'])}" if report["strata"] else ""
    return (
        f"From {report['judged']:,} judged groups of {groups['kept']:,} kept and "
        f"{groups['dropped']:,} dropped ones that reached the validator, weighted by how they were "
        f"sampled{weighted}.{ties}"
    )


def imbalance(report: Mapping[str, Any]) -> str:
    """In what the judged items differ from those that wait, and what follows; "" for nothing."""
    found = report.get("imbalances") or []
    if not found:
        return ""
    parts = [
        f"{each['field'].replace('_', ' ')} {each['value'] or 'none'!r} is {each['judged']:.0%} of "
        f"them and {each['waiting']:.0%} of the others"
        for each in found
    ]
    shifts = [each["field"].replace("_", " ") for each in found if not each["weighted"]]
    follows = (
        f"No weight corrects that for {' and '.join(shifts)}: the estimate may be another one when "
        "the queue is judged."
        if shifts
        else "The weights correct that."
    )
    return (
        f" The judged items are no random part of the queue, of which {report['waiting']:,} wait: "
        f"{'; '.join(parts)}. {follows}"
    )


def _why(found: Mapping[str, Any], value: float | None) -> str:
    """Why a figure, or its interval, is missing; "" where both are there."""
    reason = str(found.get("reason", ""))
    return reason if value is None or found["interval"] else reason or TOO_FEW


def rows(report: Mapping[str, Any]) -> list[Cells]:
    """A row per figure of the whole run, with its 95 % interval."""
    found = []
    for name, label in FIGURES.items():
        share = report[name]
        low, high = share["interval"] or (None, None)
        found.append(
            {
                "Figure": label,
                "Estimate": share["value"],
                "95 % from": low,
                "to": high,
                "Groups judged": share.get("judged"),
                "Reason if undefined": _why(share, share["value"]),
            }
        )
    return rows_without(found, [report[name] for name in FIGURES])


def group_rows(report: Mapping[str, Any]) -> list[Cells]:
    """A row per figure of whole groups: bounds, and the limits of the sample."""
    found = []
    for name, label in GROUP_FIGURES.items():
        each = report[name]
        low, high = each["interval"] or (None, None)
        found.append(
            {
                "Figure": label,
                "At least": each["low"],
                "At most": each["high"],
                "95 % from": low,
                "to": high,
                "Reason if undefined": _why(each, each["low"]),
            }
        )
    figures = [report[name] for name in GROUP_FIGURES]
    return [
        row if not each.get("flagged") else row | {WITHOUT: _short(each["without_flagged"])}
        for row, each in zip(rows_without(found, figures, "low"), figures, strict=True)
    ]


def part_rows(report: Mapping[str, Any]) -> list[Cells]:
    """A row per scenario, source and drop reason."""
    found = []
    for row in report["parts"]:
        low, high = row["interval"] or (None, None)
        found.append(
            {
                "Part": PARTS[row["part"]],
                "By": row["by"].replace("_", " "),
                "Name": row["name"].replace("_", " ") or "none",
                "Confirmed": row["value"],
                "95 % from": low,
                "to": high,
                "Groups judged": row["judged"],
                "Items in the run": row["items"],
                "Reason if undefined": _why(row, row["value"]),
            }
        )
    return rows_without(found, report["parts"])


def plan_sentence(plan: Mapping[str, Any]) -> str:
    """What a plan costs and what it brings."""
    more = f"{counted(plan['judgments'], 'more judgment')} of {counted(plan['items'], 'item')}"
    now = "" if plan["now"] is None else f" (now ±{100 * plan['now']:.1f})"
    expected = f"±{100 * plan['expected']:.1f} points"
    if plan["reach"] is None:
        return f"{more}: {plan['target']} to about {expected}{now}"
    wanted = f"to know {plan['target']} to ±{100 * plan['reach']:g} points{now}"
    if not plan["items"] and plan["is_enough"]:
        return f"{wanted}: nothing more is needed"
    if plan["is_enough"]:
        return f"{wanted}: {more}"
    return f"{wanted}: the run has too few groups; {more} would bring it to {expected}"
