"""Does training help? The tables of docs/results.md and of the README, from trainings run here.

    .venv/bin/python bench/results.py [PART …] [--folder DIR] [--release DIR] [--guard DIR] \
        [--side-by-side N]

PART: `recipe` (base against trained, three seeds), `dose` (number of groups), `objectives`, `plain`
(rows without instruction mixed in), `filter` (kept, all and a random choice of equal size: the
paper's Figure 6), `rules` (groups that rules wrote over the demo's pairs), `options` (what single
settings do to a training of ℓ_P, one seed), or `all`; without one, `recipe` and `dose`. Every
training is `inf train` on the demo's release with the same held-out groups, which share no query or
passage with the others and which judge B confirmed; `rules` has a release and held-out groups of
its own. A training that ended is a line of DIR/runs.jsonl and is not run again: an interrupted
command continues. Seeds are 1, 2, 3; none is chosen by its result. Without --release, the demo set
is curated (recorded answers) and exported into DIR first, dropped groups too; the release of rules
is always made there, when a part requires it.

--guard: the folder `google_queries` of the project's shared data (pairs.jsonl, passages.jsonl); 500
of its questions over all its passages show what training does to ordinary retrieval. Left out
where it is not there.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]  # before this folder, whose analysis.py is no package

from teacher import make_teacher  # noqa: E402

from db.modules import run_module  # noqa: E402
from trainer.launch.plan import groups_of  # noqa: E402
from trainer.settings.settings import parse_settings  # noqa: E402

DEMO = ROOT / "curation" / "demo"
SHARED = ROOT.parent / "shared" / "data" / "google_queries"
GUARD_QUESTIONS = 500
SEEDS = (1, 2, 3)
HELD_OUT_JUDGE = "recorded:B"  # neither the run's validator (A) nor a relative of the base model
COMMON = {
    "rows_per_batch": 8,
    "held_out": 0.2,
    "max_steps": 100,
    "learning_rate": 1e-4,
    "passage_tokens": 192,
    "query_tokens": 96,
    # a step of MiniLM on a processor takes half the time
    "dropout": 0,
    "attention": "eager",
}
HELD_OUT = {"held_out_groups": "all", "held_out_judge": HELD_OUT_JUDGE}
HELD_OUT_SETTINGS = parse_settings({name: str(of) for name, of in (COMMON | HELD_OUT).items()})
UNMIXED = {"objective": "P,I:multi", "instructions_sampled": 8}
RECIPE = UNMIXED | {"base_share": 0.4}
HEADLINE = ("strict", "instruction-flip", "query-flip", "natural-flip")
FIRST = ("ndcg@10", "guard-ndcg@10")
CONTROLS = ("query-alone", "instruction-alone")


# In settings, folders that a training has made first: the groups that rules wrote, a cross-encoder,
# and the questions of ordinary retrieval.
RULES, TEACHER, GUARD = "{rules}", "{teacher}", "{guard}"


class Way(NamedTuple):
    """One line of a table: a name, its settings, and the seeds it is run with."""

    name: str
    settings: Mapping[str, object]
    seeds: Sequence[int] = SEEDS
    guard: bool = False
    provider: str = "recorded"  # that wrote the groups


PARTS: dict[str, tuple[Way, ...]] = {
    "recipe": (
        Way("the recipe", RECIPE, guard=True),
        Way("the recipe without base_share", UNMIXED, guard=True),
    ),
    "dose": (
        *(
            Way(f"{count} groups", RECIPE | {"max_groups": count}, SEEDS[:1], guard=True)
            for count in (50, 100, 200, 400)
        ),
        Way("all groups", RECIPE, SEEDS[:1], guard=True),
    ),
    "objectives": (
        Way("ℓ_P", {"objective": "P"}, guard=True),
        Way("ℓ_{P,I}^multi", UNMIXED, guard=True),
        Way("mnrl", {"objective": "mnrl"}, guard=True),
        Way("promptriever", {"objective": "promptriever"}, guard=True),
    ),
    "plain": (Way("10% plain rows", UNMIXED | {"standard_share": 0.1}, guard=True),),
    "filter": (
        Way("kept", RECIPE, guard=True),
        Way("kept and dropped", RECIPE | {"dropped": "include"}, guard=True),
        Way(
            "as many as kept, at random from both",
            RECIPE | {"dropped": "include", "max_groups": -1},
            guard=True,
        ),
    ),
    "rules": (
        *(
            Way(
                f"ℓ_P, {name}",
                {"objective": "P", "dropped": dropped, "held_out_groups": "all"},
                guard=True,
                provider="offline",
            )
            for name, dropped in (("kept", "exclude"), ("kept and dropped", "include"))
        ),
    ),
    "options": (
        Way("ℓ_P", {"objective": "P"}, guard=True),
        *(
            Way(f"ℓ_P, {name}", {"objective": "P"} | settings, SEEDS[:1], guard=True)
            for name, settings in {
                "20% plain rows": {"standard_share": 0.2},
                "4 mined negatives": {"mined_negatives": 4},
                "confident first": {"curriculum": "confident-first"},
                "taught by a cross-encoder": {"teacher": f"cross-encoder:{TEACHER}"},
                "taught by judge A": {"teacher": "judge:recorded:A"},
                "with half of the rules' groups": {"more_releases": f"{RULES}*0.5"},
            }.items()
        ),
    ),
}


def run_inf(*arguments: object, home: Path, **more: str) -> Any:
    """The result of `inf … --json` in a store of its own; more: variables of its environment."""
    environment = os.environ | {"INF_HOME": str(home), "OMP_WAIT_POLICY": "PASSIVE"} | more
    environment.pop("INF_DATABASE_URL", None)
    command = [sys.executable, *run_module("app.cli.main"), *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, arguments))}: {done.stdout or done.stderr}")
    return json.loads(done.stdout)


def rules_release(folder: Path) -> Path:
    """The groups that rules write over the demo's pairs, dropped ones too."""
    release = folder / "rules"
    if not (release / "release.json").is_file():
        home = folder / "rules-home"
        _import_demo(home)
        # the first pairs, questions of two words, are none that a rule fits: on past them
        curate = ("curate", "--dataset", "demo", "--provider", "offline", "--no-guard")
        run_inf(*curate, home=home)
        run_inf("export", "--dataset", "demo", "--out", release, "--include-dropped", home=home)
    return release


