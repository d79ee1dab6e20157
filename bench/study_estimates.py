"""Coverage of the intervals of a study's estimates about its run, by simulation.

    python bench/study_estimates.py [--partly] [--items 200] [--simulations 1000]
        [--draws 1000] [--workers 2] [--stored cells.jsonl] [--extra 0.4] [--by-variance]
    python bench/study_estimates.py --exact

A run of 900 groups, 60 % kept, from two sources of 85 and 15 %; the rarer one is harder. Whether
people confirm an item is fixed before sampling. The sample is that of `db.study.sampling`: at
random, evenly by source (so that the rare source weighs too much without weights), evenly by
verdict, or at random with as many items again added by the planner. The interval has to hold the
share of the finite run. Seeds are fixed. The table stands in docs/concepts/study-estimates.md.

--stored: a file that keeps each cell as it is done; a second start simulates only what it lacks.
--partly: a queue three times as long, of which as many items are judged, at random; and how often
that is reported as an imbalance. Its table stands in docs/intervals.md.
--extra, --by-variance: other formulas than the product's, which cover too little.
--exact: no simulation, but the binomial coverage of a simple random sample of a large run.
"""

import argparse
import itertools
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

# A script's own folder comes first on the path: bench/analysis.py would replace the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from analysis.study import run_estimates  # noqa: E402
from analysis.study.balance import imbalances  # noqa: E402
from analysis.study.design import design_of  # noqa: E402
from analysis.study.planning import added_items, plan_items  # noqa: E402
from analysis.study.run_report import Estimator  # noqa: E402
from db.shape import INF_IR  # noqa: E402
from db.study.run_items import ItemKind, JudgedItem  # noqa: E402
from db.study.sampling import sample_items  # noqa: E402

GROUPS = 900
SAMPLES_OF_A_RUN = 10
DESIGNS = {
    "at random": {"sampling": "random"},
    "evenly by source": {"strata": ["scenario", "source"]},
    "evenly by verdict": {"strata": ["scenario", "verdict"]},
    "at random, doubled by plan": {"sampling": "random"},
}
PARTLY = {
    "at random, a third judged": {"sampling": "random"},
    "evenly by source, a third judged": {"strata": ["scenario", "source"]},
    "evenly by verdict, a third judged": {"strata": ["scenario", "verdict"]},
}
ITEMS = (20, 60, 200)
EXACT_GROUPS = (12, 20, 36, 60, 120, 360)
PRECISIONS = (0.7, 0.9, 0.98)
FIGURES = ("precision", "overturned", "recall")
EFFECTIVE = run_estimates._effective
MISSED_CONFIRMED = 0.25  # of the items that the validator missed


def make_run(precision: float, generator: np.random.Generator) -> tuple[dict, dict]:
    """(group and kind by item, value by item) of a run."""
    kinds, values = {}, {}
    for group in range(GROUPS):
        source = "rare" if generator.random() < 0.15 else "common"
        kept = generator.random() < 0.6
        missed = 0 if kept else int(generator.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))
        wrong = set(generator.permutation(3)[:missed].tolist())
        for place, role in enumerate(INF_IR.roles):
            passed = place not in wrong
            chance = precision if passed else MISSED_CONFIRMED
            chance -= 0.1 if source == "rare" and chance < 0.95 else 0
            item = group * 3 + place
            kinds[item] = (
                group,
                ItemKind("kept" if kept else "dropped", source, "", role, passed, missed),
            )
            values[item] = float(generator.random() < chance)
    return kinds, values


def truth(kinds: dict, values: dict) -> dict[str, float]:
    """The figures of the finite run."""
    kept = [values[i] for i, (_, kind) in kinds.items() if kind.verdict == "kept"]
    missed = [values[i] for i, (_, kind) in kinds.items() if not kind.passed]
    passed = [values[i] for i, (_, kind) in kinds.items() if kind.passed]
    recall = sum(passed) / (sum(passed) + sum(missed))
    return {"precision": np.mean(kept), "overturned": np.mean(missed), "recall": recall}


