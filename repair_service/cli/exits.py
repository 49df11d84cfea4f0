"""Exit codes, and which one a run has earned."""

from collections.abc import Mapping
from enum import IntEnum

from repair_service.repair.verdict import Verdict


class ExitCode(IntEnum):
    """What the command's exit code says; the help of each verb shows those it uses."""

    OK = 0
    """Nothing wrong, or all of it repaired."""
    ERROR = 1
    """The verb could not do its work."""
    FAULTS = 2
    """Faults found (audit), or left (sweep, repair)."""
    PARTLY_FAILED = 3
    """A patch did not read back as healthy and was rolled back; or a bound stopped the run."""
    STALE = 4
    """A plan does not fit the store any more, or was applied before."""
    REFUSED = 5
    """A safety rail refused."""
    USAGE = 64
    """Wrong usage."""
    INTERRUPTED = 130
    """SIGINT."""
    TERMINATED = 143
    """SIGTERM."""


LEFT = (Verdict.REPAIRABLE, Verdict.MANUAL, Verdict.UNREADABLE, Verdict.DRIFTED)
"""Something is wrong, or was when the head was judged, and nothing was mended."""


def exit_code(
    verdicts: Mapping[Verdict, int], *, exit_zero: bool, one_thread: bool = False
) -> ExitCode:
    """The exit code of a run that came to its end.

    Args:
        verdicts: Heads by verdict, after the writes.
        exit_zero: Whether faults are no reason for a code other than 0; failures still are.
        one_thread: Whether the operator asked for one thread to be repaired. Then a head that is
            active was not repaired as asked; in a sweep the next one looks at it again.
    """
    left = LEFT + ((Verdict.ACTIVE,) if one_thread else ())
    if verdicts.get(Verdict.FAILED, 0):
        return ExitCode.PARTLY_FAILED
    if any(verdicts.get(verdict, 0) for verdict in left):
        return ExitCode.OK if exit_zero else ExitCode.FAULTS
    return ExitCode.OK
