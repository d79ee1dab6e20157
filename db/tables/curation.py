"""Recipes, runs, groups with their texts, and the journal of calls."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    UniqueConstraint,
    false,
    func,
    select,
    true,
)
from sqlalchemy.orm import Mapped, column_property, mapped_column

from db.tables.base import SEALED, Base, created, key, utc_now


class Prompt(Base, kw_only=True):
    """A prompt file as it was used, by the sha256 of its text."""

    __tablename__ = "prompt"
    sha256: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    text: Mapped[str]
    created_at: Mapped[datetime] = created()


class Recipe(Base, kw_only=True):
    """Prompts, models, sampling and filter settings of a run; `sha256` is over the whole body."""

    __tablename__ = "recipe"
    id: Mapped[int] = key()
    name: Mapped[str]
    sha256: Mapped[str] = mapped_column(unique=True)
    body: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = created()


class RecipeVersion(Base, kw_only=True):
    """A recipe as a person wrote and saved it: its files by name, numbered by its name from 1.

    `sha256` is that of the recipe which they are; files that differ in comments have the same.
    """

    __tablename__ = "recipe_version"
    id: Mapped[int] = key()
    name: Mapped[str]
    number: Mapped[int]
    files: Mapped[dict[str, Any]]
    sha256: Mapped[str]
    note: Mapped[str] = mapped_column(default="")
    created_by: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    __table_args__ = (UniqueConstraint("name", "number"),)


class ServerGroup(Base, kw_only=True):
    """The endpoints whose answers are kept under one name, as those of one server."""

    __tablename__ = "server_group"
    id: Mapped[int] = key()
    name: Mapped[str] = mapped_column(unique=True)
    endpoints: Mapped[list[Any]]
    created_at: Mapped[datetime] = created()


class Connection(Base, kw_only=True):
    """A model server as runs name it; its key is elsewhere, or sealed.

    `secret` names the environment variable, or entry of `secrets.toml`, that holds the key; empty
    for a server without one; `typed` where the key is `sealed_key` (`db.servers.sealing`), which is
    in no backup: a restored connection has to be given its key again.
    `private`: it may be in a private network. `prices`: {model: {input, output}} in USD per million
    tokens, besides `prices.toml`. `tested`: what the last test found, empty before.
    """

    __tablename__ = "connection"
    id: Mapped[int] = key()
    name: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    url: Mapped[str] = mapped_column(default="")
    api_version: Mapped[str] = mapped_column(default="")
    secret: Mapped[str] = mapped_column(default="")
    sealed_key: Mapped[str | None] = mapped_column(default=None, info=SEALED)
    private: Mapped[bool] = mapped_column(default=False)
    prices: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    tested: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    created_by: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        CheckConstraint(
            "kind IN ('openai', 'azure', 'compatible', 'offline', 'recorded')", name="kind"
        ),
        CheckConstraint("sealed_key IS NULL OR secret = 'typed'", name="sealed_key_is_typed"),
    )


class RunWorker(Base, kw_only=True):
    """A process that works on a run: its counts and its part of the run's limits. No other worker
    writes it while this one is alive.

    `owner` is the name under which it holds leases. `leased_usd`: what it may spend in all of its
    run's budget, leased in slices; `reserved_usd`: of that for calls in flight. `leased_calls`: how
    many of the run's calls in flight it holds, NULL if it has a number of its own; `leased_part`:
    of the run's limits per minute. A worker without `ended_at` whose heartbeat is old is dead: what
    it did not reserve of that is free.

    `in_progress`: answers so far of groups without a verdict, by stage. `answers_per_minute`: over
    the last minutes, NULL without a basis. `waiting_until`: no call starts before; of a server
    that is away with `waiting_since` and `waiting_for`, the reason. `unanswered_usd`: the cost so
    far of calls without an answer: probes, answers that were lost on their way, and calls in flight
    when it died, which may have been billed. `spent_usd`: of those with one. `errors`: failed
    attempts by kind. `commits`: how many answers were committed within so many milliseconds after
    they came (`db.run.workers.COMMIT_MS`), and their `sum`. `counted`: the run's funnel as this
    worker counted it for all of them (`db.run.progress`), in JSON.
    """

    __tablename__ = "run_worker"
    id: Mapped[int] = key()
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    owner: Mapped[str] = mapped_column(unique=True)
    in_flight: Mapped[int] = mapped_column(default=0)
    width: Mapped[float] = mapped_column(default=0.0)
    made: Mapped[int] = mapped_column(default=0)
    reused: Mapped[int] = mapped_column(default=0)
    failures: Mapped[int] = mapped_column(default=0)
    throttled: Mapped[int] = mapped_column(default=0)
    reserved_usd: Mapped[float] = mapped_column(default=0.0)
    leased_usd: Mapped[float] = mapped_column(default=0.0, server_default="0")
    leased_calls: Mapped[int | None] = mapped_column(default=0)
    leased_part: Mapped[float] = mapped_column(default=0.0, server_default="0")
    last_error: Mapped[str | None] = mapped_column(default=None)
    last_error_at: Mapped[datetime | None] = mapped_column(default=None)
    waiting_until: Mapped[datetime | None] = mapped_column(default=None)
    waiting_since: Mapped[datetime | None] = mapped_column(default=None)
    waiting_for: Mapped[str | None] = mapped_column(default=None)
    unanswered_usd: Mapped[float] = mapped_column(default=0.0, server_default="0")
    spent_usd: Mapped[float] = mapped_column(default=0.0, server_default="0")
    input_tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    output_tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    claimed: Mapped[int] = mapped_column(default=0, server_default="0")
    errors: Mapped[dict[str, Any]] = mapped_column(default_factory=dict, server_default="{}")
    commits: Mapped[dict[str, Any]] = mapped_column(default_factory=dict, server_default="{}")
    retries_per_minute: Mapped[int] = mapped_column(default=0, server_default="0")
    answers_per_minute: Mapped[float | None] = mapped_column(default=None)
    in_progress: Mapped[dict[str, Any]] = mapped_column(default_factory=dict, server_default="{}")
    counted: Mapped[str | None] = mapped_column(default=None)
    counted_at: Mapped[datetime | None] = mapped_column(default=None)
    started_at: Mapped[datetime] = created()
    heartbeat_at: Mapped[datetime] = mapped_column(default_factory=utc_now)
    ended_at: Mapped[datetime | None] = mapped_column(default=None)
    __table_args__ = (Index("ix_run_worker_run_id", "run_id"),)


class Run(Base, kw_only=True):
    """A recipe applied to a dataset, with a budget.

    `server_group`: whose answers it uses; NULL in runs made before servers were recorded, empty
    until its first worker starts. `fresh`: it uses no answer of another run.
    `verdicts_shown`: annotators who review its groups see the validator's verdict.
    `guard`: the run pauses if its first groups are all dropped for one reason.
    `server`: {connection, kind, url} of the server that answers, empty in runs made before
    migration 0026 and for providers without one.
    `models`: {task: {model, sha256 of its weights or None}} as its first worker found them, without
    `sha256` until then; empty in runs made before migration 0010.
    `archived_at`: since when lists hide it and nothing new is made from it (`db.archive`).
    `verdict_version`: the number of the version that its groups' verdicts are of.
    `recipe_version`: the number of its recipe's version in the store, by the recipe's name; None
    for a built-in recipe and one of a folder.
    `preview`: it was made to look at its few groups; it is archived from the beginning.
    `concurrency` and the limits per minute are of all its workers together.
    `counted`: its funnel in JSON; NULL while a worker is at it (`db.run.progress`).
    """

    __tablename__ = "run"
    id: Mapped[int] = key()
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"))
    recipe_id: Mapped[int] = mapped_column(ForeignKey("recipe.id"))
    provider: Mapped[str]
    offline: Mapped[bool]
    status: Mapped[str] = mapped_column(default="created")
    seed: Mapped[int] = mapped_column(default=0)
    concurrency: Mapped[int] = mapped_column(default=8)
    budget_usd: Mapped[float | None] = mapped_column(default=None)
    # of what no worker counts: recovered answers, and runs of before migration 0041
    other_usd: Mapped[float] = mapped_column("spent_usd", default=0.0)
    spent_usd: Mapped[float] = column_property(
        select(func.coalesce(func.sum(RunWorker.spent_usd + RunWorker.unanswered_usd), 0.0))
        .where(RunWorker.run_id == id)
        .correlate_except(RunWorker)
        .scalar_subquery()
        + other_usd,
    )
    batch: Mapped[bool] = mapped_column(default=False)
    requests_per_minute: Mapped[int | None] = mapped_column(default=None)
    tokens_per_minute: Mapped[int | None] = mapped_column(default=None)
    error: Mapped[str | None] = mapped_column(default=None)
    server_group: Mapped[str | None] = mapped_column(default="")
    fresh: Mapped[bool] = mapped_column(default=False, server_default=false())
    verdicts_shown: Mapped[bool] = mapped_column(default=False)
    guard: Mapped[bool] = mapped_column(default=True, server_default=true())
    models: Mapped[dict[str, Any]] = mapped_column(default_factory=dict, server_default="{}")
    server: Mapped[dict[str, Any]] = mapped_column(default_factory=dict, server_default="{}")
    verdict_version: Mapped[int] = mapped_column(default=1, server_default="1")
    recipe_version: Mapped[int | None] = mapped_column(default=None)
    preview: Mapped[bool] = mapped_column(default=False, server_default=false())
    counted: Mapped[str | None] = mapped_column(default=None)
    created_by: Mapped[str] = mapped_column(default="")
    archived_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()
    finished_at: Mapped[datetime | None] = mapped_column(default=None)
    __table_args__ = (
        CheckConstraint(
            "status IN ('created', 'running', 'paused', 'done', 'failed', 'cancelled')",
            name="status",
        ),
        Index("ix_run_dataset_id", "dataset_id"),
    )


class Batch(Base, kw_only=True):
    """Calls of one model that were sent to the server together (OpenAI's Batch API).

    `name` is sent with the batch as metadata: it finds a batch that was sent before its
    `remote_id` could be stored.
    """

    __tablename__ = "batch"
    id: Mapped[int] = key()
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    owner: Mapped[str]
    name: Mapped[str] = mapped_column(unique=True)
    model: Mapped[str]
    remote_id: Mapped[str | None] = mapped_column(default=None)
    status: Mapped[str] = mapped_column(default="created")
    error: Mapped[str | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()
    submitted_at: Mapped[datetime | None] = mapped_column(default=None)
    ended_at: Mapped[datetime | None] = mapped_column(default=None)
    __table_args__ = (
        CheckConstraint(
            "status IN ('created', 'submitted', 'completed', 'failed', 'expired', 'cancelled', "
            "'lost')",
            name="status",
        ),
        CheckConstraint("status <> 'submitted' OR remote_id IS NOT NULL", name="submitted_has_id"),
        Index("ix_batch_run_id", "run_id"),
    )


class BatchCall(Base, kw_only=True):
    """A call of a batch, by its content key; `failed` if it has to be requested again."""

    __tablename__ = "batch_call"
    batch_id: Mapped[int] = mapped_column(
        ForeignKey("batch.id", ondelete="CASCADE"), primary_key=True
    )
    key: Mapped[str] = mapped_column(primary_key=True)
    failed: Mapped[bool] = mapped_column(default=False)
    __table_args__ = (Index("ix_batch_call_key", "key"),)


class Group(Base, kw_only=True):
    """The texts grown from one pair in one run, as its recipe says; kept or dropped as a whole.

    `state`, `lease_*` and `attempt` are the work queue of the run: a write by a worker is guarded
    by the attempt it leased. A drop always has its reason.
    """

    __tablename__ = "group"
    id: Mapped[int] = key()
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    pair_id: Mapped[int] = mapped_column(ForeignKey("pair.id"))
    state: Mapped[str] = mapped_column(default="waiting")
    stage: Mapped[str] = mapped_column(default="")
    verdict: Mapped[str | None] = mapped_column(default=None)
    drop_reason: Mapped[str | None] = mapped_column(default=None)
    drop_detail: Mapped[str | None] = mapped_column(default=None)
    lease_owner: Mapped[str | None] = mapped_column(default=None)
    lease_until: Mapped[datetime | None] = mapped_column(default=None)
    attempt: Mapped[int] = mapped_column(default=0)
    failed_attempts: Mapped[int] = mapped_column(default=0, server_default="0")
    failed_at: Mapped[datetime | None] = mapped_column(default=None)
    retries: Mapped[dict[str, Any]] = mapped_column(default_factory=dict, server_default="{}")
    finished_at: Mapped[datetime | None] = mapped_column(default=None)
    __table_args__ = (
        UniqueConstraint("run_id", "pair_id"),
        CheckConstraint("state IN ('waiting', 'leased', 'done')", name="state"),
        CheckConstraint("verdict IN ('kept', 'dropped')", name="verdict"),
        CheckConstraint(
            "(verdict = 'dropped') = (drop_reason IS NOT NULL) OR verdict IS NULL",
            name="drop_has_reason",
        ),
        CheckConstraint("(state = 'done') = (verdict IS NOT NULL)", name="done_has_verdict"),
        Index("ix_group_run_id_state", "run_id", "state", "id"),
        Index("ix_group_run_id_verdict", "run_id", "verdict", "drop_reason"),
        Index("ix_group_pair_id", "pair_id"),
    )


class VerdictVersion(Base, kw_only=True):
    """The verdicts of a run's groups by one set of rules (`db.run.versions`).

    A run that was never decided again has version 1 without a row. `settings`: what differs from
    the recipe's rules, as a person gives it; `expected`: {an item's place in its group: its right
    answer}; `counts`: {"kept": groups, "dropped": {reason: groups}}. `used_at`: when it last became
    the run's.
    """

    __tablename__ = "verdict_version"
    id: Mapped[int] = key()
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    number: Mapped[int]
    settings: Mapped[list[Any]] = mapped_column(default_factory=list)
    expected: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    counts: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    created_by: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    used_at: Mapped[datetime | None] = mapped_column(default=None)
    __table_args__ = (UniqueConstraint("run_id", "number"),)


class GroupVerdict(Base, kw_only=True):
    """A group's verdict in a version of its run's, as `Group` has that of the current one."""

    __tablename__ = "group_verdict"
    group_id: Mapped[int] = mapped_column(
        ForeignKey("group.id", ondelete="CASCADE"), primary_key=True
    )
    version_id: Mapped[int] = mapped_column(
        ForeignKey("verdict_version.id", ondelete="CASCADE"), primary_key=True
    )
    verdict: Mapped[str]
    drop_reason: Mapped[str | None] = mapped_column(default=None)
    drop_detail: Mapped[str | None] = mapped_column(default=None)
    __table_args__ = (
        CheckConstraint("verdict IN ('kept', 'dropped')", name="verdict"),
        CheckConstraint("(verdict = 'dropped') = (drop_reason IS NOT NULL)", name="reason"),
        Index("ix_group_verdict_version_id", "version_id", "verdict", "drop_reason"),
    )


class TextVerdict(Base, kw_only=True):
    """What becomes of a list's text in a verdict version, as `SlotText` has it in the current one:
    `dropped_reason`, None where it is its group's."""

    __tablename__ = "text_verdict"
    group_id: Mapped[int] = mapped_column(
        ForeignKey("group.id", ondelete="CASCADE"), primary_key=True
    )
    version_id: Mapped[int] = mapped_column(
        ForeignKey("verdict_version.id", ondelete="CASCADE"), primary_key=True
    )
    slot: Mapped[str] = mapped_column(primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    dropped_reason: Mapped[str | None] = mapped_column(default=None)
    __table_args__ = (Index("ix_text_verdict_version_id", "version_id", "dropped_reason"),)


class SlotText(Base, kw_only=True):
    """A text of a group in a slot of its shape (`I+`), at `ordinal` where the slot has several.

    An instruction or a query is `text`, a passage `passage_id`. Also the pair's own query and
    passage: a group has its texts whole, and those of a scenario are stored together or not at all.
    An edit by a reviewer rewrites the row; the text before is kept in the review. A text of a list
    that was dropped alone has `dropped_reason`, and is none of its group's.
    """

    __tablename__ = "group_text"
    group_id: Mapped[int] = mapped_column(
        ForeignKey("group.id", ondelete="CASCADE"), primary_key=True
    )
    slot: Mapped[str] = mapped_column(primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True, default=0)
    text: Mapped[str | None] = mapped_column(default=None)
    passage_id: Mapped[int | None] = mapped_column(ForeignKey("passage.id"), default=None)
    dropped_reason: Mapped[str | None] = mapped_column(default=None)
    __table_args__ = (
        CheckConstraint("(text IS NULL) <> (passage_id IS NULL)", name="text_or_passage"),
        Index("ix_group_text_passage_id", "passage_id"),
        # rows of a group lie together: a page or a release reads them in one go
        {"sqlite_with_rowid": False},
    )


class Call(Base, kw_only=True):
    """One request to a language model, keyed by its content: never paid for twice.

    `key` is the sha256 over task, prompt, model, parameters, inputs, sample number and, since they
    are recorded, the server group. The raw answer is stored before it is parsed.
    """

    __tablename__ = "call"
    id: Mapped[int] = key()
    key: Mapped[str] = mapped_column(unique=True)
    task: Mapped[str]
    provider: Mapped[str]
    model: Mapped[str]
    server_group: Mapped[str | None] = mapped_column(default=None)
    prompt_sha256: Mapped[str]
    request: Mapped[dict[str, Any]]
    answer: Mapped[str]
    finish_reason: Mapped[str] = mapped_column(default="stop")
    input_tokens: Mapped[int] = mapped_column(default=0)
    output_tokens: Mapped[int] = mapped_column(default=0)
    reasoning_tokens: Mapped[int] = mapped_column(default=0)
    cost_usd: Mapped[float] = mapped_column(default=0.0)
    attempts: Mapped[int] = mapped_column(default=1)
    latency_seconds: Mapped[float] = mapped_column(default=0.0)
    created_at: Mapped[datetime] = created()
    # covers the prices of judges: rows with request and answer are 20 times as long
    __table_args__ = (Index("ix_call_task_price", "task", "model", "cost_usd"),)


class GroupCall(Base, kw_only=True):
    """Which call served which stage of which group (one call may serve several runs)."""

    __tablename__ = "group_call"
    group_id: Mapped[int] = mapped_column(
        ForeignKey("group.id", ondelete="CASCADE"), primary_key=True
    )
    task: Mapped[str] = mapped_column(primary_key=True)
    sample: Mapped[int] = mapped_column(primary_key=True, default=0)
    call_id: Mapped[int] = mapped_column(ForeignKey("call.id"))
    outcome: Mapped[str] = mapped_column(default="ok")
    __table_args__ = (Index("ix_group_call_call_id", "call_id"),)