def demo_release(folder: Path, *, by_domain: bool = False) -> Path:
    """The demo set's groups, curated from recorded answers and exported, dropped ones too.

    by_domain: a fifth of the groups is held out, of domains that the others do not have.
    """
    release = folder / ("release-by-domain" if by_domain else "release")
    if (release / "release.json").is_file():
        return release
    home = folder / ("home-by-domain" if by_domain else "home")
    _import_demo(home, pairs_by_domain(folder) if by_domain else DEMO / "pairs.jsonl")
    run = run_inf("curate", "--dataset", "demo", "--provider", "recorded", home=home)["run_id"]
    # every item of a group: a study takes one
    run_inf("studies", "judge", "--run", run, "--judge", HELD_OUT_JUDGE, home=home)
    held_out = ("--held-out", 0.2, "--held-out-by", "source") if by_domain else ()
    words = ("--dataset", "demo", "--out", release, "--include-dropped", *held_out)
    run_inf("export", *words, home=home)
    return release


def pairs_by_domain(folder: Path) -> Path:
    """The demo's pairs, each with its passage's domain (cooking, law …) as its source."""
    read = [
        [json.loads(line) for line in (DEMO / name).read_text("utf-8").splitlines()]
        for name in ("pairs.jsonl", "passages.jsonl")
    ]
    domains = {row["passage_id"]: row["domain"] for row in read[1]}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pairs-by-domain.jsonl"
    _write(path, (row | {"source": domains[row["passage_id"]]} for row in read[0]))
    return path


def _import_demo(home: Path, pairs: Path = DEMO / "pairs.jsonl") -> None:
    run_inf("db", "upgrade", home=home)
    files = ("--pairs", pairs, "--passages", DEMO / "passages.jsonl")
    about = ("--source", "InF Studio demo set", "--licence", "cc0-1.0")
    run_inf("import", "--dataset", "demo", *files, *about, home=home)


