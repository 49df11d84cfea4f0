"""The outbox: what the application is to be told of, until it was told."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SCHEMA = "repair_service"


def upgrade() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("repair_id", sa.Uuid(), nullable=False),
        sa.Column("store_key", sa.Text(collation="C"), nullable=False),
        sa.Column("thread_id", sa.Text(collation="C"), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'due'"), nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "due_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("claim", sa.Uuid(), nullable=True),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('due', 'sent', 'dead')", name=op.f("outbox_state_check")),
        sa.CheckConstraint(
            "type IN ('thread.repaired', 'thread.repair_undone')", name=op.f("outbox_type_check")
        ),
        sa.ForeignKeyConstraint(
            ["repair_id"], [f"{SCHEMA}.repairs.id"], name="outbox_repair_id_fkey"
        ),
        sa.PrimaryKeyConstraint("id", name="outbox_pkey"),
        sa.UniqueConstraint("repair_id", "type", name="outbox_repair_id_key"),
        schema=SCHEMA,
    )
    for name, columns, where in (
        ("outbox_due_at_idx", ["due_at", "position"], "state = 'due'"),
        ("outbox_thread_id_idx", ["thread_id", "store_key", "position"], "state = 'due'"),
        ("outbox_ended_at_idx", ["state", "ended_at"], "state <> 'due'"),
    ):
        op.create_index(
            name,
            "outbox",
            columns,
            schema=SCHEMA,
            postgresql_where=sa.text(where),
        )


def downgrade() -> None:
    op.drop_table("outbox", schema=SCHEMA)
