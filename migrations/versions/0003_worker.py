"""What the worker's replicas share: a lease, the times of schedules, requests, and a pause."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

SCHEMA = "repair_service"


def upgrade() -> None:
    op.create_table(
        "leases",
        _key("name"),
        sa.Column("holder", sa.Text(), nullable=False),
        _moment("taken_at", nullable=False),
        _moment("expires_at", nullable=False),
        sa.PrimaryKeyConstraint("name", name="leases_pkey"),
        schema=SCHEMA,
    )
    op.create_table(
        "schedules",
        _key("name"),
        sa.Column("trigger", sa.Text(), nullable=False),
        _moment("last_due", nullable=False),
        sa.Column("last_run", sa.Uuid(), nullable=True),
        sa.Column("last_exit_code", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name="schedules_pkey"),
        schema=SCHEMA,
    )
    _requests()
    op.create_table(
        "pauses",
        _key("name"),
        sa.Column("paused_by", sa.Text(), nullable=False),
        _moment("paused_at", now=True, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pauses_pkey"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    for table in ("pauses", "requests", "schedules", "leases"):
        op.drop_table(table, schema=SCHEMA)


def _key(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(collation="C"), nullable=nullable)


def _moment(name: str, *, now: bool = False, nullable: bool = True) -> sa.Column[object]:
    default = sa.text("clock_timestamp()") if now else None
    return sa.Column(name, sa.DateTime(timezone=True), server_default=default, nullable=nullable)


def _requests() -> None:
    op.create_table(
        "requests",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("store", sa.Text(), nullable=False),
        _key("schedule", nullable=True),
        _moment("due_at"),
        sa.Column("thread_id", sa.Text(), nullable=True),
        sa.Column("undo_run", sa.Uuid(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        _moment("asked_at", now=True, nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        _moment("started_at"),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        _moment("finished_at"),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="requests_pkey"),
        schema=SCHEMA,
    )
    op.create_index(
        "requests_open_idx",
        "requests",
        ["asked_at"],
        schema=SCHEMA,
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    op.create_index(
        "requests_asked_at_idx",
        "requests",
        [sa.text("asked_at DESC"), sa.text("id DESC")],
        schema=SCHEMA,
    )
    op.create_index(
        "requests_due_idx",
        "requests",
        ["schedule", "due_at"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("schedule IS NOT NULL"),
    )