def write_guard(source: Path, folder: Path) -> Path:
    """The first questions of a shuffle by a fixed seed, over all passages, as a BEIR folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in (source / "pairs.jsonl").read_text("utf-8").splitlines()]
    random.Random(1).shuffle(rows)
    chosen = rows[:GUARD_QUESTIONS]
    pool = [
        json.loads(line) for line in (source / "passages.jsonl").read_text("utf-8").splitlines()
    ]
    corpus = ({"_id": p["passage_id"], "title": p["title"], "text": p["text"]} for p in pool)
    _write(folder / "corpus.jsonl", corpus)
    questions = ({"_id": f"o{n}", "text": row["query"]} for n, row in enumerate(chosen))
    _write(folder / "queries.jsonl", questions)
    judged = [f"o{n}\t{row['passage_id']}\t1\n" for n, row in enumerate(chosen)]
    (folder / "qrels").mkdir(exist_ok=True)
    head = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / "test.tsv").write_text(head + "".join(judged), encoding="utf-8")
    return folder


def _write(path: Path, rows: Iterator[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def kept_for_training(release: Path) -> int:
    """How many groups the trainings have that leave dropped ones out."""
    return len(groups_of(release, HELD_OUT_SETTINGS).training)


class Results:
    """The trainings that ended, by their settings, in a file that grows by a line each."""

    def __init__(
        self, folder: Path, release: Path, guard: Path | None, name: str = "runs.jsonl"
    ) -> None:
        self.folder, self.release, self.guard = folder, release, guard
        self.path = folder / name
        # one store: the base model is encoded by the first training, and Train shows them all
        self.home = folder / "home"
        run_inf("db", "upgrade", home=self.home)
        lines = self.path.read_text("utf-8").splitlines() if self.path.exists() else []
        rows = map(json.loads, lines)
        self.done: dict[str, dict[str, Any]] = {row["key"]: row for row in rows}
        self.writing, self.making = threading.Lock(), threading.Lock()

    def run(self, ways: Sequence[Way], side_by_side: int) -> None:
        """Run what is missing, each training on a core of its own; the same settings once."""
        wanted = {self._settings(way, seed)[0]: (way, seed) for way in ways for seed in way.seeds}
        with ThreadPoolExecutor(side_by_side) as pool:
            for done in [pool.submit(self.of, *each) for each in wanted.values()]:
                done.result()

    def stored(self, way: Way) -> list[dict[str, Any]]:
        """The trainings of the way that ended, by seed; runs none."""
        keys = [self._settings(way, seed)[0] for seed in way.seeds]
        return [self.done[key] for key in keys if key in self.done]

    def of(self, way: Way, seed: int) -> dict[str, Any]:
        """The training's scores; runs it where no line has them."""
        key, given = self._settings(way, seed)
        if key not in self.done:
            self.done[key] = self._run(key, way, given)
        return self.done[key]

    def _settings(self, way: Way, seed: int) -> tuple[str, list[str]]:
        """(key, settings as `inf train` takes them, folders by their names here)."""
        confirmed = HELD_OUT if way.provider == "recorded" else {}
        settings = COMMON | dict(way.settings) | {"seed": seed} | confirmed
        if settings.get("max_groups") == -1:
            settings["max_groups"] = kept_for_training(self.release)
        if way.guard and self.guard:
            settings["guard"] = GUARD
        given = [f"{name}={value}" for name, value in sorted(settings.items())]
        content = (self._release(way) / "release.json").read_bytes()
        release_hash = hashlib.sha256(content).hexdigest()
        key = hashlib.sha256("\n".join([release_hash, *given]).encode()).hexdigest()[:16]
        return key, given

    def _with_folders(self, given: str) -> str:
        """The setting with its folder in it, which is made, once, where it is not there."""
        with self.making:
            if RULES in given:
                given = given.replace(RULES, str(rules_release(self.folder)))
            if TEACHER in given:
                folder = make_teacher(self.release, HELD_OUT_SETTINGS, self.folder / "teacher")
                given = given.replace(TEACHER, str(folder))
        return given.replace(GUARD, str(self.guard))

    def _release(self, way: Way) -> Path:
        return self.release if way.provider == "recorded" else rules_release(self.folder)

    def _run(self, key: str, way: Way, given: list[str]) -> dict[str, Any]:
        started = time.monotonic()
        out = self.folder / "models" / key
        shutil.rmtree(out, ignore_errors=True)  # of a run that was killed
        settings = [self._with_folders(each) for each in given]
        words = ("train", "--release", self._release(way), "--out", out, *settings)
        result = run_inf(*words, home=self.home, OMP_NUM_THREADS="1")
        return self._keep(key, way, given, round(time.monotonic() - started), result)

    def _keep(
        self, key: str, way: Way, given: list[str], seconds: int, result: dict[str, Any]
    ) -> dict[str, Any]:
        """The row of what was run, kept as a line of the file."""
        row = {
            "key": key,
            "name": way.name,
            "settings": given,
            "seconds": seconds,
            "result": result,
        }
        with self.writing, self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{way.name}: {json.dumps(scores_of(result, 'after'))}", file=sys.stderr, flush=True)
        return row


