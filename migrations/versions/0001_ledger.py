"""The ledger: runs, findings, repairs, removed messages, quarantine, plans used.

Says the tables anew instead of importing them: what this made stays what it was, whatever the
tables become.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = "repair_service"


def upgrade() -> None:
    _runs()
    _findings()
    _repairs()
    _removed_messages()
    _quarantine()
    _plans_used()


def downgrade() -> None:
    for table in (
        "plans_used",
        "quarantine",
        "removed_messages",
        "repairs",
        "findings",
        "runs",
    ):
        op.drop_table(table, schema=SCHEMA)


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(collation="C"), nullable=False)


def _moment(name: str, *, now: bool = False, nullable: bool = True) -> sa.Column[object]:
    default = sa.text("clock_timestamp()") if now else None
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=default, nullable=nullable and not now
    )


def _json(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, postgresql.JSONB(), nullable=nullable)


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("store", sa.Text(), nullable=False),
        _key("store_key"),
        _json("selection"),
        _json("policy"),
        sa.Column("whole_store", sa.Boolean(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("shard_index", sa.BigInteger(), nullable=False),
        sa.Column("shard_count", sa.BigInteger(), nullable=False),
        _moment("started_at", nullable=False),
        _moment("finished_at"),
        sa.Column("complete", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        _json("totals", nullable=True),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        _json("resume_cursor", nullable=True),
        sa.CheckConstraint(
            "shard_index >= 1 AND shard_index <= shard_count", name=op.f("runs_shard_check")
        ),
        sa.PrimaryKeyConstraint("id", name="runs_pkey"),
        schema=SCHEMA,
    )
    op.create_index(
        "runs_started_at_idx",
        "runs",
        [sa.text("started_at DESC"), sa.text("id DESC")],
        schema=SCHEMA,
    )
    op.create_index(
        "runs_whole_idx",
        "runs",
        ["store_key", "shard_count", "shard_index", sa.text("started_at DESC")],
        schema=SCHEMA,
        postgresql_where=sa.text("complete AND whole_store"),
    )


def _findings() -> None:
    op.create_table(
        "findings",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        _key("thread_id"),
        _key("checkpoint_ns"),
        _key("checkpoint_id"),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=True),
        _json("faults"),
        _json("evidence"),
        sa.Column("new_checkpoint_id", sa.Text(), nullable=True),
        _moment("head_at"),
        sa.ForeignKeyConstraint(
            ["run_id"],
            [f"{SCHEMA}.runs.id"],
            name="findings_run_id_fkey",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "thread_id", "checkpoint_ns", name="findings_pkey"),
        schema=SCHEMA,
    )


def _repairs() -> None:
    op.create_table(
        "repairs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        _key("store_key"),
        _key("thread_id"),
        _key("checkpoint_ns"),
        _key("from_checkpoint_id"),
        _key("to_checkpoint_id"),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        _json("patch"),
        _json("calls"),
        _json("blobs"),
        sa.Column("writes_digest", sa.Text(), nullable=False),
        _moment("recorded_at", now=True),
        _moment("settled_at"),
        _moment("undone_at"),
        sa.Column("undone_by", sa.Text(), nullable=True),
        sa.Column("undone_run", sa.Uuid(), nullable=True),
        sa.CheckConstraint(
            "state IN ('intended', 'settled', 'abandoned')", name=op.f("repairs_state_check")
        ),
        sa.CheckConstraint(
            "undone_at IS NULL OR state = 'settled'", name=op.f("repairs_undone_check")
        ),
        sa.ForeignKeyConstraint(["run_id"], [f"{SCHEMA}.runs.id"], name="repairs_run_id_fkey"),
        sa.ForeignKeyConstraint(
            ["undone_run"], [f"{SCHEMA}.runs.id"], name="repairs_undone_run_fkey"
        ),
        sa.PrimaryKeyConstraint("id", name="repairs_pkey"),
        schema=SCHEMA,
    )
    for name, columns, where in (
        ("repairs_run_id_idx", ["run_id", "to_checkpoint_id", "id"], None),
        ("repairs_thread_id_idx", ["thread_id", "to_checkpoint_id", "id"], None),
        ("repairs_intended_idx", ["recorded_at"], "state = 'intended'"),
        ("repairs_undone_at_idx", ["store_key", "undone_at"], "undone_at IS NOT NULL"),
        ("repairs_undone_run_idx", ["undone_run"], "undone_run IS NOT NULL"),
    ):
        op.create_index(
            name,
            "repairs",
            columns,
            schema=SCHEMA,
            postgresql_where=sa.text(where) if where else None,
        )


def _removed_messages() -> None:
    op.create_table(
        "removed_messages",
        sa.Column("repair_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("message_index", sa.BigInteger(), nullable=False),
        sa.Column("tool_call_id", sa.Text(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repair_id"],
            [f"{SCHEMA}.repairs.id"],
            name="removed_messages_repair_id_fkey",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repair_id", "position", name="removed_messages_pkey"),
        schema=SCHEMA,
    )


def _quarantine() -> None:
    op.create_table(
        "quarantine",
        _key("store_key"),
        _key("thread_id"),
        _key("pattern"),
        _key("checkpoint_ns"),
        sa.Column("count", sa.BigInteger(), nullable=False),
        _moment("since", now=True),
        _moment("released_at"),
        sa.Column("released_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("store_key", "thread_id", "pattern", name="quarantine_pkey"),
        schema=SCHEMA,
    )


def _plans_used() -> None:
    op.create_table(
        "plans_used",
        _key("plan_id"),
        _moment("applied_at", now=True),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"], [f"{SCHEMA}.runs.id"], name="plans_used_run_id_fkey", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("plan_id", name="plans_used_pkey"),
        schema=SCHEMA,
    )
    op.create_index("plans_used_run_id_idx", "plans_used", ["run_id"], schema=SCHEMA)
