"""Choosing the validator: how each judge would filter, and how well it agrees with people. Pure.

An item asks whether the judge finds the passage written for its scenario. A judge would keep a
group when it finds the right passage in all three scenarios; of a study at most one scenario per
group is judged, so its share of items passed is reported apart from the groups it would keep. Of
groups that it saw in part the drops are certain all the same: one missed scenario drops the group.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from db.scenarios import SCENARIOS

POLICIES: Final = ("any", "majority", "all")


@dataclass(frozen=True)
class Answer:
    """A judge's answer about an item of a group."""

    judge: str
    group_id: int
    scenario: str
    choice: str


def judge_as_validator(
    answers: Iterable[Answer], kept: Mapping[int, bool], judge: str
) -> dict[str, Any]:
    """What the judge would keep, next to what the run kept.

    `kept` says of each group whether the run kept it. Groups count where the judge answered all
    three scenarios.
    """
    mine = [answer for answer in answers if answer.judge == judge]
    passed = [answer.choice == answer.scenario for answer in mine]
    return {
        "judge": judge,
        "items": len(mine),
        "items_passed": sum(passed) / len(mine) if mine else None,
        **({} if mine else {"reason": "the judge answered no item"}),
        **_beside(_by_group(mine), kept),
    }


def vote_as_validator(
    answers: Iterable[Answer], kept: Mapping[int, bool], judges: Iterable[str], policy: str
) -> dict[str, Any]:
    """What several judges would keep together: a group passes a scenario when any of them, more
    than half, or all of them find its passage. Groups count where every judge answered all."""
    names = list(judges)
    answered = list(answers)
    votes = [_by_group([each for each in answered if each.judge == name]) for name in names]
    common = set.intersection(*(set(each) for each in votes)) if votes else set()
    enough = {"any": 1, "majority": len(names) // 2 + 1, "all": len(names)}[policy]
    passed: dict[int, dict[str, bool]] = {}
    for group in common:
        answered_by_all = set.intersection(*(set(each[group]) for each in votes))
        if answered_by_all:
            passed[group] = {
                scenario: sum(each[group][scenario] for each in votes) >= enough
                for scenario in answered_by_all
            }
    return {"policy": policy, "judges": names, **_beside(passed, kept)}


def choosing_report(
    answers: Sequence[Answer],
    kept: Mapping[int, bool],
    models: Mapping[str, tuple[str, bool]],
    costs: Mapping[str, tuple[int, float]],
    human_model: Mapping[str, Mapping[str, Any]],
    voters: Sequence[str] = (),
    estimates: Mapping[str, tuple[float | None, str]] | None = None,
) -> dict[str, Any]:
    """Every model judge of a run as its validator, and votes of them under each policy.

    `models` are judges' models and whether they cost nothing, `costs` by model the journaled calls
    and what they cost, `human_model` the mean kappas of `agreement_report` (may be empty), `voters`
    who votes (default: every judge that answered a whole group), `estimates` by model what 1,000
    items would cost, or None and the reason. A model's price is that of its calls; where the
    journal holds none it is the estimate (`price_from` says which); else undefined, with its
    reason. `not_asked` are the models of the estimates that judged nothing here.
    """
    estimates = estimates or {}
    judges = sorted({answer.judge for answer in answers} & set(models))
    found = []
    for judge in judges:
        model, free = models[judge]
        row = {**judge_as_validator(answers, kept, judge), **_price(model, free, costs, estimates)}
        found.append({**row, "human_kappa": human_model[judge]} if judge in human_model else row)
    whole = list(voters) or [row["judge"] for row in found if row["groups"]]
    return {
        "groups": len(kept),
        "kept": sum(kept.values()),
        "validators": found,
        "not_asked": [
            {"model": model, "usd_per_1000_items": usd, "price_from": "estimate"}
            for model, (usd, _) in sorted(estimates.items())
            if usd is not None and model not in {models[row["judge"]][0] for row in found}
        ],
        "policies": [vote_as_validator(answers, kept, whole, policy) for policy in POLICIES]
        if len(whole) > 1
        else [],
    }


def _price(
    model: str,
    free: bool,
    costs: Mapping[str, tuple[int, float]],
    estimates: Mapping[str, tuple[float | None, str]],
) -> dict[str, Any]:
    calls, cost = costs.get(model, (0, 0.0))
    if free:
        return {"usd_per_1000_items": 0.0, "price_from": "nothing is paid"}
    if calls:
        return {"usd_per_1000_items": 1000 * cost / calls, "price_from": "calls"}
    estimated, reason = estimates.get(model, (None, ""))
    if estimated is not None:
        return {"usd_per_1000_items": estimated, "price_from": "estimate"}
    why = f"the journal holds no judging call of {model}" + f", and {reason}" * bool(reason)
    return {"usd_per_1000_items": None, "price_from": None, "price_reason": why}


def _by_group(answers: Iterable[Answer]) -> dict[int, dict[str, bool]]:
    """Whether each answered scenario was passed, by group."""
    found: dict[int, dict[str, bool]] = defaultdict(dict)
    for answer in answers:
        found[answer.group_id][answer.scenario] = answer.choice == answer.scenario
    return dict(found)


def _beside(passed: Mapping[int, Mapping[str, bool]], kept: Mapping[int, bool]) -> dict[str, int]:
    verdicts = {
        group: all(each.values())
        for group, each in passed.items()
        if group in kept and len(each) == len(SCENARIOS)
    }
    in_part = [group for group in passed if group in kept and group not in verdicts and kept[group]]
    return {
        "groups": len(verdicts),
        "kept": sum(verdicts.values()),
        "kept_by_both": sum(verdict and kept[group] for group, verdict in verdicts.items()),
        "only_here": sum(verdict and not kept[group] for group, verdict in verdicts.items()),
        "only_by_the_run": sum(kept[group] and not verdict for group, verdict in verdicts.items()),
        "kept_groups_in_part": len(in_part),
        "surely_dropped_of_them": sum(not all(passed[group].values()) for group in in_part),
    }
