"""One group in full: texts, current review, the validator's judgments and the calls.

A group that was dropped early may lack texts: they were never written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.assignment.hidden import require_visible
from db.corpus.texts import lost_texts, passage_texts, texts_of
from db.errors import NotFound
from db.question import PICK, is_right
from db.review.proposals import Proposal, proposals_of
from db.run.new_items import in_order_of_roles
from db.run.runs import shape_of
from db.run.versions import expected_now
from db.shape import Shape
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
    Question,
    Review,
    Run,
)


class Texts(NamedTuple):
    """The texts of a scenario."""

    instruction: str
    query: str
    passage: str


@dataclass(frozen=True)
class ValidatorJudgment:
    """What a judge of the run answered about an item; passages by their label.

    `question` is its kind: `pick` in a scenario, another in a check. `expected` is its right
    answer by the verdict version that the run uses, None where none is known.
    """

    scenario: str
    item_id: int
    judge: str
    offline: bool
    choice: str
    order_shown: list[str]
    candidates: dict[str, str]
    instruction: str
    query: str
    expected: str | None
    question: str = PICK.kind

    @property
    def agrees(self) -> bool | None:
        """Whether the judge answered as expected; None where nothing is."""
        return is_right(self.choice, self.expected)


@dataclass(frozen=True)
class CallView:
    """One call that served a group: the prompt by its sha256, the raw answer.

    `server`: the server group that answered, None before servers were recorded.
    """

    id: int
    task: str
    sample: int
    outcome: str
    provider: str
    model: str
    server: str | None
    prompt_sha256: str
    request: dict[str, Any]
    answer: str
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float
    latency_seconds: float
    created_at: datetime

    @property
    def title(self) -> str:
        """What was asked of which model where, how it ended, and what it took."""
        where = f" at {self.server}" if self.server else ""
        tokens = self.input_tokens + self.output_tokens
        return (
            f"{self.task} · {self.provider} {self.model}{where} · {self.outcome} · "
            f"{tokens:,} tokens · ${self.cost_usd:.4f}"
        )


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
    verdict_version: int
    shape: Shape
    texts: dict[str, str]
    review: Review | None
    judgments: list[ValidatorJudgment]
    calls: list[CallView]
    proposals: Sequence[Proposal] = ()
    # texts that were dropped alone by name, with the reason
    lost: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def listed(self) -> dict[str, tuple[str, str | None]]:
        """The texts of the shape's lists by name, with why they are not the group's."""
        found: dict[str, tuple[str, str | None]] = {}
        for text in self.shape.lists:
            for name in text.names:
                if name in self.lost:
                    found[name] = self.lost[name]
                elif name in self.texts:
                    found[name] = self.texts[name], None
        return found

    @property
    def triplets(self) -> dict[str, Texts]:
        """The texts of the scenarios that are whole, by role."""
        return {
            scenario.role: Texts(*(self.texts[sign] for sign in scenario.signs))
            for scenario in self.shape.complete(self.texts)
        }


def get_group(session: Session, group_id: int, *, viewer: str | None = None) -> GroupDetail:
    """One group with its texts, current review, the validator's judgments and its calls.

    `viewer` is the person to whom it is shown; None for a program. Raises NotFound, Refused if the
    group is hidden from the viewer (`db.assignment.hidden`).
    """
    if viewer is not None:
        require_visible(session, group_id, viewer)
    found = session.execute(
        select(Group, Run, Dataset.name, Pair, Passage)
        .join(Run, Run.id == Group.run_id)
        .join(Dataset, Dataset.id == Run.dataset_id)
        .join(Pair, Pair.id == Group.pair_id)
        .join(Passage, Passage.id == Pair.passage_id)
        .where(Group.id == group_id)
    ).first()
    if found is None:
        raise NotFound(
            f"no group {group_id}",
            "`groups list run=RUN` shows those of a run",
            code="group_unknown",
        )
    group, run, dataset, pair, passage = found
    shape = shape_of(session, run.id)
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
        verdict_version=run.verdict_version,
        shape=shape,
        texts=texts_of(session, [group_id])[group_id],
        review=session.scalars(
            select(Review).where(Review.group_id == group_id, Review.is_current)
        ).first(),
        judgments=_validations(session, group_id, run, shape),
        calls=_calls(session, group_id),
        proposals=proposals_of(session, group_id),
        lost=lost_texts(session, group_id) if shape.lists else {},
    )


def _validations(
    session: Session, group_id: int, run: Run, shape: Shape
) -> list[ValidatorJudgment]:
    expected = expected_now(session, run)
    found = session.execute(
        select(Item, Judge, Judgment, Question.kind)
        .join(Judgment, Judgment.item_id == Item.id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .outerjoin(Question, Question.id == Item.question_id)
        .where(Item.group_id == group_id, Judgment.run_id == run.id)
        .order_by(*in_order_of_roles(shape), Judgment.id)
    )
    # not in the query: SQLite would search all judgments without a study for those of the group
    rows = [row for row in found if row[2].study_id is None]
    ids = {entry["passage_id"] for item, *_ in rows for entry in item.candidates}
    texts = passage_texts(session, ids)
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
            expected=expected.get(item.scenario, item.expected),
            question=kind or PICK.kind,
        )
        for item, judge, judgment, kind in rows
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
            server=call.server_group,
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