def groups_of(kinds: dict) -> dict[int, dict[str, int]]:
    """The item of every scenario, by group."""
    groups: dict[int, dict[str, int]] = {}
    for item, (group, kind) in kinds.items():
        groups.setdefault(group, {})[kind.scenario] = item
    return groups


def sampled(
    design: str, kinds: dict, groups: dict, values: dict, count: int, seed: int
) -> tuple[list, dict]:
    """The judged items and the settings of the study; `waiting` in them: kinds not judged."""
    settings = dict((DESIGNS | PARTLY)[design])
    by = [name for name in settings.get("strata", ()) if name != "scenario"]
    first = {group: kinds[items["positive"]][1] for group, items in groups.items()}
    strata = {g: tuple(getattr(k, name) for name in by) for g, k in first.items()} if by else None
    even = settings.get("sampling") != "random"
    part = design in PARTLY
    items = sample_items(
        groups, count * 3 if part else count, seed, strata=strata, even_scenarios=even
    )
    if part:
        items = np.random.default_rng(seed).permutation(items).tolist()
        items, settings["waiting"] = items[:count], [kinds[i][1] for i in items[count:]]

    def judged(chosen: list[int]) -> list[JudgedItem]:
        return [JudgedItem(i, *kinds[i], values[i]) for i in chosen]

    if "plan" in design:
        plan = plan_items(
            kinds, judged(items), design_of(settings), target="recall", items=count, used=items
        )
        items += added_items(kinds, items, plan, seed)
        settings["additions"] = [{"strata": list(plan.strata)}]
    return judged(items), settings


def by_variance_alone(cells: list, value: float) -> float:
    """The effective number of groups without Kish's as an upper bound."""
    variance = sum(
        cell.weight**2 / cell.groups * cell.left * run_estimates._spread(cell, value)
        for cell in cells
    )
    return value * (1 - value) / variance if 0 < value < 1 and variance else EFFECTIVE(cells, value)


def coverage(
    design: str,
    precision: float,
    count: int,
    simulations: int,
    draws: int,
    extra: float = run_estimates.EXTRA,
    by_variance: bool = False,
) -> dict:
    """By figure: (coverage among those shown, mean width, share refused)."""
    run_estimates.DRAWS, run_estimates.EXTRA = draws, extra  # type: ignore[misc]
    if by_variance:
        run_estimates._effective = by_variance_alone
    place = [*DESIGNS, *PARTLY].index(design)
    alarms = 0
    held = {name: [] for name in FIGURES}
    widths: dict[str, list[float]] = {name: [] for name in FIGURES}
    for number in range(simulations):
        seed = [place, round(100 * precision), count, number]
        if number % SAMPLES_OF_A_RUN == 0:
            kinds, values = make_run(precision, np.random.default_rng(seed))
            population, right = Counter(kind for _, kind in kinds.values()), truth(kinds, values)
            groups = groups_of(kinds)
        sample, settings = sampled(design, kinds, groups, values, count, hash(tuple(seed)) % 2**31)
        report = Estimator(population, sample, design_of(settings), INF_IR.roles).per_item()
        judged = [item.kind for item in sample]
        alarms += bool(imbalances(judged, settings.get("waiting", []), settings.get("strata", ())))
        for name in FIGURES:
            if (interval := report[name]["interval"]) is not None:
                held[name].append(interval[0] <= right[name] <= interval[1])
                widths[name].append(interval[1] - interval[0])
    return {
        name: (
            float(np.mean(held[name])) if held[name] else float("nan"),
            float(np.mean(widths[name])) if held[name] else float("nan"),
            1 - len(held[name]) / simulations,
        )
        for name in FIGURES
    } | ({"imbalance": (alarms / simulations, 0.0, 0.0)} if design in PARTLY else {})


