"""Accounts and the audit log."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from db.names import name_key, name_problem
from db.tables.base import SEALED, Base, created, key
from db.values import RIGHTS, STUDY_RIGHTS


def _key_of_name(context: Any) -> str:
    return name_key(context.get_current_parameters()["name"])


class Account(Base, kw_only=True):
    """A person who signs in. `role`: admin, or the preset that their rights (`Member`) came from.

    `name_key`: what names that look alike share (`db.names.name_key`); it is unique.

    An OpenID provider identifies them by `email` (lower case); an account without a password can
    only sign in through it.
    """

    __tablename__ = "account"
    id: Mapped[int] = key()
    name: Mapped[str] = mapped_column(unique=True)
    name_key: Mapped[str] = mapped_column(
        init=False, insert_default=_key_of_name, server_default=""
    )
    role: Mapped[str]
    password_hash: Mapped[str | None] = mapped_column(default=None)
    email: Mapped[str | None] = mapped_column(default=None, unique=True)
    disabled: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        CheckConstraint("role IN ('annotator', 'curator', 'admin')", name="role"),
        CheckConstraint("name <> ''", name="name_not_empty"),
        Index("uq_account_name_key", "name_key", unique=True),
    )

    @property
    def name_problem(self) -> str | None:
        """Why the name, given by an earlier version, is refused today; None for any other.

        The codes of `db.names.name_problem`, or `alike`.
        """
        is_alike = self.name_key != name_key(self.name)
        return name_problem(self.name) or ("alike" if is_alike else None)


class Member(Base, kw_only=True):
    """A right of a person: on a dataset, on a study, or (without either) everywhere."""

    __tablename__ = "member"
    id: Mapped[int] = key()
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id", ondelete="CASCADE"))
    right_held: Mapped[str]
    dataset_id: Mapped[int | None] = mapped_column(
        ForeignKey("dataset.id", ondelete="CASCADE"), default=None
    )
    study_id: Mapped[int | None] = mapped_column(
        ForeignKey("study.id", ondelete="CASCADE"), default=None
    )
    granted_by: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        CheckConstraint(f"right_held IN {RIGHTS}", name="right_held"),
        CheckConstraint("dataset_id IS NULL OR study_id IS NULL", name="one_place"),
        CheckConstraint(
            f"study_id IS NULL OR right_held IN {STUDY_RIGHTS}", name="right_of_a_study"
        ),
        UniqueConstraint("account_id", "right_held", "dataset_id"),
        UniqueConstraint("account_id", "right_held", "study_id"),
        Index(
            "uq_member_everywhere",
            "account_id",
            "right_held",
            unique=True,
            sqlite_where=text("dataset_id IS NULL AND study_id IS NULL"),
            postgresql_where=text("dataset_id IS NULL AND study_id IS NULL"),
        ),
    )


class AccountSession(Base, kw_only=True):
    """A signed-in browser, until it signs out (`ended_at`) or expires.

    Only the sha256 of the cookie's token is stored. `address` is the place that limits of failed
    sign-ins go by, `device` what the browser says it is.
    """

    __tablename__ = "account_session"
    id: Mapped[int] = key()
    token_sha256: Mapped[str] = mapped_column(unique=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id", ondelete="CASCADE"))
    address: Mapped[str] = mapped_column(default="")
    device: Mapped[str] = mapped_column(default="")
    seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    ended_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        Index("ix_account_session_account_id", "account_id"),
        Index("ix_account_session_address", "address"),
    )


class ApiToken(Base, kw_only=True):
    """A token by which a program acts for a person, with less than their rights, until it ends.

    `rights` of theirs, on all that they have them on (`everywhere`) or on the datasets of
    `ApiTokenDataset`. Only the sha256 of the token is stored, and no backup holds that; `hint` is
    the end of it, by which its owner tells it from others. `account_id` is None for the local
    admin of a store without accounts. `budget_usd`: what the runs and judges that it
    starts may cost together (`ApiTokenRun`, `ApiTokenJob`); None: it starts none that costs money.
    """

    __tablename__ = "api_token"
    id: Mapped[int] = key()
    account_id: Mapped[int | None] = mapped_column(
        ForeignKey("account.id", ondelete="CASCADE"), default=None
    )
    name: Mapped[str]
    hint: Mapped[str]
    token_sha256: Mapped[str | None] = mapped_column(default=None, unique=True, info=SEALED)
    rights: Mapped[list[Any]]
    everywhere: Mapped[bool]
    budget_usd: Mapped[float | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None] = mapped_column(default=None)
    revoked_at: Mapped[datetime | None] = mapped_column(default=None)
    __table_args__ = (
        CheckConstraint("name <> ''", name="name_not_empty"),
        Index("ix_api_token_account_id", "account_id"),
    )


class ApiTokenDataset(Base, kw_only=True):
    """A dataset that a token is limited to; without its dataset the limit stays."""

    __tablename__ = "api_token_dataset"
    token_id: Mapped[int] = mapped_column(
        ForeignKey("api_token.id", ondelete="CASCADE"), primary_key=True
    )
    dataset_id: Mapped[int] = mapped_column(
        ForeignKey("dataset.id", ondelete="CASCADE"), primary_key=True
    )


class ApiTokenRun(Base, kw_only=True):
    """A run that a token started within its budget, and nobody but it may resume by a token."""

    __tablename__ = "api_token_run"
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    token_id: Mapped[int] = mapped_column(ForeignKey("api_token.id", ondelete="CASCADE"))
    __table_args__ = (Index("ix_api_token_run_token_id", "token_id"),)


class ApiTokenJob(Base, kw_only=True):
    """A judge's job that a token started within its budget, as `ApiTokenRun`."""

    __tablename__ = "api_token_job"
    job_id: Mapped[int] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    token_id: Mapped[int] = mapped_column(ForeignKey("api_token.id", ondelete="CASCADE"))
    __table_args__ = (Index("ix_api_token_job_token_id", "token_id"),)


