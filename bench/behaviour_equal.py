"""Whether two commits behave alike: data files, verdicts, checkpoints, pages and cards.

    .venv/bin/python bench/behaviour_equal.py BEFORE [AFTER] [--folder DIR]

BEFORE and AFTER are commits; without AFTER it is this checkout as it lies. Each tree runs the same
commands with this environment's packages, each job in a process of its own, on one thread: the
demo set (BEFORE's) is imported, curated from its recorded answers and judged in a study, released
in three formats, and a tiny model with random weights is trained on that release.

- *verdicts*: each pair's, with the reason of a drop;
- *data files*: the sha256 of every file of the releases but the card, the manifests and the answers
  (OF_THE_TIME);
- *checkpoint*: the sha256 of the weights after STEPS steps;
- *upgraded store*: BEFORE's store after AFTER's `inf store upgrade`: `inf store check`
  finds nothing, and AFTER exports the same data files from it;
- *pages*: every page of BEFORE's menu, drawn by either tree on that store: its figures (metrics
  with their values, charts, tables with their columns) and controls (widgets by kind, label, key
  and options);
- *cards*: the lines of the dataset's and the model's card.

Times, sizes, dates, versions and hashes of recipes are masked in pages and cards (MASKS). Prints
what differs and ends with 1, or with 0 where nothing does. An intended change shows here, too:
read it, and name it in the commit.
"""

import argparse
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FORMATS = ("jsonl", "csv", "parquet")
STEPS = 3
TRAINING = (
    "base_model=tiny-random-bert",
    f"max_steps={STEPS}",
    "rows_per_batch=4",
    "held_out=0.2",
    "seed=7",
    "natural_probe=off",
    "precision=fp32",  # `auto` hangs on the machine
)
MASKS = {
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?": "DATE",
    r"\b\d+(\.\d+)? ?(ms|s|min|minutes?|seconds?|hours?|h)\b( ago)?": "TIME",
    r"\b\d+(\.\d+)? ?(bytes|[kKMG]i?B)\b": "SIZE",
    r"\b[0-9a-f]{8,64}\b": "HASH",
    r"(?<![\w/])/(tmp|var|home|root)/[\w./-]+": "PATH",
}
VERDICTS = """
    SELECT pair.external_id, "group".verdict, "group".drop_reason
    FROM "group" JOIN pair ON pair.id = "group".pair_id ORDER BY pair.external_id
"""
# Runs in a tree, on the store that the environment names; prints one JSON object.
PAGES = """
import json, os, sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
from app.kit.menu import APP, MENU

FIGURES = ("vega_lite_chart", "arrow_vega_lite_chart", "plotly_chart", "imgs", "image", "component")
TABLES = ("dataframe", "arrow_data_frame", "table", "arrow_table")
CONTROLS = (
    "button", "download_button", "checkbox", "toggle", "radio", "selectbox", "multiselect",
    "slider", "select_slider", "number_input", "text_input", "text_area", "date_input",
    "time_input", "file_uploader", "segmented_control", "button_group", "link_button", "page_link",
)


def text(element, name):
    return str(getattr(element, name, "") or "")


def seen(name):
    at = AppTest.from_file(str(APP / "server" / "main.py"), default_timeout=600)
    if name != "home":
        at._page_hash = calc_hash(name)
    at.run()
    rows = [f"exception {each.message}" for each in at.exception]
    rows += [f"title {each.value}" for each in at.title]
    rows += [f"metric {each.label}: {each.value}" for each in at.metric]
    for kind in FIGURES:
        rows += [kind for _ in at.get(kind)]
    for kind in TABLES:
        for each in at.get(kind):
            rows.append(f"table {list(each.value.columns)}, {len(each.value)} rows")
    for kind in CONTROLS:
        for each in at.get(kind):
            proto = getattr(each, "proto", each)
            options = list(getattr(proto, "options", []))
            rows.append(f"{kind} {text(proto, 'label')!r} {text(each, 'key')} {options}")
    return rows


print(json.dumps({view.name: seen(view.name) for view in MENU}))
"""


class Tree:
    """A checkout, the home of its store, and commands run by its code."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        home.mkdir(parents=True, exist_ok=True)
        self.store = home / "inf.db"

    def inf(self, *words: object) -> None:
        """Run a command of this tree to its end."""
        self.python("-P", "-m", "app.cli.main", *words)

    def python(self, *words: object) -> str:
        """Run Python with this tree's packages; what it prints."""
        environment = os.environ | {
            "PYTHONPATH": str(self.folder),
            "INF_HOME": str(self.home),
            "INF_DATABASE_URL": f"sqlite:///{self.store}",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
        }
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            output = (done.stdout + done.stderr)[-4000:]
            raise SystemExit(f"{self.folder.name}: {words} ended with {done.returncode}:\n{output}")
        return done.stdout


