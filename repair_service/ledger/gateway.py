"""The ledger: what was found, what was written, by whom, and the way back.

Each method of its parts is one short transaction, unless it is given a connection: then it is part
of the transaction that is open there.
"""

from types import TracebackType

from repair_service.ledger.database import Database
from repair_service.ledger.findings import Findings
from repair_service.ledger.identity import identify
from repair_service.ledger.outbox import Outbox
from repair_service.ledger.plans import Plans
from repair_service.ledger.quarantine import Quarantine
from repair_service.ledger.records.run import StoreIdentity
from repair_service.ledger.repairs import Repairs
from repair_service.ledger.replicas import Replicas
from repair_service.ledger.runs import Runs
from repair_service.ledger.summaries import Summaries


class Ledger:
    """The ledger in one database; a context manager, or `close()` by hand.

    Every method raises LedgerUnreachable where the database cannot be reached, LedgerForbidden
    where the role may not, LedgerMismatch where the tables are not this release's. Whether it can
    be used at all is asked beforehand with `migrate.available`.

    Attributes:
        runs: Each call of a verb that looked at heads.
        findings: The heads that were not healthy.
        repairs: The patches that were written.
        outbox: What the application is to be told of them.
        quarantine: The threads that are not repaired again.
        plans: The saved plans that were applied.
        replicas: What the worker's replicas share.
        summaries: What the ledger says of a store as a whole.
    """

    def __init__(
        self, url: str, *, tells: bool = False, statement_seconds: float | None = None
    ) -> None:
        """Nothing is connected yet.

        Args:
            url: The address of the ledger's database.
            tells: Whether the application is to be told of repairs by its webhook.
            statement_seconds: How long one statement may take; None for as long as the server lets.

        Raises:
            UsageError: It cannot be read.
        """
        self._database = Database(url, statement_seconds=statement_seconds)
        self.runs = Runs(self._database)
        self.findings = Findings(self._database)
        self.repairs = Repairs(self._database, tells=tells)
        self.outbox = Outbox(self._database)
        self.quarantine = Quarantine(self._database)
        self.plans = Plans(self._database)
        self.replicas = Replicas(self._database)
        self.summaries = Summaries(self._database)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    def identify(self, store_url: str, schema: str) -> StoreIdentity:
        """Which store that is to this ledger, and whether it is in the ledger's own database.

        Args:
            store_url: The address of the store's database.
            schema: The schema of the checkpoint tables.

        Raises:
            StoreUnreachable: The store cannot be reached.
            UsageError: The store's address cannot be read.
        """
        return identify(self._database, store_url, schema)
