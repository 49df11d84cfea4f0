"""By what a run judges heads: as to be repaired, or as to be carried over to a changed graph."""

from collections.abc import Callable, Sequence
from typing import Protocol

from repair_service.checkpoint.rows import HeadRows, ScannedHead, ThreadRows, WriteRow
from repair_service.migration.judge import diagnose_migration, is_untouched, rewriting_of
from repair_service.migration.rewriting import Rewriting
from repair_service.migration.verify import wrong_with_migration
from repair_service.repair.diagnosis import Diagnosis, Patch
from repair_service.repair.fleet import Fleet
from repair_service.repair.judge import diagnose
from repair_service.repair.quick import is_clean, reads_clean, reads_settled
from repair_service.repair.stuck import is_stuck
from repair_service.repair.verdict import Policy
from repair_service.repair.verify import wrong_with
from repair_service.store.history import HISTORY_DEPTH


class Judge(Protocol):
    """What a run asks of heads, by one policy."""

    def is_clean(self, head: ScannedHead) -> bool:
        """Whether a head is healthy by its own rows alone; False says only to read its thread."""

    def reads_clean(self, rows: HeadRows) -> bool:
        """The same of a head that was read in whole."""

    def reads_settled(self, rows: HeadRows, mended: Sequence[WriteRow]) -> bool:
        """The same of a patched head, by the pending writes of its parent too."""

    def diagnose(self, thread: ThreadRows, namespace: str, now: float, fleet: Fleet) -> Diagnosis:
        """What is to become of a head."""

    def depth(self, patch: Patch) -> int:
        """How many ancestors of a patched head are read back with it."""

    def wrong_with(self, patch: Patch, thread: ThreadRows) -> str | None:
        """What is wrong with a patch as it was read back; None for nothing."""


def judge_of(policy: Policy) -> Judge:
    """The judge that a policy asks for."""
    if policy.migration is None:
        return RepairJudge(policy)
    rewriting = rewriting_of(policy.migration, breakpoints=bool(policy.breakpoints))
    return MigrationJudge(policy, rewriting)


class RepairJudge:
    """Judges heads as to be repaired."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def is_clean(self, head: ScannedHead) -> bool:
        """Whether nothing is wrong with a head by itself."""
        return is_clean(head) and not self._is_stuck(head.rows)

    def reads_clean(self, rows: HeadRows) -> bool:
        """The same of a head that was read in whole."""
        return reads_clean(rows) and not self._is_stuck(lambda: rows)

    def reads_settled(self, rows: HeadRows, mended: Sequence[WriteRow]) -> bool:
        """Whether a patched head is healthy, and no real result came after its placeholders."""
        return reads_settled(rows, mended) and not self._is_stuck(lambda: rows)

    def _is_stuck(self, rows: Callable[[], HeadRows]) -> bool:
        nodes = self._policy.nodes
        return bool(nodes) and is_stuck(rows(), nodes)

    def diagnose(self, thread: ThreadRows, namespace: str, now: float, fleet: Fleet) -> Diagnosis:
        """What is wrong with a head, and how it is mended."""
        return diagnose(thread, namespace, self._policy, now, fleet)

    def depth(self, patch: Patch) -> int:
        """The head that was mended; all of them where faults are left, which they may explain.

        In a list without open calls only that head's own writes can be missing (repair/late.py).
        What delta channels need is read in any case.
        """
        return HISTORY_DEPTH if patch.left else 1

    def wrong_with(self, patch: Patch, thread: ThreadRows) -> str | None:
        """Why a patched head is not healthy."""
        return wrong_with(patch, thread, self._policy)


class MigrationJudge:
    """Judges heads as to be carried over."""

    def __init__(self, policy: Policy, rewriting: Rewriting) -> None:
        self._policy = policy
        self._rewriting = rewriting

    def is_clean(self, head: ScannedHead) -> bool:
        """Whether a head is surely not concerned."""
        return self.reads_clean(head.rows())

    def reads_clean(self, rows: HeadRows) -> bool:
        """The same of a head that was read in whole."""
        return is_untouched(rows, self._rewriting)

    def reads_settled(self, rows: HeadRows, mended: Sequence[WriteRow]) -> bool:
        """Of a patched head no more can be said than of another."""
        return False

    def diagnose(self, thread: ThreadRows, namespace: str, now: float, fleet: Fleet) -> Diagnosis:
        """Whether a head is concerned, and how it is carried over."""
        return diagnose_migration(thread, namespace, self._policy, now, self._rewriting)

    def depth(self, patch: Patch) -> int:
        """As many as it was judged by."""
        return HISTORY_DEPTH

    def wrong_with(self, patch: Patch, thread: ThreadRows) -> str | None:
        """Why a head is not pending as it was."""
        return wrong_with_migration(patch, thread, self._policy, self._rewriting)
