"""Groups of further releases mixed into a training, each release with a weight."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from db.errors import BadInput
from db.shape import Shape
from trainer.data.groups import Group, group_key, plain
from trainer.data.release_files import ReleaseData


@dataclass(frozen=True)
class MixedRelease:
    """A further release: its weight, how many different groups of it train, and how many do not
    because they share a query or passage with a group that is held out."""

    release: ReleaseData
    weight: float
    groups: int
    kept_away: int


def plain_keys(groups: Iterable[Group]) -> frozenset[str]:
    """The groups' queries and passages, without case and spacing."""
    return frozenset(plain(key) for group in groups for key in group.split_keys())


def apart_from(keys: frozenset[str], groups: Iterable[Group]) -> list[Group]:
    """The groups that have none of these queries and passages."""
    return [group for group in groups if keys.isdisjoint(map(plain, group.split_keys()))]


def mix_in(
    release: ReleaseData,
    weight: float,
    *,
    shape: Shape,
    away_from: frozenset[str],
    include_dropped: bool,
) -> tuple[MixedRelease, list[Group]]:
    """(what is recorded, the groups that train, some of them several times).

    A group is read `weight` times an epoch: 2.5 is twice for every group and a third time for half
    of them, chosen by their texts, so that every process and every resume chooses the same.
    away_from: the queries and passages (`plain_keys`) of every group that the main release or any
    other holds out; groups with one of them do not train. Raises BadInput where none is left, and
    for groups of another shape than the main release's: a batch has one.
    """
    if release.shape != shape:
        raise BadInput(
            f"more_releases: the groups of {release.path} have another shape than the main "
            "release's",
            "name releases of one shape",
            code="more_releases_of_two_shapes",
        )
    willing = [
        group
        for group in release.groups
        if not group.set_aside and (include_dropped or not group.dropped)
    ]
    usable = apart_from(away_from, willing)
    if not usable:
        raise BadInput(
            f"more_releases: none of the {len(release.groups)} groups of {release.path} can train: "
            "they are dropped, held out, or share a query or passage with groups that are held out",
            "name another release, or leave this one out",
            code="more_releases_all_dropped",
        )
    whole, part = divmod(weight, 1)
    times = [int(whole) + (_share(group) < part) for group in usable]
    found = [group for group, count in zip(usable, times, strict=True) for _ in range(count)]
    if not found:
        raise BadInput(
            f"more_releases: weight {weight:g} leaves none of the {len(usable)} groups of "
            f"{release.path}",
            "give a larger weight",
            code="more_releases_weight_too_small",
        )
    count = sum(number > 0 for number in times)
    return MixedRelease(release, weight, count, len(willing) - len(usable)), found


def _share(group: Group) -> float:
    """A number from 0 to 1 that depends on the group's texts alone."""
    digest = hashlib.sha256(f"weight {group_key(group)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