class ApiAnswer(Base, kw_only=True):
    """What a request with an `Idempotency-Key` was answered, so that a repeated one is not done.

    `status` is None while the first is being worked on.
    """

    __tablename__ = "api_answer"
    id: Mapped[int] = key()
    token_id: Mapped[int] = mapped_column(ForeignKey("api_token.id", ondelete="CASCADE"))
    request_key: Mapped[str]
    request_sha256: Mapped[str]
    status: Mapped[int | None] = mapped_column(default=None)
    body: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        UniqueConstraint("token_id", "request_key"),
        Index("ix_api_answer_created_at", "created_at"),
    )


class PasswordLink(Base, kw_only=True):
    """A link of an admin with which one person sets their password once, until it expires."""

    __tablename__ = "password_link"
    id: Mapped[int] = key()
    token_sha256: Mapped[str] = mapped_column(unique=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id", ondelete="CASCADE"))
    created_by: Mapped[str]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()


class Invitation(Base, kw_only=True):
    """A link that lets one person create an account of that role, until it expires.

    With a study, whoever accepts it becomes a member of it, with a new account or their own. Only
    the sha256 of the link's token is stored.
    """

    __tablename__ = "invitation"
    id: Mapped[int] = key()
    token_sha256: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str]
    created_by: Mapped[str]
    expires_at: Mapped[datetime]
    study_id: Mapped[int | None] = mapped_column(
        ForeignKey("study.id", ondelete="CASCADE"), default=None
    )
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"), default=None)
    created_at: Mapped[datetime] = created()
    __table_args__ = (CheckConstraint("role IN ('annotator', 'curator', 'admin')", name="role"),)


class Tour(Base, kw_only=True):
    """The tour of the pages, offered once to a person, who may have no account (the local admin).

    `ended_at`: when they finished or skipped it. `created_at`: when it was shown first.
    """

    __tablename__ = "tour"
    id: Mapped[int] = key()
    person: Mapped[str] = mapped_column(unique=True)
    ended_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()


class Event(Base, kw_only=True):
    """What happened: sign-ins, role changes, reviews, exports, launches, ends of runs and jobs.

    `name` as `study.extend`; `noun` and `noun_id` are the thing it happened to.
    """

    __tablename__ = "event"
    id: Mapped[int] = key()
    actor: Mapped[str]
    name: Mapped[str]
    noun: Mapped[str] = mapped_column(default="")
    noun_id: Mapped[str] = mapped_column(default="")
    data: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    at: Mapped[datetime] = created()
    __table_args__ = (
        Index("ix_event_at", "at"),
        Index("ix_event_noun_noun_id", "noun", "noun_id"),
    )

    @property
    def subject(self) -> str:
        """The thing in a few words: `run 3`; a name alone."""
        return f"{self.noun} {self.noun_id}" if self.noun_id.isdecimal() else self.noun_id


class Webhook(Base, kw_only=True):
    """An endpoint of another server that is sent events (`db.servers.webhooks`).

    `events`: their names. `after_event`: the number of the last event that was looked at for it.
    `private`: it may be in a private network. `off_reason`: why it was switched off.
    """

    __tablename__ = "webhook"
    id: Mapped[int] = key()
    url: Mapped[str]
    events: Mapped[list[Any]]
    private: Mapped[bool] = mapped_column(default=False)
    sealed_secret: Mapped[str | None] = mapped_column(default=None, info=SEALED)
    status: Mapped[str] = mapped_column(default="on")
    off_reason: Mapped[str] = mapped_column(default="")
    after_event: Mapped[int]
    created_by: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    __table_args__ = (CheckConstraint("status IN ('on', 'off')", name="status"),)


class WebhookDelivery(Base, kw_only=True):
    """An event for an endpoint, under one `message_id`, however often it is sent.

    `attempts` counts those begun. `next_attempt_at`: of a pending one; while one is under way, when
    it counts as cut off. `answer`: what the last one came to.
    """

    __tablename__ = "webhook_delivery"
    id: Mapped[int] = key()
    webhook_id: Mapped[int] = mapped_column(ForeignKey("webhook.id", ondelete="CASCADE"))
    event_id: Mapped[int] = mapped_column(ForeignKey("event.id", ondelete="CASCADE"))
    message_id: Mapped[str] = mapped_column(unique=True)
    status: Mapped[str] = mapped_column(default="pending")
    attempts: Mapped[int] = mapped_column(default=0)
    next_attempt_at: Mapped[datetime]
    attempted_at: Mapped[datetime | None] = mapped_column(default=None)
    answer: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        CheckConstraint("status IN ('pending', 'delivered', 'failed', 'skipped')", name="status"),
        UniqueConstraint("webhook_id", "event_id"),
        Index("ix_webhook_delivery_status_next_attempt_at", "status", "next_attempt_at"),
    )
