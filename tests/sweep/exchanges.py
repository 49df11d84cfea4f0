"""Something happens at one exchange of the writing path: a death, a server gone, a cut connection.

An exchange is one question to a server and its answer: every statement, and every BEGIN, COMMIT and
ROLLBACK, of the store's connection and of the ledger's. They are counted from the first statement
of the first patch on, until the process ends.
"""

import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

# What a sweep imports only when it is asked for is imported here once, before children are forked.
from langgraph.checkpoint.serde import jsonplus as jsonplus

from repair_service.cli import running as running
from repair_service.cli.app import main
from repair_service.ledger import gateway as gateway
from repair_service.ledger import migrate as migrate
from repair_service.report import table as table
from repair_service.store.append import Appending
from repair_service.sweep import settle as settle


@contextmanager
def counted(before: Callable[[int], None]) -> Iterator[list[int]]:
    """Call `before` with the number of each exchange, from 1, before it takes place.

    Yields:
        A list of one number: how many there have been.
    """
    count = [0]
    armed = False
    append, wait = Appending.append, psycopg.Connection.wait

    def arming(self: Appending, *arguments: Any) -> None:
        nonlocal armed
        armed = True
        append(self, *arguments)

    def waiting(self: Any, generator: Generator[Any, Any, Any], *rest: Any, **named: Any) -> Any:
        if armed:
            count[0] += 1
            before(count[0])
        return wait(self, generator, *rest, **named)

    Appending.append = arming  # type: ignore[method-assign]
    psycopg.Connection.wait = waiting  # type: ignore[method-assign]
    try:
        yield count
    finally:
        Appending.append = append  # type: ignore[method-assign]
        psycopg.Connection.wait = wait  # type: ignore[method-assign]


def sweep(store_url: str, ledger_url: str) -> int:
    """The command's own sweep; its exit code."""
    addresses = ["--database-url", store_url, "--ledger-url", ledger_url]
    return main(["sweep", "--yes", *addresses, "--output", os.devnull])


def sweep_until(number: int, store_url: str, ledger_url: str) -> None:
    """A program: sweeps, and is killed before an exchange; exits as the sweep where none is left.

    Args:
        number: The exchange.
        store_url, ledger_url: The addresses.
    """

    def kill(now: int) -> None:
        if now == number:
            os.kill(os.getpid(), signal.SIGKILL)

    with counted(kill):
        os._exit(sweep(store_url, ledger_url))
