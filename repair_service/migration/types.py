"""Classes that have another name, or stand in another module."""

from collections.abc import Mapping

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import BlobRow, WriteRow
from repair_service.checkpoint.triggers import INPUT
from repair_service.errors import NotCarried, Unreadable
from repair_service.migration.classes import NO_VALUES, ClassNames


class TypeChanges:
    """Renamed classes; see `rewriting.Rewriting`."""

    everywhere = True

    def __init__(self, renames: Mapping[str, str]) -> None:
        """Prepare the change.

        Args:
            renames: By old `module.Class`, the new one.
        """
        self._names = ClassNames(renames)
        self._said = tuple(f"{old} becomes {new}" for old, new in renames.items())

    def touches(self, head: Head) -> bool:
        """Whether a value of the head, or a pending write, names one of the classes.

        Raises:
            Unreadable: One cannot be read and may.
        """
        if INPUT in head.valued:
            raise NotCarried(
                "an input was stored that no step has taken up, and inputs are not read: let it go "
                "on with the old classes"
            )
        stored: list[tuple[str, BlobRow | WriteRow]] = [*head.rows.blobs.items()]
        stored += [(write.channel, write) for write in head.rows.writes]
        return any(self._changes(head, channel, value) for channel, value in stored)

    def changes(self, head: Head) -> tuple[str, ...]:
        """Which classes are renamed."""
        return self._said

    def node(self, namespace: str, name: str) -> str | None:
        """A node's name, which stays."""
        return name

    def channel(self, head: Head, name: str) -> str:
        """A channel's name, which stays."""
        return name

    def is_gone(self, head: Head, name: str) -> bool:
        """None goes."""
        return False

    def value(self, head: Head, channel: str, type_: str, data: bytes) -> bytes:
        """A value under the new names, wherever in it they stand."""
        return self._names.renamed(type_, data)

    def write(self, head: Head, channel: str, type_: str, data: bytes) -> bytes:
        """The same of a pending write."""
        return self._names.renamed(type_, data)

    def _changes(self, head: Head, channel: str, stored: BlobRow | WriteRow) -> bool:
        if stored.type in NO_VALUES or channel == INPUT:
            return False
        if stored.problem is not None or stored.blob is None:
            problem = stored.problem or "it has no bytes"
            raise Unreadable(f"the channel {channel!r} cannot be read: {problem}")
        return self.value(head, channel, stored.type, stored.blob) is not stored.blob
