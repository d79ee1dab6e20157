"""A study that people disagree on, and the adjudicator's card over it, for tests."""

from typing import Any

from leases import next_item
from sqlalchemy import select
from study_world import make_world, sampled_study

from app.access.identity import owner
from app.operations.judging.adjudication import AdjudicationCard, decide_and_show
from db.assignment.answering import Decision, submit_decision
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.tables import Item


def disputed_study(store: Store, items: int = 3) -> int:
    """A study whose items ann and ben answer differently, and a model as well."""
    run_id = make_world(store, max(items, 4))
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=items, overlap=2).id
        model = get_or_create_judge(session, "model M", kind="model").id
        for name, position in (("ann", 0), ("ben", None)):
            judge = get_or_create_judge(session, name, kind="person").id
            while shown := next_item(session, study_id, judge):
                event = f"{name}-{shown.item_id}"
                decision = Decision(event, shown.item_id, position, note="hard to say")
                submit_decision(session, study_id, judge, decision)
        for item in session.scalars(select(Item)):
            order = [each["label"] for each in item.candidates]
            record_judgment(
                session,
                judge_id=model,
                item_id=item.id,
                choice=order[0],
                order_shown=order,
                event_id=f"m{item.id}",
            )
        session.commit()
        return study_id


def entry(study_id: int, token: str, event: str, position: Any = 1, **more: Any) -> dict[str, Any]:
    given = {"event": event, "kind": "pick", "study": study_id, "token": token}
    return given | {"position": position} | more


def card(study_id: int, *events: Any, who: str = "cora", **more: Any) -> AdjudicationCard:
    return decide_and_show(owner(who), study_id, events, **more)
