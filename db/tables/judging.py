"""Items, judges, judgments, studies and reviews."""

import secrets
from datetime import date, datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from db.names import PERSON_SUFFIX
from db.tables.base import Base, created, key


class Question(Base, kw_only=True):
    """A question other than InF-IR's pick of a passage (`db.question`), once for all that ask it.

    `key` is the sha256 of its body; `labels` are a grade's numbers with their meanings; `text` is
    what people are asked.
    """

    __tablename__ = "question"
    id: Mapped[int] = key()
    key: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    kind: Mapped[str]
    labels: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    prompt_sha256: Mapped[str] = mapped_column(default="")
    text: Mapped[str] = mapped_column(default="", server_default="")
    __table_args__ = (CheckConstraint("kind IN ('pick', 'grade', 'yes_no', 'score')", name="kind"),)


class Item(Base, kw_only=True):
    """One question about fixed texts: an instruction, a query and candidate passages.

    `question_id` NULL: which of the passages answers. `scenario` is the item's place in its group:
    the role for a pick; the check and the sign of the text for another question (`fits:P1-`).
    `expected` is the right answer as `db.question` has it, NULL where none is known.
    `candidates` is the canonical order: a list of {"passage_id": int, "label": str}, where a label
    is a role or `distractor_1` …; every label occurs once. A group edited by a reviewer gets new
    items of the next revision.
    """

    __tablename__ = "item"
    id: Mapped[int] = key()
    group_id: Mapped[int] = mapped_column(ForeignKey("group.id", ondelete="CASCADE"))
    scenario: Mapped[str]
    revision: Mapped[int] = mapped_column(default=1)
    instruction: Mapped[str]
    query: Mapped[str]
    candidates: Mapped[list[Any]]
    expected: Mapped[str | None]
    question_id: Mapped[int | None] = mapped_column(ForeignKey("question.id"), default=None)
    created_at: Mapped[datetime] = created()
    __table_args__ = (UniqueConstraint("group_id", "scenario", "revision"),)


class Judge(Base, kw_only=True):
    """A person or a model that answers items; an adjudicator also sees the others' answers.

    `simulated` judges stand in for people in a demo. A person with an account is found by it; the
    name is what reports show, unique among all judges (`db.study.judgments.get_or_create_judge`).
    """

    __tablename__ = "judge"
    id: Mapped[int] = key()
    name: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    account_id: Mapped[int | None] = mapped_column(
        ForeignKey("account.id"), default=None, unique=True
    )
    provider: Mapped[str] = mapped_column(default="")
    model: Mapped[str] = mapped_column(default="")
    offline: Mapped[bool] = mapped_column(default=False)
    simulated: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime] = created()
    __table_args__ = (CheckConstraint("kind IN ('person', 'model', 'adjudicator')", name="kind"),)

    @property
    def person(self) -> str:
        """The person's name, under which their reviews and what they opened is recorded."""
        return self.name.removesuffix(PERSON_SUFFIX)


class Study(Base, kw_only=True):
    """A set of items, guidelines and the overlap: one annotation effort."""

    __tablename__ = "study"
    id: Mapped[int] = key()
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"))
    run_id: Mapped[int | None] = mapped_column(ForeignKey("run.id"), default=None)
    name: Mapped[str]
    overlap: Mapped[int]
    seed: Mapped[int] = mapped_column(default=0)
    status: Mapped[str] = mapped_column(default="open")
    settings: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    created_by: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        CheckConstraint("overlap >= 1", name="overlap"),
        CheckConstraint("status IN ('open', 'paused', 'closed')", name="status"),
        Index("ix_study_dataset_id", "dataset_id"),
    )


class Guideline(Base, kw_only=True):
    """One version of a study's guidelines (Markdown)."""

    __tablename__ = "guideline"
    id: Mapped[int] = key()
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"))
    version: Mapped[int]
    body: Mapped[str]
    created_by: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    __table_args__ = (UniqueConstraint("study_id", "version"),)


