"""Values encrypted or decrypted on their way, never decoded."""

from collections.abc import Callable

from repair_service.errors import Unreadable
from repair_service.store.encryption import CIPHER, decrypt, encrypt, split_type
from repair_service.transfer.tables import CopiedTable
from repair_service.transfer.wire import fields_of, row_of

Change = Callable[[CopiedTable, bytes], bytes]
"""Gives a row in another form."""


def as_it_is(table: CopiedTable, row: bytes) -> bytes:
    """The row itself."""
    return row


def opener(key: bytes | None) -> Change:
    """Makes rows plain.

    Raises:
        Unreadable: On a row that does not decrypt.
    """

    def opened(table: CopiedTable, row: bytes) -> bytes:
        if table.type_at is None or table.value_at is None:
            return row
        fields = fields_of(row)
        kind, value = fields[table.type_at], fields[table.value_at]
        plain, cipher = split_type(None if kind is None else kind.decode())
        if cipher is None or value is None:
            return row
        text, problem = decrypt(cipher, value, key)
        if problem is not None:
            raise Unreadable(f"A value of {table.name} cannot be decrypted: {problem}.")
        fields[table.type_at], fields[table.value_at] = plain.encode(), text
        return row_of(fields)

    return opened


def sealer(key: bytes | None) -> Change:
    """Encrypts the values of rows as LangGraph's EncryptedSerializer does; encrypted ones stay.

    A blob of type `empty` says that there is no value, and the saver itself writes it
    (langgraph/checkpoint/postgres/base.py, `_dump_blobs`): it stays plain.

    Raises:
        Unreadable: There is no key, or no library to use it with.
    """

    def sealed(table: CopiedTable, row: bytes) -> bytes:
        if table.type_at is None or table.value_at is None:
            return row
        fields = fields_of(row)
        kind, value = fields[table.type_at], fields[table.value_at]
        if kind is None or value is None or kind == b"empty" or b"+" in kind:
            return row
        fields[table.type_at] = kind + f"+{CIPHER}".encode()
        fields[table.value_at] = encrypt(CIPHER, value, key)
        return row_of(fields)

    return sealed
