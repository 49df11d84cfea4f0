"""The heads of one thread, each read when it is first asked for."""

from collections.abc import Iterator, Mapping

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import HeadRows
from repair_service.checkpoint.tasks import read_head
from repair_service.errors import Unreadable


class ThreadHeads(Mapping[str, Head]):
    """By namespace, the heads that can be read.

    A thread keeps a namespace for every sub-graph call it ever made, nearly all of them dead: to
    judge one it takes that head and those above it, not hundreds.
    """

    def __init__(self, rows: Mapping[str, HeadRows]) -> None:
        self._rows = rows
        self._read: dict[str, Head | Unreadable] = {}

    def problem(self, namespace: str) -> str | None:
        """Why a head cannot be read; None where it can, or where there is none."""
        found = self._find(namespace) if namespace in self._rows else None
        return str(found) if isinstance(found, Unreadable) else None

    def __getitem__(self, namespace: str) -> Head:
        found = self._find(namespace)
        if isinstance(found, Unreadable):
            raise KeyError(namespace)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._rows if isinstance(self._find(name), Head))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _find(self, namespace: str) -> Head | Unreadable:
        if namespace not in self._read:
            try:
                self._read[namespace] = read_head(self._rows[namespace])
            except Unreadable as problem:
                self._read[namespace] = problem
        return self._read[namespace]