class GuidelineReading(Base, kw_only=True):
    """A version of the guidelines that a judge has read: append-only, the newest one counts.

    The first is the version beside the judge's first item; a later one was acknowledged.
    """

    __tablename__ = "guideline_reading"
    guideline_id: Mapped[int] = mapped_column(
        ForeignKey("guideline.id", ondelete="CASCADE"), primary_key=True
    )
    judge_id: Mapped[int] = mapped_column(ForeignKey("judge.id"), primary_key=True)
    read_at: Mapped[datetime] = created()


class StudyItem(Base, kw_only=True):
    """An item in a study: `main`, `training` (qualification) or hidden `gold`.

    `places` is the number of judgments to collect (NULL for `training`), `taken` how many are done
    or leased: the check keeps the overlap from ever being exceeded. `position` is the order in
    which judges get items; gold has its places and position among the others. Items of one position
    are a card: they share their texts, and a judge gets them together.
    """

    __tablename__ = "study_item"
    study_id: Mapped[int] = mapped_column(
        ForeignKey("study.id", ondelete="CASCADE"), primary_key=True
    )
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id"), primary_key=True)
    part: Mapped[str] = mapped_column(default="main")
    position: Mapped[int] = mapped_column(default=0)
    gold_choice: Mapped[str | None] = mapped_column(default=None)
    explanation: Mapped[str] = mapped_column(default="")
    places: Mapped[int | None] = mapped_column(default=None)
    taken: Mapped[int] = mapped_column(default=0)
    __table_args__ = (
        CheckConstraint("part IN ('main', 'training', 'gold')", name="part"),
        CheckConstraint("taken >= 0 AND (places IS NULL OR taken <= places)", name="places"),
        Index("ix_study_item_study_id_part_position", "study_id", "part", "position"),
        Index("ix_study_item_study_id_position", "study_id", "position"),
        Index("ix_study_item_item_id", "item_id"),
    )


def new_token() -> str:
    """A random name for something that is shown, which says nothing about it."""
    return secrets.token_hex(16)


class Assignment(Base, kw_only=True):
    """An item leased to a judge of a study; exactly `overlap` of them end as `done`.

    `token` is all that the judge's browser receives to name it. `order_shown` is a random order of
    the candidates' labels, the judge's own.

    `aside`: the judge answered after the lease had expired and the place was taken by another
    judge; the judgment is kept but does not count in the study. `ended_at`: when the server
    received the last answer or skip. `note`, `flagged`, `reason` (of `db.values.REMARK_REASONS`)
    and `shown_at` are those of a skipped item; an answered one has them in its judgment.
    """

    __tablename__ = "assignment"
    id: Mapped[int] = key()
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"))
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id"))
    judge_id: Mapped[int] = mapped_column(ForeignKey("judge.id"))
    state: Mapped[str] = mapped_column(default="leased")
    token: Mapped[str] = mapped_column(default_factory=new_token, server_default="")
    order_shown: Mapped[list[Any]] = mapped_column(default_factory=list)
    lease_until: Mapped[datetime | None] = mapped_column(default=None)
    note: Mapped[str] = mapped_column(default="")
    flagged: Mapped[bool] = mapped_column(default=False)
    reason: Mapped[str] = mapped_column(default="", server_default="")
    shown_at: Mapped[datetime | None] = mapped_column(default=None)
    ended_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        UniqueConstraint("study_id", "item_id", "judge_id"),
        CheckConstraint("state IN ('leased', 'done', 'skipped', 'expired', 'aside')", name="state"),
        Index("ix_assignment_study_id_judge_id", "study_id", "judge_id", "state"),
        Index("ix_assignment_study_id_state", "study_id", "state", "lease_until"),
        Index("ix_assignment_item_id_judge_id", "item_id", "judge_id"),
        Index("uq_assignment_token", "token", unique=True),
    )


