"""The groups of a release: the filter, without contaminated ones and duplicates, balanced."""

import hashlib
from array import array
from collections import Counter
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from curation.release.duplicates import without_duplicates
from curation.release.findings import contaminated_groups
from curation.release.plan import ChosenRun, Plan, refuse_empty
from db.errors import Refused
from db.release.choice import chosen_ids, count_rescued
from db.release.rows import sources_of_groups


@dataclass(frozen=True)
class ChosenGroups:
    """The ids of the groups, ascending; groups left out because another run has them, by run."""

    ids: "array[int]"
    duplicates: dict[int, int]


def groups_of(session: Session, plan: Plan) -> ChosenGroups:
    """The groups to export. Raises Refused if there are none."""
    found = {each.run.id: chosen_ids(session, each.choice) for each in plan.runs}
    if not any(found.values()):
        refuse_empty(session, plan)
    for each in plan.runs:
        left_out = _contaminated(session, plan, each)
        if left_out:
            ids = found[each.run.id]
            found[each.run.id] = array("q", (one for one in ids if one not in left_out))
    if not any(found.values()):
        raise Refused(
            "the release would be empty: all its groups overlap with evaluation sets",
            "Create it without `leave_out_contaminated=`",
            code="release_empty_by_overlap",
        )
    chosen = _once(session, found)
    if plan.wanted.balance != "source":
        return chosen
    sources = sources_of_groups(session, chosen.ids)
    return replace(chosen, ids=balanced(chosen.ids, sources, seed=plan.wanted.seed))


def _once(session: Session, found: "dict[int, array[int]]") -> ChosenGroups:
    if len(found) == 1:
        (ids,) = found.values()
        return ChosenGroups(ids, {})
    return ChosenGroups(*without_duplicates(session, found))


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


def _contaminated(session: Session, plan: Plan, chosen: ChosenRun) -> frozenset[int]:
    if not plan.wanted.leave_out_contaminated:
        return frozenset()
    found = contaminated_groups(session, chosen)
    if found is None:
        run_id, choice = chosen.run.id, chosen.choice
        with_dropped = choice.include_dropped or count_rescued(session, choice)
        every = " groups=all" if with_dropped else ""
        raise Refused(
            f"the whole of run {run_id} was not compared with evaluation sets",
            f"run `analyses contamination dataset={chosen.dataset.name} run={run_id}{every} "
            "against=PATH` first",
            code="overlap_not_compared",
        )
    return found
