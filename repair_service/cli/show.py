"""`show THREAD`: a thread's messages, with its faults and the patch marked."""

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.settings import Settings
    from repair_service.report.transcript import HeadView


def show(
    context: typer.Context,
    thread_id: options.ThreadId,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    config: options.Config = None,
    namespace: options.Namespace = None,
    min_idle: options.MinIdle = None,
    deployed_at: options.DeployedAt = None,
    breakpoint: options.Breakpoint = None,  # noqa: A002  # named as its flag
    client_tool: options.ClientTool = None,
    resume: options.Resume = None,
    route: options.Route = None,
    allow: options.Allow = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    show_content: options.ShowContent = None,
    debug: options.Debug = False,
) -> None:
    """Show a thread's messages, with the faults and the patch marked. Writes nothing.

    One line a message: its index, kind, size, and the calls it makes or answers. "!" marks a
    fault; "+" a result that the patch puts in, ">" one that it moves, "-" one that it removes. No
    text of a message is shown without --show-content.

    \b
    Examples:
      repair-service show 4711
      repair-service show 4711 --min-idle 0 --allow at_rest
      repair-service show 4711 --format json

    \b
    Exit codes:
      0  shown, whatever its verdict
      1  there is no such thread, or the store could not be read
     64  wrong usage
    """
    from repair_service.cli.next_command import ACTIVITY, POLICY, STORE, next_command
    from repair_service.cli.running import open_output
    from repair_service.cli.settings import load_settings
    from repair_service.errors import UsageError

    settings = load_settings(context.params)
    if settings.format == "jsonl":
        raise UsageError("--format: show has one answer, as table or as json.")
    with open_output(settings) as out:
        views = _views(thread_id, settings)
        advice = None
        if any(view.item.verdict == "repairable" for view in views):
            names = STORE + ACTIVITY + POLICY
            advice = next_command("repair", context.params, names, thread_id)
        _write(out, thread_id, views, advice, settings)


def _views(thread_id: str, settings: "Settings") -> "list[HeadView]":
    """Every head of the thread, judged.

    Raises:
        RepairServiceError: There is no such thread.
    """
    import time

    from repair_service.cli.running import missing_thread, open_store
    from repair_service.errors import RepairServiceError
    from repair_service.repair.judge import diagnose
    from repair_service.report.transcript import view_head
    from repair_service.sweep.fleet import FleetSample

    with open_store(settings, writes=False) as store:
        thread = store.threads([thread_id]).get(thread_id)
        if thread is None or not thread.heads:
            raise RepairServiceError(missing_thread(thread_id, settings))
        policy, fleet, now = settings.policy(), FleetSample(store), time.time()
        return [
            view_head(
                thread,
                diagnose(thread, namespace, policy, now, fleet),
                content=settings.show_content,
            )
            for namespace in sorted(thread.heads)
            if settings.namespace in (None, namespace)
        ]


def _write(
    out: IO[str],
    thread_id: str,
    views: "Sequence[HeadView]",
    advice: str | None,
    settings: "Settings",
) -> None:
    if settings.format == "json":
        import msgspec

        document = {
            "schema_version": 1,
            "thread_id": thread_id,
            "heads": views,
            "next_command": advice,
        }
        out.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")
        return
    from repair_service.report.transcript_table import TranscriptTable

    table = TranscriptTable(out)
    for view in views:
        table.add(view)
    if advice:
        out.write(f"Next: {advice}\n")
