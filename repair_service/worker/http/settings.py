"""What the HTTP side is told: where it listens, who may ask, and how stores are looked into."""

import ipaddress
from dataclasses import dataclass, field

from repair_service.errors import UsageError
from repair_service.repair.verdict import Policy

SHORTEST_TOKEN = 16
"""Characters. Nothing counts failed guesses, so a token must be longer than can be guessed."""

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True)
class StoreDoor:
    """How one store is opened to be looked into.

    Attributes:
        name: Its name in the settings.
        url: Its address. Secret.
        schema: The schema of its tables.
        aes_key: The key of encrypted rows. Secret.
        policy: What the operator allows and declares: what a patch would do depends on it.
    """

    name: str
    url: str = field(repr=False)
    schema: str = "public"
    aes_key: bytes | None = field(default=None, repr=False)
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """What the HTTP side is told.

    Attributes:
        host: The address it listens on.
        port: The port; 0 takes a free one.
        token: Who has it may write, and read. Secret; None: nothing can be asked over HTTP.
        show_content: Whether a thread is shown with the text of its messages.
        allowed_hosts: Names under which it is reached, beside its own.
        stores: The stores of the settings.

    Raises:
        UsageError: The token is too short, or cannot be sent in a header.
    """

    host: str = "127.0.0.1"
    port: int = 8321
    token: str | None = field(default=None, repr=False)
    show_content: bool = False
    allowed_hosts: tuple[str, ...] = ()
    stores: tuple[StoreDoor, ...] = ()

    def __post_init__(self) -> None:
        if self.token is None:
            return
        if len(self.token) < SHORTEST_TOKEN:
            raise UsageError(
                f"The worker's token has fewer than {SHORTEST_TOKEN} characters, which can be "
                "guessed; make one with: openssl rand -hex 32."
            )
        if not all("!" <= character <= "~" for character in self.token):
            raise UsageError(
                "The worker's token has characters that no header carries; make one with: "
                "openssl rand -hex 32."
            )

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def hosts(self) -> frozenset[str] | None:
        """The names that a request may give in its Host header; None for any.

        On loopback they are always checked: a page from elsewhere whose name was made to point here
        (DNS rebinding) gives its own name.
        """
        named = {name.lower() for name in self.allowed_hosts}
        if self.on_loopback:
            own = f"[{self.host}]" if ":" in self.host else self.host
            return frozenset({*named, *LOOPBACK_NAMES, own.lower()})
        return frozenset(named) or None
