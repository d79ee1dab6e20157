"""A run's worker takes over from the dead, and from nobody who lives."""

from grown_dataset import grown
from sqlalchemy import select, update

from db.machine import new_owner
from db.run.group_queue import claim_groups, lease_owners
from db.run.workers import add_worker, leave, take_over, working_owners
from db.store.store import Store
from db.tables import Group, Run


def test_groups_of_a_dead_process_are_released_and_those_of_a_living_one_are_not(
    store: Store,
) -> None:
    run_id = grown(store, groups=4)
    where = new_owner().rsplit(":", 3)[0]
    gone = f"{where}:999999999:0.00:gone"  # no process has this number
    living, mine = new_owner(), new_owner()
    with store.write() as session:
        session.get_one(Run, run_id).status = "running"
        session.execute(update(Group).values(state="waiting", verdict=None, drop_reason=None))
        for owner in (gone, living, mine):
            add_worker(session, run_id, owner)
            assert len(claim_groups(session, run_id, owner, 1)) == 1
        assert take_over(session, run_id, mine) == [gone]
        assert set(lease_owners(session, run_id)) == {living, mine}
        assert set(working_owners(session, run_id)) == {living, mine}
        assert take_over(session, run_id, mine) == []
        leave(session, run_id, mine)
        assert lease_owners(session, run_id) == working_owners(session, run_id) == [living]
        held = session.scalars(select(Group.id).where(Group.state == "leased")).all()
        assert len(held) == 1
