"""A study sampled as the operation does it, for tests that have no actor."""

from dataclasses import asdict
from typing import Any

from curation.judging.request import StudyPlan
from curation.judging.studies import sample_study
from db.store.store import Store


def make_study(store: Store, *, created_by: str = "", **wanted: Any) -> dict[str, Any]:
    """`sample_study` in a transaction of its own; `wanted`: fields of StudyPlan, or `sampling`."""
    given = wanted.pop("sampling", None)
    plan = StudyPlan.read(wanted | ({} if given is None else asdict(given)))
    with store.write() as session:
        made = sample_study(session, plan, created_by=created_by)
        session.commit()
        return made.as_json()
