"""The lines of docs/how-to/notebook.md, as they stand there: from texts in memory to a comparison.

    python -P tests/door_lines.py LINES    a file with these lines

Where the lines take what people approved, forty groups are approved first.
"""

import random
import sys
from pathlib import Path
from typing import Any

import pandas as pd

import inf_studio as inf

PAIRS, APPROVED = 120, 40


def made_up(chance: random.Random, words: int) -> str:
    """Words that no language has, so that no text is like another."""
    syllables = (chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(3 * words))
    return " ".join(map("".join, zip(*[syllables] * 3, strict=True)))


def texts() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs and passages; the longest word of a passage is in no other (the stand-in of a model
    asks for it)."""
    rows = []
    for number in range(PAIRS):
        chance = random.Random(number)
        name = made_up(chance, 5).replace(" ", "")
        passage = f"The house of {name} was built by hand. It has {made_up(chance, 12)}."
        rows.append((f"q{number}", f"who built {made_up(chance, 2)}", f"p{number}", passage))
    pairs = pd.DataFrame([row[:3] for row in rows], columns=["query_id", "query", "passage_id"])
    return pairs, pd.DataFrame([row[2:] for row in rows], columns=["passage_id", "text"])


def main(path: Path) -> None:
    lines = path.read_text(encoding="utf-8")
    pairs, passages = texts()
    names: dict[str, Any] = {"inf": inf, "df": pairs, "texts": passages}
    first, release, then = lines.partition("release = ")
    exec(compile(first, str(path), "exec"), names)  # in a file: a judge is named by its source
    run, study = names["run"], names["study"]
    assert {group["verdict"] for group in run.groups()} == {"kept"} and len(run.groups()) == PAIRS
    assert study.agreement()._repr_html_()
    for group in list(run.groups())[:APPROVED]:
        names["studio"].call("reviews set", group_id=group["id"], action="approve")
    *then, last = (release + then).strip().splitlines()
    exec("\n".join([*then, f"compared = {last}"]), names)
    assert names["compared"]._repr_html_()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
