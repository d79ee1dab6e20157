"""Choosing the validator: how each judge would filter, and how well it agrees with people. Pure.

An item asks whether the judge finds the passage written for its scenario. A judge would keep a
group when it finds the right passage in every scenario; of a study at most one scenario per
group is judged, so its share of items passed is reported apart from the groups it would keep. Of
groups that it saw in part the drops are certain all the same: one missed scenario drops the group.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from analysis.agreement.headline import interval_cells
from analysis.figures.numbers import Cells
from db.run.validations import Pattern
from db.shape import Shape

POLICIES: Final = ("any", "majority", "all")
Patterns = Mapping[Pattern, int]
Outcomes = Mapping[tuple[bool | None, int, int], int]


def judge_as_validator(patterns: Patterns, judge: str, shape: Shape) -> dict[str, Any]:
    """What the judge would keep, next to what the run kept.

    `patterns` as in `db.run.validations.RunAnswers`. Groups count where the judge answered every
    scenario of the run's shape.
    """
    mine: Counter[tuple[bool | None, int, int]] = Counter()
    for (kept, seen), groups in patterns.items():
        for name, answered, passed in seen:
            if name == judge:
                mine[kept, answered, passed] += groups
    items = sum(groups * answered.bit_count() for (_, answered, _), groups in mine.items())
    found = sum(groups * passed.bit_count() for (_, _, passed), groups in mine.items())
    return {
        "judge": judge,
        "items": items,
        "items_passed": found / items if items else None,
        **({} if items else {"reason": "the judge answered no item"}),
        **_beside(mine, shape),
    }


def vote_as_validator(
    patterns: Patterns, judges: Iterable[str], policy: str, shape: Shape
) -> dict[str, Any]:
    """What several judges would keep together: a group passes a scenario when any of them, more
    than half, or all of them find its passage. Groups count where every judge answered all."""
    names = list(judges)
    enough = {"any": 1, "majority": len(names) // 2 + 1, "all": len(names)}[policy]
    votes: Counter[tuple[bool | None, int, int]] = Counter()
    for (kept, seen), groups in patterns.items():
        by_judge = {name: (answered, passed) for name, answered, passed in seen}
        if not names or not by_judge.keys() >= set(names):
            continue
        common = shape.all_bits
        for name in names:
            common &= by_judge[name][0]
        if common:
            found = sum(
                bit
                for bit in shape.bits.values()
                if bit & common and sum(bool(bit & by_judge[name][1]) for name in names) >= enough
            )
            votes[kept, common, found] += groups
    return {"policy": policy, "judges": names, **_beside(votes, shape)}


def choosing_report(
    patterns: Patterns,
    shape: Shape,
    models: Mapping[str, tuple[str, bool]],
    costs: Mapping[str, tuple[int, float]],
    human_model: Mapping[str, Mapping[str, Any]],
    voters: Sequence[str] = (),
    estimates: Mapping[str, tuple[float | None, str]] | None = None,
) -> dict[str, Any]:
    """Every model judge of a run as its validator, and votes of them under each policy.

    `models` are judges' models and whether they cost nothing, `costs` by model the journaled calls
    and what they cost, `human_model` the figures of `agreement_report` (may be empty), `voters`
    who votes (default: every judge that answered a whole group), `estimates` by model what 1,000
    items would cost, or None and the reason, `shape` the run's. A model's price is that of its
    calls; where the journal holds none it is the estimate (`price_from` says which); else
    undefined, with its reason. `not_asked` are the models of the estimates that judged nothing
    here.
    """
    estimates = estimates or {}
    judges = sorted({name for _, seen in patterns for name, _, _ in seen} & set(models))
    found = []
    for judge in judges:
        model, free = models[judge]
        row = {
            **judge_as_validator(patterns, judge, shape),
            **_price(model, free, costs, estimates),
        }
        found.append({**row, "human_kappa": human_model[judge]} if judge in human_model else row)
    whole = list(voters) or [row["judge"] for row in found if row["groups"]]
    return {
        "groups": sum(n for (kept, _), n in patterns.items() if kept is not None),
        "kept": sum(n for (kept, _), n in patterns.items() if kept),
        "validators": found,
        "not_asked": [
            {"model": model, "usd_per_1000_items": usd, "price_from": "estimate"}
            for model, (usd, _) in sorted(estimates.items())
            if usd is not None and model not in {models[row["judge"]][0] for row in found}
        ],
        "policies": [vote_as_validator(patterns, whole, policy, shape) for policy in POLICIES]
        if len(whole) > 1
        else [],
    }


def _price(
    model: str,
    free: bool,
    costs: Mapping[str, tuple[int, float]],
    estimates: Mapping[str, tuple[float | None, str]],
) -> Cells:
    calls, cost = costs.get(model, (0, 0.0))
    if free:
        return {"usd_per_1000_items": 0.0, "price_from": "nothing is paid"}
    if calls:
        return {"usd_per_1000_items": 1000 * cost / calls, "price_from": "calls"}
    estimated, reason = estimates.get(model, (None, ""))
    if estimated is not None:
        return {"usd_per_1000_items": estimated, "price_from": "estimate"}
    why = f"no call in which {model} judged is stored" + f", and {reason}" * bool(reason)
    return {"usd_per_1000_items": None, "price_from": None, "price_reason": why}


def _beside(outcomes: Outcomes, shape: Shape) -> dict[str, int]:
    """Next to the run's verdicts; `outcomes` counts groups by verdict, answered and passed."""
    whole: Counter[tuple[bool, bool]] = Counter()  # kept by the run, kept here
    in_part = dropped = 0
    for (kept, answered, passed), groups in outcomes.items():
        if kept is not None and answered == shape.all_bits:
            whole[kept, passed == shape.all_bits] += groups
        elif kept:
            in_part += groups
            dropped += groups * (passed != answered)
    return {
        "groups": whole.total(),
        "kept": whole[True, True] + whole[False, True],
        "kept_by_both": whole[True, True],
        "only_here": whole[False, True],
        "only_by_the_run": whole[True, False],
        "kept_groups_in_part": in_part,
        "surely_dropped_of_them": dropped,
    }


TITLES = {
    "name": "Validator",
    "groups": "Groups",
    "kept": "Kept",
    "kept_by_both": "Kept by both",
    "only_here": "Kept only here",
    "only_by_the_run": "Kept only by the run",
    "kept_groups_in_part": "Judged in part",
    "surely_dropped_of_them": "Certainly dropped",
}


def kept_rows(found: Sequence[Mapping[str, Any]]) -> list[Cells]:
    """A row per judge and per vote."""
    return [
        {
            **{name: row[name] for name in TITLES if name != "name"},
            "name": row["judge"]
            if "judge" in row
            else f"{row['policy']} of {', '.join(row['judges'])}",
        }
        for row in found
    ]


def validator_row(row: Mapping[str, Any]) -> Cells:
    """A judge's price, kappa and share of items passed."""
    mean = row.get("human_kappa", {"value": None})
    return {
        "Judge": row["judge"],
        "USD per 1,000 items": row["usd_per_1000_items"],
        "Price from": row["price_from"],
        "Kappa with people": mean["value"],
        **interval_cells(dict(mean)),
        "Items": row["items"],
        "Items passed, %": None if row["items_passed"] is None else 100 * row["items_passed"],
    }
