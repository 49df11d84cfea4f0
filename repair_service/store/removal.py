"""Taking a patch back: the one delete, of rows that we wrote, while nothing stands on them."""

from collections.abc import Iterable
from dataclasses import dataclass

from psycopg import errors

from repair_service.checkpoint.digest import writes_digest
from repair_service.errors import Drifted, PatchGone, StoreForbidden
from repair_service.store.activity import active_among
from repair_service.store.append import Also, lock_thread
from repair_service.store.arrays import text_array
from repair_service.store.connection import StoreConnection
from repair_service.store.loading import Loader, Place
from repair_service.store.notice import Notice

NEEDS_DELETE = (
    "Taking a patch back needs a right that no other verb does. As the tables' owner, run GRANT "
    "DELETE ON checkpoints, checkpoint_blobs TO role; for as long as it is needed (and ON "
    "checkpoint_writes, where a migration is taken back)."
)


@dataclass(frozen=True, slots=True)
class WrittenPatch:
    """The keys of the rows that a patch wrote.

    Attributes:
        thread_id, checkpoint_ns, checkpoint_id: The checkpoint.
        parent_checkpoint_id: The head that it was written behind.
        blobs: Channel and version of each of its rows in `checkpoint_blobs`.
        writes_digest: checkpoint.digest.writes_digest of its rows in `checkpoint_writes`; None for
            a patch that wrote none.
        below: What went with it into other namespaces, none of them below another.
    """

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    blobs: tuple[tuple[str, str], ...]
    writes_digest: str | None = None
    below: tuple["WrittenPatch", ...] = ()


class Removing:
    """Takes one patch back over a connection; see Store.take_back."""

    def __init__(self, connection: StoreConnection, loader: Loader) -> None:
        self._connection = connection
        self._loader = loader

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
        for part in (*patch.below, patch):
            if part.writes_digest is not None:
                self._connection.change("delete_writes", self._keys(part))
            if self._connection.change("delete_checkpoint", self._keys(part)) != 1:
                raise Drifted("The checkpoint is not one that we wrote; nothing was taken back.")
            for channel, version in part.blobs:
                values = {**self._keys(part), "channel": channel, "version": version}
                self._connection.change("delete_blob", values)

    def _check(self, patch: WrittenPatch, active_query: str | None) -> None:
        if not self._connection.rows("checkpoint_exists", self._keys(patch))[0].found:
            raise PatchGone("It was not in the store any more.")
        own = {
            "own_namespaces": text_array(part.checkpoint_ns for part in patch.below),
            "own_checkpoints": text_array(part.checkpoint_id for part in patch.below),
        }
        standing = set()
        for part in (patch, *patch.below):
            keys = {**self._keys(part), **own, "wrote": part.writes_digest is not None}
            standing |= {row.what for row in self._connection.rows("standing_on", keys)}
            if part.writes_digest is not None and self._digest(part) != part.writes_digest:
                standing.add("a run's pending writes (or they are encrypted, and no key was given)")
        if standing:
            raise Drifted(f"The thread has moved on: {_listed(standing)} stands on the patch.")
        # A run that has loaded the patch and written nothing yet leaves no row that shows it.
        if active_query and active_among(self._connection, active_query, [patch.thread_id]):
            raise Drifted("The application says that the thread runs now (--active-query).")

    def _digest(self, part: WrittenPatch) -> str:
        place = Place(part.thread_id, part.checkpoint_ns, part.checkpoint_id)
        return writes_digest(self._loader.writes([place])[0])

    @staticmethod
    def _keys(patch: WrittenPatch) -> dict[str, str | None]:
        return {
            "thread_id": patch.thread_id,
            "checkpoint_ns": patch.checkpoint_ns,
            "checkpoint_id": patch.checkpoint_id,
            "parent_checkpoint_id": patch.parent_checkpoint_id,
        }


def _listed(words: Iterable[str]) -> str:
    return " and ".join(sorted(words))
