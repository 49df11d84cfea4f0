"""The rows of a head behind a migration: the same step pending, under its new names and ids."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from repair_service import __version__
from repair_service.checkpoint.delta import COUNTERS, counters
from repair_service.checkpoint.identifiers import NULL_TASK
from repair_service.checkpoint.layout import (
    PARENT_SENDS_LAYOUTS,
    inline_values,
    stores_inline,
    versions_seen,
)
from repair_service.checkpoint.rows import BlobRow, CheckpointRow, WriteRow
from repair_service.checkpoint.triggers import RESERVED_NODES, named_node
from repair_service.checkpoint.versions import next_version
from repair_service.checkpoint.waiting import QUESTION
from repair_service.errors import NotCarried, Unreadable
from repair_service.migration.delta import DeltaValues
from repair_service.migration.moves import Move
from repair_service.migration.renumbering import Renumbering
from repair_service.migration.rewriting import Rewriting
from repair_service.migration.values import moved_questions
from repair_service.transcript.write import MARK

FIRST_WRITE = (
    "a finished task wrote {!r} for the first time, which may be a delta channel: behind a new "
    "checkpoint it would be merged twice"
)

Version = str | int | float


@dataclass(frozen=True, slots=True)
class Rows:
    """The new rows of one head."""

    row: CheckpointRow
    blobs: tuple[BlobRow, ...]
    writes: tuple[WriteRow, ...]


class Carrying:
    """One head on its way into new rows."""

    def __init__(
        self,
        move: Move,
        numbers: Renumbering,
        rewriting: Rewriting,
        delta: DeltaValues,
        timestamp: str,
    ) -> None:
        self._move = move
        self._head = move.head
        self._numbers = numbers
        self._rewriting = rewriting
        self._delta = delta
        self._timestamp = timestamp
        self._stays = move.namespace == move.head.row.checkpoint_ns
        self._inline = stores_inline(self._head.row, self._head.layout)
        self._version = next_version(self._head.versions.values(), self._head.row.checkpoint_id)
        self._cleared = frozenset(name for task in move.dropped for name in task.triggers)
        self._names = self._chosen_names()

    def rows(self) -> Rows:
        """The new rows.

        Raises:
            NotCarried: Something in it cannot be carried over for certain.
            Unreadable: Something that has to be carried over cannot be read.
        """
        head = self._head
        if head.layout in PARENT_SENDS_LAYOUTS and any(t.kind == "push" for t in head.tasks):
            raise NotCarried(
                "the Sends scheduled at it are kept with its parent in this layout, and a new "
                "checkpoint behind it would not have them: let it go on with the old graph"
            )
        snapshots = dict(self._snapshots())
        blobs = tuple(self._blobs(snapshots))
        fresh = {blob.channel for blob in blobs if blob.version == str(self._version)}
        row = CheckpointRow(
            thread_id=head.row.thread_id,
            checkpoint_ns=self._move.namespace,
            checkpoint_id=self._move.checkpoint_id,
            parent_checkpoint_id=head.row.checkpoint_id if self._stays else None,
            checkpoint=self._checkpoint(fresh, snapshots),
            metadata=self._metadata(snapshots),
        )
        return Rows(row, blobs, tuple(self._writes()))

    def _chosen_names(self) -> dict[str, str]:
        """By old name, the new names of the channels that stay.

        Where a new name was used before, that which has a value now is meant, not what is left of
        the other.
        """
        head, chosen = self._head, dict[str, str]()
        for channel in head.versions:
            if self._rewriting.is_gone(head, channel):
                continue
            new = self._rewriting.channel(head, channel)
            if new not in chosen:
                chosen[new] = channel
                continue
            other = chosen[new]
            if channel in head.valued and other in head.valued:
                raise NotCarried(
                    f"the channels {other!r} and {channel!r} both have a value, and would both be "
                    f"{new!r}"
                )
            if channel in head.valued or (other not in head.valued and channel == new):
                chosen[new] = channel
        return {old: new for new, old in chosen.items()}

    def _snapshots(self) -> Iterator[tuple[str, BlobRow]]:
        """The delta channels without a value here that need one behind this checkpoint."""
        head = self._head
        written = {write.channel for write in head.rows.writes}
        for channel in sorted(self._delta.channels):
            stays = self._stays and self._names.get(channel) == channel
            if (
                stays
                and channel not in written
                and not self._delta.changed(channel, self._rewriting)
            ):
                continue
            snapshot = self._delta.snapshot(channel)
            if snapshot is not None:
                yield channel, snapshot
            elif channel in written:
                raise NotCarried(FIRST_WRITE.format(channel))
        # A channel that was never written before does not show whether it is one.
        first = sorted(written - head.versions.keys()) if head.delta_channels else ()
        for channel in first:
            if not channel.startswith("__") and named_node(channel) is None:
                raise NotCarried(FIRST_WRITE.format(channel))

    def _blobs(self, snapshots: Mapping[str, BlobRow]) -> Iterator[BlobRow]:
        for channel, new in self._names.items():
            if channel in self._cleared:
                if not self._inline:
                    yield BlobRow(new, str(self._version), "empty", None)
                continue
            blob = snapshots.get(channel) or self._head.rows.blobs.get(channel)
            if blob is None or blob.type == "empty":
                continue
            stays = self._stays and new == channel and channel not in snapshots
            if stays and not self._rewriting.everywhere and not _has_bytes(blob):
                continue  # an input, or encrypted: it holds no name, and stays where it is
            changed = self._changed_value(blob, channel)
            if stays and changed is blob:
                continue
            same = changed is blob and new == channel and channel not in snapshots
            version = str(self._head.versions[channel] if same else self._version)
            yield replace(changed, channel=new, version=version)

    def _changed_value(self, blob: BlobRow, channel: str) -> BlobRow:
        if blob.type == "null":
            return blob
        if blob.problem is not None or blob.blob is None:
            raise Unreadable(
                f"the channel {channel!r} cannot be read: {blob.problem or 'it has no bytes'}"
            )
        if blob.type in ("bytes", "bytearray"):
            return blob
        data = self._rewriting.value(self._head, channel, blob.type, blob.blob)
        return blob if data is blob.blob else replace(blob, blob=data)

    def _checkpoint(self, fresh: set[str], snapshots: Mapping[str, BlobRow]) -> dict[str, Any]:
        head = self._head
        checkpoint: dict[str, Any] = dict(head.row.checkpoint)
        checkpoint |= {
            "id": self._move.checkpoint_id,
            "ts": self._timestamp,
            "channel_versions": {
                new: self._version if new in fresh else head.versions[old]
                for old, new in self._names.items()
            },
            "versions_seen": self._seen(fresh),
        }
        if self._inline:
            kept = inline_values(head.row)
            inline = {
                self._names[channel]: value
                for channel, value in kept.items()
                if channel in self._names and channel not in self._cleared
            }
            inline |= {self._names[channel]: True for channel in snapshots}
            checkpoint["channel_values"] = inline
        for key, value in (("updated_channels", None), ("pending_sends", [])):
            if key in checkpoint:
                checkpoint[key] = value
        return checkpoint

    def _seen(self, fresh: set[str]) -> dict[str, dict[str, Version]]:
        """What the nodes have seen: a channel that was seen is seen, under its new name too.

        So are static breakpoints (`__interrupt__`), which fire when any channel has moved.
        """
        head = self._head
        found: dict[str, dict[str, Version]] = {}
        for name, versions in versions_seen(head.row).items():
            node: str | None = name
            if name not in RESERVED_NODES:
                node = self._rewriting.node(head.row.checkpoint_ns, name)
            into = found.setdefault(name if node is None else node, {})
            for channel, version in versions.items():
                new = self._names.get(channel) or self._rewriting.channel(head, channel)
                if channel not in self._names and new in self._names.values():
                    continue
                moved = new in fresh and version == head.versions.get(channel)
                into[new] = self._version if moved else version
        for task in self._move.dropped:
            read = found.setdefault(str(task.node), {})
            for channel in task.triggers:
                if channel in self._names:
                    read[self._names[channel]] = head.versions[channel]
        return found

    def _metadata(self, snapshots: Mapping[str, BlobRow]) -> dict[str, Any]:
        head, numbers = self._head, self._numbers
        metadata = dict(head.row.metadata) | {
            "source": "update",
            "step": self._move.step,
            MARK: {
                "version": __version__,
                "checkpoint_id": self._move.checkpoint_id,
                "migration": True,
            },
        }
        if "writes" in metadata:
            metadata["writes"] = None
        parents = metadata.get("parents")
        if isinstance(parents, Mapping) and not self._stays:
            metadata["parents"] = {
                numbers.namespaces.get(name, name): numbers.checkpoints.get(name, checkpoint_id)
                for name, checkpoint_id in parents.items()
            }
        metadata.pop(COUNTERS, None)
        counted = {
            self._names.get(channel, channel): [updates, steps + 1]
            for channel, (updates, steps) in sorted(counters(head.rows).items())
            if channel not in snapshots
        }
        if counted:
            metadata[COUNTERS] = counted
        return metadata

    def _writes(self) -> Iterator[WriteRow]:
        head, move = self._head, self._move
        names = {moved.old_id: moved for moved in move.tasks if moved.old_id is not None}
        dropped = {write.task_id for task in move.dropped for write in task.writes}
        for write in head.rows.writes:
            if write.task_id in dropped:
                continue
            if write.task_id == NULL_TASK:
                yield self._moved_write(write, NULL_TASK, write.task_path)
                continue
            moved = names.get(write.task_id)
            if moved is None or moved.new_id is None or moved.node is None:
                raise NotCarried(
                    "a task that none of its nodes is known for left pending writes at it (one "
                    "that a node called?), and their new place is not known"
                )
            path = write.task_path
            if path:
                path = _moved_path(path, str(moved.task.node), moved.node, moved.index)
            yield self._moved_write(write, moved.new_id, path)

    def _moved_write(self, write: WriteRow, task_id: str, path: str) -> WriteRow:
        if write.problem is not None:
            raise Unreadable(write.problem)
        head = self._head
        channel = self._rewriting.channel(head, write.channel)
        data = write.blob
        if write.type not in ("null", "bytes", "bytearray"):
            data = self._rewriting.write(head, write.channel, write.type, write.blob)
            if write.channel == QUESTION:
                data = moved_questions(
                    write.type, data, self._numbers.questions, self._numbers.places
                )
        return replace(
            write,
            checkpoint_id=self._move.checkpoint_id,
            task_id=task_id,
            channel=channel,
            blob=data,
            task_path=path,
        )


def _has_bytes(blob: BlobRow) -> bool:
    return blob.problem is None and blob.blob is not None


def _moved_path(path: str, old: str, new: str, index: int | None) -> str:
    """A task's path: `~__pregel_pull, NODE` or `~__pregel_push, NNNNNNNNNN, ...`."""
    kind, separator, rest = path.partition(", ")
    if index is None:
        return kind + separator + (new if rest == old else rest)
    number, separator_behind, more = rest.partition(", ")
    return f"{kind}{separator}{index:010d}{separator_behind}{more}" if number.isdigit() else path
