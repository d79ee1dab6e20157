"""Does training help? Objectives, filtered or not, with and without plain rows; several seeds.

    .venv/bin/python bench/learning.py --release DIR [--steps 100] [--seeds 1 2 3] [--rows 8]
        [--held-out 0.2]

DIR is a release exported with `--include-dropped` (so that the unfiltered groups are there). Each
run is `inf train` with equal steps and the same held-out groups: `--choice all` (the default) also
holds out what no validator kept, which shows more than groups that the model already ranks right.
Measures are those of the training's own result, the flips next to what each half of the text alone
reaches, and the natural probe. Prints every run as it ends (on the standard error), then a table in
Markdown: what came out, also where it is worse. The base model is all-MiniLM-L6-v2.
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
    "ℓ_P, 30 % plain rows": ["objective=P", "standard_share=0.3"],
    "mnrl": ["objective=mnrl"],
    "promptriever": ["objective=promptriever"],
}
MEASURES = ("strict", "instruction-flip", "query-flip", "natural-flip", "ndcg@10")
CONTROLS = {"instruction-flip": "instruction-alone", "query-flip": "query-alone"}


def run_inf(*arguments: object, home: Path) -> Any:
    """`inf … --json` in a store of its own."""
    environment = os.environ | {"INF_HOME": str(home)}
    environment.pop("INF_DATABASE_URL", None)
    done = subprocess.run(
        [sys.executable, *run_module("app.cli.main"), *map(str, arguments), "--json"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout or done.stderr)
    return json.loads(done.stdout)


def scores_of(result: Any) -> dict[str, Any]:
    """The result's measures before and after, held-out groups and natural probe together."""
    held_out, probe = result["held_out"], result["natural_probe"]
    ends = {when: held_out[when] | probe[when] for when in ("before", "after")}
    return {"groups": held_out["groups"], **ends}


def main() -> None:
    """Train every way with every seed; print the table."""
    parser = argparse.ArgumentParser(description="Does training help?")
    parser.add_argument("--release", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--held-out", type=float, default=0.2)
    parser.add_argument("--choice", choices=("kept", "all", "approved"), default="all")
    arguments = parser.parse_args()
    found: dict[str, list[Any]] = {name: [] for name in RUNS}
    with tempfile.TemporaryDirectory(prefix="inf-learning-") as folder:
        home = Path(folder)
        run_inf("db", "upgrade", home=home)
        for seed in arguments.seeds:
            for number, (name, given) in enumerate(RUNS.items()):
                settings = [*given, f"max_steps={arguments.steps}", f"seed={seed}"]
                settings += [f"rows_per_batch={arguments.rows}", f"held_out={arguments.held_out}"]
                settings.append(f"held_out_groups={arguments.choice}")
                out = home / f"{number}-{seed}"
                result = run_inf(
                    "train", "--release", arguments.release, "--out", out, *settings, home=home
                )
                measured = scores_of(result)
                found[name].append(measured)
                print(f"{name}, seed {seed}: {json.dumps(measured)}", file=sys.stderr)
    print("| training | steps | " + " | ".join(f"{m} base → trained" for m in MEASURES) + " |")
    print("|---|---|" + "---|" * len(MEASURES))
    for name, scores in found.items():
        cells = []
        for measure in MEASURES:
            after = [one["after"][measure] for one in scores]
            spread = stdev(after) if len(after) > 1 else 0.0
            base = scores[0]["before"][measure]
            cell = f"{base:.4f} → {fmean(after):.4f} ± {spread:.4f}"
            if control := CONTROLS.get(measure):
                alone = fmean(one["after"][f"{control}:{measure}"] for one in scores)
                cell += f" ({control} {alone:.4f})"
            cells.append(cell)
        print(f"| {name} | {arguments.steps} | " + " | ".join(cells) + " |")
    print(f"\n{scores[0]['groups']} held-out groups; seeds {arguments.seeds}")


if __name__ == "__main__":
    main()
