"""Gain against loss: both trained sides, one factor at a time around a recommended point.

    .venv/bin/python bench/frontier.py [POINT …] [--folder DIR] [--side-by-side N] [--seeds 1 2 3]
        [--model NAME] [--rows N] [--by-domain] [--list] [--table] [--write] [--intervals]

POINT: names of `--list`, or prefixes of names with a colon (`query:`, `query: LoRA`); without one,
both recommended points. Every training is `inf train` on the release of bench/results.py,
whose folder, release, held-out groups and ordinary retrieval (500 questions over all passages) it
shares; a training that ended is a line of DIR/frontier.jsonl and is not run again. Weights are
float32, so that processors agree. Seeds are 1, 2, 3 unless given; none is chosen by its result.
A point of WiSE-FT is no training: the weights that its training without `base_share` left in DIR
are mixed with the base model's and scored (seconds: of the training).

--table: print what DIR has of every point, and run nothing. --write: also add it to the file that
the Train page draws (app/training/frontier.json: other points and seeds of the same set and model
stay), and draw the figures of docs/results.md.

--intervals: gains with 95 % intervals over seeds and groups together, of the points given, from the
weights in DIR.

--by-domain: held out are whole domains of the demo set (cooking, law …), of which no group trains.

--model, --rows: another base model and its batch, as a GPU takes them (`--model BAAI/bge-m3 --rows
32`); SmolLM2 as a decoder embedder (bench/smollm2.py writes it) is `--model FOLDER` with the points
of `decoder`.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

import numpy as np  # noqa: E402
from results import (  # noqa: E402
    HEADLINE,
    SEEDS,
    SHARED,
    TEACHER,
    Results,
    Way,
    demo_release,
    kept_for_training,
    scores_of,
    table,
    write_guard,
)

from analysis.figures.paired import Questions, Scores, paired_difference  # noqa: E402
from analysis.figures.printed import printed  # noqa: E402
from analysis.figures.student import student_97_5  # noqa: E402
from app.training.frontier import FILE, frontier_figure  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import open_store  # noqa: E402
from trainer.evaluate.intervals import about_questions  # noqa: E402
from trainer.launch.plan import plan_groups  # noqa: E402
from trainer.report.held_out_scores import HeldOutScores  # noqa: E402
from trainer.settings.settings import parse_settings, split_pairs  # noqa: E402
from trainer.settings.table import DEFAULT_BASE_MODEL  # noqa: E402

GUARD = "guard-ndcg@10"
FP32 = {"precision": "fp32"}
QUERY: Mapping[str, object] = FP32 | {
    "trained_side": "query",
    "objective": "P,IQ:uni",
    "pool_passages": -1,
    "group_weight": 1,
    "learning_rate": 2e-4,
    "max_steps": 200,
    "warmup": 10,
    "query_tokens": 160,
    "dropout": -1,
}
BOTH: Mapping[str, object] = FP32 | {
    "objective": "P,I:multi",
    "instructions_sampled": 3,
    "learning_rate": 1e-4,
    "max_steps": 60,
}
FACTORS: dict[str, tuple[Mapping[str, object], dict[str, Mapping[str, object]]]] = {
    "query": (
        QUERY,
        {
            "50 steps": {"max_steps": 50},
            "100 steps": {"max_steps": 100},
            "400 steps": {"max_steps": 400},
            "400 steps, best by held-out flip": {
                "max_steps": 400,
                "evaluate_steps": 50,
                "best_by": "instruction-flip",
                "patience": 3,
            },
            "lr 5e-5": {"learning_rate": 5e-5},
            "lr 1e-4": {"learning_rate": 1e-4},
            "lr 4e-4": {"learning_rate": 4e-4},
            "τ 0.02": {"temperature": 0.02},
            "τ 0.1": {"temperature": 0.1},
            "batch passages only": {"pool_passages": 0},
            "pool of 300": {"pool_passages": 300},
            "no group term": {"group_weight": 0},
            "group term × 2": {"group_weight": 2},
            "ℓ_P": {"objective": "P"},
            "ℓ_{P,I}^uni, 3 sampled": {"objective": "P,I:uni", "instructions_sampled": 3},
            "ℓ_{P,I,IQ}^uni, 3 sampled": {"objective": "P,I,IQ:uni", "instructions_sampled": 3},
            "dropout 0": {"dropout": 0},
            "dropout 0.2": {"dropout": 0.2},
            "16 groups a batch": {"rows_per_batch": 16, "max_steps": 100},
            "WiSE-FT 0.2": {"base_share": 0.2},
            "WiSE-FT 0.4": {"base_share": 0.4},
            "WiSE-FT 0.6": {"base_share": 0.6},
            "taught by a cross-encoder": {"teacher": f"cross-encoder:{TEACHER}"},
            "LoRA 8": {"lora_rank": 8, "learning_rate": 1e-3},
            "LoRA 16": {"lora_rank": 16, "learning_rate": 1e-3},
            "LoRA 32": {"lora_rank": 32, "learning_rate": 1e-3},
            "LoRA 64": {"lora_rank": 64, "learning_rate": 1e-3},
        },
    ),
    "both": (
        BOTH,
        {
            "30 steps": {"max_steps": 30},
            "100 steps": {"max_steps": 100},
            "all instructions": {"instructions_sampled": 0},
            "8 instructions": {"instructions_sampled": 8},
            "10% plain rows": {"standard_share": 0.1},
            "WiSE-FT 0.2": {"base_share": 0.2},
            "WiSE-FT 0.4": {"base_share": 0.4},
            "WiSE-FT 0.6": {"base_share": 0.6},
            "τ 0.02": {"temperature": 0.02},
            "τ 0.1": {"temperature": 0.1},
            "ℓ_P": {"objective": "P", "instructions_sampled": 0},
            "dropout as the model has it": {"dropout": -1},
            "LoRA 32": {"lora_rank": 32, "learning_rate": 1e-3},
            "16 groups a batch": {"rows_per_batch": 16, "max_steps": 30},
            "taught by a cross-encoder": {"teacher": f"cross-encoder:{TEACHER}"},
            "100 steps, best by held-out flip": {
                "max_steps": 100,
                "evaluate_steps": 20,
                "best_by": "instruction-flip",
                "patience": 2,
            },
        },
    ),
    "decoder": (
        QUERY | {"lora_rank": 32, "learning_rate": 5e-4},
        {
            "weaker": {"learning_rate": 2e-4},
            "stronger": {"learning_rate": 1e-3},
            **{
                f"both sides{name}": {**BOTH, "lora_rank": 32, "learning_rate": rate}
                | {"trained_side": "both", "pool_passages": 0, "group_weight": 0}
                for name, rate in {"": 5e-4, ", weaker": 2e-4, ", stronger": 1e-3}.items()
            },
        },
    ),
}


def points() -> dict[str, Mapping[str, object]]:
    """Every point by its name: the recommended one of a mode, and it with one factor changed."""
    found: dict[str, Mapping[str, object]] = {}
    for mode, (recommended, factors) in FACTORS.items():
        found[mode] = recommended
        found |= {f"{mode}: {name}": {**recommended, **of} for name, of in factors.items()}
    return found


class Frontier(Results):
    """Results in which a mix with the base model is scored from the weights of a training there."""

    def _run(self, key: str, way: Way, given: list[str]) -> dict[str, Any]:
        share = float(str(way.settings.get("base_share", 0)))
        if not share:
            return super()._run(key, way, given)
        alone = {name: value for name, value in way.settings.items() if name != "base_share"}
        row = self.of(way._replace(settings=alone), int(split_pairs(given)["seed"]))
        result = self._mixed(row["key"], [self._with_folders(each) for each in given], share)
        return self._keep(key, way, given, row["seconds"], result | _training_of(row["result"]))

    def _mixed(self, trained: str, given: list[str], share: float) -> dict[str, Any]:
        """Scores of share * base + (1 - share) * trained, as a training's own scoring has them."""
        return self._scored(
            trained, [self._with_folders(each) for each in given], share
        ).as_result()

    def _scored(self, trained: str, given: list[str], share: float = 0.0) -> HeldOutScores:
        """The base and the weights that a training left, the base mixed in by its share."""
        from trainer.evaluate.vector_cache import base_caches
        from trainer.model.backbone import load_backbone, load_model
        from trainer.model.doors import trained_part
        from trainer.model.weights import copy_weights, mix_in

        settings = parse_settings(split_pairs(given))
        owners_process(True)
        store = open_store(f"sqlite:///{self.home / 'inf.db'}")
        scores = HeldOutScores(
            settings,
            plan_groups(store, str(self.release), settings),
            check=lambda: None,
            caches_of_base=lambda base: base_caches(store, settings, base),
        )
        model = load_backbone(settings)
        scores.score_before(model)
        part = trained_part(model)
        base = copy_weights(part)
        stored = load_model(str(self.folder / "models" / trained))
        part.load_state_dict(trained_part(stored).state_dict())
        if share:
            mix_in(part, base, share)
        scores.score_after(model)
        store.close()
        return scores

    def per_seed(self, way: Way) -> list[tuple[Scores, Scores, Questions]]:
        """(before, after, what belongs together) of each seed whose weights are in the folder."""
        found = []
        for row in self.stored(way):
            if not (self.folder / "models" / row["key"]).is_dir():
                continue
            given = [self._with_folders(each) for each in row["settings"] if "guard=" not in each]
            scored = self._scored(row["key"], given)
            before, after = (
                scored.per_query[when] | scored.natural[when].per_item
                for when in ("before", "after")
            )
            assert scored.benchmark is not None
            alone = {name: {"cluster": name, "scored": True} for name in before}
            found.append((before, after, alone | about_questions(scored.benchmark)))
        return found


