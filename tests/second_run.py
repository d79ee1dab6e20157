"""Another run of a dataset, finished by the product's own queue with chosen texts."""

from collections.abc import Callable

from sqlalchemy import select

from db.run.group_detail import get_group
from db.run.group_queue import DoneGroup, claim_groups, finish_groups
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Group, Run

Texts = dict[str, tuple[str, str, str | None]]


def make_second_run(
    store: Store,
    first: int,
    *,
    change: Callable[[int, Texts], Texts] = lambda _, texts: texts,
    verdict: str = "kept",
) -> tuple[int, dict[int, int]]:
    """A run of all pairs of another, with the texts that its groups have now; `change` gives the
    triplets of a group of the first run. Returns its id and its groups by those of the first."""
    with store.write() as session:
        old = session.get_one(Run, first)
        groups = list(session.scalars(select(Group).where(Group.run_id == first)))
        run = Run(
            dataset_id=old.dataset_id,
            recipe_id=old.recipe_id,
            provider=old.provider,
            offline=old.offline,
            status="running",
        )
        session.add(run)
        session.flush()
        session.add_all(Group(run_id=run.id, pair_id=group.pair_id) for group in groups)
        session.flush()
        claimed = claim_groups(session, run.id, "worker", len(groups))
        of_pair = {one.pair_id: one for one in claimed}
        done = []
        for group in groups:
            found = get_group(session, group.id)
            triplets, passage = found.triplets, found.passage
            texts: Texts = {
                role: (text.instruction, text.query, None if role == "positive" else text.passage)
                for role, text in triplets.items()
            }
            done.append(
                DoneGroup(
                    group=of_pair[group.pair_id],
                    stage="validation",
                    verdict=verdict,
                    drop_reason=None if verdict == "kept" else "judge_none",
                    drop_detail=None,
                    shape=INF_IR,
                    texts={
                        text.sign: value or passage
                        for role, of in change(group.id, texts).items()
                        for text, value in zip(INF_IR.scenarios[role].texts, of, strict=True)
                    },
                    items=(),
                    calls=(),
                )
            )
        finish_groups(session, run.id, "worker", done)
        run.status = "done"
        session.commit()
        return run.id, {group.id: of_pair[group.pair_id].id for group in groups}
