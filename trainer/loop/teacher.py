"""The scores of a reranker over every training group's passages, computed once before training.

They are kept in the work folder, so that a training that goes on after a kill reads the same
numbers. Every scenario of a group is scored against all of the group's passages.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from trainer.data.groups import Group, group_key
from trainer.evaluate.reranking import PairScorer
from trainer.settings.template import Template

GROUPS_AT_ONCE = 8


def teacher_scores(
    groups: Sequence[Group],
    template: Template,
    score_pairs: PairScorer,
    file: Path,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, list[list[float]]]:
    """The scores of all groups; those that the file has are not computed again."""
    found: dict[str, list[list[float]]] = {}
    if file.is_file():
        found = json.loads(file.read_text(encoding="utf-8"))
    keyed = {group_key(group): group for group in groups}
    missing = [(key, group) for key, group in keyed.items() if key not in found]
    for start in range(0, len(missing), GROUPS_AT_ONCE):
        part = missing[start : start + GROUPS_AT_ONCE]
        pairs = [pair for _, group in part for pair in scenario_pairs(group, template)]
        scores = iter(score_pairs(pairs))
        for key, group in part:
            roles = group.shape.roles
            found[key] = [[next(scores) for _ in roles] for _ in roles]
        progress(start + len(part), len(missing))
    if missing:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(found), encoding="utf-8")
        partial.replace(file)
    return found


def scenario_pairs(group: Group, template: Template) -> list[tuple[str, str]]:
    """The group's scenarios in order, each as (instruction and query, passage) with all."""
    triplets = group.triplets()
    return [
        (template.apply(instruction, query), passage)
        for instruction, query, _ in triplets
        for _, _, passage in triplets
    ]
