"""What a run counted."""

from collections import Counter
from dataclasses import dataclass, field

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import FaultKind, Verdict


@dataclass(slots=True)
class Totals:
    """Counts that grow while a run goes on.

    Attributes:
        threads: Threads seen.
        heads: Heads seen.
        verdicts: Heads by verdict; after a write, by its outcome.
        faults: Faults by kind. What a head has that waits is not counted: its calls are a person's
            or a client's to answer, so nothing is wrong with them.
        salvaged: Real results taken up by patches: planned ones in an audit, written ones in a
            sweep.
        placeholders: Results made up by patches, counted alike.
        throttled_seconds: Time spent waiting for a quieter server, of all processes together.
        waiting_for: What is waited for now, in words; None where nothing is.
        share: About which part of the selection has been looked at, 0 to 1; None where nobody can
            say.
    """

    threads: int = 0
    heads: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    faults: Counter[FaultKind] = field(default_factory=Counter)
    salvaged: int = 0
    placeholders: int = 0
    throttled_seconds: float = 0.0
    waiting_for: str | None = None
    share: float | None = None

    def count(self, diagnosis: Diagnosis) -> None:
        """Count one judged head."""
        self.verdicts[diagnosis.verdict] += 1
        if diagnosis.verdict is not Verdict.WAITING:
            self.faults.update(fault.kind for fault in diagnosis.faults)
        if diagnosis.verdict in (Verdict.REPAIRABLE, Verdict.REPAIRED) and diagnosis.patch:
            self.salvaged += diagnosis.patch.salvaged
            self.placeholders += diagnosis.patch.placeholders
