"""Groups: browsing them, one in full, and streaming them out for an export.

The three triplets of a group that was dropped early may be missing: nothing was written for them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, exists, func, or_, select, union
from sqlalchemy.orm import Session, aliased

from db.corpus.texts import pair_source
from db.errors import NotFound
from db.scenarios import LAST_ROLE
from db.tables import (
    Call,
    Dataset,
    Group,
    GroupCall,
    Item,
    Judge,
    Judgment,
    Pair,
    Passage,
    Review,
    Run,
    Triplet,
)

BATCH = 500


class Texts(NamedTuple):
    """A triplet's texts."""

    instruction: str
    query: str
    passage: str


@dataclass(frozen=True)
class GroupRow:
    """A group as a list shows it; `instruction_positive` is "" where none was written."""

    id: int
    query_id: str
    query_positive: str
    instruction_positive: str
    stage: str
    state: str
    verdict: str | None
    drop_reason: str | None
    review: str | None


@dataclass(frozen=True)
class GroupPage:
    """A page of groups and how many there are in all."""

    rows: list[GroupRow]
    total: int


@dataclass(frozen=True)
class ValidatorJudgment:
    """What the run's judge answered in one scenario; passages by their label."""

    scenario: str
    item_id: int
    judge: str
    offline: bool
    choice: str
    order_shown: list[str]
    candidates: dict[str, str]
    instruction: str
    query: str

    @property
    def agrees(self) -> bool:
        """Whether the judge chose the passage that was written for the scenario."""
        return self.choice == self.scenario


@dataclass(frozen=True)
class CallView:
    """One call that served a group: the prompt by its sha256, the raw answer."""

    id: int
    task: str
    sample: int
    outcome: str
    provider: str
    model: str
    prompt_sha256: str
    request: dict[str, Any]
    answer: str
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float
    latency_seconds: float
    created_at: datetime


@dataclass(frozen=True)
class GroupDetail:
    """A group in full."""

    id: int
    run_id: int
    dataset_id: int
    dataset: str
    offline: bool
    query_id: str
    passage_id: str
    query_positive: str
    document_positive: str
    title: str
    stage: str
    state: str
    verdict: str | None
    drop_reason: str | None
    drop_detail: str | None
    triplets: dict[str, Texts]
    review: Review | None
    judgments: list[ValidatorJudgment]
    calls: list[CallView]


@dataclass(frozen=True)
class GroupTexts:
    """A group as an export reads it."""

    id: int
    pair_id: int
    query_id: str
    passage_id: str
    passage_db_id: int
    verdict: str | None
    drop_reason: str | None
    drop_detail: str | None
    review: str | None
    pair_meta: dict[str, Any]
    triplets: dict[str, Texts]


def list_groups(
    session: Session,
    run_id: int,
    *,
    verdict: str | None = None,
    reason: str | None = None,
    stage: str | None = None,
    source: str | None = None,
    review: str | None = None,
    search: str | None = None,
    offset: int = 0,
    limit: int = 50,
) -> GroupPage:
    """Groups of a run in the order of its pairs, filtered as `matching_groups` does."""
    query = matching_groups(
        run_id,
        verdict=verdict,
        reason=reason,
        stage=stage,
        source=source,
        review=review,
        search=search,
    )
    if search and search.strip():  # looked for once: the count and the page are of what was found
        found = list(session.scalars(query.order_by(Group.id)))
        total, ids = len(found), found[offset : offset + limit]
    else:
        total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
        ids = list(session.scalars(query.order_by(Group.id).offset(offset).limit(limit)))
    positive = aliased(Triplet)
    rows = session.execute(
        select(
            Group.id,
            Pair.external_id,
            Pair.query,
            func.coalesce(positive.instruction, ""),
            Group.stage,
            Group.state,
            Group.verdict,
            Group.drop_reason,
            Review.action,
        )
        .join(Pair, Pair.id == Group.pair_id)
        .outerjoin(positive, and_(positive.group_id == Group.id, positive.role == "positive"))
        .outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
        .where(Group.id.in_(ids))
        .order_by(Group.id)
    )
    return GroupPage([GroupRow(*row) for row in rows], total)


