"""One event as a signed request, in the manner of Standard Webhooks, and what came of it."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

import httpx

from repair_service import __version__
from repair_service.errors import UsageError
from repair_service.ledger.records.event import Event

CONNECT_SECONDS = 5.0
"""A receiver that is there answers the network in milliseconds."""

WHOLE_SECONDS = 20.0
"""What one attempt may take, from the name's look-up to the answer's first line: a receiver takes
the event and works later (Standard Webhooks asks for 15 to 30 s)."""

SHORTEST_KEY = 24
"""Bytes; what Standard Webhooks asks for."""

PREFIX = "whsec_"

GONE = 410
"""The receiver wants no more of these, ever."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where events are sent.

    Attributes:
        url: The address.
        keys: The secret's bytes; several while it is being changed, each of which signs.
    """

    url: str = field(repr=False)
    keys: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, url: str, secret: str) -> "Webhook":
        """A webhook of the settings.

        Args:
            url: An address without user and password.
            secret: `whsec_` and base64, or several of these with spaces between.

        Raises:
            UsageError: One of the two cannot be meant; neither is shown.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise UsageError("[webhook] url: an address is needed that begins with https://.")
        if parts.username is not None or parts.password is not None:
            raise UsageError("[webhook] url: leave out user and password; requests are signed.")
        keys = tuple(_key(text) for text in secret.split())
        if not keys:
            raise UsageError(
                "[webhook] secret: a webhook needs one, that its receiver can know us by. Make it "
                "with `echo whsec_$(openssl rand -base64 32)`, and give it as "
                "REPAIR_WEBHOOK__SECRET, or in a file named by secret_file."
            )
        return cls(url, keys)

    @property
    def place(self) -> str:
        """Scheme and host, without path and query, which may hold a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one attempt.

    Attributes:
        problem: What went wrong; None where the event was taken.
        final: Whether it is never to be sent again.
        answered: Whether the receiver said anything.
    """

    problem: str | None = None
    final: bool = False
    answered: bool = True


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise UsageError(f"[webhook] secret: it is not {PREFIX} and base64.") from None
    if len(key) < SHORTEST_KEY:
        raise UsageError(
            f"[webhook] secret: it has {len(key)} bytes, and {SHORTEST_KEY} are the least."
        )
    return key


def body_of(event: Event) -> bytes:
    """The event as the receiver reads it: the same bytes in every attempt."""
    return json.dumps(
        {
            "type": event.type,
            "timestamp": _said(event.recorded_at),
            "data": {
                "store": event.store,
                "schema": unquote(event.store_key.rpartition("/")[2]),
                "thread_id": event.thread_id,
                "checkpoint_ns": event.checkpoint_ns,
                "checkpoint_id": event.checkpoint_id,
                "run_id": None if event.run_id is None else str(event.run_id),
                "repair_id": str(event.repair_id),
                "resume": event.resume,
                "salvaged": event.salvaged,
                "placeholders": event.placeholders,
            },
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()


def headers_of(event: Event, body: bytes, keys: tuple[bytes, ...], now: float) -> dict[str, str]:
    """The headers by which the receiver knows that we sent it, when, and whether it had it before.

    https://github.com/standard-webhooks/standard-webhooks: the signature is over
    `id.timestamp.body`; the timestamp, in seconds since 1970, is that of the attempt.
    """
    moment = str(int(now))
    signed = f"{event.id}.{moment}.".encode() + body
    signatures = (hmac.digest(key, signed, hashlib.sha256) for key in keys)
    return {
        "content-type": "application/json",
        "user-agent": f"repair-service/{__version__}",
        "webhook-id": str(event.id),
        "webhook-timestamp": moment,
        "webhook-signature": " ".join(f"v1,{base64.b64encode(s).decode()}" for s in signatures),
    }


async def send(client: httpx.AsyncClient, webhook: Webhook, event: Event) -> Answer:
    """Send an event once. The answer's body is not read, and no redirect is followed."""
    body = body_of(event)
    headers = headers_of(event, body, webhook.keys, time.time())
    try:
        async with (
            asyncio.timeout(WHOLE_SECONDS),
            client.stream("POST", webhook.url, content=body, headers=headers) as response,
        ):
            return _judged(response.status_code)
    except (TimeoutError, httpx.TimeoutException):
        return Answer("no answer in time", answered=False)
    except httpx.ConnectError as failure:
        return Answer(_why_not(failure), answered=False)
    except httpx.HTTPError as failure:
        return Answer(f"no answer ({type(failure).__name__})", answered=False)


def new_client() -> httpx.AsyncClient:
    """A client that verifies certificates and follows nothing."""
    return httpx.AsyncClient(
        follow_redirects=False,
        timeout=httpx.Timeout(WHOLE_SECONDS, connect=CONNECT_SECONDS),
        limits=httpx.Limits(max_keepalive_connections=0),
    )


def _judged(status: int) -> Answer:
    if 200 <= status < 300:
        return Answer()
    if 300 <= status < 400:
        return Answer(f"it answered {status}, a redirect, which is not followed: correct the url")
    if status == GONE:
        return Answer(f"it answered {status}: it wants no more of these", final=True)
    return Answer(f"it answered {status}")


def _why_not(failure: httpx.ConnectError) -> str:
    cause: BaseException | None = failure
    while cause is not None:
        if "CERTIFICATE_VERIFY_FAILED" in str(cause):
            return "its certificate is not valid here"
        cause = cause.__cause__ or cause.__context__
    return "no connection"


def _said(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
