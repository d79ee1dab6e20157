"""What a judge of a release's studies chose, read from the release's `judgments` files.

Of an item whose texts were edited only the last revision that anybody judged counts: who has judged
an earlier one alone did not see what the release holds.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from analysis.embed.model_hash import DEFAULT_MODEL, NamedModel, named_model
from db.errors import BadInput
from trainer.data.groups import Group
from trainer.data.release_files import ReleaseData, rows_of_configuration

UNSEEN: Final = 0.5  # added to every count, so that a passage nobody chose has a finite score
Choices = Mapping[tuple[str, str], Sequence[str]]


def choices_of(release: ReleaseData, judge: str, setting: str | None) -> Choices:
    """The judge's choices by (group id, scenario); several where it judged in several studies.

    setting: what wants this judge. Where it has judged nothing, BadInput names the setting and the
    judges there are; without a setting there are no choices.
    """
    judges: set[str] = set()
    newest: dict[tuple[str, str], int] = {}
    found: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for row in rows_of_configuration(release, "judgments"):
        judges.add(str(row.get("judge")))
        item = (str(row.get("group_id")), str(row.get("scenario")))
        revision = int(row.get("revision") or 0)
        newest[item] = max(revision, newest.get(item, 0))
        if row.get("judge") == judge:
            found[item].append((revision, str(row.get("choice"))))
    if setting and judge not in judges:
        known = ", ".join(sorted(judges)) or "none"
        raise BadInput(
            f"{setting}: {release.path} has no judgment by {judge!r} (its judges: {known})",
            "Let it judge the groups in studies and export again with the configuration judgments",
            code="judge_without_judgments",
        )
    last = {
        item: [choice for revision, choice in of_item if revision == newest[item]]
        for item, of_item in found.items()
    }
    return {item: choices for item, choices in last.items() if choices}


def scores_of(choices: Iterable[str], roles: Sequence[str]) -> tuple[float, ...]:
    """Of each of a group's passages the logarithm of its share of the choices.

    Each passage has half a choice more (Jeffreys' prior), so that of three passages one choice
    makes 0.6, 0.2 and 0.2. A choice of another candidate, or of none, speaks for no passage of the
    group.
    """
    chosen = list(choices)
    counts = [chosen.count(scenario) + UNSEEN for scenario in roles]
    return tuple(math.log(count / sum(counts)) for count in counts)


def with_scores(
    groups: list[Group], release: ReleaseData, judge: str, setting: str | None
) -> list[Group]:
    """The groups, each with the judge's scores of its passages where it judged every scenario.

    setting: as for `choices_of`.
    """
    choices, roles = choices_of(release, judge, setting), release.shape.roles
    keys = {group.group_id: [(group.group_id, each) for each in roles] for group in groups}
    return [
        replace(group, judged=tuple(scores_of(choices[key], roles) for key in keys[group.group_id]))
        if all(key in choices for key in keys[group.group_id])
        else group
        for group in groups
    ]


# Which groups of a release a judge of its studies confirmed, for a held-out set of its choosing.
#
# Read from the release's `judgments` files. A group is confirmed where this judge judged every
# scenario of it and always chose the passage that was meant. Where the judge is neither the run's
# validator nor a relative of the base model, scores on these groups are independent of both.
def confirmed_by(release: ReleaseData, judge: str) -> frozenset[str]:
    """The ids of the groups that the judge confirmed; judged in two studies, both must confirm.

    Raises BadInput where the release has no judgment by that judge, naming those it has.
    """
    scenarios: defaultdict[str, set[str]] = defaultdict(set)
    for (group_id, scenario), choices in choices_of(release, judge, "held_out_judge").items():
        if set(choices) == {scenario}:
            scenarios[group_id].add(scenario)
    every = set(release.shape.roles)
    return frozenset(group for group, found in scenarios.items() if found >= every)


def judge_model(judge: str) -> NamedModel:
    """The model that answers under a judge's name (`FAMILY:MODEL`), with its hash if it is here."""
    family, _, rest = judge.partition(":")
    if judge == "offline:embedding":
        return named_model(DEFAULT_MODEL)
    if family == "transformers":
        rest = rest.removesuffix(":pointwise")
    return named_model(rest or judge)
