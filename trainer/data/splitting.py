"""Which groups of a release train and which are held out; the same again for evaluation."""

from dataclasses import dataclass

from analysis.text.splits import held_out
from db.errors import BadInput
from trainer.data.groups import Group
from trainer.data.judged import confirmed_by
from trainer.data.mixing import MixedRelease
from trainer.data.release_files import ReleaseData


@dataclass(frozen=True)
class Groups:
    """The release of a training and its two sides, which share no query or passage."""

    release: ReleaseData
    training: list[Group]
    held_out: list[Group]
    more: tuple[MixedRelease, ...] = ()
    kept_away: int = 0
    """Groups of the main release that do not train, since a further one holds out their texts."""

    @property
    def releases(self) -> list[ReleaseData]:
        """The main release, then the others that train."""
        return [self.release, *(each.release for each in self.more)]

    @property
    def licences(self) -> list[str]:
        """The licences of all releases."""
        return sorted({licence for release in self.releases for licence in release.licences})

    @property
    def offline(self) -> bool | None:
        """Whether the offline provider wrote any of the releases; None if not known of one."""
        known = [release.offline for release in self.releases]
        return True if True in known else None if None in known else False


def split_groups(
    release: ReleaseData,
    *,
    fraction: float,
    seed: int,
    include_dropped: bool = False,
    held_out_groups: str = "kept",
    held_out_judge: str = "",
) -> tuple[list[Group], list[Group]]:
    """(training groups, held-out groups); no query or passage is on both sides.

    A release that holds out a split of its own (`<split>_held_out`) is split so; any other by
    fraction and seed. Depends on the release's texts, fraction and seed only, so that an evaluation
    finds the same groups again: dropped groups take part in the split whether or not they train.
    held_out_groups, of the held-out side: `kept` by the validation, `all` of them (a validator that
    is the trained model's relative keeps what the model already ranks right), or those that people
    `approved`; held_out_judge: of these, the ones that this judge of the release's studies
    confirmed (`trainer.data.judged`). Raises BadInput where the groups cannot be split.
    """
    groups = release.groups
    out = set_aside_of(release, fraction=fraction, seed=seed)
    training = [
        group
        for group, is_out in zip(groups, out, strict=True)
        if not is_out and (include_dropped or not group.dropped)
    ]
    set_aside = [group for group, is_out in zip(groups, out, strict=True) if is_out]
    chosen = [group for group in set_aside if _is_chosen(group, held_out_groups)]
    if fraction > 0 and set_aside and not chosen and held_out_groups == "approved":
        raise BadInput(
            f"held_out_groups=approved: people approved none of the {len(set_aside)} held-out "
            f"groups of {release.path}",
            "Approve groups and export again, or give held_out_groups=kept",
            code="held_out_none_approved",
        )
    if held_out_judge and chosen:
        confirmed = confirmed_by(release, held_out_judge)
        if not (found := [group for group in chosen if group.group_id in confirmed]):
            raise BadInput(
                f"held_out_judge: {held_out_judge} confirmed none of the {len(chosen)} held-out "
                f"groups of {release.path}: it must judge all "
                f"{len(release.shape.roles)} items of a group",
                "have it judge the run first: `studies judge run=N judge=NAME`",
                code="held_out_none_confirmed",
            )
        chosen = found
    if not training or (fraction > 0 and not chosen):
        count = sum(include_dropped or not group.dropped for group in groups)
        raise BadInput(
            f"{release.path} has {count} group{'s' if count != 1 else ''} that cannot be split: "
            "two are needed that share no query or passage (`held_out=0` trains on all of them)",
            "set `held_out=0`, or take a larger release",
            code="groups_too_few_to_split",
        )
    return training, chosen if fraction > 0 else []


def set_aside_of(release: ReleaseData, *, fraction: float, seed: int) -> list[bool]:
    """Which groups of the release are on the held-out side, dropped ones too."""
    groups = release.groups
    if any(group.set_aside for group in groups):
        return [group.set_aside for group in groups]
    if fraction == 0:
        return [False] * len(groups)
    keys = [group.split_keys() for group in groups]
    return [bool(one) for one in held_out(keys, fraction=fraction, seed=seed)]


def _is_chosen(group: Group, choice: str) -> bool:
    if choice == "all":
        return True
    return group.approved if choice == "approved" else not group.dropped
