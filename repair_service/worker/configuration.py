"""What a worker is told: its stores, its schedules, and how it is reached."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from repair_service.repair.verdict import Policy
from repair_service.worker.state import Verb


@dataclass(frozen=True, slots=True)
class Call:
    """How a verb is called in a process of its own.

    Attributes:
        arguments: The verb and its flags; no secret is among them, for every account of the machine
            may read the command line of a process.
        environment: The variables that are set for it, addresses and keys among them.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoreConfiguration:
    """One store.

    Attributes:
        name: Its name in the settings.
        address: The address of its database. Secret.
        target: The same without a password.
        schema: The schema of its tables.
        policy: What may be done to it where a person asks for it.
        calls: How each verb is called for it; a thread or a run is named behind the flags.
        aes_key: The key of its encrypted rows; None where it has none. Secret.
    """

    name: str
    address: str = field(repr=False)
    target: str
    schema: str
    policy: Policy
    calls: Mapping[Verb, Call]
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
        call: How its verb is called.
    """

    name: str
    store: str
    verb: Verb
    cron: str | None
    every: float | None
    timezone: str
    trigger: str
    call: Call


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
    stores: tuple[StoreConfiguration, ...]
    schedules: tuple[ScheduleConfiguration, ...]

    def store(self, name: str) -> StoreConfiguration | None:
        """A store by its name; None where there is none."""
        return next((store for store in self.stores if store.name == name), None)
