"""Small stored values with names of nodes and tasks in them, taken apart and put together again.

What is not changed keeps its bytes: the argument of a Send, the text of a question.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from repair_service.checkpoint.identifiers import NAMESPACE_SEPARATOR
from repair_service.checkpoint.values import constructed, decode, encode, encode_set
from repair_service.errors import NotCarried, Unreadable
from repair_service.transcript.objects import extension
from repair_service.transcript.wire import (
    CODECS,
    Codec,
    decode_extension,
    is_extension,
    is_list,
    is_mapping,
)

CORRUPT = (
    msgspec.DecodeError,
    RecursionError,
    UnicodeDecodeError,
    TypeError,
    IndexError,
    ValueError,
)

NodeName = Callable[[str], str | None]
"""A node's new name; None where it is no more."""


def codec(type_: str) -> Codec:
    """The codec of a serialization type.

    Raises:
        Unreadable: It is none whose values can be taken apart.
    """
    if type_ == "msgpack":
        return CODECS["msgpack"]
    if type_ == "json":
        return CODECS["json"]
    raise Unreadable(
        f"a stored value has the serialization type {type_[:40]!r}, which cannot be read safely"
    )


def renamed_sends(type_: str, data: bytes, node: NodeName) -> bytes:
    """Scheduled Sends, one or a list of them, to nodes by their new names.

    Sends to nodes that are no more are left out of a list. Older LangGraph.js stores a list as
    `[seen, values]`.

    Raises:
        Unreadable: A Send has an unknown form.
    """
    codes = codec(type_)
    try:
        if not is_list(data):
            return _renamed_send(codes, data, node) or data
        elements = codes.elements(data) or []
        if len(elements) == 2 and all(is_list(each) for each in elements):
            inner = renamed_sends(type_, bytes(elements[1]), node)
            return codes.encode([elements[0], Raw(inner)])
        kept = [_renamed_send(codes, bytes(each), node) for each in elements]
        return codes.encode([Raw(each) for each in kept if each is not None])
    except CORRUPT:
        raise Unreadable("a scheduled Send has an unknown form") from None


def _renamed_send(codes: Codec, data: bytes, node: NodeName) -> bytes | None:
    """One Send; None where its node is no more."""
    if is_mapping(data):
        entries = codes.mapping(data)
        new = _node_of(codes, entries["node"], node) if "node" in entries else b""
        if new == b"":
            raise Unreadable("a scheduled Send names no node")
        return None if new is None else codes.encode(entries | {"node": Raw(new)})
    if not is_extension(data):
        raise Unreadable("a scheduled Send has an unknown form")
    found = decode_extension(data)
    parts = codes.elements(bytes(found.data)) or []
    arguments = codes.elements(bytes(parts[2])) or []
    if codes.text(parts[1]) != "Send":
        raise Unreadable("a scheduled Send has an unknown form")
    new = _node_of(codes, arguments[0], node)
    if new is None:
        return None
    renamed = Raw(codes.encode([Raw(new), *arguments[1:]]))
    return extension(found.code, codes.encode([*parts[:2], renamed, *parts[3:]]))


def _node_of(codes: Codec, raw: bytes, node: NodeName) -> bytes | None:
    name = codes.text(raw)
    if name is None:
        raise Unreadable("a scheduled Send names no node")
    new = node(name)
    return None if new is None else codes.encode(new)