def matching_groups(
    run_id: int,
    *,
    verdict: str | None = None,
    reason: str | None = None,
    stage: str | None = None,
    source: str | None = None,
    review: str | None = None,
    search: str | None = None,
) -> Select[int]:
    """The ids of groups of a run.

    `review` is an action, or "none" for unreviewed groups. `search` is a text, case-insensitive, in
    the query, the instructions and Q-.
    """
    query = select(Group.id).where(Group.run_id == run_id)
    if verdict:
        query = query.where(Group.verdict == verdict)
    if reason:
        query = query.where(Group.drop_reason == reason)
    if stage:
        query = query.where(Group.stage == stage)
    if source:
        of_source = select(Pair.id).join(Dataset, Dataset.id == Pair.dataset_id)
        of_source = of_source.where(pair_source() == source)
        query = query.where(Group.pair_id.in_(of_source))
    query = _reviewed(query, review)
    if search and search.strip():
        query = query.where(Group.id.in_(_found(run_id, search.strip())))
    return query


def complete_groups() -> Select[int]:
    """The ids of groups with all their triplets: the negatives are written together, last."""
    return select(Triplet.group_id).where(Triplet.role == LAST_ROLE)


def get_group(session: Session, group_id: int) -> GroupDetail:
    """One group with its triplets, current review, the validator's judgments and its calls.

    Raises NotFound.
    """
    found = session.execute(
        select(Group, Run, Dataset.name, Pair, Passage)
        .join(Run, Run.id == Group.run_id)
        .join(Dataset, Dataset.id == Run.dataset_id)
        .join(Pair, Pair.id == Group.pair_id)
        .join(Passage, Passage.id == Pair.passage_id)
        .where(Group.id == group_id)
    ).first()
    if found is None:
        raise NotFound(f"no group {group_id}")
    group, run, dataset, pair, passage = found
    return GroupDetail(
        id=group.id,
        run_id=run.id,
        dataset_id=run.dataset_id,
        dataset=dataset,
        offline=run.offline,
        query_id=pair.external_id,
        passage_id=passage.external_id,
        query_positive=pair.query,
        document_positive=passage.text,
        title=passage.title,
        stage=group.stage,
        state=group.state,
        verdict=group.verdict,
        drop_reason=group.drop_reason,
        drop_detail=group.drop_detail,
        triplets=_triplets(session, [group_id]).get(group_id, {}),
        review=session.scalars(
            select(Review).where(Review.group_id == group_id, Review.is_current)
        ).first(),
        judgments=_validations(session, group_id, run.id),
        calls=_calls(session, group_id),
    )


def iterate_groups(
    session: Session,
    run_id: int,
    *,
    verdicts: Sequence[str] = ("kept",),
    after_id: int = 0,
) -> Iterator[GroupTexts]:
    """Groups of a run with these verdicts, in the order of their ids, a batch in memory at a time.

    All reviews are told, rejected ones too: the caller decides.
    """
    while True:
        rows = session.execute(
            select(
                Group.id,
                Pair.id,
                Pair.external_id,
                Passage.external_id,
                Pair.passage_id,
                Group.verdict,
                Group.drop_reason,
                Group.drop_detail,
                Review.action,
                Pair.meta,
            )
            .join(Pair, Pair.id == Group.pair_id)
            .join(Passage, Passage.id == Pair.passage_id)
            .outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
            .where(Group.run_id == run_id, Group.verdict.in_(verdicts), Group.id > after_id)
            .order_by(Group.id)
            .limit(BATCH)
        ).all()
        if not rows:
            return
        triplets = _triplets(session, [row[0] for row in rows])
        for row in rows:
            values: list[Any] = [*row, triplets.get(row[0], {})]
            yield GroupTexts(*values)
        after_id = rows[-1][0]


