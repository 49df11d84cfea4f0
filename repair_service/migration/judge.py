"""The judgement of one head against a changed graph: rows in, diagnosis and patch out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from repair_service.checkpoint.digest import writes_digest
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.identifiers import (
    NAMESPACE_SEPARATOR,
    TASK_SEPARATOR,
    timestamp,
)
from repair_service.checkpoint.rows import HeadRows, ThreadRows
from repair_service.checkpoint.tasks import read_head
from repair_service.errors import NotCarried, Unreadable
from repair_service.migration.carry import Carrying, Rows
from repair_service.migration.channels import ChannelChanges
from repair_service.migration.delta import DeltaValues
from repair_service.migration.moves import Move, moves_of
from repair_service.migration.nodes import NodeChanges
from repair_service.migration.pending import meant_pending
from repair_service.migration.renumbering import Renumbering, renumbering
from repair_service.migration.rewriting import Rewriting
from repair_service.migration.types import TypeChanges
from repair_service.repair.diagnosis import Carried, Diagnosis, Patch
from repair_service.repair.heads import ThreadHeads
from repair_service.repair.namespaces import live_below, parent_task
from repair_service.repair.verdict import Migration, Policy, Resume, Verdict
from repair_service.repair.waits import still_active

MEMORY_OF_ITS_OWN = (
    "the memory of the sub-graph {!r} (checkpointer=True) {}: that is not carried over; let it go "
    "on with the old graph, or keep the name"
)


def rewriting_of(migration: Migration, *, breakpoints: bool = False) -> Rewriting:
    """What a migration changes, to be asked name by name.

    Args:
        migration: The migration.
        breakpoints: Whether the graph has static breakpoints, which stop a thread for ever that has
            an old name in its checkpoint.
    """
    if migration.kind == "types":
        return TypeChanges(migration.renames)
    if migration.kind == "channels":
        return ChannelChanges(migration.renames, leftovers=breakpoints)
    return NodeChanges(migration.renames, migration.removed, leftovers=breakpoints)


def is_untouched(rows: HeadRows, rewriting: Rewriting) -> bool:
    """Whether a head is surely not concerned, by its own rows alone; the quick look of a scan.

    A sub-graph is looked at with the head above it.
    """
    namespace = rows.row.checkpoint_ns
    if parent_task(namespace) is not None:
        return True
    if is_renamed(namespace, rewriting):
        return False
    try:
        head = read_head(rows)
        history = rewriting.everywhere and DeltaValues(head, (), False).channels
        return not head.tasks and not history and not rewriting.touches(head)
    except (Unreadable, NotCarried):
        return False


def is_renamed(namespace: str, rewriting: Rewriting) -> bool:
    """Whether one of the nodes that a namespace names has another name, or is no more."""
    parts = namespace.split(NAMESPACE_SEPARATOR) if namespace else []
    return any(
        rewriting.node(NAMESPACE_SEPARATOR.join(parts[:place]), name) != name
        for place, name in enumerate(part.partition(TASK_SEPARATOR)[0] for part in parts)
        if not name.isdigit()
    )


def diagnose_migration(
    thread: ThreadRows, namespace: str, policy: Policy, now: float, rewriting: Rewriting
) -> Diagnosis:
    """Judge the head of one namespace: whether it is carried over, and how.

    Args:
        thread: The thread's rows; its heads include the namespace.
        namespace: The namespace to judge.
        policy: What the operator asks of its age, and the migration.
        now: The present, seconds since 1970.
        rewriting: What changes.

    Returns:
        `repairable` with a patch; `healthy` where nothing in it is concerned, or where it goes with
        the head above it; `manual` where it cannot be carried over for certain.
    """
    return _Case(thread, policy, now, rewriting).diagnose(namespace)


@dataclass(frozen=True, slots=True)
class _Case:
    """One thread while it is judged."""

    thread: ThreadRows
    policy: Policy
    now: float
    rewriting: Rewriting

    def diagnose(self, namespace: str) -> Diagnosis:
        row = self.thread.heads[namespace].row
        newest = self._newest()
        blank = Diagnosis(
            thread_id=row.thread_id,
            checkpoint_ns=namespace,
            checkpoint_id=row.checkpoint_id,
            verdict=Verdict.HEALTHY,
            reason="",
            idle_seconds=None if newest is None else max(0.0, self.now - newest),
        )
        if parent_task(namespace) is not None:
            return replace(blank, reason="it goes with the head above it")
        heads = ThreadHeads(self.thread.heads)
        if problem := heads.problem(namespace):
            return replace(blank, verdict=Verdict.UNREADABLE, reason=problem)
        try:
            return self._judge(namespace, heads, blank)
        except NotCarried as obstacle:
            return replace(blank, verdict=Verdict.MANUAL, reason=str(obstacle))
        except Unreadable as problem:
            return replace(blank, verdict=Verdict.UNREADABLE, reason=str(problem))

    def _judge(self, namespace: str, heads: ThreadHeads, blank: Diagnosis) -> Diagnosis:
        head = heads[namespace]
        below = live_below(namespace, heads)
        for name in (namespace, *below):
            if parent_task(name) is None and is_renamed(name, self.rewriting):
                raise NotCarried(MEMORY_OF_ITS_OWN.format(name, "is kept under the old name"))
        touched = [name for name in (namespace, *below) if self._touches(heads[name])]
        if not touched:
            return blank
        in_a_task = {name for name in touched if name and heads[name].tasks}
        for name in sorted({*touched} - {namespace} | in_a_task):
            if parent_task(name) is None:
                raise NotCarried(MEMORY_OF_ITS_OWN.format(name, "is in the middle of a task"))
        if reason := still_active(self._newest(), self.policy, self.now):
            return replace(blank, verdict=Verdict.ACTIVE, reason=reason)
        moves = moves_of(namespace, heads, self.rewriting)
        numbers = renumbering(moves)
        done = [self._carried(move, numbers) for move in moves]
        patch = _patch(moves, done, head)
        return replace(
            blank,
            verdict=Verdict.REPAIRABLE,
            reason=_reason(moves, self.rewriting),
            resume=_resume(moves[0]),
            route=tuple(dict.fromkeys(moved.node for moved in moves[0].tasks if moved.node)),
            pending=tuple(dict.fromkeys(task.node for task in head.tasks if task.node)),
            interrupts=sum(task.interrupted for task in head.tasks),
            patch=patch,
        )

    def _touches(self, head: Head) -> bool:
        if self.rewriting.touches(head):
            return True
        delta = self._delta(head)
        return any(delta.changed(channel, self.rewriting) for channel in delta.channels)

    def _delta(self, head: Head) -> DeltaValues:
        namespace = head.row.checkpoint_ns
        ancestors = self.thread.ancestors.get(namespace, ())
        return DeltaValues(head, ancestors, namespace in self.thread.pruned)

    def _carried(self, move: Move, numbers: Renumbering) -> Rows:
        moment = datetime.fromtimestamp(self.now, UTC).isoformat()
        return Carrying(move, numbers, self.rewriting, self._delta(move.head), moment).rows()

    def _newest(self) -> float | None:
        stamps = (timestamp(rows.row.checkpoint_id) for rows in self.thread.heads.values())
        return max((stamp for stamp in stamps if stamp is not None), default=None)


def _patch(moves: Sequence[Move], done: Sequence[Rows], head: Head) -> Patch:
    top, *below = done
    return Patch(
        row=top.row,
        blobs=top.blobs,
        head_id=head.row.checkpoint_id,
        writes_digest=writes_digest(head.rows.writes),
        pending=meant_pending(moves, done),
        above={},
        left=0,
        salvaged=0,
        placeholders=0,
        writes=top.writes,
        below=tuple(
            Carried(
                rows.row,
                rows.blobs,
                rows.writes,
                from_namespace=move.head.row.checkpoint_ns,
                from_id=move.head.row.checkpoint_id,
                from_digest=writes_digest(move.head.rows.writes),
            )
            for move, rows in zip(moves[1:], below, strict=True)
        ),
    )


def _resume(move: Move) -> Resume | None:
    """What becomes of the step; None where there was none, and so nothing is parked."""
    if move.tasks:
        return "keep"
    return "park" if move.dropped else None


def _reason(moves: Sequence[Move], rewriting: Rewriting) -> str:
    """What goes where, in one sentence without content."""
    renamed = dict.fromkeys(
        f"{moved.task.node} becomes {moved.node}"
        for move in moves
        for moved in move.tasks
        if moved.node != moved.task.node
    )
    dropped = dict.fromkeys(f"{task.node} is dropped" for move in moves for task in move.dropped)
    changed = dict.fromkeys(text for move in moves for text in rewriting.changes(move.head))
    said = [*renamed, *dropped, *changed] or ["its step is kept under new names"]
    asked = sum(task.interrupted for task in moves[0].head.tasks)
    left = sum(task.interrupted for task in moves[0].dropped)
    for count, what in ((asked - left, "with it"), (left, "abandoned")):
        if count:
            said.append(f"{count} open question{'s' if count > 1 else ''} {what}")
    if len(moves) > 1:
        said.append(f"{len(moves) - 1} sub-graph head{'s' if len(moves) > 2 else ''} with it")
    return ", ".join(said)
