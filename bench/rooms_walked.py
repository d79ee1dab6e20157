"""How many rooms a run's worker and a training walk through, and how often they come back.

    .venv/bin/python bench/rooms_walked.py [--tree FOLDER] [--walks]

FOLDER is a checkout of this repository with its environment in `.venv` (this one by default); an
older one is measured in the same way. An offline run of 12 demo pairs, its export, and a training
of two steps are started by the commands of that tree, each job in a process of its own; in it,
`sys.setprofile` notes every function of ours (`app`, `curation`, `trainer`, `analysis`, `db`) when
it is called for the first time, from the call of the job's handler to its return, on all threads.

- The *walk* is the files of these functions in the order of their first calls, a file that follows
  itself counted once. Later calls of a function count nothing, nor do lambdas, comprehensions and
  the code of modules while they are imported: it is the way of a reader who follows the work once.
- *Files* are the distinct ones of the walk; *returns* are its steps into a file that was entered
  before: its length less the distinct files. *Rooms* and their returns: the same by folder.
- *Direct* is the part of the walk that the handler's own file calls: what one reads there.

The walk of threads that work at the same time depends a little on chance: medians of --rounds.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1]
# Handlers by job, newest place first.
HANDLERS = {
    "curate": ("curation/run/engine.py:curate", "curation/engine.py:curate"),
    "train": ("trainer/launch/here.py:train", "trainer/train_job.py:train_here"),
    "export": ("curation/release/job.py:export_release", "curation/releases.py:export_release"),
}
TRACER = """
import os, sys, threading

ROOT = os.environ["INF_WALK_ROOT"] + os.sep
STARTS = set(os.environ["INF_WALK_FROM"].split(";"))
PACKAGES = ("app", "curation", "trainer", "analysis", "db")
seen, foreign, started, names = set(), set(), [], {}


def profile(frame, event, arg):
    code = frame.f_code
    if event == "return" and started and code is started[0]:
        sys.setprofile(None)
        threading.setprofile(None)
        started[:] = [None]
        return
    if event != "call" or code in foreign or code in seen or (started and started[0] is None):
        return
    path = code.co_filename
    own = path.startswith(ROOT) and path[len(ROOT):].split(os.sep)[0] in PACKAGES
    if not own or code.co_name.startswith("<"):
        foreign.add(code)
        return
    path = path[len(ROOT):]
    if not started:
        if f"{path}:{code.co_name}" not in STARTS:
            return
        started.append(code)
        names["file"] = os.path.join(os.environ["INF_WALK"], code.co_name + f"-{os.getpid()}")
    seen.add(code)
    caller = frame.f_back
    while caller is not None and caller.f_code.co_name.startswith("<"):
        caller = caller.f_back
    by = "" if caller is None else caller.f_code.co_filename.removeprefix(ROOT)
    with open(names["file"], "a", encoding="utf-8") as file:
        file.write(f"{path}\\t{code.co_qualname}\\t{by}\\n")


# Only in the process of a job: commands and the supervisor would take minutes under a profiler.
if set(sys.orig_argv) & {"app.jobs.entry", "curation", "trainer"}:
    threading.setprofile(profile)
    sys.setprofile(profile)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=HERE)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--walks", action="store_true", help="Print the functions too.")
    given = parser.parse_args()
    tree = given.tree.resolve()
    rounds = [walks_of(tree) for _ in range(given.rounds)]
    for job in HANDLERS:
        found = [one[job] for one in rounds if job in one]
        if not found:
            print(f"{job}: no handler of this tree was called")
            continue
        for name, cut in (("whole", found), ("direct", [direct(one) for one in found])):
            counts = [
                (*rooms_and_returns([path for path, _, _ in one]), *rooms_and_returns(folders(one)))
                for one in cut
            ]
            files, file_returns, rooms, returns = (
                median(column) for column in zip(*counts, strict=True)
            )
            print(
                f"{job:<7} {name:<7} functions {median(map(len, cut)):5.0f}  files {files:4.0f}, "
                f"returns {file_returns:4.0f}  rooms {rooms:3.0f}, returns {returns:4.0f}"
            )
        if given.walks:
            for path, function, by in found[0]:
                print(f"    {path}:{function}  from {by}")


Step = tuple[str, str, str]  # file, function, the caller's file


def direct(walk: Sequence[Step]) -> list[Step]:
    """The steps that the handler's own file makes."""
    return [step for step in walk if step[2] == walk[0][0]]


def folders(walk: Sequence[Step]) -> list[str]:
    return [str(Path(path).parent) for path, _, _ in walk]


def rooms_and_returns(places: Sequence[str]) -> tuple[int, int]:
    """(distinct places, steps into one that was entered before) of a walk."""
    entered = [
        place for number, place in enumerate(places) if number == 0 or place != places[number - 1]
    ]
    return len(set(entered)), len(entered) - len(set(entered))


def walks_of(tree: Path) -> dict[str, list[Step]]:
    """The walk of each job in `tree`, by its name in HANDLERS."""
    with tempfile.TemporaryDirectory(prefix="inf-rooms-") as place:
        folder = Path(place)
        (folder / "walks").mkdir()
        (folder / "tracer").mkdir()
        (folder / "tracer" / "sitecustomize.py").write_text(TRACER, encoding="utf-8")
        environment = os.environ | {
            "INF_HOME": str(folder / "home"),
            "INF_DATABASE_URL": f"sqlite:///{folder / 'store.db'}",
            "INF_WALK": str(folder / "walks"),
            "INF_WALK_ROOT": str(tree),
            "INF_WALK_FROM": ";".join(name for names in HANDLERS.values() for name in names),
            "PYTHONPATH": str(folder / "tracer"),
        }
        files = tree / "curation" / "demo"
        imported = {
            "--dataset": "demo",
            "--pairs": str(files / "pairs.jsonl"),
            "--passages": str(files / "passages.jsonl"),
            "--source": "demo",
            "--licence": "cc0-1.0",
        }
        release, model = str(folder / "release"), str(folder / "model")
        for command in (
            ["db", "upgrade"],
            ["import", *(part for option in imported.items() for part in option)],
            ["curate", "--dataset", "demo", "--provider", "offline", "--limit", "12"],
            ["export", "--dataset", "demo", "--out", release],
            ["train", "--release", release, "--out", model, "epochs=1"],
        ):
            done = subprocess.run(
                [str(tree / ".venv" / "bin" / "python"), "-m", "app.cli.main", *command],
                cwd=tree,
                env=environment,
                capture_output=True,
                text=True,
            )
            if done.returncode != 0:
                sys.exit(f"inf {' '.join(command)}\n{done.stdout}{done.stderr}")
        found: dict[str, list[Step]] = {}
        for file in sorted((folder / "walks").iterdir()):
            steps = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
            walk = [(path, function, by) for path, function, by in steps]
            for job, names in HANDLERS.items():
                if f"{walk[0][0]}:{walk[0][1]}" in names:
                    found[job] = walk
        return found


if __name__ == "__main__":
    main()
