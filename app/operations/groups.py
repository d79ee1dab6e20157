"""Groups: list, show, their calls; what is hidden from a person, and opening it.

A person lists the finished groups of a run that they may not judge, blind unless they may curate
its dataset or its curator shows verdicts (`db.review.queue`). The store's owner at a command lists
all groups, those in work too.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.access.identity import Actor
from app.operations.acting import reading, record_read, writing
from curation.recipe.drop_reasons import reason_text
from curation.recipe.rendered_call import rendered_messages
from db.assignment import hidden
from db.corpus.texts import pair_sources
from db.errors import NotFound
from db.review import queue
from db.review.queue import QueueFilter
from db.review.reviews import count_reviews
from db.rows import Listed, Row
from db.run import group_detail
from db.run.group_detail import GroupShown
from db.run.groups import GroupRow
from db.run.revalidations import waiting_items
from db.run.runs import Funnel, drop_reasons, funnel, get_run
from db.store.store import open_store
from db.tables import Group, Pair, Run

RIGHT = "groups"
PAGE = 50
EXAMPLES = 3
Prompts = dict[int, list[dict[str, str]]]


class DropExample(Row):
    """A dropped group: by its id, and what exactly was found."""

    id: int
    query: str
    detail: str


class DropRow(Row):
    """A reason for which groups of a run were dropped, what it means, and some of them."""

    reason: str
    meaning: str
    groups: int
    examples: tuple[DropExample, ...]


@dataclass(frozen=True)
class Standing:
    """What an actor may see and do with the groups of a run.

    `viewer` is their name where groups that they may judge are hidden; None for the store's owner.
    """

    run: Run
    viewer: str | None
    curates: bool
    reviews: bool
    blind: bool


def list_some(
    actor: Actor, wanted: QueueFilter, *, limit: int | None = PAGE, offset: int = 0
) -> Listed[GroupRow]:
    """List groups of a run in the order of its pairs.

    Raises NotFound, BadInput for a drop reason that the run does not have, Refused for a filter
    that would tell verdicts to a blind reviewer.
    """
    with reading(actor, RIGHT) as session:
        here = standing(session, actor, wanted.run_id)
        return page(session, here, wanted, limit=limit, offset=offset)


def page(
    session: Session, here: Standing, wanted: QueueFilter, *, limit: int | None, offset: int
) -> Listed[GroupRow]:
    """As `list_some`, in a session of the actor's."""
    found = queue.listed_groups(
        session, wanted, viewer=here.viewer, blind=here.blind, offset=offset, limit=limit
    )
    if not found.total:
        queue.require_drop_reason(session, wanted)
    return Listed[GroupRow].page(found.rows, offset=offset, total=found.total)


def show(actor: Actor, group_id: int) -> GroupShown:
    """Show one group: texts, verdict, review, the validator's judgments and the calls.

    Raises NotFound, Refused if it is hidden.
    """
    with reading(actor, "curate") as session:
        viewer = None if actor.owns_store else actor.name
        return group_detail.get_group(session, group_id, viewer=viewer)


def details(actor: Actor, run_id: int, *, limit: int) -> list[GroupShown]:
    """The first groups of a run in full, those with a verdict, and recorded as read."""
    with reading(actor, "curate") as session:
        here = standing(session, actor, run_id)
        found = page(session, here, QueueFilter(run_id=run_id), limit=limit, offset=0)
        ids = [row.id for row in found.data if row.verdict]
        shown = [group_detail.get_group(session, each, viewer=here.viewer) for each in ids]
    record_read(ids, actor)
    return shown


def drops(actor: Actor, run_id: int) -> Listed[DropRow]:
    """Why groups of a run were dropped, the most frequent reason first, with EXAMPLES of each that
    are not hidden from the actor. Raises NotFound."""
    with reading(actor, "curate") as session:
        here, rows = standing(session, actor, run_id), []
        for reason, number in sorted(funnel(session, run_id).dropped.items(), key=_most_first):
            only = QueueFilter(run_id=run_id, reason=reason)
            found = page(session, here, only, limit=EXAMPLES, offset=0).data
            about = select(Group.id, Group.drop_detail).where(Group.id.in_([r.id for r in found]))
            details = dict(session.execute(about).all())
            examples = [
                DropExample(id=row.id, query=row.query, detail=details[row.id] or "")
                for row in found
            ]
            rows.append(
                DropRow(
                    reason=reason,
                    meaning=reason_text(reason),
                    groups=number,
                    examples=tuple(examples),
                )
            )
    return Listed[DropRow].all(rows)


