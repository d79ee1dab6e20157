"""What the ring of conformance reads, made by `inf` alone: `python material.py DIR`.

DIR/releases/{parquet,jsonl,csv}, DIR/checkpoint, DIR/trec, DIR/*.json (what the commands printed).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INF = Path(sys.executable).with_name("inf")
DEMO = ROOT / "curation" / "demo"
VIEWS = ("sentence-transformers", "tevatron", "promptriever")  # the first alone has no lists
STEPS = 3


def make(folder: Path) -> None:
    """Everything from the demo set to its scores; what a command printed is a file."""
    folder.mkdir(parents=True)
    environment = os.environ | {"INF_HOME": str(folder / "home")}

    def inf(name: str, *words: object) -> dict[str, object]:
        done = subprocess.run(
            [INF, *map(str, words), "--json"],
            cwd=folder,
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        (folder / f"{name}.json").write_text(done.stdout)
        found: dict[str, object] = json.loads(done.stdout)
        return found

    inf("store", "store", "upgrade")
    files = [f"--{name}={DEMO / name}.jsonl" for name in ("pairs", "passages")]
    inf("import", "datasets", "import", "demo", *files, "--source=demo", "--licence=cc0-1.0")
    run = inf("run", "runs", "create", "demo", "--provider", "recorded")["run_id"]
    study = inf("study", "studies", "create", "demo", "--items", 90, "--overlap", 2)["study_id"]
    for judge in ("recorded:A", "recorded:B"):
        inf("judged", "studies", "judge", study, "--judge", judge)
    inf("judged", "studies", "judge", "--run", run, "--judge", "recorded:B")
    inf("judgments", "judgments", "list", study, "--limit", 1_000_000)
    inf("agreement", "analyze", "agreement", "--study", study)
    for form in ("csv", "jsonl", "parquet"):
        views = [f"--view={view}" for view in (VIEWS[:1] if form == "csv" else VIEWS)]
        out = folder / "releases" / form
        release = inf(form, "releases", "create", "demo", "--out", out, "--format", form, *views)
    settings = f"max_steps={STEPS} precision=fp32 held_out=0.2 held_out_groups=all"
    checkpoint = folder / "checkpoint"
    number = release["release_id"]
    inf("training", "train", "--release", number, "--out", checkpoint, *settings.split())
    trec = ("--trec", folder / "trec")
    inf("scores", "evaluations", "create", "--model", checkpoint, "--release", number, *trec)


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
