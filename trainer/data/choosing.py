"""Which groups of releases are trained on: fewer of them, or the ones the validator was sure of.

Fewer of the same groups show what more of them are worth. How sure the validator was of each group
orders a curriculum.

Read from the release's `provenance` files: `confidence` (the least share of votes, or margin of
scores, over the group's scenarios); in a release where no group has one, the share of all judgments
that chose the passage that was meant. The two are different scales, and so are the margins of
different validators: within a release only one is used, and several releases are brought together
by rank.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from db.errors import BadInput
from trainer.data.groups import Group, group_key
from trainer.data.release_files import ReleaseData, rows_of_configuration


def choose_groups(groups: Sequence[Group], count: int, seed: int) -> list[Group]:
    """At most `count` of the groups (0: all), in their order, chosen by their texts and the seed.

    A larger count chooses the same groups and more: a curve over sizes compares nested sets.
    """
    if count == 0 or count >= len(groups):
        return list(groups)
    places = sorted(range(len(groups)), key=lambda place: (_rank(groups[place], seed), place))
    return [groups[place] for place in sorted(places[:count])]


def _rank(group: Group, seed: int) -> bytes:
    return hashlib.sha256(f"choose {seed} {group_key(group)}".encode()).digest()


def confidence_of(release: ReleaseData) -> dict[str, float]:
    """{group id: confidence} of the groups that have one. Raises BadInput where none has."""
    found: dict[str, float] = {}
    shares: dict[str, float] = {}
    for row in rows_of_configuration(release, "provenance"):
        group_id, judged = str(row.get("group_id")), row.get("judgments")
        if (confidence := row.get("confidence")) is not None:
            found[group_id] = float(confidence)
        elif judged:
            shares[group_id] = (row.get("judgments_as_meant") or 0) / judged
    found = found or shares
    if not found:
        raise BadInput(
            f"curriculum needs judgments, and {release.path} has none in `provenance/`",
            "export it "
            "with the configuration provenance from a validated run, or give curriculum=off",
            code="curriculum_needs_judgments",
        )
    return found


def with_confidence(groups: list[Group], release: ReleaseData) -> list[Group]:
    """The groups, each with its confidence where the release has one."""
    found = confidence_of(release)
    return [replace(group, confidence=found.get(group.group_id)) for group in groups]


def by_rank(groups: list[Group]) -> list[Group]:
    """The groups with the share of the others they are surer than instead of their confidence: from
    0 to 1, equal ones alike (the middle of their places)."""
    ordered = sorted(group.confidence for group in groups if group.confidence is not None)
    return [
        group
        if group.confidence is None
        else replace(group, confidence=_middle(ordered, group.confidence) / len(ordered))
        for group in groups
    ]


def require_order(groups: list[Group]) -> None:
    """Raise BadInput where a curriculum would order nothing: all are equally sure."""
    if len({group.confidence for group in groups} - {None}) < 2:
        raise BadInput(
            "curriculum: every group that would train has the same confidence (a validator that is "
            "asked once and gives no scores)",
            "validate with several votes, or give curriculum=off",
            code="curriculum_confidence_uniform",
        )


def _middle(ordered: list[float], value: float) -> float:
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / 2
