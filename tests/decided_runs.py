"""Runs with three votes, and what is checked of their verdict versions."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from curation_runs import add_dataset, run_curation
from openai_server import Server
from sqlalchemy import select

from app.access.identity import owner
from app.operations import runs
from curation.rules.deciding import RunDecide
from db.store.store import Store
from db.tables import Group, GroupVerdict, Run, VerdictVersion

PAIRS = 24
ME = owner("cli:me")
FAULTS = {"wrong_candidate": 0.12, "no_agreement": 0.08, "wrong_form": 0.05}
VOTES = ["model=small", "validation.votes=3"]


def decide(run_id: int, *settings: str, **given: Any) -> runs.RunDecided:
    return runs.decide(ME, RunDecide(run_id=run_id, settings=settings, **given))


def require_whole(store: Store, run_id: int) -> int:
    """The version that a run uses; its groups have exactly its verdicts, and every version has one
    for each group."""
    with store.read() as session:
        used = session.get_one(Run, run_id).verdict_version
        rows = {
            row.number: row
            for row in session.scalars(
                select(VerdictVersion).where(VerdictVersion.run_id == run_id)
            )
        }
        now = {
            row[0]: tuple(row[1:])
            for row in session.execute(
                select(Group.id, Group.verdict, Group.drop_reason, Group.drop_detail).where(
                    Group.run_id == run_id
                )
            )
        }
        assert used == 1 if not rows else used in rows
        for number, row in rows.items():
            held = {
                one.group_id: (one.verdict, one.drop_reason, one.drop_detail)
                for one in session.scalars(
                    select(GroupVerdict).where(GroupVerdict.version_id == row.id)
                )
            }
            assert held.keys() == now.keys()
            reasons = Counter(reason for _, reason, _ in held.values())
            assert row.counts == {"kept": reasons.pop(None, 0), "dropped": dict(reasons)}
            assert number != used or held == now
        return used


def voted(store: Store, server: Callable[..., Server], pairs: int = PAIRS) -> dict[str, Any]:
    """A run of three votes, in which some judges err, and the request that made it."""
    server(faults=FAULTS, seed=11)
    add_dataset(store, pairs=pairs)
    asked = {"dataset": "small", "provider": "openai", "settings": VOTES}
    return run_curation(store, **asked)
