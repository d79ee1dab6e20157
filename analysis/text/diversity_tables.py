"""Diversity side by side: Table 1's row of each corpus, and filtered against unfiltered. Pure.

Both read the result of a diversity analysis (`analysis.text.diversity.describe_corpus` per corpus).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis.figures.numbers import Cells
from analysis.found.texts import (
    CorpusDiversity,
    CorpusRow,
    CoveredBy,
    FieldCovered,
    FieldNumbers,
    Spread,
    TextNumbers,
)
from analysis.paper.published import published
from db.shape import INF_IR

FIELDS: Final = ("instruction", "query", "passage", "text")
METRICS: Final = ("aps", "ingf_2", "ingf_3")
FILTERED, UNFILTERED = ", filtered", ", unfiltered"


PAPER: Final = " (paper)"


def published_rows(corpora: Sequence[CorpusRow]) -> list[Cells]:
    """The paper's row of every published corpus that one of the corpora is named after."""
    found = []
    for printed in published("table_1"):
        name = str(printed["dataset"])
        if any(_letters(name) in _letters(corpus.corpus) for corpus in corpora):
            row: Cells = {"corpus": f"{name}{PAPER}", "groups": None}
            for field in FIELDS[:3]:
                row[_plural(field)] = printed[_plural(field)]
                row[f"words per {field}"] = printed[f"words per {field}"]
            found.append(row)
    return found


def _letters(name: str) -> str:
    return "".join(each for each in name.casefold() if each.isalnum())


def table_one(corpora: Sequence[CorpusDiversity]) -> list[Cells]:
    """Table 1: a row per corpus with its groups, and counts and mean words of each field it has."""
    there = [field for field in FIELDS if any(field in corpus.fields for corpus in corpora)]
    rows = []
    for corpus in corpora:
        row: Cells = {"corpus": corpus.corpus, "groups": corpus.groups or None}
        for field in there:
            numbers = corpus.fields.get(field)
            row[f"{_plural(field)}"] = numbers.texts if numbers else 0
            row[f"words per {field}"] = numbers.mean_words if numbers else None
        rows.append(row)
    return rows


def filter_pairs(
    corpora: Sequence[CorpusDiversity],
) -> list[tuple[CorpusDiversity, CorpusDiversity]]:
    """Corpora that stand there both filtered and unfiltered."""
    by_name = {corpus.corpus: corpus for corpus in corpora}
    return [
        (corpus, by_name[other])
        for name, corpus in by_name.items()
        if name.endswith(FILTERED)
        and (other := name.removesuffix(FILTERED) + UNFILTERED) in by_name
    ]


def filter_rows(filtered: CorpusDiversity, unfiltered: CorpusDiversity) -> list[Cells]:
    """Figure 6's question: size and diversity of the filtered and the unfiltered dataset.

    Diversity is that of samples of equal size; where there is none, that of the whole, and
    `of` says which. INGF grows with size, so that the whole's are no comparison.
    """
    rows: list[Cells] = [
        {
            "what": "groups",
            "of": "whole",
            "filtered": filtered.groups,
            "unfiltered": unfiltered.groups,
        }
    ]
    for field in FIELDS:
        one, other = filtered.fields.get(field), unfiltered.fields.get(field)
        if one is None or other is None:
            continue
        for name in ("texts", "different", "mean_words"):
            rows.append(
                {
                    "what": f"{_plural(field)}: {name.replace('_', ' ')}",
                    "of": "whole",
                    "filtered": getattr(one, name),
                    "unfiltered": getattr(other, name),
                }
            )
        samples = (one.sampled, other.sampled)
        for metric in METRICS:
            row: Cells = {
                "what": f"{_plural(field)}: {metric.upper().replace('_', ' ')}",
                "of": f"{one.sampled.repeats} samples of {one.sampled.size:,}"
                if one.sampled and other.sampled
                else "whole",
            }
            for side, numbers, sampled in zip(
                ("filtered", "unfiltered"), (one, other), samples, strict=True
            ):
                if None in samples:
                    row[side] = getattr(numbers, metric)
                elif (spread := getattr(sampled, metric)) is None:
                    row[side] = None
                else:
                    row[side], row[f"{side} sd"] = spread.mean, spread.sd
            rows.append(row)
    return rows


