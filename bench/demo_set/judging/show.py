"""Print seven items of a judge's sheet: python3 show.py SHEET FROM (count from 0)."""

import json
import sys
from pathlib import Path

ITEMS_AT_ONCE = 7


def main(sheet: str, first: int) -> None:
    """Print the items FROM … FROM+6 as a judge reads them."""
    rows = [json.loads(line) for line in Path(sheet).read_text("utf-8").splitlines()]
    for place, row in enumerate(rows[first : first + ITEMS_AT_ONCE], first):
        print(f"\n===== item {place} of {len(rows)} · token {row['token']}")
        print(f"QUERY: {row['query']}\nINSTRUCTION: {row['instruction']}")
        for number, text in enumerate(row["passages"], 1):
            print(f"  [{number}] {text}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
