"""Say whether every token of a sheet has one answer: python3 complete.py SHEET ANSWERS."""

import json
import sys
from collections import Counter
from pathlib import Path


def main(sheet: str, answers: str) -> None:
    """Exit with what is missing, unknown, answered twice or no choice from 0 to 8."""
    tokens, given = (
        [json.loads(line) for line in Path(file).read_text("utf-8").splitlines() if line.strip()]
        for file in (sheet, answers)
    )
    wanted, answered = {row["token"] for row in tokens}, Counter(row["token"] for row in given)
    faults = {
        "no answer": sorted(wanted - set(answered)),
        "unknown": sorted(set(answered) - wanted),
        "answered twice": sorted(token for token, times in answered.items() if times > 1),
        "no choice from 0 to 8": [row["token"] for row in given if row["choice"] not in range(9)],
    }
    if found := {what: which for what, which in faults.items() if which}:
        raise SystemExit(f"not complete: {found}")
    print(f"complete: every one of {len(wanted)} tokens has exactly one answer")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
