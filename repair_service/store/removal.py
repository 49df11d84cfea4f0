"""Taking a patch back: the one delete, of rows that we wrote, while nothing stands on them."""

from collections.abc import Iterable
from dataclasses import dataclass

from psycopg import errors

from repair_service.errors import Drifted, PatchGone, StoreForbidden
from repair_service.store.activity import active_among
from repair_service.store.append import Also, lock_thread
from repair_service.store.connection import StoreConnection
from repair_service.store.notice import Notice

NEEDS_DELETE = (
    "Taking a patch back needs a right that no other verb does. As the tables' owner, run GRANT "
    "DELETE ON checkpoints, checkpoint_blobs TO role; for as long as it is needed."
)


@dataclass(frozen=True, slots=True)
class WrittenPatch:
    """The keys of the rows that a patch wrote.

    Attributes:
        thread_id, checkpoint_ns, checkpoint_id: The checkpoint.
        parent_checkpoint_id: The head that it was written behind.
        blobs: Channel and version of each of its rows in `checkpoint_blobs`.
    """

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str
    blobs: tuple[tuple[str, str], ...]


class Removing:
    """Takes one patch back over a connection; see Store.take_back."""

    def __init__(self, connection: StoreConnection) -> None:
        self._connection = connection

    def remove(
        self,
        patch: WrittenPatch,
        also: Also | None,
        active_query: str | None,
        notice: Notice | None,
        *,
        dry_run: bool,
    ) -> None:
        """Looks what stands on a patch, and deletes its rows where nothing does."""
        if dry_run:
            with self._connection.reading():
                self._check(patch, active_query)
            return
        with self._connection.writing():
            lock_thread(self._connection, patch.thread_id)
            self._check(patch, active_query)
            try:
                self._delete(patch)
            except errors.InsufficientPrivilege:
                raise StoreForbidden(NEEDS_DELETE) from None
            if also is not None:
                self._connection.hand_over(also)
            if notice is not None:
                self._connection.notify(notice)

    def _delete(self, patch: WrittenPatch) -> None:
        if self._connection.change("delete_checkpoint", self._keys(patch)) != 1:
            raise Drifted("The checkpoint is not one that we wrote; nothing was taken back.")
        for channel, version in patch.blobs:
            values = {**self._keys(patch), "channel": channel, "version": version}
            self._connection.change("delete_blob", values)

    def _check(self, patch: WrittenPatch, active_query: str | None) -> None:
        keys = self._keys(patch)
        if not self._connection.rows("checkpoint_exists", keys)[0].found:
            raise PatchGone("It was not in the store any more.")
        if standing := {row.what for row in self._connection.rows("standing_on", keys)}:
            raise Drifted(f"The thread has moved on: {_listed(standing)} stands on the patch.")
        # A run that has loaded the patch and written nothing yet leaves no row that shows it.
        if active_query and active_among(self._connection, active_query, [patch.thread_id]):
            raise Drifted("The application says that the thread runs now (--active-query).")

    @staticmethod
    def _keys(patch: WrittenPatch) -> dict[str, str]:
        return {
            "thread_id": patch.thread_id,
            "checkpoint_ns": patch.checkpoint_ns,
            "checkpoint_id": patch.checkpoint_id,
            "parent_checkpoint_id": patch.parent_checkpoint_id,
        }


def _listed(words: Iterable[str]) -> str:
    return " and ".join(sorted(words))
