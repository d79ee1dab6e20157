"""What became of kept groups: counted by the store as by plain loops over its rows."""

from collections import Counter

from full_store import fill
from sqlalchemy import select

from db.outcome.overview import kept_groups
from db.store.store import Store
from db.tables import Checkpoint, Group, Release, ReleaseGroup, Review, Run


def test_kept_groups_are_counted_once_each_by_review_release_and_model(store: Store) -> None:
    fill(store)
    with store.write() as session:
        (first,) = session.scalars(select(Run.id)).all()
        release = session.scalars(select(Release)).one()
        kept = session.scalars(
            select(Group.id).where(Group.verdict == "kept").order_by(Group.id)
        ).all()
        second = Release(
            dataset_id=release.dataset_id,
            name="second",
            content_sha256="1" * 64,
            path="/nowhere/second",
            format="jsonl",
            filter={},
            counts={},
            card="",
            offline=True,
        )
        session.add(second)
        session.flush()
        # in both releases, in the one without a model, in neither
        for group_id in kept[1:5]:
            session.add(ReleaseGroup(release_id=second.id, group_id=group_id, split="s"))
        for group_id in kept[1:3]:
            session.merge(ReleaseGroup(release_id=release.id, group_id=group_id, split="s"))
        old = Review(group_id=kept[4], action="approve", reviewed_by="ann", is_current=False)
        session.add_all([old, Review(group_id=kept[4], action="edit", reviewed_by="bob")])
        session.commit()
        trained = {one.release_id for one in session.scalars(select(Checkpoint))}
        rows = session.scalars(select(ReleaseGroup)).all()
        reviews = {
            one.group_id: one.action for one in session.scalars(select(Review)) if one.is_current
        }
        wanted = Counter(
            (
                reviews.get(group_id, "none"),
                any(row.group_id == group_id for row in rows),
                any(row.group_id == group_id and row.release_id in trained for row in rows),
            )
            for group_id in kept
        )
        found = {
            (each.review, each.is_released, each.is_used): each.groups
            for each in kept_groups(session, first)
        }
        assert found == wanted and len(wanted) > 3
        assert kept_groups(session, first + 1) == []
