"""What the nodes have seen once a patch stands: `versions_seen` of the new checkpoint."""

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.layout import versions_seen
from repair_service.checkpoint.triggers import RESERVED_NODES

Version = str | int | float
BREAKPOINTS = "__interrupt__"


def patched_versions_seen(
    head: Head, transcripts: frozenset[str], version: Version, *, consumed: bool
) -> dict[str, dict[str, Version]]:
    """The head's `versions_seen`, and what the patch adds to it.

    A step that is taken up is marked as LangGraph marks one: each node of it has seen its triggers
    at the head's versions, and a node started by a Send has an entry (`apply_writes`).

    A node that reads a changed list by its version (raw Pregel) has seen the new one, or it would
    run again on a list that was only mended. It stays pending where it already was, unless the
    step is taken up.

    Static breakpoints fire when any channel has moved since the last stop (`should_interrupt`). A
    list mended behind a stop is no step, so it is marked seen with it. A step that is taken up is
    one, so nothing is marked: breakpoints before the next nodes fire as they would have, and as
    behind `update_state`. (`invoke(None)` passes the first of them in every case: it marks
    everything as seen itself.)

    Args:
        head: The head.
        transcripts: The channels whose lists change.
        version: Their new version.
        consumed: Whether the step is taken up.
    """
    seen = {node: dict(versions) for node, versions in versions_seen(head.row).items()}
    for task in head.tasks if consumed else ():
        if task.node is None:
            continue
        read = seen.setdefault(task.node, {})
        if task.kind == "pull":
            triggers = {*task.triggers, *read} & head.versions.keys()
            read |= {channel: head.versions[channel] for channel in sorted(triggers)}
    for node, read in seen.items():
        if node in RESERVED_NODES and (node != BREAKPOINTS or consumed):
            continue
        for channel in transcripts & read.keys():
            if read[channel] == head.versions.get(channel):
                read[channel] = version
    return seen
