"""The demo: threads are damaged, audited, swept and gone on with, before the reader's eyes."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from types import FrameType

from rich.console import Console

from repair_service.demo.installations import activation_of_environment
from repair_service.errors import RepairServiceError

INTERRUPTED = 130
TERMINATED = 143


class _Terminated(BaseException):
    """SIGTERM came: unwinds like Ctrl-C, so that everything started is stopped."""


def run_demo(keep: bool = False) -> int:
    """Show the whole service on threads that real programs left behind.

    Starts a Postgres of its own, runs LangGraph agents that are killed in the middle of a tool,
    shows that they are refused, repairs them and goes on with them. Opens no connection to
    anywhere else; stops and removes all that it made, on Ctrl-C and SIGTERM too.

    Args:
        keep: Whether to leave the server up, with one more damaged thread, until Ctrl-C.

    Returns:
        The exit code: 0 when every thread went on as it should, 1 when one did not; 130 after
        Ctrl-C and 143 after SIGTERM. With `keep`, either is how it ends and counts as no failure.

    Raises:
        RepairServiceError: The packages for the demo are missing, or no server could be started.
    """
    _need_packages()
    try:
        with _unwinding_on_sigterm():
            return _show(keep)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except _Terminated:
        code = TERMINATED
    print("\nStopped; nothing is left behind.", file=sys.stderr)
    return code


def _need_packages() -> None:
    """Say in one sentence what to install where the demo's packages are missing."""
    if find_spec("langgraph.graph") is None or find_spec("langchain") is None:
        raise RepairServiceError(
            "The demo runs real agents and needs their packages: install repair-service with its "
            "extra `demo` (in a checkout: pip install '.[demo]')."
        )


@contextmanager
def _unwinding_on_sigterm() -> Iterator[None]:
    def unwind(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(keep: bool) -> int:
    # LangChain is costly to import: other verbs, and `--help`, must not pay for it.
    from repair_service.demo.postgres import start_postgres
    from repair_service.demo.programs import quiet_tracing
    from repair_service.demo.story import Story

    quiet_tracing()
    started = time.monotonic()
    console = Console(highlight=False)
    # Text is written for 80 columns; a wider terminal must not stretch tables and rules.
    console = Console(highlight=False, width=min(console.width, 80))
    with ExitStack() as stack:
        console.print("[bold]repair-service demo[/]")
        console.print("A Postgres of its own, real LangGraph agents, real deaths. No network: the")
        console.print("model plays a script, and refuses the lists that providers refuse.\n")
        server = stack.enter_context(start_postgres())
        story = Story(console, server.url, stack)
        passed = story.tell()
        console.print(f"[dim]This took {time.monotonic() - started:.0f} s.[/]")
        if not passed:
            console.print("[red]Not every thread went on as it should: a defect, please report it.")
        if keep:
            story.leave_one()
            _wait(console, server.url)
    if keep:
        console.print("\nStopped; nothing is left behind.")
    return 0 if passed else 1


def _wait(console: Console, url: str) -> None:
    """Keep the server up until Ctrl-C or SIGTERM, which is how this is meant to end."""
    try:
        console.print("\nThe server stays up. In another terminal:")
        if activation := activation_of_environment():
            console.print(f"  {activation}", soft_wrap=True)
        console.print(f"  export DATABASE_URL='{url}'", soft_wrap=True)
        console.print("  repair-service audit --min-idle 0s")
        console.print("  repair-service show yours")
        console.print("  repair-service repair yours --min-idle 0s")
        console.print(f"Press Ctrl-C here (or: kill {os.getpid()}) to stop it and remove its data.")
        signal.pause()
    except (KeyboardInterrupt, _Terminated):
        pass