def over_seeds_and_groups(
    found: Sequence[tuple[Scores, Scores, Questions]], measure: str
) -> tuple[float, float]:
    """(mean gain over the seeds, half the width of its 95 % interval over seeds and groups).

    Groups: the paired interval of each group's mean over the seeds. Seeds: Student's t of their
    means. Both are drawn independently, so that the squares of the two reaches add up.
    """
    before, _, questions = found[0]
    after = {
        name: {measure: _mean([one.get(name, {}).get(measure) for _, one, _ in found])}
        for name in before
    }
    over_groups = paired_difference(before, after, measure, questions)
    means = [paired_difference(*one[:2], measure, questions).value for one in found]
    values = np.array(means, dtype=float)
    over_seeds = student_97_5(len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    assert over_groups.value is not None and over_groups.high is not None
    return over_groups.value, float(np.hypot(over_groups.high - over_groups.value, over_seeds))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def intervals(results: Frontier, ways: Sequence[Way]) -> str:
    """Gains over seeds and groups, of points with at least two seeds' weights in the folder."""
    lines = [f"| point | seeds | {' | '.join(HEADLINE)} |", "|---" * (len(HEADLINE) + 2) + "|"]
    for way in ways:
        found = results.per_seed(way)
        if len(found) < 2:
            continue
        cells = [over_seeds_and_groups(found, measure) for measure in HEADLINE]
        shown = " | ".join(f"{mean:+.3f} ± {reach:.3f}" for mean, reach in cells)
        lines.append(f"| {way.name} | {len(found)} | {shown} |")
    return "\n".join(lines)


def _training_of(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in ("seconds", "steps", "out") if name in result}


def gains_against_losses(results: Results, ways: Sequence[Way]) -> str:
    """Means over the seeds: what was gained, and the change of ordinary retrieval."""
    names = (*HEADLINE, GUARD)
    lines = [f"| point | seeds | {' | '.join(names)} | seconds |", "|---" * (len(names) + 3) + "|"]
    for way in ways:
        rows = results.stored(way)
        if not rows:
            continue
        cells = []
        for name in names:
            ends = [
                [scores_of(row["result"], when) for when in ("before", "after")] for row in rows
            ]
            changes = [after[name] - before[name] for before, after in ends if name in after]
            cells.append(f"{fmean(changes):+.3f}" if changes else "–")
        seconds = fmean(row["result"]["seconds"] for row in rows)
        lines.append(f"| {way.name} | {len(rows)} | {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


def write_figure(results: Results, ways: Sequence[Way], model: str) -> None:
    """The file of the Train page, and docs/pictures/frontier-*.svg."""
    if without := [way.name for way in ways for row in results.stored(way) if not _has_guard(row)]:
        raise SystemExit(
            f"no ordinary retrieval of {without[0]!r}: train it with --guard, in another --folder"
        )
    found = {
        way.name: {
            "side": way.settings.get("trained_side", "both"),
            "of seed": {
                int(split_pairs(row["settings"])["seed"]): (
                    {
                        name: round(after[name] - before[name], 6)
                        for before, after in [
                            [scores_of(row["result"], when) for when in ("before", "after")]
                        ]
                        for name in (*HEADLINE, GUARD)
                    },
                    round(row["result"]["seconds"]),
                )
                for row in rows
            },
        }
        for way in ways
        if (rows := results.stored(way))
    }
    kept = kept_for_training(results.release)
    held_out = next(
        row["result"]["held_out"]["groups"] for way in ways for row in results.stored(way)
    )
    about = (
        f"demo set, {kept} training groups and {held_out} held-out groups that judge B confirmed"
    )
    points = with_those_before(found, about, model)
    whole = {"set": about, "model": model, "points": points}
    FILE.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for loss, name in {GUARD: "ordinary", "query-flip": "query-flip"}.items():
        picture = ROOT / "docs" / "pictures" / f"frontier-{name}.svg"
        picture.write_bytes(printed(frontier_figure(points, loss), "svg"))


def _has_guard(row: Mapping[str, Any]) -> bool:
    return GUARD in scores_of(row["result"], "after")


def with_those_before(
    found: Mapping[str, Mapping[str, Any]], about: str, model: str
) -> list[dict[str, Any]]:
    """What was found, and the file's points and seeds that the folder lacks, as the file has them.

    A file of another set or model is not added to: SystemExit names both.
    """
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {"points": []}
    if before["points"] and (before["set"], before["model"]) != (about, model):
        raise SystemExit(
            f"{FILE} is of {before['set']!r} and {before['model']!r}, these trainings are of "
            f"{about!r} and {model!r}: move the file away to begin another"
        )
    merged: dict[str, dict[str, Any]] = {}
    for point in before["points"]:
        merged[point["point"]] = {
            "side": point["side"],
            "of seed": {
                seed: (
                    {name: values[at] for name, values in point["gains"].items()},
                    point["seconds"][at],
                )
                for at, seed in enumerate(point["seeds"])
            },
        }
    for name, one in found.items():
        kept: Mapping[int, Any] = merged.get(name, {}).get("of seed", {})
        merged[name] = {"side": one["side"], "of seed": {**kept, **one["of seed"]}}
    order = list(points())
    return [
        {
            "point": name,
            "side": merged[name]["side"],
            "seeds": list(seeds),
            "gains": {
                measure: [seeds[seed][0][measure] for seed in seeds]
                for measure in (*HEADLINE, GUARD)
            },
            "seconds": [seeds[seed][1] for seed in seeds],
        }
        for name in sorted(merged, key=order.index)
        for seeds in [dict(sorted(merged[name]["of seed"].items()))]
    ]


def trainings_at_once() -> int:
    """One on a GPU, else one on each core."""
    import torch

    return 1 if torch.cuda.is_available() else os.cpu_count() or 1


def main() -> None:
    """Run what is missing of the points, and print their tables."""
    parser = argparse.ArgumentParser(description="Gain against loss.")
    parser.add_argument("points", nargs="*", metavar="POINT")
    parser.add_argument("--folder", type=Path, default=ROOT / ".results")
    parser.add_argument("--guard", type=Path, default=SHARED)
    parser.add_argument("--side-by-side", type=int, help="default: one a core, one on a GPU")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--model")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--by-domain", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--intervals", action="store_true")
    given = parser.parse_args()
    every = points()
    if given.write and given.by_domain:
        parser.error("--write: the file has the points of the other split")
    if given.list:
        print("\n".join(every))
        return
    wanted = given.points or ["query", "both"]
    matches = {
        one: [one] if one in every else [n for n in every if ":" in one and n.startswith(one)]
        for one in wanted
    }
    if unknown := [one for one, names in matches.items() if not names]:
        parser.error(f"no point {unknown[0]!r}: choose from --list")
    chosen = list(dict.fromkeys(name for names in matches.values() for name in names))
    more = {"base_model": given.model} if given.model else {}
    more |= {"rows_per_batch": given.rows} if given.rows else {}
    if given.table or given.write:
        # the decoder's points are of a base model of their own: without it they repeat others
        chosen = [name for name in every if given.model or not name.startswith("decoder")]
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    guard = write_guard(given.guard, folder / "google_queries") if given.guard.is_dir() else None
    release = demo_release(folder, by_domain=given.by_domain)
    results = Frontier(folder, release, guard, "frontier.jsonl")
    ways = [Way(name, every[name] | more, given.seeds, guard=True) for name in chosen]
    if given.intervals:
        print(intervals(results, ways))
        return
    if given.write:
        write_figure(results, ways, given.model or DEFAULT_BASE_MODEL)
    elif not given.table:
        results.run(ways, given.side_by_side or trainings_at_once())
        print(table(results, ways))
    print(gains_against_losses(results, ways))


if __name__ == "__main__":
    main()
