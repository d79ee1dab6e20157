"""One group in full: texts, current review, the validator's judgments and the calls.

A group that was dropped early may lack texts: they were never written.
"""

from typing import Self

from pydantic import Field, InstanceOf
from sqlalchemy import select
from sqlalchemy.orm import Session

from db.assignment.hidden import require_visible
from db.corpus.texts import lost_texts, passage_texts, texts_of
from db.errors import NotFound
from db.question import PICK, is_right
from db.review.reviews import ProposalRow, ReviewRow, proposals_of
from db.rows import Json, Row
from db.run.new_items import in_order_of_roles
from db.run.runs import shape_of
from db.run.versions import expected_now
from db.shape import Shape
from db.tables import (
    Call,
    Dataset,
    Group,
    Item,
    Judge,
    Judgment,
    Pair,
    Passage,
    Question,
    Review,
    Run,
    ServerGroup,
)
from db.tables import GroupCall as Served


class TripletRow(Row):
    """The texts of a triplet."""

    instruction: str
    query: str
    passage: str


class ListedTextRow(Row):
    """A text of a slot with several, and why it is none of the group's."""

    name: str
    text: str
    dropped_reason: str | None


class GroupJudgment(Row):
    """What a judge of the run answered about an item; it `agrees` if that is the right answer.

    `question` is its kind: `pick` in a scenario, another in a check. `expected` is its right
    answer by the verdict version that the run uses, None where none is known. The rest is for
    pages: what was shown, passages by their label.
    """

    scenario: str
    question: str
    expected: str | None
    judge: str
    choice: str
    agrees: bool | None
    item_id: int = Field(exclude=True)
    offline: bool = Field(exclude=True)
    order_shown: tuple[str, ...] = Field(exclude=True)
    candidates: dict[str, str] = Field(exclude=True)
    instruction: str = Field(exclude=True)
    query: str = Field(exclude=True)


WITHOUT_SERVER = {
    "offline": "(offline, on this machine: no server)",
    "recorded": "(replayed from a recording: no server)",
}


class GroupCall(Row):
    """A call that served a group, without request and answer; `call_id` is its number.

    `server`: the addresses of the server that answered, None before servers were recorded.
    `answered_as`: the name that its model gave, where that is another.
    """

    call_id: int
    task: str
    model: str
    answered_as: str | None
    server: str | None
    outcome: str
    input_tokens: int
    output_tokens: int
    cost_usd: float
    sample: int = Field(exclude=True)
    provider: str = Field(exclude=True)
    request: Json = Field(exclude=True)
    answer: str = Field(exclude=True)

    @property
    def title(self) -> str:
        """What was asked of which model where, how it ended, and what it took."""
        tokens = self.input_tokens + self.output_tokens
        return (
            f"{self.task} · {self.answered_by} · {self.outcome} · "
            f"{tokens:,} tokens · ${self.cost_usd:.4f}"
        )

    @property
    def answered_by(self) -> str:
        """The model, under its own name for itself, and where it answered."""
        return f"{self.named} {self.where}"

    @property
    def named(self) -> str:
        """The model, under its own name for itself."""
        return f"{self.model} as {self.answered_as}" if self.answered_as else self.model

    @property
    def where(self) -> str:
        """Its server, or what there was instead."""
        if self.server:
            return f"at {self.server}"
        return WITHOUT_SERVER.get(self.provider, f"({self.provider}: its server was not recorded)")