class ProgramLease(Base, kw_only=True):
    """An item that a function of a notebook holds while it answers it as a model judge.

    Its program is given `token` and the texts in `order_shown`, a random order. `person`: for whom
    it works; `worker`: which of several programs of one judge it is. The row goes with the answer;
    of one that is over, the item is given to the next program that asks, under another token. It
    takes no place from people.
    """

    __tablename__ = "program_lease"
    id: Mapped[int] = key()
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"))
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id", ondelete="CASCADE"))
    judge_id: Mapped[int] = mapped_column(ForeignKey("judge.id", ondelete="CASCADE"))
    token: Mapped[str] = mapped_column(default_factory=new_token, unique=True)
    person: Mapped[str]
    worker: Mapped[str]
    order_shown: Mapped[list[Any]]
    shown_at: Mapped[datetime] = created()
    lease_until: Mapped[datetime]
    __table_args__ = (
        UniqueConstraint("judge_id", "item_id"),
        Index("ix_program_lease_item_id", "item_id"),
    )


class Example(Base, kw_only=True):
    """A qualification item as a judge gets it in one round, named and ordered as an assignment."""

    __tablename__ = "example"
    id: Mapped[int] = key()
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"))
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id"))
    judge_id: Mapped[int] = mapped_column(ForeignKey("judge.id"))
    round: Mapped[int]
    token: Mapped[str] = mapped_column(default_factory=new_token, unique=True)
    order_shown: Mapped[list[Any]]
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        UniqueConstraint("study_id", "judge_id", "round", "item_id"),
        Index("ix_example_item_id", "item_id"),
    )


class StudyJudge(Base, kw_only=True):
    """A judge's membership in a study: active, or paused (by a curator or by failed gold items).

    `furthest` is the highest position of an item leased to them: new leases come after it.
    `scored_after`: how many items they had answered when their gold was last scored. `quota`: how
    many items they are given, NULL for no limit; `due_on`: until when they are asked to be done.
    Of a recruit (`db.people.recruiting`): `worker` and `submission`, the platform's ids, and the
    `code` that they earned.
    """

    __tablename__ = "study_judge"
    study_id: Mapped[int] = mapped_column(
        ForeignKey("study.id", ondelete="CASCADE"), primary_key=True
    )
    judge_id: Mapped[int] = mapped_column(ForeignKey("judge.id"), primary_key=True)
    state: Mapped[str] = mapped_column(default="active")
    reason: Mapped[str] = mapped_column(default="")
    furthest: Mapped[int] = mapped_column(default=-1)
    scored_after: Mapped[int] = mapped_column(default=0, server_default="0")
    training_rounds: Mapped[int] = mapped_column(default=0)
    passed_at: Mapped[datetime | None] = mapped_column(default=None)
    quota: Mapped[int | None] = mapped_column(default=None)
    due_on: Mapped[date | None] = mapped_column(default=None)
    worker: Mapped[str | None] = mapped_column(default=None)
    submission: Mapped[str | None] = mapped_column(default=None)
    code: Mapped[str | None] = mapped_column(default=None)
    changed_at: Mapped[datetime] = created()
    __table_args__ = (
        CheckConstraint("state IN ('active', 'paused')", name="state"),
        Index("ix_study_judge_judge_id", "judge_id"),
        Index("ix_study_judge_study_id_worker", "study_id", "worker", unique=True),
    )


