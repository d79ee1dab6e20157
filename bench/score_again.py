"""Today's measures of the models that bench/results.py trained, without training them again.

    .venv/bin/python bench/score_again.py [NAME …] [--folder DIR] [--release DIR]

NAME: a training's name there ("the recipe", "ℓ_P"); without one, the recipe with and without
base_share. For a result from before a measure was made. Prints base, mean over seeds of the trained
models, both halves alone (of the trained) and BM25: held-out groups, and the natural probe.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from results import PARTS, ROOT, Results, shown_gain
from sentence_transformers import SentenceTransformer

from trainer.evaluate.following import INSTRUCTION_ALONE, QUERY_ALONE
from trainer.launch.plan import groups_of
from trainer.model.backbone import load_backbone
from trainer.report.held_out_scores import HeldOutScores
from trainer.settings.settings import parse_settings

MEASURES = {
    "held_out": (
        *("strict", "instruction-flip", "query-flip"),
        *("right-first", "ndcg@10", "plain-ndcg@10"),
    ),
    "natural_probe": ("natural-flip", "natural-first"),
}


def scored_again(
    row: Mapping[str, Any], folder: Path, release: Path, base: HeldOutScores | None
) -> HeldOutScores:
    """A training's scores by what this clone measures; base: others', of the same base model."""
    given = dict(each.split("=", 1) for each in row["settings"])
    given.pop("guard", None)
    settings = parse_settings(given)
    scores = HeldOutScores(settings, groups_of(release, settings), check=lambda: None)
    if base is None:
        scores.score_before(load_backbone(settings))
    else:
        scores.before, scores.natural["before"] = base.before, base.natural["before"]
        scores.per_query["before"] = base.per_query["before"]
        scores.intervals["before"] = base.intervals["before"]
    trained = folder / "models" / Path(row["result"]["path"]).name
    scores.score_after(SentenceTransformer(str(trained), device="cpu"))
    return scores


def lines_of(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows of the table: of several seeds the means."""
    lines = []
    for part, names in MEASURES.items():
        found = [result[part] for result in results]
        for name in names:
            alone = [f"{control}:{name}" for control in (QUERY_ALONE, INSTRUCTION_ALONE)]
            values = [
                found[0]["before"].get(name),
                *(_mean([one["after"].get(each) for one in found]) for each in (name, *alone)),
                found[0]["bm25"].get(name),
            ]
            cells = " | ".join("–" if value is None else f"{value:.3f}" for value in values)
            gains = [one["gain"][name] for one in found if name in one.get("gain", {})]
            lines.append(f"| `{name}` | {cells} | {', '.join(map(shown_gain, gains))} |")
    return lines


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return fmean(there) if there else None


def main() -> None:
    """Print a table for each name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--folder", type=Path, default=ROOT / ".results")
    parser.add_argument("--release", type=Path)
    given = parser.parse_args()
    release = given.release or given.folder / "release"
    guard = given.folder / "google_queries"
    results = Results(given.folder.resolve(), release, guard if guard.is_dir() else None)
    ways = {way.name: way for ways in PARTS.values() for way in ways}
    base: HeldOutScores | None = None
    for name in given.names or [way.name for way in PARTS["recipe"]]:
        found = []
        for row in results.stored(ways[name]):
            base = scored_again(row, given.folder, release, base)
            found.append(base.as_result())
        print(f"\n## {name}, {len(found)} trainings\n")
        print("| | base | trained | query alone | instruction alone | BM25 | gains |")
        print("|---|---|---|---|---|---|---|")
        print("\n".join(lines_of(found)), flush=True)


if __name__ == "__main__":
    main()
