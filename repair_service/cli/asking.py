"""Asking before something is written: on a terminal only, else `--yes` has to have been given."""

import sys

import typer

from repair_service.errors import Refused


def need_answer(verb: str, yes: bool, instead: str) -> None:
    """Refuse to write unasked where nobody can be asked.

    Args:
        verb: The verb.
        yes: Whether --yes was given.
        instead: What can be done without writing, as a clause.

    Raises:
        Refused: There is no terminal to ask on, and no --yes.
    """
    if not yes and not sys.stdin.isatty():
        raise Refused(
            f"{verb} writes, and there is no terminal to ask on; give --yes to write. "
            f"{instead[:1].upper()}{instead[1:]}."
        )


def agreed(question: str) -> bool:
    """Ask on stderr; says so where the answer is no. Ctrl-D is no, and so is a signal."""
    agrees = False
    try:
        agrees = typer.confirm(question, default=False, err=True)
    except typer.Abort:
        print(file=sys.stderr)
    except BaseException:
        print("\nNothing was written.", file=sys.stderr)
        raise
    if not agrees:
        print("Nothing was written.", file=sys.stderr)
    return agrees
