"""Who may ask what: host names, origins, tokens. Decisions about one request, without its body."""

import base64
import binascii
import hmac
from collections.abc import Iterable

from repair_service.worker.http.problems import Problem
from repair_service.worker.http.settings import HttpSettings

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
"""Answered to everybody who reaches the worker: they hold no thread's id."""

READING_METHODS = frozenset({"GET", "HEAD"})

MAY_READ = (
    ("WWW-Authenticate", "Bearer"),
    ("WWW-Authenticate", 'Basic realm="repair-service", charset="UTF-8"'),
)
MAY_WRITE = (("WWW-Authenticate", "Bearer"),)

Headers = Iterable[tuple[bytes, bytes]]


def check_access(settings: HttpSettings, method: str, path: str, headers: Headers) -> None:
    """Refuse a request that may not be made.

    Args:
        settings: What the HTTP side is told.
        method: The request's method.
        path: Its path.
        headers: Its headers, names in lower case.

    Raises:
        Problem: 421 for a name that is not ours, 403 for a page of another origin or where nothing
            may be read, 401 for a missing or wrong token.
    """
    given: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        given.setdefault(name, []).append(value)
    _check_host(settings, path, given.get(b"host", []))
    if method in READING_METHODS:
        if path not in OPEN_PATHS:
            _check_reader(settings, given.get(b"authorization", []))
        return
    _check_origin(given)
    # Without a token the writing routes do not exist: the router says so.
    if settings.token is not None and not _is_bearer(settings, given.get(b"authorization", [])):
        raise Problem(
            401, "This needs the worker's token: send Authorization: Bearer TOKEN.", MAY_WRITE
        )


def _check_host(settings: HttpSettings, path: str, named: list[bytes]) -> None:
    hosts = settings.hosts
    # Probes and scrapers name a pod by its address.
    if hosts is None or (not settings.on_loopback and path in OPEN_PATHS):
        return
    if len(named) != 1 or _host_name(named[0]) not in hosts:
        raise Problem(
            421,
            "The Host header names another host. Use the address that the worker listens on, or "
            "name the host in allowed_hosts under [worker].",
        )


def _host_name(named: bytes) -> str:
    text = named.decode("latin-1").lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0]


def _check_reader(settings: HttpSettings, sent: list[bytes]) -> None:
    """Thread ids are private: beyond this machine they are shown to those who have the token."""
    if settings.on_loopback:
        return
    if settings.token is None:
        raise Problem(
            403,
            "This worker listens beyond loopback and has no token, so it answers /healthz, /readyz "
            "and /metrics only. Set its token, or let it listen on 127.0.0.1.",
        )
    if not (_is_bearer(settings, sent) or _is_basic(settings, sent)):
        raise Problem(
            401,
            "This needs the worker's token: send Authorization: Bearer TOKEN, or give the token as "
            "the password (any user name).",
            MAY_READ,
        )


def _check_origin(given: dict[bytes, list[bytes]]) -> None:
    """A browser says where the page is from that asks; programs say nothing."""
    host = given.get(b"host", [b""])[0].lower()
    same = {b"http://" + host, b"https://" + host}
    foreign = [origin for origin in given.get(b"origin", []) if origin.lower() not in same]
    sites = given.get(b"sec-fetch-site", [])
    if foreign or any(site not in (b"same-origin", b"none") for site in sites):
        raise Problem(403, "A page of another origin may not ask this. Ask from a program.")


def _is_bearer(settings: HttpSettings, sent: list[bytes]) -> bool:
    return _matches(settings, _credentials(sent, b"bearer"))


def _is_basic(settings: HttpSettings, sent: list[bytes]) -> bool:
    encoded = _credentials(sent, b"basic")
    if encoded is None:
        return False
    try:
        pair = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return False
    return _matches(settings, pair.partition(b":")[2])


def _credentials(sent: list[bytes], scheme: bytes) -> bytes | None:
    if len(sent) != 1:
        return None
    said, _, credentials = sent[0].partition(b" ")
    return credentials.strip() if said.lower() == scheme else None


def _matches(settings: HttpSettings, token: bytes | None) -> bool:
    if settings.token is None or token is None:
        return False
    # Takes as long for a token that is right to the last character as for any other.
    return hmac.compare_digest(token, settings.token.encode())
