"""What `inf train --estimate` says before a training against what the training then takes.

    .venv/bin/python bench/training_estimate.py --release DIR [--guard DIR] [--steps 30] \
        [--threads 1] [WAY …]

WAY: some of the lines below; all without one. For each, the estimate, the training and the estimate
again, in processes of their own and in one store, so that the base model's vectors are kept after
the first. The release is the demo's, as bench/results.py makes it. Seconds are wall seconds and
hang on what else the machine does: the two estimates tell how much.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from results import COMMON, UNMIXED

from db.modules import run_module

WAYS: dict[str, Mapping[str, object]] = {
    "l_P": {"objective": "P"},
    "l_P, scored every 10 steps": {"objective": "P", "evaluate_steps": 10},
    "l_{P,I}^multi, 8 sampled": UNMIXED,
    "mnrl, 32 rows": {"objective": "mnrl", "rows_per_batch": 32},
    "l_P, LoRA of rank 8": {"objective": "P", "lora_rank": 8},
    "l_P, float32, SDPA": {"objective": "P", "precision": "fp32", "attention": "sdpa"},
}
# Runs what follows and prints its largest process's memory after its own output.
MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)
print(done.stdout)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(done.returncode)
"""


def run(home: Path, threads: int, *words: object) -> tuple[dict[str, Any], int]:
    """(the result of `inf train …`, the peak of its memory in bytes)."""
    command = (*run_module("app.cli.main"), "train", *map(str, words), "--json")
    environment = {"INF_HOME": str(home), "OMP_NUM_THREADS": str(threads), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"OMP_WAIT_POLICY": "PASSIVE"},
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stdout}\n{done.stderr}")
    *lines, peak = done.stdout.strip().splitlines()
    return json.loads("\n".join(lines)), int(peak)


def measure(name: str, way: Mapping[str, object], given: argparse.Namespace, home: Path) -> str:
    """One line of the table."""
    settings = COMMON | {"max_steps": given.steps} | dict(way)
    if given.guard:
        settings["guard"] = given.guard.resolve()
    words: Sequence[object] = (
        *("--release", given.release.resolve()),
        *(f"{key}={value}" for key, value in settings.items()),
    )
    first = run(home, given.threads, *words, "--estimate")[0]["estimate"]
    out = home / "out" / name.replace(" ", "-").replace("/", "-")
    result, peak = run(home, given.threads, *words, "--out", out)
    again = run(home, given.threads, *words, "--estimate")[0]["estimate"]
    times = result["scoring_seconds"]
    training, scoring = result["seconds"] - times.get("now", 0.0), sum(times.values())
    # the base model's vectors are kept by then: before the training there is nothing left to do
    cells = [
        _both((first["seconds"], training), (again["seconds"], training)),
        _both(
            (first["scoring_seconds"], scoring),
            (again["scoring_seconds"], scoring - times["before"]),
        ),
        f"{first['peak_bytes'] / 1e9:.2f} of {peak / 1e9:.2f} GB "
        f"({first['peak_bytes'] / peak - 1:+.0%})",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _both(*pairs: tuple[float, float]) -> str:
    """Of each pair, the estimate and what it took."""
    return ", ".join(f"{said:.0f} of {true:.0f} s ({said / true - 1:+.0%})" for said, true in pairs)


def main() -> None:
    """Measure and print the table's lines, each as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ways", nargs="*", metavar="WAY")
    parser.add_argument("--release", type=Path, required=True)
    parser.add_argument("--guard", type=Path)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    print("| training | estimate of training | of scoring | of peak memory |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        command = [sys.executable, *run_module("app.cli.main"), "db", "upgrade"]
        subprocess.run(command, check=True, capture_output=True, env={"INF_HOME": folder})
        for name in given.ways or WAYS:
            print(measure(name, WAYS[name], given, home), flush=True)


if __name__ == "__main__":
    main()
