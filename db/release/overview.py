"""Counts of a release, shown where one is chosen for training."""

from dataclasses import dataclass

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from db.tables import Release, ReleaseGroup, Review


@dataclass(frozen=True)
class ReleaseOverview:
    """Groups by split, and how many a person approved (by the current reviews)."""

    splits: dict[str, int]
    approved: int

    @property
    def approved_share(self) -> float | None:
        """Share of all groups; None for an empty release."""
        groups = sum(self.splits.values())
        return self.approved / groups if groups else None


def release_overview(session: Session, release: Release) -> ReleaseOverview:
    """The counts of a release: one query for splits, one for approvals."""
    splits = session.execute(
        select(ReleaseGroup.split, func.count())
        .where(ReleaseGroup.release_id == release.id)
        .group_by(ReleaseGroup.split)
        .order_by(ReleaseGroup.split)
    )
    approved = session.scalar(
        select(func.count())
        .select_from(ReleaseGroup)
        .join(
            Review,
            and_(
                Review.group_id == ReleaseGroup.group_id,
                Review.is_current,
                Review.action == "approve",
            ),
        )
        .where(ReleaseGroup.release_id == release.id)
    )
    return ReleaseOverview(dict(splits.all()), approved or 0)


def licence_of_card(card: str) -> str:
    """The licence in the card's front matter (`license:`), "" if it names none."""
    head = card.split("---", 2)[1] if card.startswith("---") and card.count("---") > 1 else ""
    for line in head.splitlines():
        name, _, value = line.partition(":")
        licence = value.strip().strip("\"'")
        if name in ("license", "license_name") and licence not in ("", "other"):
            return licence
    return ""