def scores_of(result: Mapping[str, Any], when: str) -> dict[str, float]:
    """Every measure before or after the training: held-out groups, natural probe, guard."""
    found = dict(result["held_out"][when]) | dict(result["natural_probe"][when])
    if guard := result.get("guard"):
        found["guard-ndcg@10"] = guard["ndcg@10"][when]
    return {name: value for name, value in found.items() if value is not None}


def cell(rows: Sequence[Mapping[str, Any]], measure: str) -> str:
    """`base → mean of the trained ± deviation over the seeds`, or a dash."""
    ends = [(scores_of(row["result"], "before"), scores_of(row["result"], "after")) for row in rows]
    if any(measure not in after for _, after in ends):
        return "–"
    after = [trained[measure] for _, trained in ends]
    spread = f" ± {stdev(after):.3f}" if len(after) > 1 else ""
    return f"{ends[0][0][measure]:.3f} → {fmean(after):.3f}{spread}"


def table(results: Results, ways: Sequence[Way]) -> str:
    """The part's table in Markdown, its trainings run where they are not done."""
    measures = (*HEADLINE, *FIRST)
    lines = [f"| training | seeds | {' | '.join(measures)} | seconds |"]
    lines.append("|---" * (len(measures) + 3) + "|")
    for way in ways:
        rows = [results.of(way, seed) for seed in way.seeds]
        cells = [cell(rows, measure) for measure in measures]
        seconds = ", ".join(str(row["seconds"]) for row in rows)
        seeds = ", ".join(map(str, way.seeds))
        lines.append(f"| {way.name} | {seeds} | {' | '.join(cells)} | {seconds} |")
    return "\n".join(lines) + "\n"


def gains(rows: Sequence[Mapping[str, Any]]) -> str:
    """What every seed gained on each measure, with its paired 95 % interval."""
    lines = ["| seed | measure | gain |", "|---|---|---|"]
    for seed, row in zip(SEEDS, rows, strict=False):
        parts = (row["result"][part].get("gain", {}) for part in ("held_out", "natural_probe"))
        for name, gain in {name: of for part in parts for name, of in part.items()}.items():
            if name not in HEADLINE:
                continue
            lines.append(f"| {seed} | {name} | {shown_gain(gain)} |")
    return "\n".join(lines) + "\n"


def shown_gain(gain: Mapping[str, Any]) -> str:
    """A gain with its interval, where it has one."""
    low, high = gain["low"], gain["high"]
    return f"{gain['value']:+.3f}" + ("" if low is None else f" [{low:+.3f}, {high:+.3f}]")


def controls(rows: Sequence[Mapping[str, Any]]) -> str:
    """What each half of the text alone reaches, and BM25, next to the recipe's flips."""
    after = [scores_of(row["result"], "after") for row in rows]
    lines = ["| after the training | strict | instruction-flip | query-flip |", "|---|---|---|---|"]
    for control in ("", *CONTROLS):
        names = [f"{control}:{m}" if control else m for m in HEADLINE[:3]]
        values = [fmean(one[n] for one in after) if n in after[0] else None for n in names]
        shown = " | ".join("–" if value is None else f"{value:.3f}" for value in values)
        lines.append(f"| {control or 'instruction and query'} | {shown} |")
    bm25 = rows[0]["result"]["held_out"]["bm25"]
    lines.append(f"| BM25 | {' | '.join(f'{bm25[m]:.3f}' for m in HEADLINE[:3])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing of the parts, and print their tables."""
    parser = argparse.ArgumentParser(description="Does training help?")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--folder", type=Path, default=ROOT / ".results")
    parser.add_argument("--release", type=Path)
    parser.add_argument("--guard", type=Path, default=SHARED)
    parser.add_argument("--side-by-side", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    names = given.parts or ["recipe", "dose"]
    names = list(PARTS) if "all" in names else names
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"no part {unknown[0]!r}: choose from {', '.join(PARTS)}, all")
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    release = given.release.resolve() if given.release else demo_release(folder)
    guard = write_guard(given.guard, folder / "google_queries") if given.guard.is_dir() else None
    results = Results(folder, release, guard)
    results.run([way for name in names for way in PARTS[name]], given.side_by_side)
    for name in names:
        print(f"\n## {name}\n\n{table(results, PARTS[name])}", flush=True)
        if name == "recipe":
            rows = [results.of(PARTS[name][0], seed) for seed in SEEDS]
            print(gains(rows), controls(rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
