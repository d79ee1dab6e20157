"""What a release holds, for those who choose one to train on."""

from dataclasses import dataclass

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from db.tables import Release, ReleaseGroup, Review


@dataclass(frozen=True)
class ReleaseOverview:
    """Groups by split, and how many of all were approved by a person (as reviews stand now)."""

    splits: dict[str, int]
    approved: int

    @property
    def approved_share(self) -> float | None:
        """Of all groups; None of an empty release."""
        groups = sum(self.splits.values())
        return self.approved / groups if groups else None


def release_overview(session: Session, release: Release) -> ReleaseOverview:
    """Counted in the store, in one pass each."""
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
    """The licence in the card's head (`license:`), "" where it names none."""
    head = card.split("---", 2)[1] if card.startswith("---") and card.count("---") > 1 else ""
    for line in head.splitlines():
        name, _, value = line.partition(":")
        told = value.strip().strip("\"'")
        if name in ("license", "license_name") and told not in ("", "other"):
            return told
    return ""
