"""The first tables"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "account",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("password_hash", sa.String(), nullable=True),
        sa.Column("email", sa.String(), nullable=True),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("name <> ''", name=op.f("ck_account_name_not_empty")),
        sa.CheckConstraint(
            "role IN ('annotator', 'curator', 'admin')", name=op.f("ck_account_role")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("email", name=op.f("uq_account_email")),
        sa.UniqueConstraint("name", name=op.f("uq_account_name")),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column(
            "detail", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.create_index("ix_audit_created_at", ["created_at"], unique=False)

    op.create_table(
        "call",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("prompt_sha256", sa.String(), nullable=False),
        sa.Column(
            "request", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("answer", sa.String(), nullable=False),
        sa.Column("finish_reason", sa.String(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Double(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("latency_seconds", sa.Double(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_call")),
        sa.UniqueConstraint("key", name=op.f("uq_call_key")),
    )
    op.create_table(
        "dataset",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("licence", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset")),
        sa.UniqueConstraint("name", name=op.f("uq_dataset_name")),
    )
    op.create_table(
        "embedding",
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("text_sha256", sa.String(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("model", "text_sha256", name=op.f("pk_embedding")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column(
            "config", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=True),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column(
            "result", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=True
        ),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("log_path", sa.String(), nullable=True),
        sa.Column("host", sa.String(), nullable=True),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("slot", sa.String(), nullable=True),
        sa.Column("launcher", sa.String(), nullable=False),
        sa.Column(
            "resources", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column(
            "shown", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("stop_requested", sa.Boolean(), nullable=False),
        sa.Column("started_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('curate', 'judge', 'embed', 'project', 'train', 'evaluate', 'export', 'push', 'backup', 'import')",
            name=op.f("ck_job_kind"),
        ),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'done', 'failed', 'cancelled', 'lost')",
            name=op.f("ck_job_status"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.create_index("ix_job_status", ["status", "id"], unique=False)

    op.create_table(
        "prompt",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_prompt")),
    )
    op.create_table(
        "recipe",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("body", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recipe")),
        sa.UniqueConstraint("sha256", name=op.f("uq_recipe_sha256")),
    )
    op.create_table(
        "analysis",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("inputs_sha256", sa.String(), nullable=False),
        sa.Column(
            "config", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column(
            "result", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("dataset_id", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('diversity', 'coverage', 'agreement', 'near_duplicates', 'contamination')",
            name=op.f("ck_analysis_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
            name=op.f("fk_analysis_dataset_id_dataset"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_analysis_job_id_job")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_analysis")),
        sa.UniqueConstraint("kind", "inputs_sha256", name=op.f("uq_analysis_kind_inputs_sha256")),
    )
    op.create_table(
        "judge",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=True),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("offline", sa.Boolean(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('person', 'model', 'adjudicator')", name=op.f("ck_judge_kind")
        ),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_judge_account_id_account")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judge")),
        sa.UniqueConstraint("account_id", name=op.f("uq_judge_account_id")),
        sa.UniqueConstraint("name", name=op.f("uq_judge_name")),
    )
    op.create_table(
        "metric_point",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name=op.f("fk_metric_point_job_id_job"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "name", "step", name=op.f("pk_metric_point")),
    )
    op.create_table(
        "passage",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("external_id", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("meta", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.CheckConstraint(
            "origin IN ('seed', 'pool', 'generated')", name=op.f("ck_passage_origin")
        ),
        sa.CheckConstraint("text <> ''", name=op.f("ck_passage_text_not_empty")),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
            name=op.f("fk_passage_dataset_id_dataset"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passage")),
        sa.UniqueConstraint(
            "dataset_id", "external_id", name=op.f("uq_passage_dataset_id_external_id")
        ),
    )
    with op.batch_alter_table("passage", schema=None) as batch_op:
        batch_op.create_index(
            "ix_passage_dataset_id_origin", ["dataset_id", "origin"], unique=False
        )
        batch_op.create_index("ix_passage_sha256", ["sha256"], unique=False)

    op.create_table(
        "release",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("content_sha256", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column(
            "filter", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column(
            "counts", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("card", sa.String(), nullable=False),
        sa.Column("offline", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name=op.f("fk_release_dataset_id_dataset")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_release")),
    )
    with op.batch_alter_table("release", schema=None) as batch_op:
        batch_op.create_index("ix_release_dataset_id", ["dataset_id"], unique=False)

    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("recipe_id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("offline", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("budget_usd", sa.Double(), nullable=True),
        sa.Column("spent_usd", sa.Double(), nullable=False),
        sa.Column("batch", sa.Boolean(), nullable=False),
        sa.Column("requests_per_minute", sa.Integer(), nullable=True),
        sa.Column("tokens_per_minute", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("verdicts_shown", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('created', 'running', 'paused', 'done', 'failed', 'cancelled')",
            name=op.f("ck_run_status"),
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
            name=op.f("fk_run_dataset_id_dataset"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["recipe_id"], ["recipe.id"], name=op.f("fk_run_recipe_id_recipe")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
    )
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.create_index("ix_run_dataset_id", ["dataset_id"], unique=False)

    op.create_table(
        "batch",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("remote_id", sa.String(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status <> 'submitted' OR remote_id IS NOT NULL", name=op.f("ck_batch_submitted_has_id")
        ),
        sa.CheckConstraint(
            "status IN ('created', 'submitted', 'completed', 'failed', 'expired', 'cancelled', 'lost')",
            name=op.f("ck_batch_status"),
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["run.id"], name=op.f("fk_batch_run_id_run"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batch")),
        sa.UniqueConstraint("name", name=op.f("uq_batch_name")),
    )
    with op.batch_alter_table("batch", schema=None) as batch_op:
        batch_op.create_index("ix_batch_run_id", ["run_id"], unique=False)

    op.create_table(
        "checkpoint",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("release_id", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("base_model", sa.String(), nullable=False),
        sa.Column(
            "config", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column(
            "summary", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_checkpoint_job_id_job")),
        sa.ForeignKeyConstraint(
            ["release_id"], ["release.id"], name=op.f("fk_checkpoint_release_id_release")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoint")),
    )
    op.create_table(
        "pair",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("external_id", sa.String(), nullable=False),
        sa.Column("query", sa.String(), nullable=False),
        sa.Column("passage_id", sa.Integer(), nullable=False),
        sa.Column("meta", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.CheckConstraint("query <> ''", name=op.f("ck_pair_query_not_empty")),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
            name=op.f("fk_pair_dataset_id_dataset"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["passage_id"], ["passage.id"], name=op.f("fk_pair_passage_id_passage")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pair")),
        sa.UniqueConstraint(
            "dataset_id", "external_id", name=op.f("uq_pair_dataset_id_external_id")
        ),
    )
    with op.batch_alter_table("pair", schema=None) as batch_op:
        batch_op.create_index("ix_pair_passage_id", ["passage_id"], unique=False)

    op.create_table(
        "run_worker",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("in_flight", sa.Integer(), nullable=False),
        sa.Column("width", sa.Double(), nullable=False),
        sa.Column("made", sa.Integer(), nullable=False),
        sa.Column("reused", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("throttled", sa.Integer(), nullable=False),
        sa.Column("reserved_usd", sa.Double(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"], ["run.id"], name=op.f("fk_run_worker_run_id_run"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_worker")),
        sa.UniqueConstraint("owner", name=op.f("uq_run_worker_owner")),
    )
    with op.batch_alter_table("run_worker", schema=None) as batch_op:
        batch_op.create_index("ix_run_worker_run_id", ["run_id"], unique=False)

    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("overlap", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column(
            "settings", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("status IN ('open', 'paused', 'closed')", name=op.f("ck_study_status")),
        sa.CheckConstraint("overlap >= 1", name=op.f("ck_study_overlap")),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
            name=op.f("fk_study_dataset_id_dataset"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_study_run_id_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
    )
    with op.batch_alter_table("study", schema=None) as batch_op:
        batch_op.create_index("ix_study_dataset_id", ["dataset_id"], unique=False)

    op.create_table(
        "batch_call",
        sa.Column("batch_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("failed", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["batch_id"],
            ["batch.id"],
            name=op.f("fk_batch_call_batch_id_batch"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("batch_id", "key", name=op.f("pk_batch_call")),
    )
    with op.batch_alter_table("batch_call", schema=None) as batch_op:
        batch_op.create_index("ix_batch_call_key", ["key"], unique=False)

    op.create_table(
        "evaluation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("checkpoint_id", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("benchmark", sa.String(), nullable=False),
        sa.Column(
            "metrics", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column(
            "per_query", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"],
            ["checkpoint.id"],
            name=op.f("fk_evaluation_checkpoint_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_evaluation_job_id_job")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation")),
    )
    with op.batch_alter_table("evaluation", schema=None) as batch_op:
        batch_op.create_index("ix_evaluation_benchmark", ["benchmark"], unique=False)

    op.create_table(
        "group",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("pair_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("drop_reason", sa.String(), nullable=True),
        sa.Column("drop_detail", sa.String(), nullable=True),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(state = 'done') = (verdict IS NOT NULL)", name=op.f("ck_group_done_has_verdict")
        ),
        sa.CheckConstraint(
            "(verdict = 'dropped') = (drop_reason IS NOT NULL) OR verdict IS NULL",
            name=op.f("ck_group_drop_has_reason"),
        ),
        sa.CheckConstraint("state IN ('waiting', 'leased', 'done')", name=op.f("ck_group_state")),
        sa.CheckConstraint("verdict IN ('kept', 'dropped')", name=op.f("ck_group_verdict")),
        sa.ForeignKeyConstraint(["pair_id"], ["pair.id"], name=op.f("fk_group_pair_id_pair")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["run.id"], name=op.f("fk_group_run_id_run"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_group")),
        sa.UniqueConstraint("run_id", "pair_id", name=op.f("uq_group_run_id_pair_id")),
    )
    with op.batch_alter_table("group", schema=None) as batch_op:
        batch_op.create_index("ix_group_pair_id", ["pair_id"], unique=False)
        batch_op.create_index("ix_group_run_id_state", ["run_id", "state", "id"], unique=False)
        batch_op.create_index(
            "ix_group_run_id_verdict", ["run_id", "verdict", "drop_reason"], unique=False
        )

    op.create_table(
        "guideline",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_guideline_study_id_study"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_guideline")),
        sa.UniqueConstraint("study_id", "version", name=op.f("uq_guideline_study_id_version")),
    )
    op.create_table(
        "invitation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("token_sha256", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=True),
        sa.Column("account_id", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "role IN ('annotator', 'curator', 'admin')", name=op.f("ck_invitation_role")
        ),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_invitation_account_id_account")
        ),
        sa.ForeignKeyConstraint(
            ["study_id"],
            ["study.id"],
            name=op.f("fk_invitation_study_id_study"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitation")),
        sa.UniqueConstraint("token_sha256", name=op.f("uq_invitation_token_sha256")),
    )
    op.create_table(
        "study_judge",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("furthest", sa.Integer(), nullable=False),
        sa.Column("training_rounds", sa.Integer(), nullable=False),
        sa.Column("passed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state IN ('active', 'paused')", name=op.f("ck_study_judge_state")),
        sa.ForeignKeyConstraint(
            ["judge_id"], ["judge.id"], name=op.f("fk_study_judge_judge_id_judge")
        ),
        sa.ForeignKeyConstraint(
            ["study_id"],
            ["study.id"],
            name=op.f("fk_study_judge_study_id_study"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("study_id", "judge_id", name=op.f("pk_study_judge")),
    )
    with op.batch_alter_table("study_judge", schema=None) as batch_op:
        batch_op.create_index("ix_study_judge_judge_id", ["judge_id"], unique=False)

    op.create_table(
        "group_call",
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("call_id", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["call_id"], ["call.id"], name=op.f("fk_group_call_call_id_call")),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["group.id"],
            name=op.f("fk_group_call_group_id_group"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("group_id", "task", "sample", name=op.f("pk_group_call")),
    )
    with op.batch_alter_table("group_call", schema=None) as batch_op:
        batch_op.create_index("ix_group_call_call_id", ["call_id"], unique=False)

    op.create_table(
        "item",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("scenario", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("instruction", sa.String(), nullable=False),
        sa.Column("query", sa.String(), nullable=False),
        sa.Column(
            "candidates", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "scenario IN ('positive', 'instruction_negative', 'query_negative')",
            name=op.f("ck_item_scenario"),
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["group.id"], name=op.f("fk_item_group_id_group"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item")),
        sa.UniqueConstraint(
            "group_id", "scenario", "revision", name=op.f("uq_item_group_id_scenario_revision")
        ),
    )
    op.create_table(
        "release_group",
        sa.Column("release_id", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.Column("row_sha256", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["group.id"], name=op.f("fk_release_group_group_id_group")
        ),
        sa.ForeignKeyConstraint(
            ["release_id"],
            ["release.id"],
            name=op.f("fk_release_group_release_id_release"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("release_id", "group_id", name=op.f("pk_release_group")),
    )
    with op.batch_alter_table("release_group", schema=None) as batch_op:
        batch_op.create_index("ix_release_group_group_id", ["group_id"], unique=False)

    op.create_table(
        "review",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column(
            "before", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column(
            "after", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("reviewed_by", sa.String(), nullable=False),
        sa.Column("event_id", sa.String(), nullable=True),
        sa.Column("is_current", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "action <> 'reject' OR reason <> ''", name=op.f("ck_review_reject_has_reason")
        ),
        sa.CheckConstraint(
            "action IN ('approve', 'reject', 'edit')", name=op.f("ck_review_action")
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["group.id"], name=op.f("fk_review_group_id_group"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review")),
        sa.UniqueConstraint("event_id", name=op.f("uq_review_event_id")),
    )
    with op.batch_alter_table("review", schema=None) as batch_op:
        batch_op.create_index("ix_review_group_id", ["group_id"], unique=False)
        batch_op.create_index(
            "uq_review_current",
            ["group_id"],
            unique=True,
            sqlite_where=sa.text("is_current"),
            postgresql_where=sa.text("is_current"),
        )

    op.create_table(
        "triplet",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("instruction", sa.String(), nullable=False),
        sa.Column("query", sa.String(), nullable=False),
        sa.Column("passage_id", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "role IN ('positive', 'instruction_negative', 'query_negative')",
            name=op.f("ck_triplet_role"),
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["group.id"], name=op.f("fk_triplet_group_id_group"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["passage_id"], ["passage.id"], name=op.f("fk_triplet_passage_id_passage")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_triplet")),
        sa.UniqueConstraint("group_id", "role", name=op.f("uq_triplet_group_id_role")),
    )
    with op.batch_alter_table("triplet", schema=None) as batch_op:
        batch_op.create_index("ix_triplet_passage_id", ["passage_id"], unique=False)

    op.create_table(
        "assignment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column(
            "order_shown", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("flagged", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "state IN ('leased', 'done', 'skipped', 'expired', 'aside')",
            name=op.f("ck_assignment_state"),
        ),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_assignment_item_id_item")),
        sa.ForeignKeyConstraint(
            ["judge_id"], ["judge.id"], name=op.f("fk_assignment_judge_id_judge")
        ),
        sa.ForeignKeyConstraint(
            ["study_id"],
            ["study.id"],
            name=op.f("fk_assignment_study_id_study"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignment")),
        sa.UniqueConstraint(
            "study_id", "item_id", "judge_id", name=op.f("uq_assignment_study_id_item_id_judge_id")
        ),
    )
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.create_index(
            "ix_assignment_item_id_judge_id", ["item_id", "judge_id"], unique=False
        )
        batch_op.create_index(
            "ix_assignment_study_id_judge_id", ["study_id", "judge_id", "state"], unique=False
        )
        batch_op.create_index(
            "ix_assignment_study_id_state", ["study_id", "state", "lease_until"], unique=False
        )

    op.create_table(
        "judgment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=True),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("guideline_id", sa.Integer(), nullable=True),
        sa.Column("choice", sa.String(), nullable=False),
        sa.Column(
            "order_shown", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("shown_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("is_current", sa.Boolean(), nullable=False),
        sa.Column("replaces_id", sa.Integer(), nullable=True),
        sa.Column("flagged", sa.Boolean(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column(
            "detail", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["guideline_id"], ["guideline.id"], name=op.f("fk_judgment_guideline_id_guideline")
        ),
        sa.ForeignKeyConstraint(
            ["item_id"], ["item.id"], name=op.f("fk_judgment_item_id_item"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["judge_id"], ["judge.id"], name=op.f("fk_judgment_judge_id_judge")
        ),
        sa.ForeignKeyConstraint(
            ["replaces_id"], ["judgment.id"], name=op.f("fk_judgment_replaces_id_judgment")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_judgment_run_id_run")),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_judgment_study_id_study")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgment")),
        sa.UniqueConstraint("event_id", name=op.f("uq_judgment_event_id")),
    )
    with op.batch_alter_table("judgment", schema=None) as batch_op:
        batch_op.create_index("ix_judgment_item_id", ["item_id"], unique=False)
        batch_op.create_index(
            "ix_judgment_remarked",
            ["study_id"],
            unique=False,
            sqlite_where=sa.text("note <> '' OR flagged"),
            postgresql_where=sa.text("note <> '' OR flagged"),
        )
        batch_op.create_index(
            "ix_judgment_study_id_item_id",
            ["study_id", "is_current", "item_id", "choice", "judge_id", "flagged"],
            unique=False,
        )
        batch_op.create_index(
            "ix_judgment_study_id_judge_id",
            ["study_id", "judge_id", "is_current", "id"],
            unique=False,
        )
        batch_op.create_index(
            "uq_judgment_current",
            ["judge_id", "item_id"],
            unique=True,
            sqlite_where=sa.text("is_current"),
            postgresql_where=sa.text("is_current"),
        )

    op.create_table(
        "study_item",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("part", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("gold_choice", sa.String(), nullable=True),
        sa.Column("explanation", sa.String(), nullable=False),
        sa.Column("places", sa.Integer(), nullable=True),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.CheckConstraint("part IN ('main', 'training', 'gold')", name=op.f("ck_study_item_part")),
        sa.CheckConstraint(
            "taken >= 0 AND (places IS NULL OR taken <= places)", name=op.f("ck_study_item_places")
        ),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_study_item_item_id_item")),
        sa.ForeignKeyConstraint(
            ["study_id"],
            ["study.id"],
            name=op.f("fk_study_item_study_id_study"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("study_id", "item_id", name=op.f("pk_study_item")),
    )
    with op.batch_alter_table("study_item", schema=None) as batch_op:
        batch_op.create_index("ix_study_item_item_id", ["item_id"], unique=False)
        batch_op.create_index(
            "ix_study_item_study_id_part_position", ["study_id", "part", "position"], unique=False
        )


def downgrade() -> None:
    with op.batch_alter_table("study_item", schema=None) as batch_op:
        batch_op.drop_index("ix_study_item_study_id_part_position")
        batch_op.drop_index("ix_study_item_item_id")

    op.drop_table("study_item")
    with op.batch_alter_table("judgment", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_judgment_current",
            sqlite_where=sa.text("is_current"),
            postgresql_where=sa.text("is_current"),
        )
        batch_op.drop_index("ix_judgment_study_id_judge_id")
        batch_op.drop_index("ix_judgment_study_id_item_id")
        batch_op.drop_index(
            "ix_judgment_remarked",
            sqlite_where=sa.text("note <> '' OR flagged"),
            postgresql_where=sa.text("note <> '' OR flagged"),
        )
        batch_op.drop_index("ix_judgment_item_id")

    op.drop_table("judgment")
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.drop_index("ix_assignment_study_id_state")
        batch_op.drop_index("ix_assignment_study_id_judge_id")
        batch_op.drop_index("ix_assignment_item_id_judge_id")

    op.drop_table("assignment")
    with op.batch_alter_table("triplet", schema=None) as batch_op:
        batch_op.drop_index("ix_triplet_passage_id")

    op.drop_table("triplet")
    with op.batch_alter_table("review", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_review_current",
            sqlite_where=sa.text("is_current"),
            postgresql_where=sa.text("is_current"),
        )
        batch_op.drop_index("ix_review_group_id")

    op.drop_table("review")
    with op.batch_alter_table("release_group", schema=None) as batch_op:
        batch_op.drop_index("ix_release_group_group_id")

    op.drop_table("release_group")
    op.drop_table("item")
    with op.batch_alter_table("group_call", schema=None) as batch_op:
        batch_op.drop_index("ix_group_call_call_id")

    op.drop_table("group_call")
    with op.batch_alter_table("study_judge", schema=None) as batch_op:
        batch_op.drop_index("ix_study_judge_judge_id")

    op.drop_table("study_judge")
    op.drop_table("invitation")
    op.drop_table("guideline")
    with op.batch_alter_table("group", schema=None) as batch_op:
        batch_op.drop_index("ix_group_run_id_verdict")
        batch_op.drop_index("ix_group_run_id_state")
        batch_op.drop_index("ix_group_pair_id")

    op.drop_table("group")
    with op.batch_alter_table("evaluation", schema=None) as batch_op:
        batch_op.drop_index("ix_evaluation_benchmark")

    op.drop_table("evaluation")
    with op.batch_alter_table("batch_call", schema=None) as batch_op:
        batch_op.drop_index("ix_batch_call_key")

    op.drop_table("batch_call")
    with op.batch_alter_table("study", schema=None) as batch_op:
        batch_op.drop_index("ix_study_dataset_id")

    op.drop_table("study")
    with op.batch_alter_table("run_worker", schema=None) as batch_op:
        batch_op.drop_index("ix_run_worker_run_id")

    op.drop_table("run_worker")
    with op.batch_alter_table("pair", schema=None) as batch_op:
        batch_op.drop_index("ix_pair_passage_id")

    op.drop_table("pair")
    op.drop_table("checkpoint")
    with op.batch_alter_table("batch", schema=None) as batch_op:
        batch_op.drop_index("ix_batch_run_id")

    op.drop_table("batch")
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.drop_index("ix_run_dataset_id")

    op.drop_table("run")
    with op.batch_alter_table("release", schema=None) as batch_op:
        batch_op.drop_index("ix_release_dataset_id")

    op.drop_table("release")
    with op.batch_alter_table("passage", schema=None) as batch_op:
        batch_op.drop_index("ix_passage_sha256")
        batch_op.drop_index("ix_passage_dataset_id_origin")

    op.drop_table("passage")
    op.drop_table("metric_point")
    op.drop_table("judge")
    op.drop_table("analysis")
    op.drop_table("recipe")
    op.drop_table("prompt")
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.drop_index("ix_job_status")

    op.drop_table("job")
    op.drop_table("embedding")
    op.drop_table("dataset")
    op.drop_table("call")
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.drop_index("ix_audit_created_at")

    op.drop_table("audit")
    op.drop_table("account")