def drop_rows(filtered: CorpusDiversity, unfiltered: CorpusDiversity) -> list[Cells]:
    """What became of the groups: kept, then each drop reason, most frequent first."""
    dropped = unfiltered.dropped or {}
    total = filtered.groups + sum(dropped.values())
    found = [("kept", filtered.groups)]
    found += sorted(dropped.items(), key=lambda each: (-each[1], each[0]))
    return [
        {"groups": reason, "count": count, "share": count / total if total else None}
        for reason, count in found
    ]


def _plural(field: str) -> str:
    return "queries" if field == "query" else f"{field}s"


def number_rows(corpora: Sequence[CorpusDiversity]) -> list[dict[str, Any]]:
    """A row per corpus, field and role; undefined values are empty, with their reason."""
    rows = []
    for corpus in corpora:
        for field, numbers in corpus.fields.items():
            roles: dict[str, TextNumbers] = {"all": numbers, **numbers.by_role}
            for role, found in roles.items():
                rows.append(
                    {
                        "Corpus": corpus.corpus,
                        "Text": f"{field}, all"
                        if found is numbers
                        else found.sign or INF_IR.mark(field, role).sign,
                        "Texts": found.texts,
                        "Distinct": found.different,
                        "Mean words": found.mean_words,
                        "APS": found.aps,
                        "INGF 2": found.ingf_2,
                        "INGF 3": found.ingf_3,
                        **(_sampled(numbers) if found is numbers else {}),
                        "reasons": [
                            f"{metric} of {field} is undefined: {reason}"
                            for metric, reason in found.reason.items()
                        ],
                    }
                )
    return rows


def _sampled(numbers: FieldNumbers) -> Cells:
    if numbers.sampled is None:
        return {}
    cells: Cells = {"Sample": numbers.sampled.size}
    spreads: list[Spread | None] = []
    for metric, name in (("aps", "APS"), ("ingf_2", "INGF 2"), ("ingf_3", "INGF 3")):
        spreads.append(spread := getattr(numbers.sampled, metric))
        cells[f"{name}, samples"] = spread.mean if spread else None
        cells[f"{name} ±"] = spread.sd if spread else None
        cells[f"{name}, halves differ by"] = getattr(numbers.halves, metric, None)
    if any(spread is not None and spread.draws == 1 for spread in spreads):
        cells["Draws"] = "one draw"  # in place of a spread
    return cells


COVERED_COLUMNS = {
    "share": "Covered",
    "map": "Share of the map",
    "hull": "Share of the hull",
}


def share_rows(fields: Mapping[str, Mapping[str, FieldCovered]]) -> list[Cells]:
    """A row per field and corpus: the share of the map and of the hull that its texts cover."""
    return [
        {
            "Texts": field,
            "Corpus": corpus,
            "Distinct": numbers.different,
            "Share of the map": numbers.occupied_share,
            "Share of the hull": numbers.hull_share,
            "Reason if undefined": numbers.reason,
        }
        for field, corpora in fields.items()
        for corpus, numbers in corpora.items()
    ]


def compared_rows(covered: Sequence[CoveredBy]) -> list[Cells]:
    """A row per field and ordered pair of corpora."""
    rows = []
    for row in covered:
        cells: Cells = {
            "Texts": row.field,
            "Corpus": row.corpus,
            "Compared with": row.by,
            "Texts of each": row.size,
        }
        for name, label in COVERED_COLUMNS.items():
            cells[label] = getattr(row, name)
            cells[f"{label} ±"] = getattr(row, f"{name}_sd")
            cells[f"{label}, own halves"] = getattr(row, f"{name}_halves")
        rows.append({**cells, "Reason if undefined": row.reason})
    return rows