def _most_first(counted: tuple[str, int]) -> tuple[int, str]:
    return -counted[1], counted[0]


def prompts(actor: Actor, group: GroupShown) -> Prompts:
    """The messages sent in each call of a group, by the call's number."""
    with reading(actor, "curate") as session:
        return prompts_of(session, group)


def prompts_of(session: Session, group: GroupShown) -> Prompts:
    """As `prompts`, in a session of the actor's."""
    return {each.call_id: rendered_messages(session, each.call_id) for each in group.calls}


def standing(session: Session, actor: Actor, run_id: int) -> Standing:
    """What the actor may see and do with a run's groups. Raises NotFound."""
    run = get_run(session, run_id)
    curates = actor.rights.on_dataset("curate", run.dataset_id)
    return Standing(
        run,
        None if actor.owns_store else actor.name,
        curates=curates,
        reviews=actor.rights.on_dataset("review", run.dataset_id),
        blind=not curates and not run.verdicts_shown,
    )


def visible(session: Session, here: Standing, group_ids: Collection[int]) -> set[int]:
    """Those of the groups that are of the run and may be shown to them; blind, complete ones."""
    return queue.reviewable(
        session,
        here.run.id,
        group_ids,
        reviewer=here.viewer,
        blind=here.blind,
        in_work=here.curates,
    )


def standing_in(actor: Actor, run_id: int) -> Standing:
    """As `standing`. Raises Refused without the right."""
    with reading(actor, RIGHT) as session:
        return standing(session, actor, run_id)


def run_of(actor: Actor, group_id: int) -> int | None:
    """The run of a group; None for one that the actor may not see."""
    with reading(actor, RIGHT) as session:
        return session.scalar(select(Group.run_id).where(Group.id == group_id))


def options(actor: Actor, run_id: int, *, blind: bool) -> tuple[list[str], list[str]]:
    """The sources of a run's pairs and its drop reasons; blind, no reasons."""
    with reading(actor, RIGHT) as session:
        run = get_run(session, run_id)
        newest = session.scalar(select(func.max(Pair.id)))
        reasons = [] if blind else drop_reasons(session, run_id)
        return _sources(run.dataset_id, (open_store().url, run.created_at, newest)), reasons


@lru_cache(maxsize=32)
def _sources(dataset_id: int, version: tuple[object, ...]) -> list[str]:
    """The sources of a dataset's pairs; `version` names the store, the run and the newest pair."""
    with open_store().read() as session:
        return pair_sources(session, dataset_id)


def reviewed(actor: Actor, run_id: int) -> dict[str, int]:
    """How many groups of a run have a current review of each action."""
    with reading(actor, RIGHT) as session:
        return count_reviews(session, run_id)


def waiting(actor: Actor, run_id: int) -> int:
    """How many edited items of a run wait for its validator."""
    with reading(actor, "curate") as session:
        return len(waiting_items(session, run_id))


def progress(actor: Actor, run_id: int) -> Funnel:
    """How far the groups of a run came, and why they were dropped."""
    with reading(actor, "curate") as session:
        return funnel(session, run_id)


def count_hidden(actor: Actor, run_id: int) -> int:
    """How many groups of a run are hidden from the actor, whatever the filter: by verdict or text,
    the count would be their answer."""
    with reading(actor, RIGHT) as session:
        return hidden.count_hidden(session, run_id, actor.name)


def is_hidden(actor: Actor, group_id: int) -> bool:
    """Whether the group is hidden from the actor."""
    with reading(actor, RIGHT) as session:
        return hidden.is_hidden(session, group_id, actor.name)


def open_hidden(actor: Actor, *, group_id: int | None = None, run_id: int | None = None) -> int:
    """Open a hidden group, or all of a run, for the actor, who is never given their items to judge
    afterwards. Returns how many were opened."""
    with writing(actor, "curate") as session:
        if group_id is not None:
            return hidden.open_groups(session, [group_id], person=actor.name)
        if run_id is None:
            raise NotFound(
                "neither a group nor a run is named", "name one of them", code="group_unknown"
            )
        return hidden.open_run(session, run_id, person=actor.name)
