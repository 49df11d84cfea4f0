"""What a migration changes, asked name by name and value by value."""

from typing import Protocol

from repair_service.checkpoint.head import Head


class Rewriting(Protocol):
    """One kind of change. What it does not concern it gives back as it came.

    Attributes:
        everywhere: Whether any value may hold what changes, so that all have to be read.
    """

    everywhere: bool

    def touches(self, head: Head) -> bool:
        """Whether a head is written at all: whether it, or going on from it, needs the change.

        What a delta channel is rebuilt from is not asked here (delta.DeltaValues.changed).

        Raises:
            Unreadable: It cannot be read.
            NotCarried: It is concerned, and cannot be carried over.
        """

    def changes(self, head: Head) -> tuple[str, ...]:
        """What changes at a head, in words for a report; nodes aside, which the moves tell."""

    def node(self, namespace: str, name: str) -> str | None:
        """A node's new name; None where the graph has it no more.

        Args:
            namespace: The namespace of the graph that it is a node of, as it is stored.
            name: Its old name.
        """

    def channel(self, head: Head, name: str) -> str:
        """A channel's new name."""

    def is_gone(self, head: Head, name: str) -> bool:
        """Whether a channel is no more, and holds nothing that anybody waits for."""

    def value(self, head: Head, channel: str, type_: str, data: bytes) -> bytes:
        """A channel's stored value: the very object that came where nothing in it changes.

        Raises:
            Unreadable: It cannot be read, and may hold what changes.
            NotCarried: It holds what cannot be changed for certain.
        """

    def write(self, head: Head, channel: str, type_: str, data: bytes) -> bytes:
        """The same for a pending write on a channel; its old name is given."""
