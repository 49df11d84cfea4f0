"""A thread as it is now: every head judged, with its messages and what its patch would change."""

import time

from repair_service.repair.judge import diagnose
from repair_service.repair.verdict import Policy
from repair_service.report.transcript import HeadView, view_head
from repair_service.store.gateway import Store
from repair_service.sweep.fleet import FleetSample


def view_thread(
    store: Store,
    thread_id: str,
    policy: Policy,
    *,
    namespace: str | None = None,
    content: bool = False,
) -> list[HeadView] | None:
    """Judge every head of a thread; writes nothing.

    Args:
        store: The store.
        thread_id: The thread.
        policy: What the operator allows and declares.
        namespace: Only the head of this namespace.
        content: Whether to show the text of messages.

    Returns:
        Its heads, by namespace; None where there is no such thread.

    Raises:
        StoreError: The store cannot be read.
    """
    thread = store.threads([thread_id]).get(thread_id)
    if thread is None or not thread.heads:
        return None
    fleet, now = FleetSample(store), time.time()
    return [
        view_head(thread, diagnose(thread, each, policy, now, fleet), content=content)
        for each in sorted(thread.heads)
        if namespace in (None, each)
    ]