class GroupShown(Row):
    """A group in full; `triplets` by role, `lists`: the texts of slots that take several.

    `name` is its query's id in the source; `triplets` are those of the scenarios that are whole,
    and `lists` has texts that were dropped alone, too. The one row that commands, routes and the
    workbench are given; to a blind reviewer as `without_verdict` makes it.
    """

    id: int
    name: str
    run_id: int
    dataset: str
    offline: bool
    query: str
    passage_id: str
    passage: str
    stage: str
    state: str
    verdict: str | None
    drop_reason: str | None
    drop_detail: str | None
    verdict_version: int
    triplets: dict[str, TripletRow]
    lists: tuple[ListedTextRow, ...]
    review: ReviewRow | None
    proposals: tuple[ProposalRow, ...]
    judgments: tuple[GroupJudgment, ...]
    calls: tuple[GroupCall, ...]
    shape: InstanceOf[Shape] = Field(exclude=True)
    texts: dict[str, str] = Field(exclude=True)

    def without_verdict(self) -> Self:
        """The group without anything that shows how it was judged, dropped texts among it."""
        listed = (each for each in self.lists if each.dropped_reason is None)
        return self.model_copy(
            update={
                **dict.fromkeys(("verdict", "drop_reason", "drop_detail")),
                **dict.fromkeys(("stage", "state"), ""),
                **dict.fromkeys(("proposals", "judgments", "calls"), ()),
                "lists": tuple(listed),
            }
        )


def get_group(session: Session, group_id: int, *, viewer: str | None = None) -> GroupShown:
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
            "`groups list RUN` shows those of a run",
            code="group_unknown",
        )
    group, run, dataset, pair, passage = found
    shape = shape_of(session, run.id)
    texts = texts_of(session, [group_id])[group_id]
    review = session.scalar(select(Review).where(Review.group_id == group_id, Review.is_current))
    return GroupShown.of(
        group,
        name=pair.external_id,
        dataset=dataset,
        offline=run.offline,
        query=pair.query,
        passage_id=passage.external_id,
        passage=passage.text,
        verdict_version=run.verdict_version,
        triplets={
            scenario.role: TripletRow(**{of.field: texts[of.sign] for of in scenario.texts})
            for scenario in shape.complete(texts)
        },
        lists=_lists(session, group_id, shape, texts),
        review=None if review is None else ReviewRow.model_validate(review),
        proposals=proposals_of(session, group_id),
        judgments=_validations(session, group_id, run, shape),
        calls=_calls(session, group_id),
        shape=shape,
        texts=texts,
    )


def _lists(
    session: Session, group_id: int, shape: Shape, texts: dict[str, str]
) -> list[ListedTextRow]:
    """The texts of the shape's lists in its order, those that were dropped alone, too."""
    if not shape.lists:
        return []
    known = {name: (text, None) for name, text in texts.items()} | lost_texts(session, group_id)
    names = [name for text in shape.lists for name in text.names if name in known]
    return [
        ListedTextRow(name=name, text=known[name][0], dropped_reason=known[name][1])
        for name in names
    ]


def _validations(session: Session, group_id: int, run: Run, shape: Shape) -> list[GroupJudgment]:
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
    shown = []
    for item, judge, judgment, kind in rows:
        right = expected.get(item.scenario, item.expected)
        candidates = {each["label"]: texts[each["passage_id"]] for each in item.candidates}
        shown.append(
            GroupJudgment(
                scenario=item.scenario,
                question=kind or PICK.kind,
                expected=right,
                judge=judge.name,
                choice=judgment.choice,
                agrees=is_right(judgment.choice, right),
                item_id=item.id,
                offline=judge.offline,
                order_shown=tuple(judgment.order_shown),
                candidates=candidates,
                instruction=item.instruction,
                query=item.query,
            )
        )
    return shown


def _calls(session: Session, group_id: int) -> list[GroupCall]:
    rows = session.execute(
        select(Served, Call, ServerGroup.endpoints)
        .join(Call, Call.id == Served.call_id)
        .outerjoin(ServerGroup, ServerGroup.name == Call.server_group)
        .where(Served.group_id == group_id)
        .order_by(Call.id)
    )
    return [
        GroupCall.of(
            call,
            call_id=call.id,
            task=served.task,
            sample=served.sample,
            outcome=served.outcome,
            server=", ".join(endpoints or ()) or call.server_group,
            answered_as=call.request.get("answered_as"),
        )
        for served, call, endpoints in rows
    ]