class Judgment(Base, kw_only=True):
    """Judge × item → `choice`, an answer to the item's question. Append-only; one is current.

    To a pick it is the label of a candidate, "none" or "ambiguous"; to others see `db.question`.

    `order_shown` lists the labels in the order on the screen or in the prompt; `reason` is why it
    is flagged, of `db.values.REMARK_REASONS`.
    """

    __tablename__ = "judgment"
    id: Mapped[int] = key()
    event_id: Mapped[str] = mapped_column(unique=True)
    judge_id: Mapped[int] = mapped_column(ForeignKey("judge.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id", ondelete="CASCADE"))
    study_id: Mapped[int | None] = mapped_column(ForeignKey("study.id"), default=None)
    run_id: Mapped[int | None] = mapped_column(ForeignKey("run.id"), default=None)
    guideline_id: Mapped[int | None] = mapped_column(ForeignKey("guideline.id"), default=None)
    choice: Mapped[str]
    order_shown: Mapped[list[Any]]
    shown_at: Mapped[datetime | None] = mapped_column(default=None)
    decided_at: Mapped[datetime] = created()
    is_current: Mapped[bool] = mapped_column(default=True)
    replaces_id: Mapped[int | None] = mapped_column(ForeignKey("judgment.id"), default=None)
    flagged: Mapped[bool] = mapped_column(default=False)
    note: Mapped[str] = mapped_column(default="")
    reason: Mapped[str] = mapped_column(default="", server_default="")
    detail: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    __table_args__ = (
        Index(
            "uq_judgment_current",
            "judge_id",
            "item_id",
            unique=True,
            sqlite_where=text("is_current"),
            postgresql_where=text("is_current"),
        ),
        Index("ix_judgment_item_id", "item_id"),
        Index(  # a deleted judgment is looked for here: without it, deleting a run is quadratic
            "ix_judgment_replaces_id",
            "replaces_id",
            sqlite_where=text("replaces_id IS NOT NULL"),
            postgresql_where=text("replaces_id IS NOT NULL"),
        ),
        Index("ix_judgment_study_id_judge_id", "study_id", "judge_id", "is_current", "id"),
        Index(
            "ix_judgment_study_id_item_id",
            "study_id",
            "is_current",
            "item_id",
            "choice",
            "judge_id",
            "flagged",
        ),
        Index(
            "ix_judgment_remarked",
            "study_id",
            sqlite_where=text("note <> '' OR flagged"),
            postgresql_where=text("note <> '' OR flagged"),
        ),
    )


class CountedJudgment(Base, kw_only=True):
    """A judgment that counts in a further study: a program was to judge that study's queue, and had
    answered the item before, in another study or of a whole run."""

    __tablename__ = "counted_judgment"
    study_id: Mapped[int] = mapped_column(
        ForeignKey("study.id", ondelete="CASCADE"), primary_key=True
    )
    judgment_id: Mapped[int] = mapped_column(
        ForeignKey("judgment.id", ondelete="CASCADE"), primary_key=True
    )
    __table_args__ = (Index("ix_counted_judgment_judgment_id", "judgment_id"),)


class ItemMessage(Base, kw_only=True):
    """A message of the thread between a judge and the curators about an item of a study.

    `judge_id` is the judge whose thread it is; `written_by` the name of the curator who wrote, ""
    for the judge. `read_at`: when the other side first saw it. `event_id` is that of the browser,
    which may send it again.
    """

    __tablename__ = "item_message"
    id: Mapped[int] = key()
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"))
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id", ondelete="CASCADE"))
    judge_id: Mapped[int] = mapped_column(ForeignKey("judge.id"))
    written_by: Mapped[str] = mapped_column(default="")
    body: Mapped[str]
    event_id: Mapped[str] = mapped_column(unique=True)
    read_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        CheckConstraint("body <> ''", name="body_not_empty"),
        Index("ix_item_message_study_id_judge_id", "study_id", "judge_id", "item_id"),
    )


class Announcement(Base, kw_only=True):
    """A message of a curator to people of a study: to everyone, also who joins later (`for_all`),
    or to its readers alone."""

    __tablename__ = "announcement"
    id: Mapped[int] = key()
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"))
    body: Mapped[str]
    written_by: Mapped[str]
    for_all: Mapped[bool]
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        CheckConstraint("body <> ''", name="body_not_empty"),
        Index("ix_announcement_study_id", "study_id"),
    )


