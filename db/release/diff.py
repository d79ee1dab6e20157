"""The differences between two releases of a dataset, pair by pair, with the reason.

The reason is derived from the store as it is now: a later review explains a group that was removed,
the filter of a release explains one that it never contained.
"""

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from db.errors import BadInput
from db.release.releases import datasets_of_release, runs_of_filter
from db.tables import Group, Pair, Release, ReleaseGroup, Review


@dataclass(frozen=True)
class DiffRow:
    """One pair that differs between two releases."""

    query_id: str
    change: str
    why: str


def diff_releases(session: Session, before: Release, after: Release) -> list[DiffRow]:
    """What was added, removed and changed from one release to another with groups of the same
    dataset, with the reason as far as the store still has it. In the order of the pairs.

    Raises BadInput for releases that have no dataset in common.
    """
    if not datasets_of_release(session, before) & datasets_of_release(session, after):
        raise BadInput(
            f"releases {before.id} and {after.id} are of different datasets",
            "compare two of one dataset: `releases list` has them",
            code="releases_of_different_datasets",
        )
    old, new = _released(session, before.id), _released(session, after.id)
    rows: list[tuple[int, DiffRow]] = []
    for pair_id in sorted(old.keys() | new.keys()):
        was, is_now = old.get(pair_id), new.get(pair_id)
        if was is None and is_now is not None:
            row = DiffRow(is_now.query_id, "added", _why(is_now, before, "added since"))
        elif is_now is None and was is not None:
            row = DiffRow(was.query_id, "removed", _why(was, after, "no longer chosen"))
        elif was is not None and is_now is not None and was.row_sha256 != is_now.row_sha256:
            row = DiffRow(is_now.query_id, "changed", _why_changed(was, is_now))
        else:
            continue
        rows.append((pair_id, row))
    return [row for _, row in rows]


class _Released(NamedTuple):
    group_id: int
    run_id: int
    query_id: str
    row_sha256: str
    split: str
    verdict: str | None
    review: str | None
    reason: str | None


def _released(session: Session, release_id: int) -> dict[int, _Released]:
    query = (
        select(
            Group.pair_id,
            Group.id,
            Group.run_id,
            Pair.external_id,
            ReleaseGroup.row_sha256,
            ReleaseGroup.split,
            Group.verdict,
            Review.action,
            Review.reason,
        )
        .join(Group, Group.id == ReleaseGroup.group_id)
        .join(Pair, Pair.id == Group.pair_id)
        .outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
        .where(ReleaseGroup.release_id == release_id)
    )
    return {row[0]: _Released(*row[1:]) for row in session.execute(query)}


def _why(group: _Released, other: Release, otherwise: str) -> str:
    """Why the other release does not contain the group, by that release's own filter."""
    runs = runs_of_filter(other.filter)
    if group.run_id not in runs:
        named = " and ".join(map(str, runs)) or "None"
        return f"it is of run {group.run_id}, the other of run {named}"
    if group.review == "reject":
        return f"rejected: {group.reason}"
    if other.filter.get("reviews") == "approved" and group.review != "approve":
        return "not approved"
    if group.verdict == "dropped" and not other.filter.get("include_dropped"):
        if group.review == "approve":
            return "dropped by the filter, approved since"
        return "dropped groups are left out"
    for name in ("sources", "languages"):
        if other.filter.get(name):
            return f"only {name} {', '.join(other.filter[name])}"
    if len(runs) > 1:
        return "another run's group of this pair has precedence, or no longer chosen"
    return otherwise


def _why_changed(was: _Released, is_now: _Released) -> str:
    if was.group_id != is_now.group_id:
        return f"regenerated in run {is_now.run_id}"
    if is_now.review == "edit":
        return "edited" + (f": {is_now.reason}" if is_now.reason else "")
    return f"reviewed: {is_now.review or 'review withdrawn'}"