def changed_arguments(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Scheduled Sends in msgpack, one or a list of them, each with its argument changed.

    Raises:
        Unreadable: A Send has an unknown form.
        NotCarried: Raised by `change`.
    """
    codes = CODECS["msgpack"]
    try:
        if not is_list(data):
            return _changed_argument(codes, data, change)
        elements = codes.elements(data) or []
        return codes.encode([Raw(_changed_argument(codes, bytes(e), change)) for e in elements])
    except CORRUPT:
        raise Unreadable("a scheduled Send has an unknown form") from None


def _changed_argument(codes: Codec, data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    found = decode_extension(data)
    parts = codes.elements(bytes(found.data)) or []
    node, argument, *more = codes.elements(bytes(parts[2])) or []
    changed = Raw(codes.encode([node, Raw(change(bytes(argument))), *more]))
    return extension(found.code, codes.encode([*parts[:2], changed, *parts[3:]]))


def renamed_barrier(type_: str, data: bytes, nodes: Mapping[str, str]) -> bytes:
    """The nodes that a barrier has seen, renamed; the value comes back as it is without any.

    Raises:
        NotCarried: It stands in a form that is not known.
    """
    value = decode(type_, data)
    names = barrier_names(value)
    if not set(names) & set(nodes):
        return data
    deferred = _is_deferred(value)
    stored = value[0] if deferred else value
    renamed = [nodes.get(name, name) for name in names]
    if constructed(stored) is not None:
        inner: Any = Raw(encode_set(renamed))
    elif isinstance(stored, Mapping):
        inner = {**stored, "args": [renamed]}
    else:
        inner = renamed
    return encode(type_, [inner, value[1]] if deferred else inner)


def barrier_names(value: Any) -> list[str]:
    """The nodes that a barrier has seen: a set, or a set and whether all else has finished.

    Raises:
        NotCarried: It stands in a form that is not known.
    """
    stored = value[0] if _is_deferred(value) else value
    found = constructed(stored)
    names: Any = found[1] if found is not None and found[0] == "set" else stored
    if isinstance(stored, Mapping) and stored.get("lc") == 2 and stored.get("id") == ["Set"]:
        names = (stored.get("args") or [None])[0]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise NotCarried("a barrier's value is no set of names of nodes")
    return names


def _is_deferred(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[1], bool)


def renamed_text(type_: str, data: bytes, nodes: Mapping[str, str]) -> bytes:
    """A node's name that a task wrote for one that waits for it; anything else as it is."""
    value = decode(type_, data)
    return encode(type_, nodes[value]) if isinstance(value, str) and value in nodes else data


def moved_questions(
    type_: str, data: bytes, ids: Mapping[str, str], places: Mapping[str, str]
) -> bytes:
    """Questions under the ids that follow from where their tasks stand now.

    Args:
        type_, data: The stored questions: one, or a list of them.
        ids: By stored id, the new one.
        places: By the stored place of a task (`NODE:TASK_ID`, joined by `|` when deeper), the new
            one; up to 0.5 a question names its place instead of an id.

    Raises:
        NotCarried: A question's id is not the one that follows from its place.
        Unreadable: It cannot be read.
    """
    codes = codec(type_)
    try:
        if not is_list(data):
            return _moved_question(codes, data, ids, places)
        moved = [
            Raw(_moved_question(codes, bytes(each), ids, places))
            for each in codes.elements(data) or []
        ]
        return codes.encode(moved)
    except CORRUPT:
        raise Unreadable("a question that is open has an unknown form") from None


def _moved_question(
    codes: Codec, data: bytes, ids: Mapping[str, str], places: Mapping[str, str]
) -> bytes:
    if is_mapping(data):
        return codes.encode(_moved_fields(codes, codes.mapping(data), ids, places))
    if not is_extension(data):
        raise Unreadable("a question that is open has an unknown form")
    found = decode_extension(data)
    parts = codes.elements(bytes(found.data)) or []
    if not is_mapping(parts[2]):
        raise Unreadable("a question that is open has an unknown form")
    fields = Raw(codes.encode(_moved_fields(codes, codes.mapping(parts[2]), ids, places)))
    return extension(found.code, codes.encode([*parts[:2], fields, *parts[3:]]))


def _moved_fields(
    codes: Codec, fields: Mapping[str, Raw], ids: Mapping[str, str], places: Mapping[str, str]
) -> dict[str, Raw]:
    moved = dict(fields)
    if "id" in fields and (identifier := codes.text(fields["id"])) is not None:
        if identifier not in ids:
            raise NotCarried(
                "the id of an open question is not the one that follows from its task, so its "
                "answer would not find it under a new one"
            )
        moved["id"] = Raw(codes.encode(ids[identifier]))
    if "ns" in fields and is_list(fields["ns"]):
        segments = [codes.text(each) or "" for each in codes.elements(fields["ns"]) or []]
        moved["ns"] = Raw(codes.encode(_moved_place(segments, places)))
    return moved


def _moved_place(segments: Sequence[str], places: Mapping[str, str]) -> list[str]:
    place = NAMESPACE_SEPARATOR.join(segments)
    if place not in places:
        raise NotCarried("the place of an open question is not that of its task")
    return places[place].split(NAMESPACE_SEPARATOR)
