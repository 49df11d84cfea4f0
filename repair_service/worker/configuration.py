"""What a worker is told: its stores, its schedules, and how it is reached."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from repair_service.repair.verdict import Policy
from repair_service.worker.state import Verb
from repair_service.worker.webhook import Webhook


@dataclass(frozen=True, slots=True)
class StoreConfiguration:
    """One store.

    Attributes:
        name: Its name in the settings.
        address: The address of its database. Secret.
        target: The same without a password.
        schema: The schema of its tables.
        policy: What may be done to it where a person asks.
        settings: What a verb is told for it, by the settings' names; addresses are among them.
        needs_reason: Whether whoever writes to it has to say why.
        aes_key: The key of its encrypted rows; None for that of the environment. Secret.
    """

    name: str
    address: str = field(repr=False)
    target: str
    schema: str
    policy: Policy
    settings: Mapping[str, Any] = field(repr=False)
    needs_reason: bool = False
    aes_key: bytes | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True)
class ScheduleConfiguration:
    """One schedule: cron or every, one of the two.

    Attributes:
        name: Its name in the settings.
        store: The store's name.
        verb: audit or sweep.
        cron: Five fields, as in a crontab; None where it runs every so often.
        every: Seconds between two runs; None where it runs by the calendar.
        timezone: The zone of the five fields.
        trigger: The same as the settings say it.
        settings: What its verb is told, by the settings' names, those of its store included.
        actor, reason: In whose name, and why, for the ledger.
    """

    name: str
    store: str
    verb: Verb
    cron: str | None
    every: float | None
    timezone: str
    trigger: str
    settings: Mapping[str, Any] = field(repr=False)
    actor: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerConfiguration:
    """A worker.

    Attributes:
        replica: Its own name, no other replica's.
        ledger_address: The address of the ledger's database. Secret.
        host, port: Where HTTP is served; port 0 is any free one.
        token: What a request that changes something has to bear; None where there are no such
            requests. Secret.
        show_content: Whether a page may show the text of messages.
        lease: Seconds for which a replica leads without saying so again.
        look: Seconds between two looks for requests.
        grace: Seconds that a run has to end between two heads when the worker stops.
        allowed_hosts: Names under which HTTP is reached, beside its own.
        webhook: Where the application is told of repairs; None for nowhere.
        stores: The stores.
        schedules: The schedules.
    """

    replica: str
    ledger_address: str = field(repr=False)
    host: str
    port: int
    token: str | None = field(repr=False)
    show_content: bool
    lease: float
    look: float
    grace: float
    allowed_hosts: tuple[str, ...]
    webhook: Webhook | None = field(repr=False)
    stores: tuple[StoreConfiguration, ...]
    schedules: tuple[ScheduleConfiguration, ...]

    def store(self, name: str) -> StoreConfiguration | None:
        """A store by its name; None where there is none."""
        return next((store for store in self.stores if store.name == name), None)

    def schedule(self, name: str | None) -> ScheduleConfiguration | None:
        """A schedule by its name; None where there is none."""
        return next((each for each in self.schedules if each.name == name), None)
