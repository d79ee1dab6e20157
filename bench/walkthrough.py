"""Walk the whole path on real questions and write what each command printed.

    .venv/bin/python bench/walkthrough.py ../shared/data/google_queries docs/walkthrough.md
        [--before-curation]

Runs in a temporary folder with a store of its own, offline. Takes about half an hour on 2 cores;
with `--before-curation` the steps before curation alone, which take the place of those on the page.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "tests" / "data" / "first_demo"
INF = Path(sys.executable).parent / "inf"

INTRODUCTION = """# The whole path on real questions

<!-- blocks not run: bench/walkthrough.py runs them, on data that is not in the clone -->

3,315 real Google questions with the Wikipedia passage that answers them (900 from Natural
Questions, 2,415 from BoolQ), through all ten steps, with the *offline* provider: rules write the
groups, an embedding model (MiniLM) validates them, the people are simulated. No language model
wrote or judged anything here: the numbers show how the product works, not how good
instruction-following data can be. [Results](results.md) has the measures on written groups.

Written by `bench/walkthrough.py`, which runs these commands one after the other and keeps what
they print; the times are those of one run on 2 shared cores ({day}). `$DATA` is
`../shared/data/google_queries`, `$DEMO` is `tests/data/first_demo`.
"""

BEFORE_CURATION = "The texts before curation"

STEPS: list[tuple[str, str, list[str]]] = [
    ("1. Store", "The tables, on the embedded SQLite.", ["inf db upgrade"]),
    (
        "2. Import",
        "Questions and passages; the second time adds nothing.",
        [
            "inf import --dataset google --pairs $DATA/pairs.jsonl --passages $DATA/passages.jsonl"
            ' --source "Natural Questions, BoolQ" --licence cc-by-sa-3.0',
            "inf import --dataset google --pairs $DATA/pairs.jsonl --passages $DATA/passages.jsonl"
            " --json",
            "inf import --dataset demo --pairs $DEMO/pairs.jsonl --passages $DEMO/passages.jsonl"
            " --licence cc0-1.0",
        ],
    ),
    (
        BEFORE_CURATION,
        "The 900 questions of Natural Questions and as many of BoolQ, with their passages (896 "
        "different ones, and as many): samples of the size of the smaller corpus, five times. "
        "Then how much of each other, and of the demo set, they cover. MiniLM embeddings. "
        "The same numbers, unrounded, with `--json` (broken into lines here).",
        [
            "inf analyze diversity --dataset google --source nq --source boolq",
            "inf analyze diversity --dataset google --source nq --source boolq --json",
            "inf analyze coverage --dataset google --source nq --source boolq --dataset demo",
            "inf analyze coverage --dataset google --source nq --source boolq --dataset demo"
            " --json",
        ],
    ),
    (
        "3. Curate",
        "I+, then I- and Q-, then P1- and P2-, then validation in three scenarios.",
        ["inf curate --dataset google --provider offline --seed 1"],
    ),
    (
        "4. Judge",
        "A study of 150 items, three simulated people and the embedding model.",
        [
            "inf studies create google --items 150 --overlap 3 --seed 1",
            "inf studies judge 1 --judge simulated:1",
            "inf studies judge 1 --judge simulated:2",
            "inf studies judge 1 --judge simulated:3",
            "inf studies judge 1 --judge offline:embedding",
            "inf studies show 1",
        ],
    ),
    ("5. Agreement", "", ["inf analyze agreement --study 1"]),
    (
        "6. Diversity and coverage",
        "",
        ["inf analyze diversity --dataset google", "inf analyze coverage --dataset google"],
    ),
    (
        "7. Review",
        "",
        [
            "inf reviews set 1 --approve",
            'inf reviews set 2 --reject --reason "the two passages say the same"',
        ],
    ),
    (
        "8. Release",
        "",
        ["inf releases create google --out releases/google --format parquet"],
    ),
    (
        "9. Train",
        "Two minutes on the CPU.",
        ["inf train --release releases/google --out models/google epochs=1 max_seconds=120"],
    ),
    (
        "10. Evaluate",
        "The base model and the trained one, on groups that neither saw.",
        ["inf evaluate --model models/google --release releases/google"],
    ),
]


def main() -> None:
    """Run every command and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("page", type=Path)
    parser.add_argument("--before-curation", action="store_true")
    arguments = parser.parse_args()
    page = arguments.page.resolve()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.before_curation:
            renew_start(arguments.data.resolve(), page, Path(folder))
        else:
            walk(arguments.data.resolve(), page, Path(folder))


def introduction() -> str:
    """The head of the page, with the day of the run."""
    return INTRODUCTION.replace("{day}", time.strftime("%d %B %Y").lstrip("0"))


def walk(data: Path, page: Path, folder: Path) -> None:
    """All steps in `folder`; the page is written after each, so that a failure shows where."""
    parts = [introduction()]
    for step in STEPS:
        parts.append(walked(step, data, folder))
        page.write_text("".join(parts), encoding="utf-8")


def renew_start(data: Path, page: Path, folder: Path) -> None:
    """The steps before curation, in the place of those on the page."""
    titles = [step[0] for step in STEPS]
    early = STEPS[: titles.index(BEFORE_CURATION) + 1]
    rest = page.read_text(encoding="utf-8").split(f"\n## {titles[len(early)]}\n", 1)[1]
    parts = [introduction(), *(walked(step, data, folder) for step in early)]
    page.write_text("".join([*parts, f"\n## {titles[len(early)]}\n", rest]), encoding="utf-8")


def walked(step: tuple[str, str, list[str]], data: Path, folder: Path) -> str:
    """A section of the page: the step's commands and their output."""
    title, words, commands = step
    parts = [f"\n## {title}\n" + (f"\n{textwrap.fill(words, 120)}\n" if words else "")]
    for command in commands:
        words = command.replace("$DATA", str(data)).replace("$DEMO", str(DEMO))
        said, seconds = run(words, folder)
        if command.startswith("inf analyze") and command.endswith("--json"):
            said = json.dumps(json.loads(said), indent=1, ensure_ascii=False)
        said = said.replace(str(data), "$DATA").replace(f"{folder}/", "")
        parts.append(f"\n```\n$ {command}\n{said}\n```\n({seconds:.0f} s)\n")
    return "".join(parts)


def run(command: str, folder: Path) -> tuple[str, float]:
    """What the command printed on standard output, and how long it took."""
    words = [str(INF), *shlex.split(command)[1:]]
    started = time.monotonic()
    environment = os.environ | {"INF_HOME": str(folder / ".inf"), "HF_HUB_OFFLINE": "1"}
    environment.pop("INF_DATABASE_URL", None)
    print(f"$ {command}", flush=True)
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    print(done.stdout + done.stderr, flush=True)
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit {done.returncode}")
    return done.stdout.strip(), time.monotonic() - started


if __name__ == "__main__":
    main()