class AnnouncementReader(Base, kw_only=True):
    """A judge to whom an announcement was written, or who has read one to everyone (`read_at`)."""

    __tablename__ = "announcement_reader"
    announcement_id: Mapped[int] = mapped_column(
        ForeignKey("announcement.id", ondelete="CASCADE"), primary_key=True
    )
    judge_id: Mapped[int] = mapped_column(ForeignKey("judge.id"), primary_key=True)
    read_at: Mapped[datetime | None] = mapped_column(default=None)
    __table_args__ = (Index("ix_announcement_reader_judge_id", "judge_id"),)


class Review(Base, kw_only=True):
    """A person's approve, reject or edit of a group. Append-only; one is current.

    `before` and `after` hold the texts of an edit by field (see `db.review.texts.FIELDS`).
    `event_id` is that of the decision in a browser, which may send it again. `carried_from`: the
    review of a group with the same pair and texts that this one is a copy of; that group may be
    gone. `undone_at`: when its author took it back; it is never current again.
    """

    __tablename__ = "review"
    id: Mapped[int] = key()
    group_id: Mapped[int] = mapped_column(ForeignKey("group.id", ondelete="CASCADE"))
    action: Mapped[str]
    reason: Mapped[str] = mapped_column(default="")
    before: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    after: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    reviewed_by: Mapped[str]
    event_id: Mapped[str | None] = mapped_column(default=None, unique=True)
    is_current: Mapped[bool] = mapped_column(default=True)
    carried_from: Mapped[int | None] = mapped_column(default=None)
    undone_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        CheckConstraint("action IN ('approve', 'reject', 'edit')", name="action"),
        CheckConstraint("action <> 'reject' OR reason <> ''", name="reject_has_reason"),
        Index("ix_review_group_id", "group_id"),
        Index(
            "uq_review_current",
            "group_id",
            unique=True,
            sqlite_where=text("is_current"),
            postgresql_where=text("is_current"),
        ),
    )


class ReviewProposal(Base, kw_only=True):
    """What an agent, a judge of kind model, would decide about a group; a person reviews it.

    Append-only; the newest of a judge counts. No release and no figure knows of it.
    """

    __tablename__ = "review_proposal"
    id: Mapped[int] = key()
    group_id: Mapped[int] = mapped_column(ForeignKey("group.id", ondelete="CASCADE"))
    judge_id: Mapped[int] = mapped_column(ForeignKey("judge.id", ondelete="CASCADE"))
    action: Mapped[str]
    reason: Mapped[str]
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        CheckConstraint("action IN ('approve', 'reject')", name="action"),
        CheckConstraint("reason <> ''", name="has_reason"),
        Index("ix_review_proposal_group_id", "group_id"),
    )


class OpenedGroup(Base, kw_only=True):
    """A person saw the roles of a group that they could have judged: they no longer may.

    `place`: the page on which they opened it, after a warning.
    """

    __tablename__ = "opened_group"
    id: Mapped[int] = key()
    group_id: Mapped[int] = mapped_column(ForeignKey("group.id", ondelete="CASCADE"))
    opened_by: Mapped[str]
    place: Mapped[str]
    created_at: Mapped[datetime] = created()
    __table_args__ = (UniqueConstraint("group_id", "opened_by"),)


class AdjudicationView(Base, kw_only=True):
    """An item as an adjudicator sees it: in a random order, without roles until `revealed_at`."""

    __tablename__ = "adjudication_view"
    id: Mapped[int] = key()
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"))
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id"))
    seen_by: Mapped[str]
    token: Mapped[str] = mapped_column(default_factory=new_token, unique=True)
    order_shown: Mapped[list[Any]]
    revealed_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        UniqueConstraint("study_id", "item_id", "seen_by"),
        Index("ix_adjudication_view_item_id", "item_id"),
    )
