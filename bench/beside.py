"""This checkout next to another one, such as the release before: the same measurements, in turns.

    .venv/bin/python bench/beside.py BEFORE AFTER [--only runs release pages app training]
        [--rounds 3] [--groups 100000] [--calls 1600]

Each checkout runs its own bench scripts, by this interpreter with the checkout first among its
imports, so that both have the same packages and the same machine at the same time: what else it
does falls on both. Of every figure the median of the rounds and the ratio after / before is
printed, with the least and the largest ratio of a round; lower is better in all. Seconds of CPU
say more than elapsed ones where the machine is busy.

- runs: `curation.py`, milliseconds of CPU per call, and seconds of 1,000 calls beside those of a
  bare loop in the same minute.
- release: `release.py`, all four configurations of that many groups with a tenth held out.
- pages: `large_run.py`, ten questions of the Groups page, on SQLite and PostgreSQL.
- app: `page_speed.py` in Chromium, the pages Home, Groups and Releases of a store of that many.
- training: `training.py`, a step of the paper's losses on MiniLM and on a small decoder.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

Figures = dict[str, float]
STEPS = (("encoder", "p", 8), ("encoder", "hard", 8), ("step", "packed", 8))
APP_PAGES = ("home", "groups", "releases")


def ran(checkout: Path, script: str, *words: object) -> str:
    """What a bench script of the checkout prints."""
    done = subprocess.run(
        [sys.executable, str(checkout / "bench" / script), *map(str, words)],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def runs(checkout: Path, given: argparse.Namespace, folder: Path) -> Figures:
    """The engine on SQLite, 64 calls in flight."""
    printed = ran(
        checkout, "curation.py", "--only", "speed", "--in-flight", 64, "--calls", given.calls
    )
    line = next(line for line in printed.splitlines() if line.startswith("engine, SQLite"))
    found = re.search(r"([\d.]+) ms CPU/call .* ([\d.]+) of the bare loop", line)
    assert found is not None, line
    return {"CPU ms per call": float(found[1]), "time, bare loop = 1": 1 / float(found[2])}


def release(checkout: Path, given: argparse.Namespace, folder: Path) -> Figures:
    """The export as a job, its reading and writing."""
    found = json.loads(ran(checkout, "release.py", "--groups", given.groups).splitlines()[-1])
    return {
        "seconds": found["seconds"],
        "CPU seconds": found["cpu_seconds"],
        "peak MB": found["peak_memory_mb"],
        "seconds, pandas = 1": found["seconds"] / found["pandas_seconds"],
    }


def pages(checkout: Path, given: argparse.Namespace, folder: Path) -> Figures:
    """Queries of the Groups page."""
    printed = ran(
        checkout,
        "large_run.py",
        "--only",
        "pages",
        "--pairs",
        given.groups,
        "--groups",
        given.groups,
    )
    rows = re.findall(r"^page of [\d,]+ groups, (.+): (\d+) ms$", printed, re.MULTILINE)
    return {f"{what}, ms": float(ms) for what, ms in rows}


def app(checkout: Path, given: argparse.Namespace, folder: Path) -> Figures:
    """Pages in a browser; the store is filled once per checkout."""
    printed = ran(
        checkout,
        "page_speed.py",
        *("--no-demo", "--groups", given.groups, "--large-home", folder / checkout.name),
        *("--widths", 1280, "--only", *APP_PAGES),
    )
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return {
        f"{row['page']}, {what}": row["click 1280"][name]
        for row in rows
        for name, what in (("settled", "settled ms"), ("cpu", "CPU ms"))
    }


def training(checkout: Path, given: argparse.Namespace, folder: Path) -> Figures:
    """The least of three steps, each case in a process of its own; CPU of all that process."""
    found: Figures = {}
    for case, way, rows in STEPS:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        printed = ran(checkout, "training.py", "--one", case, way, rows)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found[f"{case} {way}, s"] = json.loads(printed.splitlines()[-1])["seconds"]
        found[f"{case} {way}, CPU s of its process"] = cpu
    return found


PARTS: dict[str, Callable[[Path, argparse.Namespace, Path], Figures]] = {
    "runs": runs,
    "release": release,
    "pages": pages,
    "app": app,
    "training": training,
}


def table(part: str, before: list[Figures], after: list[Figures]) -> Iterator[str]:
    """A row of Markdown per figure."""
    for name in before[0]:
        if not all(name in one for one in after):
            continue
        one, other = ([each[name] for each in side] for side in (before, after))
        ratios = [late / early for early, late in zip(one, other, strict=True) if early]
        yield (
            f"| {part}: {name} | {statistics.median(one):.4g} | {statistics.median(other):.4g} "
            f"| {statistics.median(ratios or [1]):.2f} | {min(ratios or [1]):.2f} to "
            f"{max(ratios or [1]):.2f} |"
        )


def main() -> None:
    """Measure the parts in turns, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=1600)
    given = parser.parse_args()
    sides = [given.before.resolve(), given.after.resolve()]
    print(
        "| figure | before | after | ratio | of the rounds |\n|---|---:|---:|---:|---|", flush=True
    )
    with tempfile.TemporaryDirectory() as folder:
        for part in given.only:
            found: tuple[list[Figures], list[Figures]] = ([], [])
            for number in range(given.rounds):
                # who goes first takes turns, too: the second finds files in memory
                for side in (0, 1) if number % 2 == 0 else (1, 0):
                    found[side].append(PARTS[part](sides[side], given, Path(folder)))
            print("\n".join(table(part, *found)), flush=True)
    print(f"load of the machine: {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
