"""The groups of a release: the filter, without contaminated ones, balanced."""

import hashlib
from array import array
from collections import Counter

from sqlalchemy.orm import Session

from curation.release.findings import contaminated_groups
from curation.release.plan import Plan, refuse_empty
from db.errors import Refused
from db.release.choice import chosen_ids
from db.release.rows import sources_of_groups


def group_ids_of(session: Session, plan: Plan) -> "array[int]":
    """The ids of the groups to export. Raises Refused if there are none."""
    found = chosen_ids(session, plan.choice)
    if not found:
        refuse_empty(session, plan)
    left_out = _contaminated(session, plan)
    if left_out:
        found = array("q", (group_id for group_id in found if group_id not in left_out))
        if not found:
            raise Refused("the release would be empty: all its groups overlap with evaluation sets")
    if plan.balance == "source":
        found = balanced(found, sources_of_groups(session, found), seed=plan.seed)
    return found


def balanced(group_ids: "array[int]", kinds: list[str], *, seed: int) -> "array[int]":
    """As many groups of every kind as the rarest has, sampled by the seed; in the given order.

    The sample depends on ids, kinds and seed only, not on the order.
    """
    least = min(Counter(kinds).values())
    ranked: dict[str, list[tuple[bytes, int]]] = {}
    for group_id, kind in zip(group_ids, kinds, strict=True):
        rank = hashlib.blake2b(f"{seed} {group_id}".encode(), digest_size=8).digest()
        ranked.setdefault(kind, []).append((rank, group_id))
    taken = {group_id for groups in ranked.values() for _, group_id in sorted(groups)[:least]}
    return array("q", (group_id for group_id in group_ids if group_id in taken))


def _contaminated(session: Session, plan: Plan) -> frozenset[int]:
    if not plan.leave_out_contaminated:
        return frozenset()
    found = contaminated_groups(session, plan)
    if found is None:
        every = " --groups all" if plan.choice.include_dropped else ""
        raise Refused(
            f"the whole of run {plan.run.id} was not compared with evaluation sets: run `inf "
            f"analyze contamination --dataset {plan.dataset.name} --run {plan.run.id}{every} "
            "--against PATH` first"
        )
    return found
