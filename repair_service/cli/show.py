"""`show`: a thread's messages, with its faults and the patch marked; or a saved plan."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.settings import Settings
    from repair_service.report.transcript import HeadView


def show(
    context: typer.Context,
    target: options.Target,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    config: options.Config = None,
    namespace: options.Namespace = None,
    min_idle: options.MinIdle = None,
    deployed_at: options.DeployedAt = None,
    breakpoint: options.Breakpoint = None,  # noqa: A002  # named as its flag
    infer_breakpoints: options.InferBreakpoints = None,
    client_tool: options.ClientTool = None,
    tool_node: options.ToolNode = None,
    resume: options.Resume = None,
    route: options.Route = None,
    allow: options.Allow = None,
    last: options.Last = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    show_content: options.ShowContent = None,
    debug: options.Debug = False,
) -> None:
    """Show a thread with its faults and its patch, or a plan. Writes nothing.

    One line a message: its index, kind, size, and the calls it makes or answers. "!" marks a
    fault; "+" a result that the patch puts in, ">" one that it moves, "-" one that it removes. No
    text of a message is shown without --show-content.

    A file that plan --out wrote is shown as the plan that it is, used or not; that needs no
    database.

    \b
    Examples:
      repair-service show 4711
      repair-service show 4711 --min-idle 0 --allow at_rest
      repair-service show 4711 --format json
      repair-service show plan.json

    \b
    Exit codes:
      0  shown, whatever its verdict
      1  there is no such thread, or the store could not be read
     64  wrong usage
    """
    from repair_service.cli.next_command import ACTIVITY, POLICY, STORE, next_command
    from repair_service.cli.opening import one_answer, open_output
    from repair_service.cli.settings import load_settings

    settings = one_answer("show", load_settings(context.params), context.params)
    thread_id = target
    with open_output(settings) as out:
        if _is_document(target):
            _show_plan(out, Path(target), settings)
            return
        views = _views(thread_id, settings)
        advice = None
        if any(view.item.verdict == "repairable" for view in views):
            names = STORE + ACTIVITY + POLICY
            advice = next_command("repair", context.params, names, thread_id)
        _write(out, thread_id, views, advice, settings)


def _is_document(target: str) -> bool:
    """Whether a file of that name is there and begins as JSON does: else it is a thread's id."""
    if not os.path.isfile(target):
        return False
    try:
        with open(target, "rb") as file:
            return file.read(64).lstrip().startswith(b"{")
    except OSError:
        return False


def _show_plan(out: IO[str], path: Path, settings: "Settings") -> None:
    from repair_service.report.answer import write_document
    from repair_service.report.plan import write_plan_table
    from repair_service.sweep.plan import read_plan

    plan = read_plan(path)
    if settings.format == "json":
        write_document(out, plan)
    else:
        write_plan_table(out, plan)


def _views(thread_id: str, settings: "Settings") -> "list[HeadView]":
    """Every head of the thread, judged.

    Raises:
        RepairServiceError: There is no such thread.
    """
    from repair_service.cli.opening import open_store
    from repair_service.cli.running import missing_thread
    from repair_service.errors import RepairServiceError
    from repair_service.report.thread import view_thread

    with open_store(settings, writes=False) as store:
        views = view_thread(
            store,
            thread_id,
            settings.policy(),
            namespace=settings.namespace,
            content=settings.show_content,
        )
    if views is None:
        raise RepairServiceError(missing_thread(thread_id, settings))
    return views


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
