"""Coverage of the 95 % intervals of agreement, by simulation: the tables of docs/intervals.md.

    nice python bench/agreement_coverage.py [--simulations 4000] [--workers 1]
    nice python bench/agreement_coverage.py --teams [--simulations 1000] [--workers 1]

The first command simulates complete designs, in which every judge answers every item; `--teams`
those of a team, in which a few of many judges answer each item, with the product's own functions.

Each item has a true label, sampled from the margins; each judge reports it with probability
sqrt(kappa), else samples a label from the margins. Any two judges then have the given kappa. The
interval is that of `analysis.agreement.intervals` (`tests/analysis/test_agreement_coverage.py`
holds both equal), of the mean pairwise Cohen's kappa and of Fleiss' kappa. An interval is refused
only where the judges used one label throughout: kappa is 0/0 there. Seeds are fixed.

Whether a limit lies beyond kappa needs no quantile: the lower limit is at most kappa where at least
the tail's share of posterior draws is. `SCREENING` draws decide the clear cases, `DECIDING` further
ones those within reach of the tail, so that the average simulation takes about 300 draws and the
close ones have the precision of the product's 10,000.
"""

import argparse
import itertools
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# A script's own folder comes first on the path: bench/analysis.py would replace the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from analysis.agreement.agreement import measures_of_counts  # noqa: E402
from analysis.agreement.answers import Answers, JudgeInfo  # noqa: E402
from analysis.agreement.cohen import cohen_kappa  # noqa: E402
from analysis.agreement.group_kappa import kappas, with_people, with_the_rest  # noqa: E402
from analysis.agreement.intervals import (  # noqa: E402
    EXTRA_ITEM,
    all_agree,
    one_alone,
    tail_probability,
)

MARGINS = {
    "even": (0.5, 0.5),
    "skewed": (0.8, 0.2),
    "even, 3 labels": (1 / 3, 1 / 3, 1 / 3),
    "skewed, 3 labels": (0.8, 0.1, 0.1),
}
JUDGES = {"even": (2, 3, 4, 5), "skewed": (2, 3, 4, 5)}
FEW = (2,)  # judges in the cells with three labels: 3⁵ patterns would take hours
ITEMS = (15, 20, 30, 60, 200)
KAPPAS = (0.2, 0.4, 0.6, 0.8, 0.9)
FEWEST = 10  # items; with a kappa more: resampling items covered 0.445 at 0.85, skewed
FEWEST_KAPPAS = (0.2, 0.4, 0.6, 0.8, 0.85, 0.9)
CHUNK = 2_000_000  # weights in memory at once
SCREENING, DECIDING = 120, 1500  # posterior draws of every simulation, and of the close ones
CLEAR = 10  # of the screening draws on kappa's far side: with a tail of 0.025 one time in 2,000
WIDTHS, WIDTH_DRAWS = 200, 400  # simulations and draws behind the mean width


@dataclass(frozen=True)
class Cell:
    """One row of the table."""

    margins: str
    judges: int
    items: int
    kappa: float
    seed: int


@dataclass(frozen=True)
class Covered:
    """Share of intervals that hold kappa among those shown, and the share refused."""

    cell: Cell
    mean_kappa: float
    fleiss: float
    width: float
    narrowest: float
    refused: float


