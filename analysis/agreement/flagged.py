"""People whose answers are in doubt: their names and the figure without them. Pure.

A report is computed twice, with and without the people flagged as too fast or failing gold, and
`with_figures_without` gives each figure of the one that of the other. Sentences and tables read
that: a sentence names at most `MAX_NAMED` people, a table gets a column more, and where the figures
have intervals two more. What is published names all, by the pseudonyms of `under_names`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis.agreement.headline import figure_text, interval_cells
from analysis.agreement.measures import MEASURES
from analysis.figures.numbers import Cells, counted

MAX_NAMED: Final = 5  # people in a sentence; the report and the table of judges name all
FIGURE: Final = ("value", "difference", "low")  # the first key of a figure is one of these
DIFFERS: Final = {True: "yes", False: "no clear difference", None: ""}
WEIGHTED: Final = {
    "weighted_kappa": "Weighted kappa, quadratic",
    "linear_weighted_kappa": "Weighted kappa, linear",
}
WITHOUT: Final = "Without flagged people"
WITHOUT_LOW: Final = "Without: 95 % from"
WITHOUT_HIGH: Final = "Without: to"


def with_figures_without(found: Any, without: Any, flagged: Mapping[str, str]) -> Any:
    """`found`, each figure in it with `flagged`, why by name, and itself in `without_flagged`.

    found and without: reports of the same shape, or parts of them.
    """
    if not flagged:
        return found
    if isinstance(found, Mapping):
        if any(key in found for key in FIGURE):
            return {**found, "flagged": dict(flagged), "without_flagged": without}
        return {
            key: with_figures_without(each, without.get(key), flagged)
            for key, each in found.items()
        }
    if isinstance(found, list):
        parts = zip(found, without, strict=True)
        return [with_figures_without(each, other, flagged) for each, other in parts]
    return found


def under_names(found: Any, names: Mapping[str, str]) -> Any:
    """`found`, the flagged people in it under other names: their pseudonyms, in that order."""
    if isinstance(found, list):
        return [under_names(each, names) for each in found]
    if not isinstance(found, Mapping):
        return found
    return {
        key: dict(sorted((names[name], why) for name, why in each.items()))
        if key == "flagged"
        else under_names(each, names)
        for key, each in found.items()
    }


def flag_sentence(found: Mapping[str, Any], *, digits: int = 3, with_reasons: bool = True) -> str:
    """Which people behind a headline figure are flagged, and it without them; "" for nobody."""
    flagged: Mapping[str, str] = found.get("flagged", {})
    if not flagged:
        return ""
    who = _who(flagged, MAX_NAMED, with_reasons=with_reasons)
    them = "them" if len(flagged) > 1 else "this person"
    return f"{who}; without {them}: {figure_text(found['without_flagged'], digits)}."


def flag_note(figures: Sequence[Mapping[str, Any]], *, limit: int = MAX_NAMED) -> str:
    """Which people behind the figures of a table are flagged; "" for nobody.

    limit: how many are named; the others are counted.
    """
    flagged: dict[str, str] = {}
    for each in figures:
        flagged |= each.get("flagged", {})
    return f"{_who(flagged, limit, with_reasons=True)}." if flagged else ""


def rows_without(
    rows: Sequence[Cells], figures: Sequence[Mapping[str, Any]], key: str = "value"
) -> list[Cells]:
    """The rows of a table, with the figures without flagged people, and their intervals where there
    are any, if anybody is flagged."""
    if not any(each.get("flagged") for each in figures):
        return list(rows)
    without = [each.get("without_flagged", {}) for each in figures]
    found = [{**row, WITHOUT: other.get(key)} for row, other in zip(rows, without, strict=True)]
    if any(other.get("interval") for other in without):
        for row, other in zip(found, without, strict=True):
            row[WITHOUT_LOW], row[WITHOUT_HIGH] = other.get("interval") or (None, None)
    return found


def _who(flagged: Mapping[str, str], limit: int, *, with_reasons: bool) -> str:
    texts = [f"{name} ({reason})" if with_reasons else name for name, reason in flagged.items()]
    more = f" and {len(texts) - limit:,} more" if len(texts) > limit else ""
    return f"Flagged: {', '.join(texts[:limit])}{more}"


def persons_of(report: Mapping[str, Any]) -> str:
    """Who stands for people in the report's means."""
    return "Simulated judges" if report["simulated"] else "People"


def bar_rows(report: Mapping[str, Any]) -> list[Cells]:
    """The values of the bars of Figure 4: a row per figure."""
    who = persons_of(report).lower()
    figures = {
        f"{who} with {who}": report["human_human"],
        **{f"{who} with {name}": each for name, each in report["human_model"].items()},
    }
    rows = [
        {
            "Between": name,
            "Coefficient": found["label"],
            "Value": found["value"],
            **interval_cells(found),
            "Raw agreement": found["agreement"],
            "Items": found["items"],
            "Reason if undefined": found.get("reason", ""),
        }
        for name, found in figures.items()
    ]
    return rows_without(rows, list(figures.values()))