def _reviewed(query: Select[int], review: str | None) -> Select[int]:
    if not review:
        return query
    current = select(Review.id).where(Review.group_id == Group.id, Review.is_current)
    if review == "none":
        return query.where(~exists(current))
    return query.where(exists(current.where(Review.action == review)))


def _found(run_id: int, text: str) -> Any:
    """The ids of the run's groups whose pair or triplets contain the text."""
    escaped = text.lower().replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")

    def holds(*columns: Any) -> Any:
        return or_(*(func.lower(each).like(f"%{escaped}%", escape="\\") for each in columns))

    by_pair = (
        select(Group.id)
        .join(Pair, Pair.id == Group.pair_id)
        .where(Group.run_id == run_id, holds(Pair.query))
    )
    by_triplet = (
        select(Group.id)
        .join(Triplet, Triplet.group_id == Group.id)
        .where(Group.run_id == run_id, holds(Triplet.instruction, Triplet.query))
    )
    return union(by_pair, by_triplet)


def _triplets(session: Session, group_ids: Sequence[int]) -> dict[int, dict[str, Texts]]:
    rows = session.execute(
        select(Triplet.group_id, Triplet.role, Triplet.instruction, Triplet.query, Passage.text)
        .join(Passage, Passage.id == Triplet.passage_id)
        .where(Triplet.group_id.in_(group_ids))
        .order_by(Triplet.id)
    )
    found: dict[int, dict[str, Texts]] = {}
    for group_id, role, instruction, query, passage in rows:
        found.setdefault(group_id, {})[role] = Texts(instruction, query, passage)
    return found


def _validations(session: Session, group_id: int, run_id: int) -> list[ValidatorJudgment]:
    rows = session.execute(
        select(Item, Judge, Judgment)
        .join(Judgment, Judgment.item_id == Item.id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Item.group_id == group_id, Judgment.run_id == run_id, Judgment.study_id.is_(None))
        .order_by(Item.id, Judgment.id)
    ).all()
    ids = {entry["passage_id"] for item, *_ in rows for entry in item.candidates}
    texts = dict(session.execute(select(Passage.id, Passage.text).where(Passage.id.in_(ids))).all())
    return [
        ValidatorJudgment(
            scenario=item.scenario,
            item_id=item.id,
            judge=judge.name,
            offline=judge.offline,
            choice=judgment.choice,
            order_shown=list(judgment.order_shown),
            candidates={entry["label"]: texts[entry["passage_id"]] for entry in item.candidates},
            instruction=item.instruction,
            query=item.query,
        )
        for item, judge, judgment in rows
    ]


def _calls(session: Session, group_id: int) -> list[CallView]:
    rows = session.execute(
        select(GroupCall, Call)
        .join(Call, Call.id == GroupCall.call_id)
        .where(GroupCall.group_id == group_id)
        .order_by(Call.id)
    )
    return [
        CallView(
            id=call.id,
            task=served.task,
            sample=served.sample,
            outcome=served.outcome,
            provider=call.provider,
            model=call.model,
            prompt_sha256=call.prompt_sha256,
            request=call.request,
            answer=call.answer,
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            reasoning_tokens=call.reasoning_tokens,
            cost_usd=call.cost_usd,
            latency_seconds=call.latency_seconds,
            created_at=call.created_at,
        )
        for served, call in rows
    ]


def groups_by_run(session: Session, group_ids: Sequence[int]) -> dict[int, list[int]]:
    """The given groups by run, the run with most of them first."""
    found: dict[int, list[int]] = {}
    for start in range(0, len(group_ids), BATCH):
        asked = select(Group.run_id, Group.id).where(Group.id.in_(group_ids[start : start + BATCH]))
        for run_id, group_id in session.execute(asked.order_by(Group.id)):
            found.setdefault(run_id, []).append(group_id)
    return dict(sorted(found.items(), key=lambda each: (-len(each[1]), each[0])))
