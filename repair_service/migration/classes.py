"""The classes that stored values name: which they are, and the same bytes with other names.

In msgpack a Python object is an extension around `(module, class, payload, ...)`, in JSON a mapping
with the parts of the name in `id` (langgraph/checkpoint/serde/jsonplus.py). A value is walked over
byte by byte, so what is not renamed keeps its bytes, and nothing is imported.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from repair_service.errors import NotCarried, Unreadable
from repair_service.transcript.objects import extension
from repair_service.transcript.wire import SNAPSHOT_CODE

METHOD_CODE: Final = 3
CLASS_CODES: Final = frozenset({0, 1, 2, METHOD_CODE, 4, 5})
"""Extensions around (module, class, payload, ...); 6 is an array of numpy's, which names none."""

NO_VALUES: Final = frozenset({"null", "empty", "bytes", "bytearray"})
CORRUPT: Final = "a stored value is not valid {}; restore the row from a backup"

_FIXED: Final = {
    **dict.fromkeys((0xC0, 0xC1, 0xC2, 0xC3), 1),
    0xCA: 5,
    0xCB: 9,
    0xCC: 2,
    0xCD: 3,
    0xCE: 5,
    0xCF: 9,
    0xD0: 2,
    0xD1: 3,
    0xD2: 5,
    0xD3: 9,
    0xDC: 3,
    0xDD: 5,
    0xDE: 3,
    0xDF: 5,
}
"""Bytes of a head: whole numbers and constants, and the heads of lists and mappings."""
_SIZED: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Bytes of the size of texts and bytes."""
_EXTENSIONS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSIONS: Final = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


class Named(NamedTuple):
    """What a stored object names.

    Attributes:
        module, name: The class.
        method: The method that makes it, where one is named (`fromisoformat`).
        form: `msgpack`; `json-1` for LangChain's constructors, `json-2` for those of old savers.
    """

    module: str
    name: str
    method: str | None = None
    form: str = "msgpack"


def classes_in(type_: str, data: bytes) -> Iterator[Named]:
    """The classes that a value names, one for each object in it.

    Raises:
        Unreadable: It cannot be read: corrupt, or of a type that nobody may open.
    """
    if type_ in NO_VALUES:
        return
    try:
        if type_ == "msgpack":
            yield from _in_msgpack(data)
        elif type_ == "json":
            yield from _in_json(msgspec.json.decode(data))
        else:
            raise Unreadable(f"a stored value has the serialization type {type_[:40]!r}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
        raise Unreadable(CORRUPT.format(type_)) from None


def _in_msgpack(data: bytes) -> list[Named]:
    found: list[Named] = []

    def met(code: int, inner: memoryview) -> None:
        if code == SNAPSHOT_CODE:
            decoder.decode(inner)
        elif code in CLASS_CODES:
            place = len(found)
            parts = decoder.decode(inner)
            if isinstance(parts, list) and len(parts) >= 3:
                module, name, *rest = parts
                if isinstance(module, str) and isinstance(name, str):
                    method = rest[1] if code == METHOD_CODE and len(rest) > 1 else None
                    found.insert(place, Named(module, name, method))

    decoder = msgspec.msgpack.Decoder(ext_hook=met, strict=False)
    decoder.decode(data)
    return found


def _in_json(value: Any) -> Iterator[Named]:
    if isinstance(value, list):
        for each in value:
            yield from _in_json(each)
    elif isinstance(value, dict):
        parts = value.get("id")
        if (
            value.get("type") == "constructor"
            and value.get("lc") in (1, 2)
            and isinstance(parts, list)
            and len(parts) > 1
            and all(isinstance(part, str) for part in parts)
        ):
            yield Named(".".join(parts[:-1]), parts[-1], None, f"json-{value['lc']}")
        for each in value.values():
            yield from _in_json(each)


class ClassNames:
    """Renamed classes, and the values that name them."""

    def __init__(self, renames: Mapping[str, str]) -> None:
        """Prepare the renames.

        Args:
            renames: By old `module.Class`, the new one.
        """
        self.renames: Mapping[tuple[str, str], tuple[str, str]] = {
            _split(old): _split(new) for old, new in renames.items() if old != new
        }
        self._marks = [
            (module.encode(), module.rpartition(".")[2].encode(), name.encode())
            for module, name in self.renames
        ]

    def may_name(self, data: bytes) -> bool:
        """Whether a value may name one of the old classes: a look for its words, nothing more."""
        return any(
            name in data and (module in data or last in data) for module, last, name in self._marks
        )

    def renamed(self, type_: str, data: bytes) -> bytes:
        """A value under the new names; the very object that came where it names none of them.

        Raises:
            Unreadable: It cannot be read and may name one.
            NotCarried: It names one in a form that is not rewritten.
        """
        if type_ in NO_VALUES or not self.may_name(data):
            return data
        if type_ == "msgpack":
            try:
                new = self._walk(data)
            except (IndexError, UnicodeDecodeError, RecursionError):
                raise Unreadable(CORRUPT.format(type_)) from None
            return data if new is None else new
        if type_ == "json":
            return self._renamed_json(data)
        raise Unreadable(
            f"a stored value of the serialization type {type_[:40]!r} may name the class, and "
            "cannot be read safely"
        )

    def _walk(self, data: bytes) -> bytes | None:
        """Values one behind the other, rewritten; None where nothing in them changes."""
        pieces: list[bytes] = []
        copied = position = 0
        while position < len(data):
            head = data[position]
            found = _extension_at(data, position, head)
            if found is None:
                position += _length_at(data, position, head)
                continue
            code, start, end = found
            if end > len(data):
                raise IndexError
            new = self._renamed_inside(code, data[start:end])
            if new is not None:
                pieces += (data[copied:position], extension(code, new))
                copied = end
            position = end
        if position != len(data):
            raise IndexError
        return b"".join((*pieces, data[copied:])) if pieces else None

    def _renamed_inside(self, code: int, inner: bytes) -> bytes | None:
        if code not in CLASS_CODES and code != SNAPSHOT_CODE:
            return None
        if not self.may_name(inner):
            return None
        if code == SNAPSHOT_CODE:
            return self._walk(inner)
        start, module, name = _name_in(inner)
        new = self.renames.get((module, name)) if start is not None else None
        if new is None or start is None:
            return self._walk(inner)
        payload = self._walk(inner[start:])
        words = b"".join(msgspec.msgpack.encode(word) for word in new)
        return inner[: _head_length(inner)] + words + (payload or inner[start:])

    def _renamed_json(self, data: bytes) -> bytes:
        try:
            named = list(_in_json(msgspec.json.decode(data)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Unreadable(CORRUPT.format("json")) from None
        for (module, name), new in self.renames.items():
            count = sum((each.module, each.name) == (module, name) for each in named)
            if not count:
                continue
            words = [*module.split("."), name]
            listed = rb"\s*,\s*".join(re.escape(msgspec.json.encode(word)) for word in words)
            pattern = re.compile(rb'("id"\s*:\s*)\[\s*' + listed + rb"\s*\]")
            renamed = msgspec.json.encode([*new[0].split("."), new[1]])
            data, replaced = pattern.subn(lambda m, new=renamed: m[1] + new, data)  # type: ignore[misc]
            if replaced != count:
                raise NotCarried(
                    f"{module}.{name} stands in JSON in a way that is not rewritten for certain"
                )
        return data


def _split(name: str) -> tuple[str, str]:
    module, _, class_name = name.rpartition(".")
    return module, class_name


def _extension_at(data: bytes, position: int, head: int) -> tuple[int, int, int] | None:
    """Code, start and end of what an extension holds; None for another value."""
    if head in _FIXED_EXTENSIONS:
        start = position + 2
        return data[position + 1], start, start + _FIXED_EXTENSIONS[head]
    if head in _EXTENSIONS:
        width = _EXTENSIONS[head]
        size = int.from_bytes(data[position + 1 : position + 1 + width])
        start = position + 2 + width
        return data[start - 1], start, start + size
    return None


def _length_at(data: bytes, position: int, head: int) -> int:
    """Bytes of a value that is no extension; of a list or a mapping, those of its head."""
    if head <= 0x9F or head >= 0xE0:
        return 1
    if head <= 0xBF:
        return 1 + (head & 0x1F)
    if head in _SIZED:
        width = _SIZED[head]
        return 1 + width + int.from_bytes(data[position + 1 : position + 1 + width])
    return _FIXED[head]


def _head_length(inner: bytes) -> int:
    head = inner[0]
    if 0x90 <= head <= 0x9F:
        return 1
    return {0xDC: 3, 0xDD: 5}.get(head, 0)


def _name_in(inner: bytes) -> tuple[int | None, str, str]:
    """Where the payload of an object begins, and its class; None where there is no name."""
    position = _head_length(inner)
    words = []
    for _ in range(2 if position else 0):
        head = inner[position]
        if not 0xA0 <= head <= 0xBF and head not in (0xD9, 0xDA, 0xDB):
            return None, "", ""
        length = _length_at(inner, position, head)
        skipped = 1 if head <= 0xBF else 1 + _SIZED[head]
        words.append(inner[position + skipped : position + length].decode())
        position += length
    return (position, words[0], words[1]) if words else (None, "", "")
