"""The webhook of the settings: who is told of repairs, and the sending of what is due."""

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, SecretStr

from repair_service.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from repair_service.cli.settings import Settings
    from repair_service.ledger.gateway import Ledger
    from repair_service.worker.webhook import Webhook

END_SECONDS = 10.0
"""How long a verb begins new requests at its end; what is left then is sent by the next one."""


class WebhookSettings(BaseModel):
    """Where the application is told of repairs; the secret stands in the environment or a file of
    its own, so that the settings' file can be shown."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Its query may hold a token.
    url: SecretStr | None = None
    secret: SecretStr | None = None
    secret_file: Path | None = None


def tells(settings: "Settings") -> bool:
    """Whether repairs come into the outbox, to be told by whoever can."""
    return settings.webhook.url is not None


def webhook_of(settings: "Settings") -> "Webhook | None":
    """The webhook; None where none is set.

    Raises:
        UsageError: It cannot be used as it is set.
    """
    chosen = settings.webhook
    if chosen.url is None:
        return None
    if find_spec("httpx") is None:
        raise UsageError("[webhook] needs httpx; install repair-service[worker].")
    from repair_service.worker.webhook import Webhook

    return Webhook.of(chosen.url.get_secret_value(), _secret(chosen))


def send_due(settings: "Settings", ledger: "Ledger") -> None:
    """Send what is due at the end of a verb; stderr says what was not taken. Changes no outcome."""
    webhook = webhook_of(settings)
    if webhook is None:
        return
    from repair_service.worker.delivery import Delivery

    until = time.monotonic() + END_SECONDS
    try:
        done = Delivery(ledger, webhook).run_once(lambda: time.monotonic() > until)
    except LedgerError as error:
        print(f"Note: the webhook may not have been told of all. {error}", file=sys.stderr)
        return
    if missed := done.failed + done.given_up:
        print(
            f"Note: {webhook.place} took {done.sent} of {done.sent + missed} events; "
            f"{done.problem}. What is left is sent by the worker, the next sweep, or "
            "`repair-service outbox send`.",
            file=sys.stderr,
        )


def _secret(chosen: WebhookSettings) -> str:
    if chosen.secret is not None:
        return chosen.secret.get_secret_value()
    if chosen.secret_file is None:
        return ""
    try:
        return chosen.secret_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(
            f"[webhook] secret_file: {chosen.secret_file} cannot be read: {why}."
        ) from None
