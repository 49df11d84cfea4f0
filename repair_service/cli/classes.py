"""`audit --types`: the classes that a store's values name."""

import sys
import time
from collections.abc import Mapping
from typing import Any


def audit_types(flags: Mapping[str, Any]) -> int:
    """Count the classes in use over a selection, and report them. Writes nothing.

    Args:
        flags: The flags of audit, by name.

    Returns:
        The exit code.

    Raises:
        RepairServiceError: The settings or the store cannot be used, or a named thread is missing.
    """
    from repair_service.cli.opening import one_answer, open_output, open_replica, open_store
    from repair_service.cli.progress import Progress
    from repair_service.cli.recording import preview, selection_of
    from repair_service.cli.running import missing_thread, run_item
    from repair_service.cli.settings import load_settings
    from repair_service.cli.signals import Stop, Stopped
    from repair_service.errors import RepairServiceError
    from repair_service.report.classes import AllowList, write_classes, write_classes_json
    from repair_service.sweep.classes import count_classes
    from repair_service.sweep.selection import Selection
    from repair_service.sweep.totals import Totals

    settings = one_answer("audit --types", load_settings(flags), flags)
    selection = selection_of(settings)
    started = time.time()
    with (
        Stop() as stop,
        open_output(settings) as out,
        open_store(settings, writes=False) as store,
        open_replica(settings, store) as replica,
        Progress("audit", rate=None) as progress,
    ):

        def moved(totals: Totals) -> None:
            progress.update(totals)
            stop.check()

        stop.between_heads()
        try:
            counts = count_classes(replica or store, selection, moved)
        except Stopped as signal:
            print("Stopped before the end; nothing is reported.", file=sys.stderr)
            return int(signal.exit_code)
        progress.clear()
        if settings.thread and not counts.totals.threads:
            raise RepairServiceError(missing_thread(settings.thread[0], settings))
        whole = selection == Selection()
        allowed = AllowList.installed()
        if settings.format == "json":
            run = run_item("audit", settings, preview(settings, None), started)
            write_classes_json(out, run, counts, allowed, whole=whole)
        else:
            write_classes(out, counts, allowed, whole=whole)
    return 0
