"""Does training help? Objectives against each other, and filtered against unfiltered groups.

    .venv/bin/python bench/learning.py --release DIR [--steps 100] [--seeds 1 2 3] [--rows 8]
        [--held-out 0.2]

DIR is a release exported with `--include-dropped` (so that the unfiltered groups are there). Each
run is `inf train` with equal steps and the same held-out groups, all of them kept ones; nDCG@10 and
p-MRR before and after are those of the training's own result. Prints every run as it ends (on the
standard error), then a table in Markdown: what came out, also where it is worse. The base model is
all-MiniLM-L6-v2.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from db.modules import run_module

RUNS = {
    "ℓ_P, kept groups": ["objective=P"],
    "ℓ_{P,I}^multi, kept groups": ["objective=P,I:multi", "instructions_sampled=3"],
    "ℓ_P, kept and dropped groups": ["objective=P", "dropped=include"],
}
MEASURES = ("ndcg@10", "p-mrr")


def run_inf(*words: object, home: Path) -> Any:
    """`inf … --json` in a store of its own."""
    environment = os.environ | {"INF_HOME": str(home)}
    environment.pop("INF_DATABASE_URL", None)
    done = subprocess.run(
        [sys.executable, *run_module("app.cli.main"), *map(str, words), "--json"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout or done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    """Train every way with every seed; print the table."""
    parser = argparse.ArgumentParser(description="Does training help?")
    parser.add_argument("--release", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--held-out", type=float, default=0.2)
    arguments = parser.parse_args()
    found: dict[str, list[Any]] = {name: [] for name in RUNS}
    with tempfile.TemporaryDirectory(prefix="inf-learning-") as folder:
        home = Path(folder)
        run_inf("db", "upgrade", home=home)
        for seed in arguments.seeds:
            for number, (name, words) in enumerate(RUNS.items()):
                settings = [*words, f"max_steps={arguments.steps}", f"seed={seed}"]
                settings += [f"rows_per_batch={arguments.rows}", f"held_out={arguments.held_out}"]
                out = home / f"{number}-{seed}"
                told = run_inf(
                    "train", "--release", arguments.release, "--out", out, *settings, home=home
                )
                found[name].append(told["held_out"])
                print(f"{name}, seed {seed}: {json.dumps(told['held_out'])}", file=sys.stderr)
    print("| training | steps | " + " | ".join(f"{m} base → trained" for m in MEASURES) + " |")
    print("|---|---|" + "---|" * len(MEASURES))
    for name, scores in found.items():
        cells = []
        for measure in MEASURES:
            after = [one["after"][measure] for one in scores]
            spread = stdev(after) if len(after) > 1 else 0.0
            base = scores[0]["before"][measure]
            cells.append(f"{base:.4f} → {fmean(after):.4f} ± {spread:.4f}")
        print(f"| {name} | {arguments.steps} | " + " | ".join(cells) + " |")
    print(f"\n{scores[0]['groups']} held-out groups; seeds {arguments.seeds}")


if __name__ == "__main__":
    main()
