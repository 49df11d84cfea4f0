"""`serve`: the worker."""

from typing import TYPE_CHECKING, Annotated

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.worker.configuration import WorkerConfiguration
    from repair_service.worker.http.settings import HttpSettings

Listen = Annotated[
    str | None,
    typer.Option(
        help="Where HTTP is served (127.0.0.1:8321); :8321 is every address of this machine.",
        metavar="HOST:PORT",
    ),
]
Check = Annotated[
    bool,
    typer.Option("--check", help="Check the settings, show each schedule's next times, and exit."),
]


def serve(
    context: typer.Context,
    check: Check = False,
    listen: Listen = None,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Audit and sweep on schedules, and show over HTTP what was found and done.

    The schedules are in the file (repair-service.toml, or --config). Several replicas may run with
    the same settings: one of them leads and the others take over when it is gone. It needs a
    ledger (db upgrade). Each run is a process of its own with the settings of its schedule, then
    those of its store, then those at the top of the file.

    \b
    A file with one store, whose address is in DATABASE_URL:
      min_idle = "10m"
      [schedules.quarterly]
      verb = "sweep"
      every = "15m"
      max_repairs = 500
      [schedules.nightly]
      verb = "audit"
      cron = "0 3 * * *"
      timezone = "Europe/Berlin"
      full = true

    \b
    Several stores, whose addresses are in REPAIR_STORES__ORDERS__DATABASE_URL and so on:
      [stores.orders]
      schema = "langgraph"
      [schedules.orders]
      store = "orders"
      verb = "sweep"
      every = "15m"

    \b
    Secrets are variables: addresses, and REPAIR_WORKER_TOKEN, without which HTTP only shows.
    SIGTERM stops it: what runs ends behind the thread at hand, and another replica goes on.

    \b
    Exit codes:
      0  stopped by Ctrl-C or SIGTERM, or the settings are right (--check)
     64  wrong usage: a sentence for each setting that cannot be meant
    """
    from repair_service.cli.worker_settings import load_worker

    worker = load_worker(context.params)
    if check:
        _show_times(worker)
        return
    _serve(worker)


def _show_times(worker: "WorkerConfiguration") -> None:
    """What would run when, and over which store."""
    from datetime import UTC, datetime

    from repair_service.cli.times import say_time
    from repair_service.worker.times import next_times, trigger_for

    for store in worker.stores:
        print(f"store {store.name}: {store.target}, schema {store.schema}")
    for schedule in worker.schedules:
        times = next_times(trigger_for(schedule), datetime.now(UTC), 3)
        shown = ", ".join(say_time(time.timestamp()) for time in times) or "never"
        print(
            f"schedule {schedule.name}: {schedule.verb} of {schedule.store}, {schedule.trigger}: "
            f"{shown}"
        )
    if not worker.schedules:
        print("There is no schedule: runs begin only where they are asked for over HTTP.")


def _serve(worker: "WorkerConfiguration") -> None:
    import os
    import signal
    import sys
    import threading

    import structlog

    from repair_service.cli.logs import start_logs
    from repair_service.cli.variables import wants_json_lines
    from repair_service.ledger.gateway import Ledger
    from repair_service.worker.http.application import serving
    from repair_service.worker.replica import Replica

    start_logs(json=wants_json_lines(os.environ) or not sys.stderr.isatty())
    log = structlog.get_logger("repair_service.worker")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with Ledger(worker.ledger_address) as ledger:
        replica = Replica(worker, ledger)
        with serving(replica, _http_settings(worker), worker.ledger_address) as http:
            log.info(
                "the worker begins",
                replica=worker.replica,
                url=http.url,
                stores=[store.name for store in worker.stores],
                schedules=[schedule.name for schedule in worker.schedules],
            )
            replica.run(stop)
    log.info("the worker has ended", replica=worker.replica)


def _http_settings(worker: "WorkerConfiguration") -> "HttpSettings":
    from repair_service.cli.variables import aes_key
    from repair_service.worker.http.settings import HttpSettings, StoreDoor

    return HttpSettings(
        host=worker.host,
        port=worker.port,
        token=worker.token,
        show_content=worker.show_content,
        allowed_hosts=worker.allowed_hosts,
        stores=tuple(
            StoreDoor(
                store.name,
                store.address,
                store.schema,
                aes_key() if store.aes_key is None else store.aes_key,
                store.policy,
            )
            for store in worker.stores
        ),
    )
