"""A store with two datasets, one of which tests archive and purge; and how much is in it."""

from collections.abc import Callable
from typing import Any

from conftest import count_rows
from sqlalchemy import select
from sqlalchemy.orm import Session
from study_world import make_world

from db.store.store import Store
from db.tables import Base, Call, Group, GroupCall, Item, Judge, Judgment

NAME = "two words 世界"


def everything(store: Store) -> dict[str, int]:
    """The rows of each table."""
    return {table.name: count_rows(store, table.name) for table in Base.metadata.sorted_tables}


def in_write(store: Store, change: Callable[[Session], Any]) -> None:
    with store.write() as session:
        change(session)
        session.commit()


def answered(key: str) -> Call:
    about: dict[str, Any] = {"task": "t", "provider": "p", "model": "m", "prompt_sha256": ""}
    return Call(key=key, request={}, answer="a", **about)


def fill(store: Store) -> None:
    """Add two datasets with a run each, validated, with calls of their own and a shared one."""
    make_world(store, groups=3, name=NAME)
    make_world(store, groups=3, name="other")

    def add(session: Session) -> None:
        judge = Judge(name="validator", kind="model", offline=True)
        session.add(judge)
        session.flush()
        for group in session.scalars(select(Group)):
            call = answered(f"own-{group.id}")
            query = select(Call).where(Call.key == "shared")
            shared = session.scalar(query) or answered("shared")
            session.add_all([call, shared])
            session.flush()
            session.add(GroupCall(group_id=group.id, task="own", call_id=call.id))
            session.add(GroupCall(group_id=group.id, task="shared", call_id=shared.id))
            for item in session.scalars(select(Item).where(Item.group_id == group.id)):
                session.add(
                    Judgment(
                        event_id=f"validation-{item.id}",
                        judge_id=judge.id,
                        item_id=item.id,
                        run_id=group.run_id,
                        choice="none",
                        order_shown=[],
                    )
                )

    in_write(store, add)