def pair_rows(pairs: Sequence[Mapping[str, Any]]) -> list[Cells]:
    """A row per pair of judges; who of them is flagged, where anybody is."""
    is_flagged = any("flagged" in pair for pair in pairs)
    return [
        {
            "Judge": pair["judge_a"],
            "With": pair["judge_b"],
            **({"Flagged": ", ".join(pair.get("flagged", ()))} if is_flagged else {}),
            "Kappa": pair["kappa"],
            **interval_cells(pair),
            "Std. error": pair["standard_error"],
            "Raw agreement": pair["agreement"],
            "Items": pair["items"],
            "Reason if undefined": pair.get("reason", ""),
        }
        for pair in pairs
    ]


def pairs_sentence(counted_pairs: Mapping[str, int]) -> str:
    """How many pairs have a value and how many only a count, and how many are listed."""
    few, least = counted_pairs["with_fewer"], counted_pairs["min_shared"]
    text = (
        f"{counted(counted_pairs['with_enough_items'], 'pair')} with {least} or more shared items; "
        f"{counted(few, 'pair')} with fewer, shown as a count."
    )
    listed, every = counted_pairs["listed"], counted_pairs["pairs"]
    if listed < every:
        text += f" Listed: the {listed:,} of {every:,} pairs that share most items."
    return text


def window_rows(windows: Sequence[Mapping[str, Any]]) -> list[Cells]:
    """A row per window and series."""
    rows = [
        {
            "Window": window["window"],
            "From": window["since"],
            "To": window["until"],
            "Items": window["items"],
            "Judgments": window["judgments"],
            "People with": name,
            "Coefficient": found["label"],
            "Value": found["value"],
            "Compared items": found["items"],
            "Reason if undefined": found.get("reason", ""),
        }
        for window in windows
        for name, found in {"people": window["human_human"], **window["human_model"]}.items()
    ]
    return rows_without(rows, figures_over_time(windows))


def figures_over_time(windows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The figure of people and those of models of every window, in the order of `window_rows`."""
    return [
        found
        for window in windows
        for found in (window["human_human"], *window["human_model"].values())
    ]


def difference_rows(differences: Sequence[Mapping[str, Any]]) -> list[Cells]:
    """A row per pair of models: the difference of their agreement with people."""
    rows = [
        {
            "Model": row["model_a"],
            "Against": row["model_b"],
            "Difference of kappa": row["difference"],
            **interval_cells(row),
            "Differs": DIFFERS[row.get("differs")],
            "Reason if undefined": row.get("reason", ""),
        }
        for row in differences
    ]
    return rows_without(rows, differences, "difference")


def measures_of(report: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Among whom, what and how much: Cohen's kappa of two people, the registered measures, with the
    models too where there are any, and of grades the weighted kappas."""
    persons = persons_of(report).lower()
    among = [(persons, "people")]
    if any(each["kind"] == "model" for each in report["judges"]):
        among.append((f"{persons} and models", "all_judges"))
    found = [
        (who, MEASURES[name].label, numbers)
        for who, key in among
        for name, numbers in report[key].items()
    ]
    of_two = report["human_human"]
    if of_two.get("coefficient") == "cohen_kappa":
        found.insert(0, (persons, of_two["label"], of_two))
    return found + [
        (persons, label, report[name]) for name, label in WEIGHTED.items() if name in report
    ]


def measure_rows(report: Mapping[str, Any]) -> list[Cells]:
    """A row for each of `measures_of`."""
    found = measures_of(report)
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
    return rows_without(rows, [numbers for _, _, numbers in found])


def profile_rows(profiles: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per judge: pace, agreement with others, gold where the reader may know it, and bias."""
    rows = [
        {
            "Judge": each["judge"],
            "Kind": each["kind"],
            "Flagged": each["flagged"],
            "Judged": each["judged"],
            "Kappa with people": each["with_people"]["value"],
            **interval_cells(each["with_people"]),
            "Kappa with models": each["with_models"]["value"],
            "Seconds": each["median_seconds"],
            **_gold_cells(each),
            "Positions chosen": each["position_bias"]["shares"],
            "Bias p": each["position_bias"]["p"],
        }
        for each in profiles
    ]
    return rows_without(rows, [each["with_people"] for each in profiles])


def _gold_cells(each: Mapping[str, Any]) -> Cells:
    """The columns of gold; none for a reader who may still be given gold items."""
    if each["gold_seen"] is None:
        return {}
    return {"Gold seen": each["gold_seen"], "Gold accuracy": each["gold_accuracy"]}
