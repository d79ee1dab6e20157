"""Groups of further releases mixed into a training, each release with a weight."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from db.errors import BadInput
from trainer.data.groups import Group, group_key
from trainer.data.release_files import ReleaseData


@dataclass(frozen=True)
class MixedRelease:
    """A further release: its weight and how many different groups of it train."""

    release: ReleaseData
    weight: float
    groups: int


def mix_in(
    release: ReleaseData, weight: float, *, away_from: Iterable[Group], include_dropped: bool
) -> tuple[MixedRelease, list[Group]]:
    """(what is recorded, the groups that train, some of them several times).

    A group is read `weight` times an epoch: 2.5 is twice for every group and a third time for half
    of them, chosen by their texts, so that every process and every resume chooses the same.
    away_from: the held-out side of the main release; groups with one of its queries or passages
    (compared without case and spacing) do not train, nor do groups that the release itself holds
    out. Raises BadInput where none is left.
    """
    taken = {_plain(key) for group in away_from for key in group.split_keys()}
    usable = [
        group
        for group in release.groups
        if not group.set_aside
        and (include_dropped or not group.dropped)
        and taken.isdisjoint(map(_plain, group.split_keys()))
    ]
    if not usable:
        raise BadInput(
            f"more_releases: none of the {len(release.groups)} groups of {release.path} can train: "
            "they are dropped, held out, or share a query or passage with the held-out groups"
        )
    whole, part = divmod(weight, 1)
    times = [int(whole) + (_share(group) < part) for group in usable]
    found = [group for group, count in zip(usable, times, strict=True) for _ in range(count)]
    if not found:
        raise BadInput(
            f"more_releases: weight {weight:g} leaves none of the {len(usable)} groups of "
            f"{release.path}: give a larger weight"
        )
    return MixedRelease(release, weight, sum(count > 0 for count in times)), found


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _share(group: Group) -> float:
    """A number from 0 to 1 that depends on the group's texts alone."""
    digest = hashlib.sha256(f"weight {group_key(group)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
