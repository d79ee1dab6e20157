"""The guard of a run: pause one whose first groups are all dropped for one reason.

A wrong model, prompt or limit shows in the first groups, and the rest of a large run would cost the
same money for nothing. `Run.guard` turns it off (`--no-guard`).
"""

from curation.recipe.drop_reasons import find_reason
from db.run.runs import Outcomes

GUARDED_GROUPS = 25


class Guard:
    """Compares a run's outcomes with those at the start of the worker; `before` are the latter.

    Groups that were dropped before a resume do not count again: what was wrong may be mended.
    """

    def __init__(self, before: Outcomes) -> None:
        self._before = before

    def passed(self, now: Outcomes) -> bool:
        """Whether the run has shown that it can end otherwise: nothing is left to guard."""
        return now.kept > 0 or len(self._new(now)) > 1

    def tripped_by(self, now: Outcomes) -> str | None:
        """The reason all groups so far were dropped for; None while there are too few of them."""
        new = self._new(now)
        if now.kept or len(new) != 1:
            return None
        ((reason, count),) = new.items()
        return reason if count >= GUARDED_GROUPS else None

    def _new(self, now: Outcomes) -> dict[str, int]:
        more = {
            reason: count - self._before.dropped.get(reason, 0)
            for reason, count in now.dropped.items()
        }
        return {reason: count for reason, count in more.items() if count > 0}


def guard_message(run_id: int, reason: str, count: int, example: str) -> str:
    """Why the run pauses, and what to change; or how it goes on as it is."""
    known = find_reason(reason)
    meaning = reason if known is None else known.meaning
    remedy = "look at the dropped groups" if known is None else known.remedy
    detail = f" ({example})" if example else ""
    return (
        f"All of the first {count} groups were dropped: {meaning}{detail}. To change: {remedy}. "
        f"`runs resume {run_id} no_guard=yes` continues as it is."
    )
