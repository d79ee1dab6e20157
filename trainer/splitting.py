"""Which groups of a release train and which are held out; the same again for evaluation."""

from analysis.splits import held_out
from db.errors import BadInput
from trainer.release_files import Group, ReleaseData


def split_groups(
    release: ReleaseData, *, fraction: float, seed: int
) -> tuple[list[Group], list[Group]]:
    """(training groups, held-out groups); no query or passage is on both sides.

    Depends on the release's texts, fraction and seed only, so that an evaluation finds the same
    groups again. Raises BadInput where the groups cannot be split.
    """
    if fraction == 0:
        return release.groups, []
    out = held_out([group.split_keys() for group in release.groups], fraction=fraction, seed=seed)
    training = [group for group, is_out in zip(release.groups, out, strict=True) if not is_out]
    kept_out = [group for group, is_out in zip(release.groups, out, strict=True) if is_out]
    if not training or not kept_out:
        count = len(release.groups)
        raise BadInput(
            f"{release.path} has {count} group{'s' if count != 1 else ''} that cannot be split: "
            "two are needed that share no query or passage (held_out=0 trains on all of them)"
        )
    return training, kept_out
