"""Bytes that LangGraph's EncryptedSerializer wrote: AES in EAX mode.

Stored as nonce (16 bytes), tag (16), text, with `+aes` behind the serialization type
(langgraph/checkpoint/serde/encrypted.py).
"""

from repair_service.errors import Unreadable, UsageError

CIPHER = "aes"
NONCE_BYTES = 16
TAG_BYTES = 16

NO_KEY = "it is encrypted and no key was given; set LANGGRAPH_AES_KEY"
WRONG_KEY = "it does not decrypt with the key given; it was written with another one, or is damaged"
NO_LIBRARY = (
    "it is encrypted and pycryptodome is not installed; pip install 'repair-service[encryption]'"
)


def check_key(key: bytes | None) -> None:
    """Refuses a key of a length that AES does not have.

    Raises:
        UsageError: It is not 16, 24 or 32 bytes long.
    """
    if key is not None and len(key) not in (16, 24, 32):
        raise UsageError(
            "The AES key has to be 16, 24 or 32 bytes long, as LangGraph's LANGGRAPH_AES_KEY is."
        )


def split_type(stored: str | None) -> tuple[str, str | None]:
    """A stored type as serialization type and cipher: `msgpack+aes` is (`msgpack`, `aes`)."""
    plain, separator, cipher = (stored or "").partition("+")
    return plain, cipher if separator else None


def decrypt(cipher: str, stored: bytes, key: bytes | None) -> tuple[bytes, str | None]:
    """The plain bytes of an encrypted value.

    Args:
        cipher: Name of the cipher.
        stored: The bytes as stored.
        key: The key, None where none was given.

    Returns:
        The plain bytes and None; or the stored bytes and why they cannot be decrypted.
    """
    if cipher != CIPHER:
        return stored, "it is encrypted with a cipher that is not known; only `aes` is"
    if key is None:
        return stored, NO_KEY
    try:
        from Crypto.Cipher import AES
    except ImportError:
        return stored, NO_LIBRARY
    nonce = stored[:NONCE_BYTES]
    tag = stored[NONCE_BYTES : NONCE_BYTES + TAG_BYTES]
    try:
        eax = AES.new(key, AES.MODE_EAX, nonce=nonce)
        return eax.decrypt_and_verify(stored[NONCE_BYTES + TAG_BYTES :], tag), None
    except ValueError:
        return stored, WRONG_KEY


def encrypt(cipher: str, plain: bytes, key: bytes | None) -> bytes:
    """The bytes to store for a plain value, under a random nonce.

    Raises:
        Unreadable: They cannot be encrypted here, for a reason that decrypting has as well.
    """
    if cipher != CIPHER:
        raise Unreadable("It is encrypted with a cipher that is not known; only `aes` is.")
    if key is None:
        raise Unreadable(f"{NO_KEY[0].upper()}{NO_KEY[1:]}.")
    try:
        from Crypto.Cipher import AES
    except ImportError:
        raise Unreadable(f"{NO_LIBRARY[0].upper()}{NO_LIBRARY[1:]}.") from None
    eax = AES.new(key, AES.MODE_EAX)
    text, tag = eax.encrypt_and_digest(plain)
    return bytes(eax.nonce) + bytes(tag) + bytes(text)
