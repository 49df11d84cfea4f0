"""The ledger's tables, as its statements see them. `migrations/` makes them, word for word alike.

No message content is kept anywhere but in `removed_messages`, whose rows are all that is left of a
message that a patch took out of a list.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA = "repair_service"
VERSION_TABLE = "alembic_version"

NAMES = {
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "ck": "%(table_name)s_%(constraint_name)s_check",
}

metadata = MetaData(schema=SCHEMA, naming_convention=NAMES)


def _key() -> Text:
    """Text of a key: ordered by its bytes, so that an upgrade of the system's collations, which
    spoils indexes of other text, leaves these right."""
    return Text(collation="C")


def _moment() -> DateTime:
    return DateTime(timezone=True)


runs = Table(
    "runs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("verb", Text, nullable=False),
    # The store's address without its password, for people.
    Column("store", Text, nullable=False),
    # Which store it is, for the ledger: one ledger may keep several (gateway.Ledger.identify).
    Column("store_key", _key(), nullable=False),
    Column("selection", JSONB, nullable=False),
    Column("policy", JSONB, nullable=False),
    # Whether the selection is the whole store, or the whole of the shard.
    Column("whole_store", Boolean, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text),
    Column("version", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("shard_index", BigInteger, nullable=False),
    Column("shard_count", BigInteger, nullable=False),
    Column("started_at", _moment(), nullable=False),
    Column("finished_at", _moment()),
    # Whether every head of the selection was looked at.
    Column("complete", Boolean, nullable=False, server_default=text("false")),
    Column("totals", JSONB(none_as_null=True)),
    Column("exit_code", BigInteger),
    # Where a run that was cut off would go on; null once it is complete.
    Column("resume_cursor", JSONB(none_as_null=True)),
    CheckConstraint("shard_index >= 1 AND shard_index <= shard_count", name="shard"),
)
Index("runs_started_at_idx", runs.c.started_at.desc(), runs.c.id.desc())
# What an incremental sweep asks: the last run that saw the whole store, or the whole shard.
Index(
    "runs_whole_idx",
    runs.c.store_key,
    runs.c.shard_count,
    runs.c.shard_index,
    runs.c.started_at.desc(),
    postgresql_where=text("complete AND whole_store"),
)

findings = Table(
    "findings",
    metadata,
    Column("run_id", Uuid, ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("thread_id", _key(), primary_key=True),
    Column("checkpoint_ns", _key(), primary_key=True),
    Column("checkpoint_id", _key(), nullable=False),
    Column("verdict", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("channel", Text),
    Column("faults", JSONB, nullable=False),
    Column("evidence", JSONB, nullable=False),
    Column("new_checkpoint_id", Text),
    Column("head_at", _moment()),
)

repairs = Table(
    "repairs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("run_id", Uuid, ForeignKey(runs.c.id), nullable=False),
    Column("store_key", _key(), nullable=False),
    Column("thread_id", _key(), nullable=False),
    Column("checkpoint_ns", _key(), nullable=False),
    Column("from_checkpoint_id", _key(), nullable=False),
    Column("to_checkpoint_id", _key(), nullable=False),
    # intended: not known to be in the store yet; settled: it is; abandoned: it never was.
    Column("state", Text, nullable=False),
    Column("pattern", Text, nullable=False),
    Column("patch", JSONB, nullable=False),
    Column("calls", JSONB, nullable=False),
    Column("blobs", JSONB, nullable=False),
    Column("writes_digest", Text, nullable=False),
    # The clock, not the transaction's start: a later repair of a thread has the later time.
    Column("recorded_at", _moment(), nullable=False, server_default=func.clock_timestamp()),
    Column("settled_at", _moment()),
    Column("undone_at", _moment()),
    Column("undone_by", Text),
    Column("undone_run", Uuid, ForeignKey(runs.c.id)),
    CheckConstraint("state IN ('intended', 'settled', 'abandoned')", name="state"),
    CheckConstraint("undone_at IS NULL OR state = 'settled'", name="undone"),
)
Index("repairs_run_id_idx", repairs.c.run_id, repairs.c.to_checkpoint_id, repairs.c.id)
Index("repairs_thread_id_idx", repairs.c.thread_id, repairs.c.to_checkpoint_id, repairs.c.id)
Index("repairs_intended_idx", repairs.c.recorded_at, postgresql_where=text("state = 'intended'"))
Index(
    "repairs_undone_at_idx",
    repairs.c.store_key,
    repairs.c.undone_at,
    postgresql_where=text("undone_at IS NOT NULL"),
)
Index(
    "repairs_undone_run_idx",
    repairs.c.undone_run,
    postgresql_where=text("undone_run IS NOT NULL"),
)

removed_messages = Table(
    "removed_messages",
    metadata,
    Column("repair_id", Uuid, ForeignKey(repairs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("position", BigInteger, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("message_index", BigInteger, nullable=False),
    Column("tool_call_id", Text),
    # The serialization type as the store writes it, a cipher's suffix included.
    Column("type", Text, nullable=False),
    Column("message", LargeBinary, nullable=False),
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("store_key", _key(), primary_key=True),
    Column("thread_id", _key(), primary_key=True),
    Column("pattern", _key(), primary_key=True),
    # Where it was last found; a sub-graph's namespace is another one each time.
    Column("checkpoint_ns", _key(), nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("since", _moment(), nullable=False, server_default=func.clock_timestamp()),
    Column("released_at", _moment()),
    Column("released_by", Text),
)

plans_used = Table(
    "plans_used",
    metadata,
    Column("plan_id", _key(), primary_key=True),
    Column("applied_at", _moment(), nullable=False, server_default=func.clock_timestamp()),
    Column("run_id", Uuid, ForeignKey(runs.c.id, ondelete="SET NULL")),
)
Index("plans_used_run_id_idx", plans_used.c.run_id)

outbox = Table(
    "outbox",
    metadata,
    # The same in each attempt: by it the application knows an event that it had before.
    Column("id", Uuid, primary_key=True),
    # The order of a thread's events.
    Column("position", BigInteger, Identity(always=True), nullable=False),
    Column("repair_id", Uuid, ForeignKey(repairs.c.id), nullable=False),
    Column("store_key", _key(), nullable=False),
    Column("thread_id", _key(), nullable=False),
    # What became of the repair; the rest is read from its row when it is said.
    Column("type", Text, nullable=False),
    # due: to be sent, now or later; sent; dead: given up.
    Column("state", Text, nullable=False, server_default=text("'due'")),
    Column("attempts", BigInteger, nullable=False, server_default=text("0")),
    Column("recorded_at", _moment(), nullable=False, server_default=func.clock_timestamp()),
    Column("due_at", _moment(), nullable=False, server_default=func.clock_timestamp()),
    # Who sends it now, and until when nobody else does.
    Column("claim", Uuid),
    Column("claimed_until", _moment()),
    Column("ended_at", _moment()),
    # What the last attempt came to, where it failed.
    Column("problem", Text),
    CheckConstraint("state IN ('due', 'sent', 'dead')", name="state"),
    CheckConstraint("type IN ('thread.repaired', 'thread.repair_undone')", name="type"),
    UniqueConstraint("repair_id", "type", name="outbox_repair_id_key"),
)
Index(
    "outbox_due_at_idx", outbox.c.due_at, outbox.c.position, postgresql_where=text("state = 'due'")
)
Index(
    "outbox_thread_id_idx",
    outbox.c.thread_id,
    outbox.c.store_key,
    outbox.c.position,
    postgresql_where=text("state = 'due'"),
)
Index(
    "outbox_ended_at_idx",
    outbox.c.state,
    outbox.c.ended_at,
    postgresql_where=text("state <> 'due'"),
)

# What the worker's replicas share: who leads, what its schedules have come to, what is asked of it.
leases = Table(
    "leases",
    metadata,
    Column("name", _key(), primary_key=True),
    Column("holder", Text, nullable=False),
    Column("taken_at", _moment(), nullable=False),
    # By the database's clock: those of two replicas may differ.
    Column("expires_at", _moment(), nullable=False),
)

schedules = Table(
    "schedules",
    metadata,
    Column("name", _key(), primary_key=True),
    # As the settings said it: what another trigger would have done until now is nobody's loss.
    Column("trigger", Text, nullable=False),
    # The last time that was run, or that is not to be run any more.
    Column("last_due", _moment(), nullable=False),
    Column("last_run", Uuid),
    Column("last_exit_code", BigInteger),
)

requests = Table(
    "requests",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("verb", Text, nullable=False),
    # The store's name in the worker's settings.
    Column("store", Text, nullable=False),
    # Where a schedule asks: its name, and the time that is run.
    Column("schedule", _key()),
    Column("due_at", _moment()),
    Column("thread_id", Text),
    Column("undo_run", Uuid),
    Column("actor", Text, nullable=False),
    Column("reason", Text),
    Column("asked_at", _moment(), nullable=False, server_default=func.clock_timestamp()),
    # How often a replica began on it: one that died in the middle leaves it to the next.
    Column("attempts", BigInteger, nullable=False, server_default=text("0")),
    Column("claimed_by", Text),
    Column("started_at", _moment()),
    # No foreign key: the run's own process writes that row, if it comes so far.
    Column("run_id", Uuid),
    Column("finished_at", _moment()),
    Column("exit_code", BigInteger),
    Column("problem", Text),
)
Index("requests_open_idx", requests.c.asked_at, postgresql_where=text("finished_at IS NULL"))
Index("requests_asked_at_idx", requests.c.asked_at.desc(), requests.c.id.desc())
Index(
    "requests_due_idx",
    requests.c.schedule,
    requests.c.due_at,
    unique=True,
    postgresql_where=text("schedule IS NOT NULL"),
)

pauses = Table(
    "pauses",
    metadata,
    Column("name", _key(), primary_key=True),
    Column("paused_by", Text, nullable=False),
    Column("paused_at", _moment(), nullable=False, server_default=func.clock_timestamp()),
)
