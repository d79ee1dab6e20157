"""The paper's Tables 1 to 6 as printed (Zhuang et al., *Towards Better Instruction Following
Retrieval Models*), with the misprints that are known. Pure.

The files in `tables/` hold only what is printed, tab-separated: nothing is computed, rounded or
corrected, and an empty cell is one that the paper leaves empty. Figures 3, 4 and 6 print no values.
"""

import csv
from functools import cache
from pathlib import Path
from typing import Final

Cell = str | float | None
MISPRINTS: Final = {
    "table_3": (
        "ModernBERT's base p-MRR is printed −0.27; its three sets in Table 6 average −2.57.",
    ),
    "table_5": ("Tables 2 and 5 print different MAIR scores for Qwen2.5-1.5B + InF-Embed.",),
    "table_6": (
        "ModernBERT's base p-MRR is printed −0.27; its three sets average −2.57.",
        "Llama-3.2-1B with I,IQ:multi: Robust04's p-MRR is printed −14.11; its overall p-MRR "
        "follows from −1.11.",
    ),
}


def published(table: str) -> list[dict[str, Cell]]:
    """The rows of a table as printed: numbers as numbers, an empty cell as None."""
    return [dict(row) for row in _read(table)]


def columns_of(table: str) -> list[str]:
    """The columns of a table, in the order of the paper."""
    return list(_read(table)[0])


@cache
def _read(table: str) -> tuple[dict[str, Cell], ...]:
    path = Path(__file__).parent / "tables" / f"{table}.tsv"
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    return tuple({name: _cell(text) for name, text in row.items()} for row in rows)


def _cell(text: str) -> Cell:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text
