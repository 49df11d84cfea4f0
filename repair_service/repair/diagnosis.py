"""The outcome of judging one head: its verdict, and the patch where there is one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from repair_service.checkpoint.rows import BlobRow, CheckpointRow, WriteRow
from repair_service.repair.verdict import Fault, Resume, RouteSource, Verdict


@dataclass(frozen=True, slots=True)
class Removal:
    """A message that a patch takes out of a list.

    Attributes:
        channel: The transcript's channel.
        message_index: Where it stood in the list as it was found.
        tool_call_id: The call that it says it answers.
        type: The serialization type of its bytes.
        message: Its bytes, as they stood in the list.
        cipher: The cipher that the store's blob of the list is encrypted with; None for none.
    """

    channel: str
    message_index: int
    tool_call_id: str | None
    type: str
    message: bytes = field(repr=False)
    cipher: str | None = None


@dataclass(frozen=True, slots=True)
class Carried:
    """A sub-graph's head under the name that its namespace has behind a patch above it.

    Attributes:
        row: The new row of `checkpoints`, the first one of its namespace.
        blobs, writes: Its new rows of `checkpoint_blobs` and `checkpoint_writes`.
        from_namespace: The namespace that it is carried over from.
        from_id: The head of that one, as it was diagnosed.
        from_digest: Digest of that head's pending writes.
    """

    row: CheckpointRow
    blobs: tuple[BlobRow, ...]
    writes: tuple[WriteRow, ...]
    from_namespace: str
    from_id: str
    from_digest: str


@dataclass(frozen=True, slots=True)
class Patch:
    """The one new checkpoint behind a head.

    Attributes:
        row: The new row of `checkpoints`; its parent is the head.
        blobs: One new row of `checkpoint_blobs` for each channel whose value changed.
        head_id: The head that was diagnosed.
        writes_digest: Digest of the head's pending writes as they were diagnosed.
        pending: What is meant to be pending behind the patch: trigger channels, and Sends by index.
        above: The heads of the namespaces above this one, by namespace, as they were diagnosed.
        left: How many faults it leaves alone, because they stand too far up the list.
        salvaged: How many real results it takes up.
        placeholders: How many results it makes up.
        removed: The messages that it takes out of lists.
        writes: New rows of `checkpoint_writes` of the new checkpoint (a migration's).
        below: The heads of sub-graphs that go with it into other namespaces (a migration's).
    """

    row: CheckpointRow
    blobs: tuple[BlobRow, ...]
    head_id: str
    writes_digest: str
    pending: frozenset[str]
    above: Mapping[str, str]
    left: int
    salvaged: int
    placeholders: int
    removed: tuple[Removal, ...] = ()
    writes: tuple[WriteRow, ...] = ()
    below: tuple[Carried, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is to become of one head.

    Attributes:
        thread_id, checkpoint_ns, checkpoint_id: The head.
        verdict: The verdict.
        reason: One sentence why; names the switch that would allow it where the verdict is manual.
        channel: The channel of the faulty transcript; None where there is none.
        faults: What is wrong, in the order of the list.
        resume: Where the thread goes on behind the patch; None without a patch.
        route: The nodes that are next behind the patch.
        route_source: How the route was learned.
        idle_seconds: Age of the thread's newest checkpoint when it was judged.
        pending: The nodes that are pending at the head.
        interrupts: How many of their questions have no answer.
        patch: The patch of a repairable head.
    """

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    verdict: Verdict
    reason: str
    channel: str | None = None
    faults: tuple[Fault, ...] = ()
    resume: Resume | None = None
    route: tuple[str, ...] = ()
    route_source: RouteSource | None = None
    idle_seconds: float | None = None
    pending: tuple[str, ...] = ()
    interrupts: int = 0
    patch: Patch | None = None