class Kappas:
    """Mean pairwise Cohen's and Fleiss' kappa of weighted answer patterns."""

    def __init__(self, labels: int, judges: int) -> None:
        self.labels, self.judges = labels, judges
        self.patterns = np.array(list(itertools.product(range(labels), repeat=judges)))
        self.pairs = list(itertools.combinations(range(judges), 2))
        self.agree = np.stack(
            [self.patterns[:, a] == self.patterns[:, b] for a, b in self.pairs], axis=1
        ).astype(np.float32)
        self.given = np.concatenate(
            [self.patterns[:, [j]] == np.arange(labels) for j in range(judges)], axis=1
        ).astype(np.float32)

    def of(self, weights: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both kappas of weights (…, patterns seen); NaN where undefined."""
        shares = weights / weights.sum(axis=-1, keepdims=True)
        observed = shares @ self.agree[seen]
        margins = (shares @ self.given[seen]).reshape(*shares.shape[:-1], self.judges, self.labels)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = np.stack(
                [(margins[..., a, :] * margins[..., b, :]).sum(axis=-1) for a, b in self.pairs], -1
            )
            pairs = np.where(chance < 1 - 1e-9, (observed - chance) / (1 - chance), np.nan)
            defined = ~np.isnan(pairs)
            mean = np.where(defined, pairs, 0).sum(axis=-1) / defined.sum(axis=-1)
            together = (margins.mean(axis=-2) ** 2).sum(axis=-1)
            fleiss = (observed.mean(axis=-1) - together) / (1 - together)
        return mean, fleiss

    def rows(self, codes: np.ndarray) -> np.ndarray:
        """Places of answer patterns among all patterns."""
        powers = self.labels ** np.arange(self.judges - 1, -1, -1)
        places: np.ndarray = (codes * powers).sum(axis=-1)
        return places


def answers(cell: Cell, simulations: int) -> np.ndarray:
    """Counts of answer patterns, a row per simulation."""
    shares = MARGINS[cell.margins]
    generator = np.random.default_rng(cell.seed)
    size = (simulations, cell.items, cell.judges)
    truth = generator.choice(len(shares), size=(*size[:2], 1), p=shares)
    guess = generator.choice(len(shares), size=size, p=shares)
    given = np.where(generator.random(size) < np.sqrt(cell.kappa), truth, guess)
    kappas = Kappas(len(shares), cell.judges)
    places = kappas.rows(given)
    return np.stack([np.bincount(row, minlength=len(kappas.patterns)) for row in places])


def extra_items(counts: np.ndarray, kappas: Kappas) -> np.ndarray:
    """What either posterior adds to the counts: (2 limits, simulations, patterns)."""
    given = (counts @ kappas.given).reshape(len(counts), kappas.judges, kappas.labels)
    used = given.sum(axis=1) > 0
    extra = np.zeros((2, *counts.shape), dtype=np.float32)
    for row in np.unique(used, axis=0):
        labels = [int(label) for label in np.flatnonzero(row)]
        if len(labels) < 2:
            continue
        like = np.flatnonzero((used == row).all(axis=1))
        alone = kappas.rows(one_alone(kappas.judges, range(kappas.judges), labels))
        for pattern in alone:  # with two judges either of them "alone" is the same pattern
            extra[0, like, pattern] += EXTRA_ITEM / len(alone)
        for pattern in kappas.rows(all_agree(kappas.judges, labels)):
            extra[1, like, pattern] = EXTRA_ITEM / len(labels)
    return extra


def draw(
    shapes: np.ndarray, kappas: Kappas, draws: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Both kappas of draws from Dirichlet(shapes): (draws, simulations) each."""
    seen = shapes.any(axis=0)  # a pattern that no simulation has needs no draw
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    chunk = max(1, CHUNK // (draws * int(seen.sum())))
    for start in range(0, len(shapes), chunk):
        block = shapes[start : start + chunk, seen]
        size = (draws, *block.shape)
        weights = generator.standard_gamma(block, size, dtype=np.float32)
        for each, values in zip(kappas.of(weights, seen), found, strict=True):
            each_of: list[np.ndarray] = values
            each_of.append(each)
    return np.concatenate(found[0], axis=1), np.concatenate(found[1], axis=1)


def intervals(
    counts: np.ndarray, kappas: Kappas, items: int, draws: int, generator: np.random.Generator
) -> np.ndarray:
    """Limits of both kappas: (simulations, 2 kappas, 2 limits)."""
    tail, found = tail_probability(items), np.full((len(counts), 2, 2), np.nan)
    for limit, extra in enumerate(extra_items(counts, kappas)):
        shapes = (counts + extra).astype(np.float32)
        for which, values in enumerate(draw(shapes, kappas, draws, generator)):
            found[:, which, limit] = np.quantile(values, (tail, 1 - tail)[limit], axis=0)
    return found


def beyond(
    shapes: np.ndarray,
    kappas: Kappas,
    limit: int,
    kappa: float,
    tail: float,
    generator: np.random.Generator,
) -> np.ndarray:
    """Whether the lower (0) or upper (1) limit leaves kappa outside: (simulations, 2 kappas)."""

    def far(rows: np.ndarray, draws: int) -> np.ndarray:
        """Draws on kappa's far side: where they are too few, the limit lies beyond kappa."""
        values = np.stack(draw(shapes[rows], kappas, draws, generator), axis=-1)
        if np.isnan(values).any():
            raise ValueError("an undefined draw: the extra item should make kappa defined")
        counted: np.ndarray = (values <= kappa if limit == 0 else values >= kappa).sum(axis=0)
        return counted

    every = np.arange(len(shapes))
    screened = far(every, SCREENING)
    close = np.flatnonzero(screened.min(axis=1) < CLEAR)
    outside = np.zeros((len(shapes), 2), dtype=bool)
    if len(close):
        outside[close] = far(close, DECIDING) < tail * DECIDING
        outside &= screened < CLEAR
    return outside


def coverage(cell: Cell, simulations: int) -> Covered:
    """One cell of the table."""
    kappas = Kappas(len(MARGINS[cell.margins]), cell.judges)
    counts = answers(cell, simulations)
    labels = (counts @ kappas.given).reshape(simulations, cell.judges, -1).sum(axis=1) > 0
    shown = counts[labels.sum(axis=1) > 1]
    generator = np.random.default_rng([cell.seed, 1])
    tail, outside = tail_probability(cell.items), np.zeros((len(shown), 2), dtype=bool)
    for limit, extra in enumerate(extra_items(shown, kappas)):
        shapes = (shown + extra).astype(np.float32)
        outside |= beyond(shapes, kappas, limit, cell.kappa, tail, generator)
    found = intervals(shown[:WIDTHS], kappas, cell.items, WIDTH_DRAWS, generator)
    widths = found[:, 0, 1] - found[:, 0, 0]
    mean, fleiss = 1 - outside.mean(axis=0)
    return Covered(
        cell,
        float(mean),
        float(fleiss),
        float(widths.mean()),
        float(widths.min()),
        1 - len(shown) / simulations,
    )


def cells() -> list[Cell]:
    """All cells, the costly ones first."""
    every = [
        (margins, judges, items, kappa)
        for margins in MARGINS
        for judges in JUDGES.get(margins, FEW)
        for items in ITEMS
        for kappa in KAPPAS
    ]
    # last, so that the others keep their seeds
    every += [
        (margins, judges, FEWEST, kappa)
        for margins in MARGINS
        for judges in JUDGES.get(margins, FEW)
        for kappa in FEWEST_KAPPAS
    ]
    found = [Cell(*cell, seed=seed) for seed, cell in enumerate(every)]
    return sorted(found, key=lambda cell: -(len(MARGINS[cell.margins]) ** cell.judges))


def table(rows: list[Covered], simulations: int) -> str:
    """Markdown: a line per margins, judges and items; kappas across."""
    error = np.sqrt(0.95 * 0.05 / simulations)
    values = np.array([[row.mean_kappa, row.fleiss] for row in rows])
    lines = [
        f"{len(rows)} cells, {simulations:,} simulations each; Monte-Carlo standard error "
        f"{error:.4f}.",
        "",
        "| | least | mean | most |",
        "|---|---:|---:|---:|",
    ]
    for name, column in (("mean pairwise Cohen's kappa", 0), ("Fleiss' kappa", 1)):
        of = values[:, column]
        lines.append(f"| {name} | {of.min():.3f} | {of.mean():.3f} | {of.max():.3f} |")
    counted = [row for row in rows if row.cell.items >= 30 and row.cell.kappa <= 0.8]
    most = max(row.refused for row in counted)
    lowest = int(values.min(axis=1).argmin())
    lines += [
        "",
        f"Refused (one label throughout): at most {most:.3%} of a cell with n ≥ 30 and "
        f"kappa ≤ 0.8; at most {max(row.refused for row in rows):.1%} of any cell. Narrowest "
        f"interval {min(row.narrowest for row in rows):.3f}. Lowest cell: {rows[lowest].cell}.",
        "",
        "Coverage of the mean pairwise kappa / of Fleiss' kappa (mean width; share refused where "
        "it is not 0):",
        "",
    ]
    shown = sorted({row.cell.kappa for row in rows})
    lines += [
        "| margins | judges | n | " + " | ".join(f"kappa {k}" for k in shown) + " |",
        "|---|---:|---:|" + "---|" * len(shown),
    ]
    by_cell = {
        (row.cell.margins, row.cell.judges, row.cell.items, row.cell.kappa): row for row in rows
    }
    for margins, judges, items in dict.fromkeys(key[:3] for key in sorted(by_cell)):
        texts = []
        for kappa in shown:
            row = by_cell.get((margins, judges, items, kappa))
            if row is None:
                texts.append("–")
                continue
            refused = f"; {row.refused:.1%}" if row.refused else ""
            texts.append(f"{row.mean_kappa:.3f} / {row.fleiss:.3f} ({row.width:.2f}{refused})")
        lines.append(f"| {margins} | {judges} | {items} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Team:
    """A design in which some of the judges answer each item, and a model answers all.

    `overlap`: judges per item, from the one number to the other; `skills`: least and highest
    probability with which a judge reports the true label, spread evenly over the judges. `uneven`:
    the first judges answer more items than the last, four times as many at the ends.
    """

    name: str
    judges: int
    overlap: tuple[int, int]
    items: int
    shares: tuple[float, ...]
    skills: tuple[float, float]
    uneven: bool = False
    seed: int = 0


FOUR, FLAT, TWO, SKEWED = (0.4, 0.3, 0.2, 0.1), (0.25,) * 4, (0.5, 0.5), (0.75, 0.15, 0.1)
TEAMS = (
    Team("3 of 20, kappa 0.54", 20, (3, 3), 120, FOUR, (0.735, 0.735), seed=1),
    Team("3 of 20, kappa 0.87", 20, (3, 3), 120, FOUR, (0.933, 0.933), seed=2),
    Team("3 of 20, kappa 0.04", 20, (3, 3), 120, FOUR, (0.2, 0.2), seed=3),
    Team("2 of 5, two labels", 5, (2, 2), 100, TWO, (0.8, 0.8), seed=4),
    Team("2 of 8, skewed, mixed skills", 8, (2, 2), 120, SKEWED, (0.6, 0.95), seed=5),
    Team("5 of 50, mixed skills", 50, (5, 5), 250, FOUR, (0.4, 1.0), seed=6),
    Team("3 of 50, skewed", 50, (3, 3), 200, SKEWED, (0.7, 0.7), seed=7),
    Team("2 to 5 of 12", 12, (2, 5), 90, FLAT, (0.8, 0.8), seed=8),
    Team("2 to 5 of 30, mixed skills", 30, (2, 5), 150, FOUR, (0.3, 0.95), seed=9),
    Team("2 to 4 of 10, uneven load", 10, (2, 4), 120, FOUR, (0.5, 0.95), uneven=True, seed=10),
)
MODEL_SKILL = 0.8
TEAM_DRAWS = 2000
REST_DRAWS = 1000  # of each person, as the product takes of more than 60 people
PAIRWISE = 200  # simulations behind the mean pairwise kappa, whose bias is far beyond their error
FIGURES = ("krippendorff_alpha", "fleiss_kappa", "gwet_ac1", "agreement", "model", "rest")


@dataclass(frozen=True)
class TeamCovered:
    """Of each figure: bias of the values and coverage, or None; and the mean pairwise kappa's."""

    team: Team
    truth: float
    bias: dict[str, float]
    covered: dict[str, float]
    pairwise: float


def assigned(team: Team, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Item and judge of every judgment of a study."""
    loads = np.linspace(4, 1, team.judges) if team.uneven else np.ones(team.judges)
    keys = generator.exponential(size=(team.items, team.judges)) / loads
    order = np.argsort(keys, axis=1)
    number = generator.integers(team.overlap[0], team.overlap[1] + 1, team.items)
    taken = np.arange(team.judges)[None, :] < number[:, None]
    return np.nonzero(taken)[0], order[taken]


def study(team: Team, generator: np.random.Generator) -> tuple[Answers, np.ndarray]:
    """The answers of a study and the skills of its judges; the model is the last judge."""
    labels = len(team.shares)
    skills = np.linspace(*team.skills, team.judges)
    item, judge = assigned(team, generator)
    item = np.concatenate([item, np.arange(team.items)])
    judge = np.concatenate([judge, np.full(team.items, team.judges)])
    order = np.lexsort((judge, item))
    item, judge = item[order], judge[order]
    truth = generator.choice(labels, size=team.items, p=team.shares)
    guess = generator.choice(labels, size=len(item), p=team.shares)
    knows = generator.random(len(item)) < np.append(skills, MODEL_SKILL)[judge]
    infos = [JudgeInfo(f"judge {j}", "person", False, False) for j in range(team.judges)]
    infos.append(JudgeInfo("model", "model", False, False))
    answers = Answers(
        item,
        judge,
        np.where(knows, truth[item], guess),
        np.full(len(item), np.nan),
        list(range(team.items)),
        infos,
        [str(label) for label in range(labels)],
    )
    return answers, skills


def pairwise_kappa(answers: Answers, judges: int) -> float:
    """The mean of Cohen's kappa over the pairs of people where it is defined."""
    codes = answers.matrix(range(judges)).astype(np.int64)
    labels, values = len(answers.labels), []
    for a, b in itertools.combinations(range(judges), 2):
        both = (codes[:, a] >= 0) & (codes[:, b] >= 0)
        if both.any():
            cells = codes[both, a] * labels + codes[both, b]
            table = np.bincount(cells, minlength=labels * labels).reshape(labels, labels)
            values.append(cohen_kappa(table).value)
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else np.nan


def true_values(team: Team, skills: np.ndarray) -> tuple[dict[str, float], np.ndarray]:
    """The value of every figure in the population of items, and of each judge with the others.

    Two judges agree beyond chance with the product of their skills. With an uneven load a pair
    counts as often as it is assigned, which a long study tells.
    """
    weights = np.ones((team.judges, team.judges))
    if team.uneven:
        generator = np.random.default_rng(0)
        many = Team(**{**team.__dict__, "items": 40_000})
        item, judge = assigned(many, generator)
        taken = np.zeros((many.items, team.judges))
        taken[item, judge] = 1
        # alpha counts the pairs of an item of n judgments with weight 1 / (n - 1)
        weights = taken.T @ (taken / (taken.sum(axis=1, keepdims=True) - 1))
    np.fill_diagonal(weights, 0)
    products = np.outer(skills, skills)
    kappa = float((weights * products).sum() / weights.sum())
    squares = float((np.array(team.shares) ** 2).sum())
    observed = kappa + (1 - kappa) * squares
    evenly = (1 - squares) / (len(team.shares) - 1)
    rest = (weights * products).sum(axis=1) / weights.sum(axis=1)
    judged = weights.sum(axis=1) / weights.sum()
    values = {
        "krippendorff_alpha": kappa,
        "fleiss_kappa": kappa,
        "gwet_ac1": (observed - evenly) / (1 - evenly),
        "agreement": observed,
        "model": MODEL_SKILL * float(judged @ skills),
    }
    return values, rest


def team_coverage(team: Team, simulations: int) -> TeamCovered:
    """One row of the table of team designs."""
    generator = np.random.default_rng(team.seed)
    people = range(team.judges)
    errors: dict[str, list[float]] = {name: [] for name in FIGURES}
    inside: dict[str, list[bool]] = {name: [] for name in FIGURES}
    pairwise = []
    truth: dict[str, float] = {}
    for number in range(simulations):
        answers, skills = study(team, generator)
        if not truth:
            truth, of_rest = true_values(team, skills)

        def count(name: str, value: float | None, limits: tuple[float, float], true: float) -> None:
            if value is not None:
                errors[name].append(value - true)
                inside[name].append(limits[0] <= true <= limits[1])

        found = measures_of_counts(answers.label_counts(people), TEAM_DRAWS)
        for name, each in found.items():
            if name in truth and each["value"] is not None:
                count(name, each["value"], each["interval"], truth[name])
        model = with_people(answers, people, [team.judges], TEAM_DRAWS)
        spread = model.interval(0)
        if spread is not None:
            count("model", float(kappas(model.sums[0])), (spread.low, spread.high), truth["model"])
        for judge, row in enumerate(with_the_rest(answers, people, REST_DRAWS)[: team.judges]):
            if row["value"] is not None:
                count("rest", row["value"], row["interval"], float(of_rest[judge]))
        if number < PAIRWISE:
            pairwise.append(pairwise_kappa(answers, team.judges) - truth["krippendorff_alpha"])
    return TeamCovered(
        team,
        truth["krippendorff_alpha"],
        {name: float(np.mean(each)) if each else np.nan for name, each in errors.items()},
        {name: float(np.mean(each)) if each else np.nan for name, each in inside.items()},
        float(np.nanmean(pairwise)),
    )


def team_table(rows: list[TeamCovered], simulations: int) -> str:
    """Markdown: a line per design; bias of what could be a headline, then coverage."""

    def cells(values: dict[str, float], names: tuple[str, ...], sign: str) -> str:
        return " | ".join(
            "–" if np.isnan(values[name]) else f"{values[name]:{sign}.3f}" for name in names
        )

    error = np.sqrt(0.95 * 0.05 / simulations)
    lines = [
        f"{len(rows)} designs, {simulations:,} studies each; Monte-Carlo standard error of a "
        f"coverage {error:.4f}.",
        "",
        "| design | items | truth | bias: mean pairwise kappa | Fleiss' kappa | alpha | AC1 |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        biases = cells(row.bias, ("fleiss_kappa", "krippendorff_alpha", "gwet_ac1"), "+")
        lines.append(
            f"| {row.team.name} | {row.team.items} | {row.truth:.3f} | {row.pairwise:+.3f} "
            f"| {biases} |"
        )
    lines += [
        "",
        "| coverage | alpha | Fleiss' kappa | AC1 | raw agreement | model with the group "
        "| person with the others |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [f"| {row.team.name} | {cells(row.covered, FIGURES, '')} |" for row in rows]
    for place, name in enumerate(FIGURES):
        each = [row.covered[name] for row in rows if not np.isnan(row.covered[name])]
        lines += [""] * (place == 0)
        lines.append(f"- {name}: {min(each):.3f} to {max(each):.3f}, mean {np.mean(each):.3f}")
    return "\n".join(lines)


def main() -> None:
    """Simulate every cell and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--teams", action="store_true", help="team designs instead of complete")
    given = parser.parse_args()
    started, number = time.perf_counter(), given.simulations or (1000 if given.teams else 4000)
    with ProcessPoolExecutor(given.workers) as pool:
        if given.teams:
            teams = list(pool.map(team_coverage, TEAMS, itertools.repeat(number)))
            print(team_table(teams, number))
        else:
            rows = list(pool.map(coverage, cells(), itertools.repeat(number)))
            print(table(rows, number))
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
