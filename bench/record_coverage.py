"""Coverage of intervals where several items are about one record: a table of docs/intervals.md.

    OPENBLAS_NUM_THREADS=1 nice python bench/record_coverage.py [--simulations 1000] [--workers 1]

A record has several items, such as the passages that people grade. Of a hard record every item is
answered by chance, of any other each judge reports the true grade with his skill, else a grade by
chance; *independent items* are hard one by one. Functions are the product's own, and the truth is
their value for one study of 40,000 records by the same judges. `alone` is the coverage of alpha
where records are not given, as before 26 November 2026. Seeds are fixed.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

# A script's own folder comes first on the path: bench/analysis.py would replace the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from analysis.agreement.agreement import measures_of_counts, report_of  # noqa: E402
from analysis.agreement.answers import Answers, JudgeInfo  # noqa: E402

GRADES = (0.3, 0.3, 0.4)
MODEL_SKILL = 0.8
DRAWS = 1000
MANY = 40_000  # records behind the truth
FIGURES = (
    "krippendorff_alpha",
    "fleiss_kappa",
    "gwet_ac1",
    "agreement",
    "ordinal_alpha",
    "weighted_fleiss_kappa",
    "weighted_kappa",
    "pair",
    "model",
    "rest",
)


@dataclass(frozen=True)
class Design:
    """`items`: of a record, from the one number to the other; `overlap`: judges of a record."""

    name: str
    records: int
    items: tuple[int, int]
    judges: int
    overlap: int
    hard: float
    skill: float
    dependent: bool = True
    seed: int = 0


DESIGNS = (
    Design("40 × 4, 3 judges, a third hard", 40, (4, 4), 3, 3, 1 / 3, 0.9, seed=1),
    Design("40 × 4, 3 judges, independent items", 40, (4, 4), 3, 3, 1 / 3, 0.9, False, seed=2),
    Design("16 × 4, 2 judges, a third hard", 16, (4, 4), 2, 2, 1 / 3, 0.9, seed=3),
    Design("64 × 4, 2 judges, a tenth hard", 64, (4, 4), 2, 2, 0.1, 0.97, seed=4),
    Design("60 × 1 to 8, 3 judges, a third hard", 60, (1, 8), 3, 3, 1 / 3, 0.9, seed=5),
    Design("100 × 3, 3 of 20 judges, half hard", 100, (3, 3), 20, 3, 0.5, 0.9, seed=6),
    Design("200 × 5, 4 judges, a fifth hard", 200, (5, 5), 4, 4, 0.2, 0.8, seed=7),
    Design("30 × 10, 3 judges, a third hard", 30, (10, 10), 3, 3, 1 / 3, 0.9, seed=8),
    Design("150 × 2, 3 judges, independent items", 150, (2, 2), 3, 3, 0.2, 0.8, False, seed=9),
)


def study(design: Design, generator: np.random.Generator) -> Answers:
    """The answers of a study; the last judge is a model, which answers every item."""
    each = generator.integers(design.items[0], design.items[1] + 1, design.records)
    record = np.repeat(np.arange(design.records), each)
    order = np.argsort(generator.random((design.records, design.judges)), axis=1)
    judges = np.zeros((design.records, design.judges + 1), dtype=bool)
    np.put_along_axis(judges, order[:, : design.overlap], True, axis=1)
    judges[:, -1] = True
    item, judge = np.nonzero(judges[record])
    hard = generator.random(design.records)[record] < design.hard
    if not design.dependent:
        hard = generator.random(len(record)) < design.hard
    truth = generator.choice(len(GRADES), size=len(record), p=GRADES)
    skill = np.where(judge == design.judges, MODEL_SKILL, design.skill)
    knows = (generator.random(len(item)) < skill) & ~hard[item]
    guess = generator.choice(len(GRADES), size=len(item), p=GRADES)
    infos = [JudgeInfo(f"judge {j}", "person", False, False) for j in range(design.judges)]
    return Answers(
        item,
        judge,
        np.where(knows, truth[item], guess),
        np.full(len(item), np.nan),
        list(range(len(record))),
        [*infos, JudgeInfo("model", "model", False, False)],
        [str(grade) for grade in range(len(GRADES))],
        is_ordered=True,
        record=record,
    )


def figures(report: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The figures of a report by the names of the table; of persons and pairs all."""
    people = report["people"]
    found = {name: [people[name]] for name in FIGURES if name in people}
    found["weighted_kappa"] = [report["weighted_kappa"]]
    pairs = [pair for pair in report["pairs"] if "model" not in (pair["judge_a"], pair["judge_b"])]
    found["pair"] = [{**pair, "value": pair["kappa"]} for pair in pairs]
    found["model"] = list(report["human_model"].values())
    found["rest"] = [row for name, row in report["with_people"].items() if name != "model"]
    return found


def coverage(design: Design, simulations: int) -> tuple[Design, dict[str, float], dict[str, float]]:
    """Share of intervals that hold the truth, and mean width, by figure; `alone` of alpha."""
    generator = np.random.default_rng(design.seed)
    many = study(replace(design, records=MANY), generator)
    truth = figures(report_of(many, {}, 0))
    inside: dict[str, list[bool]] = {name: [] for name in (*FIGURES, "alone")}
    widths: dict[str, list[float]] = {name: [] for name in inside}

    def count(name: str, low: float, high: float, true: float) -> None:
        inside[name].append(low <= true <= high)
        widths[name].append(high - low)

    for _ in range(simulations):
        answers = study(design, generator)
        found = figures(report_of(answers, {}, DRAWS))
        counts = answers.label_counts(range(design.judges))
        found["alone"] = [
            measures_of_counts(counts, DRAWS, ["krippendorff_alpha"])["krippendorff_alpha"]
        ]
        for name in inside:
            true = truth["krippendorff_alpha" if name == "alone" else name]
            for row, of_many in zip(found[name], true, strict=True):
                if row["value"] is not None and row.get("interval"):
                    count(name, *row["interval"], of_many["value"])
    means = [
        {name: float(np.mean(each)) if each else np.nan for name, each in values.items()}
        for values in (inside, widths)
    ]
    return design, means[0], means[1]


def table(rows: list[tuple[Design, dict[str, float], dict[str, float]]], simulations: int) -> str:
    """Markdown: a line per design."""
    names = [name for name in (*FIGURES, "alone") if not np.isnan([r[1][name] for r in rows]).all()]
    error = np.sqrt(0.95 * 0.05 / simulations)
    lines = [
        f"{len(rows)} designs, {simulations:,} studies each; Monte-Carlo standard error of a "
        f"coverage {error:.4f}. Coverage (mean width):",
        "",
        f"| design | {' | '.join(names)} |",
        "|---|" + "---|" * len(names),
    ]
    for design, covered, width in rows:
        cells = [
            "–" if np.isnan(covered[name]) else f"{covered[name]:.3f} ({width[name]:.2f})"
            for name in names
        ]
        lines.append(f"| {design.name} | {' | '.join(cells)} |")
    for name in names:
        each = [row[1][name] for row in rows if not np.isnan(row[1][name])]
        lines.append(f"- {name}: {min(each):.3f} to {max(each):.3f}, mean {np.mean(each):.3f}")
    return "\n".join(lines)


def main() -> None:
    """Simulate every design and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    started = time.perf_counter()
    with ProcessPoolExecutor(given.workers) as pool:
        rows = list(pool.map(partial(coverage, simulations=given.simulations), DESIGNS))
    print(table(rows, given.simulations))
    print(f"\n{time.perf_counter() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
