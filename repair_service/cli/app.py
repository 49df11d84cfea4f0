"""The command: its verbs, and what becomes of an error."""

import errno
import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import repair_service
from repair_service.cli.apply import apply
from repair_service.cli.audit import audit
from repair_service.cli.copy import copy
from repair_service.cli.db import db
from repair_service.cli.demo import demo
from repair_service.cli.doctor import doctor
from repair_service.cli.migrate import migrate
from repair_service.cli.outbox import outbox
from repair_service.cli.plan import plan
from repair_service.cli.repair import repair
from repair_service.cli.report import report
from repair_service.cli.runs import runs
from repair_service.cli.serve import serve
from repair_service.cli.show import show
from repair_service.cli.store import store
from repair_service.cli.sweep import sweep
from repair_service.cli.undo import undo
from repair_service.cli.variables import WORKER_RUN, wants_json_lines
from repair_service.errors import Refused, RepairServiceError, UsageError

PROGRAM = "repair-service"

ERROR, REFUSED, USAGE = 1, 5, 64

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What the system says of a disk that is full or broken."""

app = typer.Typer(
    name=PROGRAM,
    add_completion=False,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"{PROGRAM} {repair_service.__version__}")
        raise typer.Exit


@app.callback()
def _about(
    context: typer.Context,
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = None,
) -> None:
    """Find LangGraph threads left with interrupted tool calls, and mend them.

    A deploy, a crash or a timeout in the middle of a tool leaves a thread that the model's
    provider refuses for ever (400). repair-service finds those threads in the checkpoint store
    (Postgres) and writes one new checkpoint behind each, so that it goes on. It runs no tool,
    calls no model, and changes no row that was there before.

    \b
    Start here:
      export DATABASE_URL=postgresql://USER@HOST/DATABASE
      repair-service doctor
      repair-service audit
      repair-service sweep

    \b
    Or see it work first:
      repair-service demo
    """
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(USAGE)


app.command()(demo)
app.command()(doctor)
app.command()(audit)
app.command()(sweep)
app.command()(show)
app.command()(repair)
app.command()(plan)
app.command()(apply)
app.command()(undo)
migrate.command()(copy)
app.add_typer(migrate)
app.add_typer(runs)
app.command()(report)
app.add_typer(outbox)
app.command()(serve)
app.add_typer(db)
app.add_typer(store)


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The command line without the program's name; that of the process by default.

    Returns:
        The exit code. Whatever goes wrong is one sentence on stderr.
    """
    words = sys.argv[1:] if arguments is None else arguments
    debug = os.environ.get("REPAIR_DEBUG", "") not in ("", "0") or "--debug" in words
    try:
        result = app(words, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _pipe_closed()
    except OSError as error:
        return _say_unwritten(error, debug)
    except RepairServiceError as error:
        return _say(error, debug)
    except typer.TyperException as error:
        return _say_usage(error, words)
    except (typer.Abort, KeyboardInterrupt):
        print(f"{PROGRAM}: stopped.", file=sys.stderr)
        return 128 + signal.SIGINT
    except Exception as error:  # noqa: BLE001  # the last one to see it
        return _say_unexpected(error, debug)
    except BaseException as error:
        code = getattr(error, "exit_code", None)
        if code is None:
            raise
        return int(code)
    return int(result) if isinstance(result, int) else 0


def run() -> None:
    """The entry point of the script."""
    # What is imported stays; to look through it for garbage again and again is a tenth of a run.
    gc.freeze()
    try:
        _log_where_asked()
    except UsageError as error:
        sys.exit(_say(error, debug=False))
    sys.exit(main())


def _log_where_asked() -> None:
    """Make what is printed to stderr a log, for a worker or a collector of logs."""
    if os.environ.get(WORKER_RUN):
        from repair_service.cli.worker_run import become_run

        become_run()
    elif "serve" not in sys.argv[1:2] and wants_json_lines(os.environ):
        from repair_service.cli.logs import log_stderr

        log_stderr()


def _say(error: RepairServiceError, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    print(f"{PROGRAM}: {error}", file=sys.stderr)
    if isinstance(error, UsageError):
        return USAGE
    return REFUSED if isinstance(error, Refused) else ERROR


def _say_usage(error: typer.TyperException, words: Sequence[str]) -> int:
    """A flag or argument that typer itself refused."""
    message = error.format_message()
    end = "" if message.endswith((".", "?")) else "."
    print(f"{PROGRAM}: {message}{end} See: {_command_of(words)} --help", file=sys.stderr)
    return USAGE


def _command_of(words: Sequence[str]) -> str:
    """The program and the verbs at the start of a command line: whose help will help."""
    command: Any = typer.main.get_command(app)
    named = [PROGRAM]
    for word in words:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        named.append(word)
    return " ".join(named)


def _say_unexpected(error: Exception, debug: bool) -> int:
    """An error nobody thought of: its kind and place, not its text, which may hold content."""
    if debug:
        traceback.print_exception(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(last.filename)}, line {last.lineno}"
    print(
        f"{PROGRAM}: unexpected {type(error).__name__} in {place}; run it again with --debug "
        "for the traceback, which may show content, and report it.",
        file=sys.stderr,
    )
    return ERROR


def _say_unwritten(error: OSError, debug: bool) -> int:
    """An error of the system: of a place that takes no more of the report, in a sentence."""
    if error.errno not in NO_ROOM:
        return _say_unexpected(error, debug)
    if debug:
        traceback.print_exception(error)
    print(
        f"{PROGRAM}: the report could not be written: {error.strerror}. What was written in the "
        "store by then stays there, and audit shows what is left.",
        file=sys.stderr,
    )
    return _pipe_closed()


def _pipe_closed() -> int:
    """Stdout takes no more: nothing is left to be written to it at the interpreter's exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ERROR