@contextmanager
def checkout(commit: str | None, folder: Path) -> Iterator[Path]:
    """A commit's files, in a worktree that is removed afterwards; None: this checkout."""
    if commit is None:
        yield ROOT
        return
    git = ("git", "-C", str(ROOT), "worktree")
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), commit], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def walk(tree: Tree, demo: Path) -> None:
    """Run the commands in a tree on the files of the demo set."""
    tree.inf("db", "upgrade")
    pairs, passages = demo / "pairs.jsonl", demo / "passages.jsonl"
    about = ("--source", "demo", "--licence", "cc0-1.0")
    tree.inf("import", "--dataset", "demo", "--pairs", pairs, "--passages", passages, *about)
    tree.inf("curate", "--dataset", "demo", "--provider", "recorded")
    tree.inf("study", "create", "--dataset", "demo", "--items", 12, "--overlap", 1, "--seed", 1)
    tree.inf("studies", "judge", 1, "--judge", "recorded:B")
    for name in FORMATS:
        tree.inf("export", "--dataset", "demo", "--out", tree.home / name, "--format", name)
    tree.inf("train", "--release", tree.home / FORMATS[0], "--out", tree.home / "model", *TRAINING)


def results(tree: Tree) -> dict[str, Any]:
    """What the commands made."""
    return {
        "verdicts": verdicts(tree.store),
        "data files": {name: data_files(tree.home / name) for name in FORMATS},
        "checkpoint": hashes(tree.home / "model", ("*.safetensors",)),
        "cards": {
            name: card(tree.home / name / "README.md", tree.home) for name in (*FORMATS, "model")
        },
    }


def verdicts(store: Path) -> dict[str, list[str | None]]:
    """The verdict of each pair and the reason of a drop."""
    with closing(sqlite3.connect(store)) as connection:
        return {pair: found for pair, *found in connection.execute(VERDICTS)}


def data_files(release: Path) -> dict[str, str]:
    """The sha256 of each file of a release but those that differ from one export to the next."""
    found = hashes(release, ("*",))
    return {name: of for name, of in found.items() if name.split("/")[0] not in OF_THE_TIME}


# They name the time of the export or of an answer, or an order drawn at random.
OF_THE_TIME = ("README.md", "release.json", "croissant.json", "judgments")


def hashes(folder: Path, patterns: Sequence[str]) -> dict[str, str]:
    """The sha256 of the files that match, by their path in the folder."""
    files = sorted(path for each in patterns for path in folder.rglob(each) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def card(file: Path, home: Path) -> list[str]:
    """A card's lines, masked."""
    text = file.read_text(encoding="utf-8").replace(str(home), "HOME")
    return [masked(line) for line in text.splitlines()]


def masked(text: str) -> str:
    """A text without what differs from one run of the same code to the next."""
    for pattern, name in MASKS.items():
        text = re.sub(pattern, name, text)
    return text


def pages(tree: Tree, store: Path) -> dict[str, list[str]]:
    """What a tree's pages show of a store, masked, as whoever sits at the machine."""
    other = Tree(tree.folder, store.parent)
    other.store = store
    found = json.loads(other.python("-P", "-c", PAGES).splitlines()[-1])
    return {name: [masked(row) for row in rows] for name, rows in found.items()}


def upgraded(after: Tree, store: Path, folder: Path) -> Tree:
    """AFTER's code on a copy of BEFORE's store, upgraded and checked."""
    tree = Tree(after.folder, folder)
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(tree.store)) as copy:
        source.backup(copy)  # a copy of the file alone would lack what is in its log
    tree.inf("db", "upgrade")
    tree.inf("db", "check")
    return tree


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Where two results differ, one line each."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}):
            yield from differences(before.get(name), after.get(name), f"{place} › {name}")
    elif isinstance(before, list) and isinstance(after, list) and place.startswith(LINES):
        kept = {str(one) for one in before} & {str(one) for one in after}
        yield from (f"{place}: only before: {one}" for one in before if str(one) not in kept)
        yield from (f"{place}: only after: {one}" for one in after if str(one) not in kept)
        if before != after and {*map(str, before)} == {*map(str, after)}:
            yield f"{place}: in another order or number"
    elif before != after:
        yield f"{place}: {before} before, {after} after"


LINES = (" › pages", " › cards")


def compare(before: Tree, after: Tree, folder: Path) -> dict[str, list[str]]:
    """The differences of each part."""
    demo = before.folder / "curation" / "demo"
    for tree in (before, after):
        walk(tree, demo)
    made = {"before": results(before), "after": results(after)}
    opened = upgraded(after, before.store, folder / "upgraded")
    made["before"]["pages"] = pages(before, before.store)
    made["after"]["pages"] = pages(after, opened.store)
    again = opened.home / FORMATS[0]  # after the pages, which would show this release, too
    opened.inf("export", "--dataset", "demo", "--out", again, "--format", FORMATS[0])
    made["before"]["upgraded store"] = made["before"]["data files"][FORMATS[0]]
    made["after"]["upgraded store"] = data_files(again)
    return {
        part: list(differences(made["before"][part], made["after"][part], f" › {part}"))
        for part in made["before"]
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("before")
    parser.add_argument("after", nargs="?")
    parser.add_argument("--folder", type=Path, help="kept; otherwise a temporary one")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (chosen.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        with (
            checkout(chosen.before, folder / "before-tree") as one,
            checkout(chosen.after, folder / "after-tree") as two,
        ):
            trees = Tree(one, folder / "before"), Tree(two, folder / "after")
            found = compare(*trees, folder)
    for part, rows in found.items():
        print(f"{part}: {f'{len(rows)} differences' if rows else 'equal'}")
        print("".join(f"   {row.removeprefix(' › ')}\n" for row in rows), end="")
    return int(any(found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
