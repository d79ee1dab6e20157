"""Versions of recipes, which runs record; runs of a preview"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "recipe_version",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("files", JSON, nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recipe_version")),
        sa.UniqueConstraint("name", "number", name=op.f("uq_recipe_version_name_number")),
    )
    op.add_column("run", sa.Column("recipe_version", sa.Integer(), nullable=True))
    op.add_column(
        "run", sa.Column("preview", sa.Boolean(), server_default=sa.false(), nullable=False)
    )


def downgrade() -> None:
    """Versions are files that somebody wrote: nothing is dropped while there is one."""
    found = op.get_bind().execute(sa.text("SELECT name FROM recipe_version LIMIT 1"))
    if (name := found.scalar()) is not None:
        raise ValueError(
            f"the store has versions of the recipe {name!r}, which the version before cannot hold: "
            "export them and put the copy of the upgrade back"
        )
    op.drop_column("run", "preview")  # not by a copy: rows refer to the table
    op.drop_column("run", "recipe_version")
    op.drop_table("recipe_version")
