"""How often the check of shared parts raises a false alarm, and from which share it finds debris.

    python bench/shared_parts.py --data ../shared/data/google_queries --rounds 300

False alarms: real passages and queries stand on both sides, so nothing is shared but by chance.
Found: the same with debris that no rule knows at the end of a share of P1-; half of it in a script
without spaces.
"""

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis.text.shared_parts import Texts, shared_parts
from db.shape import INF_IR

SOURCES = tuple(text.sign for text in INF_IR.all_texts if text.from_source)
SIGNS = tuple(text.sign for text in INF_IR.all_texts if not text.from_source)
REQUESTS = tuple(text.sign for text in INF_IR.all_texts if text.field == "instruction")


DEBRIS = (" (Mvh. Redaktionen)", " នេះជាអត្ថបទសាកល្បង")


def rows(path: Path, key: str) -> list[str]:
    return [json.loads(line)[key] for line in path.read_text("utf-8").splitlines()]


def run(passages: list[str], queries: list[str], size: int, seed: int, spoilt: int) -> Any:
    """The report over `size` pairs of real texts, with debris in P1- of the first `spoilt`."""
    pick = random.Random(f"{size}/{seed}")
    columns = {
        sign: pick.sample(queries if text.field == "query" else passages, size)
        for sign, text in INF_IR.texts.items()
    }
    end = DEBRIS[seed % 2]
    columns["P1-"] = [text + end * (number < spoilt) for number, text in enumerate(columns["P1-"])]
    groups = [
        Texts(number, str(number), {sign: columns[sign][number] for sign in INF_IR.texts})
        for number in range(size)
    ]
    return shared_parts(groups, lambda: iter(groups), SIGNS, sources=SOURCES, requests=REQUESTS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=300)
    arguments = parser.parse_args()
    passages = rows(arguments.data / "passages.jsonl", "text")
    queries = rows(arguments.data / "pairs.jsonl", "query")
    for size in (10, 18, 40, 100, 300):
        rounds = max(10, arguments.rounds * 18 // max(size, 18))
        alarms = sum(bool(run(passages, queries, size, n, 0)["parts"]) for n in range(rounds))
        tries = max(4, rounds // 15)
        needed = next(
            (
                spoilt
                for spoilt in range(3, size + 1)
                if all(run(passages, queries, size, n, spoilt)["parts"] for n in range(tries))
            ),
            None,
        )
        print(f"{size} pairs: false alarms {alarms} of {rounds}; found from {needed} texts on")


if __name__ == "__main__":
    main()