def simulated(cells: list[tuple], given: argparse.Namespace) -> dict[tuple, dict]:
    """The coverage of every cell, those of the file `--stored` as they are there."""
    stored: Path | None = given.stored
    found: dict[tuple, dict] = {}
    options = [given.simulations, given.draws, given.extra, given.by_variance]
    if stored and stored.exists():
        for line in stored.read_text().splitlines():
            design, precision, count, *how, figures = json.loads(line)
            if how == options:
                found[design, precision, count] = figures
    with ProcessPoolExecutor(given.workers) as pool:
        jobs = {pool.submit(coverage, *cell, *options): cell for cell in cells if cell not in found}
        for job in as_completed(jobs):
            found[jobs[job]] = job.result()
            if stored:
                with stored.open("a") as file:
                    file.write(json.dumps([*jobs[job], *options, job.result()]) + "\n")
    return found


def exact_coverage(groups: int, all_confirmed: float) -> tuple[float, float, float]:
    """(least coverage, the share at which it is, mean) over shares of 0.5 to 0.99.

    all_confirmed: what the lower limit leaves outside where every group was confirmed.
    """
    from scipy.stats import beta, binom

    tail, extra = run_estimates.TAIL, run_estimates.EXTRA
    found = np.arange(groups + 1)
    tails = np.where(found == groups, all_confirmed, tail)
    low = np.nan_to_num(beta.ppf(tails, found, groups - found + extra))
    high = np.nan_to_num(beta.ppf(1 - tail, found + extra, groups - found), nan=1.0)
    shares = np.linspace(0.5, 0.99, 2000)[:, None]
    held = (low <= shares) & (shares <= high)
    covered = (binom.pmf(found, groups, shares) * held).sum(axis=1)
    place = int(covered.argmin())
    return float(covered[place]), float(shares[place, 0]), float(covered.mean())


def print_exact() -> None:
    """Print the table of exact coverage: the product's, and 5 % on one side where all agree."""
    print("| groups | least | at a share of | mean | least, 5 % on one side | mean |")
    print("|---:|---:|---:|---:|---:|---:|")
    for groups in EXACT_GROUPS:
        ours = exact_coverage(groups, run_estimates.TAIL)
        other = exact_coverage(groups, 2 * run_estimates.TAIL)
        cells = (ours[0], ours[1], ours[2], other[0], other[2])
        print(f"| {groups} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")


def main() -> None:
    """Simulate every cell and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--partly", action="store_true")
    parser.add_argument("--stored", type=Path, help="keep finished cells in this file")
    parser.add_argument("--items", type=int, choices=ITEMS, help="only samples of N")
    parser.add_argument("--extra", type=float, default=run_estimates.EXTRA)
    parser.add_argument("--by-variance", action="store_true")
    parser.add_argument("--exact", action="store_true")
    given = parser.parse_args()
    if given.exact:
        print_exact()
        return
    partly = (PARTLY, PRECISIONS[:2], ITEMS[:2])
    cells = list(itertools.product(*(partly if given.partly else (DESIGNS, PRECISIONS, ITEMS))))
    cells = [cell for cell in cells if given.items in (None, cell[2])]
    found = simulated(cells, given)
    names = (*FIGURES, "imbalance") if given.partly else FIGURES
    every = np.array([each[name][0] for each in found.values() for name in FIGURES])
    every = every[~np.isnan(every)]
    error = np.sqrt(0.95 * 0.05 / given.simulations)
    print(
        f"{len(every)} figures in {len(cells)} cells, {given.simulations:,} simulations each; "
        f"standard error {error:.4f}. Least {every.min():.3f}, mean {every.mean():.3f}, most "
        f"{every.max():.3f}.\n"
    )
    print("| sample | items | confirmed | " + " | ".join(names) + " |")
    print("|---|---:|---:|" + "---|" * len(names))
    for design, precision, count in cells:
        texts = []
        for held, width, refused in found[design, precision, count].values():
            note = f"; {refused:.1%} refused" if refused else ""
            texts.append(f"{held:.3f} ({width:.2f}{note})" if width else f"{held:.1%}")
        print(f"| {design} | {count} | {precision} | " + " | ".join(texts) + " |")


if __name__ == "__main__":
    main()
