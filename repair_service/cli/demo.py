"""`demo`: the whole service on threads that real agents left behind."""

from typing import Annotated

import typer

from repair_service.cli import options


def demo(
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave the server up, with one damaged thread, until Ctrl-C."),
    ] = False,
    debug: options.Debug = False,
) -> None:
    """See agents die in the middle of a tool, and go on after a sweep.

    It starts a Postgres of its own, runs LangGraph agents in it and kills them, shows that going
    on fails, audits, sweeps, and goes on from each thread both ways. The model plays a script, and
    refuses the lists that providers refuse. It needs no Docker and no network, takes under half a
    minute, and leaves nothing behind.

    \b
    Examples:
      repair-service demo
      repair-service demo --keep

    \b
    Exit codes:
      0  every thread went on as it should
      1  one did not, or the demo could not run here
    130, 143  stopped by Ctrl-C or SIGTERM, and cleaned up; with --keep that is 0
    """
    from repair_service.demo.run import run_demo

    raise typer.Exit(run_demo(keep))
