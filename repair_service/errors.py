"""The one error tree. Each message says what happened and what to do about it.

RepairServiceError
├── UsageError            a flag or a setting that cannot be meant (exit 64)
├── Refused               a safety rail stands before what was asked (exit 5)
├── StoreError            the store cannot be used as it is (exit 1)
│   ├── StoreUnreachable  no connection
│   │   └── ReplicaConflict  a replica cancelled what it was asked, in favour of what it replays
│   ├── StoreNotUnderstood  unknown layout, missing table, shallow saver
│   ├── StoreForbidden    the role may not read or write what the verb needs
│   └── AlreadyThere      a row with that key is there
├── LedgerError           the service's own tables cannot be used as they are (exit 1)
│   ├── LedgerUnreachable no connection
│   ├── LedgerForbidden   the role may not make, read or write them
│   └── LedgerMismatch    they are missing, behind this release, or ahead of it
├── Unreadable            one head or blob that cannot be read; becomes the verdict `unreadable`
├── NotCarried            a head that a migration cannot carry over for certain; becomes `manual`
├── Drifted               the head moved on while its patch was being written; becomes `drifted`
│   └── PatchGone         the patch that is to be taken back is not there
└── RepairFailed          the patch did not read back as healthy, so it was rolled back; `failed`
"""


class RepairServiceError(Exception):
    """Anything the command reports as one sentence instead of a traceback."""


class UsageError(RepairServiceError):
    """A flag or a setting that cannot be meant."""


class Refused(RepairServiceError):
    """A safety rail stands before what was asked."""


class StoreError(RepairServiceError):
    """The checkpoint store cannot be used as it is."""


class StoreUnreachable(StoreError):
    """No connection to the database could be made or kept."""


class ReplicaConflict(StoreUnreachable):
    """A replica cancelled what it was asked, in favour of what it replays."""


class StoreNotUnderstood(StoreError):
    """The tables are not a checkpoint store that is understood."""


class StoreForbidden(StoreError):
    """The role lacks a right that the verb needs."""


class AlreadyThere(StoreError):
    """A row that was to be written is there already; nothing was written."""


class LedgerError(RepairServiceError):
    """The service's own tables cannot be used as they are."""


class LedgerUnreachable(LedgerError):
    """No connection to the ledger's database could be made or kept."""


class LedgerForbidden(LedgerError):
    """The role lacks a right on the ledger; the message names the grant."""


class LedgerMismatch(LedgerError):
    """The ledger's tables are missing, behind this release, or ahead of it."""


class Unreadable(RepairServiceError):
    """One blob or checkpoint that cannot be read; the message is the verdict's reason."""


class NotCarried(RepairServiceError):
    """State that a migration cannot carry over for certain; the message is the verdict's reason."""


class Drifted(RepairServiceError):
    """The head is no longer the one that was diagnosed; nothing was written."""


class PatchGone(Drifted):
    """The patch that is to be taken back is not in the store."""


class RepairFailed(RepairServiceError):
    """The patch did not read back as healthy; it was rolled back."""
