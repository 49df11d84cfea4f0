"""Putting a list of messages together again, and making the few messages that are added to it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec
from msgspec import Raw

from repair_service.errors import Unreadable
from repair_service.transcript.kinds import unwrap
from repair_service.transcript.message import Encoding, Message, Transcript
from repair_service.transcript.objects import extension, is_object, pack_object
from repair_service.transcript.wire import (
    CODECS,
    SNAPSHOT_CODE,
    Codec,
    decode_extension,
    is_empty,
    is_extension,
    is_list,
    is_mapping,
)

MARK: Final = "repair_service"
"""The key in `additional_kwargs` under which a placeholder says what it is."""

NO_NAME: Final = "unknown"
"""The name of the tool where the call has none; some providers refuse a result without a name."""


def write_transcript(transcript: Transcript) -> bytes:
    """The value that holds the list: every message in its own bytes, and what was around the list.

    A list that came out of a delta channel's snapshot is written plain; `write_snapshot` wraps it.
    """
    codec = CODECS[transcript.encoding]
    value = codec.encode([Raw(message.raw) for message in transcript.messages])
    if not transcript.path:
        return value
    entries = codec.mapping(transcript.around)
    entries[transcript.path[0]] = Raw(value)
    return codec.encode(entries)


def write_snapshot(value: bytes) -> bytes:
    """A delta channel's whole value as LangGraph stores it: extension 7 around its msgpack bytes.

    Source: langgraph/checkpoint/serde/jsonplus.py (`EXT_DELTA_SNAPSHOT`).
    """
    return extension(SNAPSHOT_CODE, value)


def compose_result(
    encoding: Encoding,
    *,
    call_id: str,
    tool: str | None,
    text: str,
    message_id: str,
    marks: Mapping[str, object],
    like: Message | None = None,
) -> Message:
    """Make a tool message that stands for a result that was never recorded.

    In msgpack it is what `JsonPlusSerializer` writes for a `ToolMessage`, in JSON what LangGraph.js
    writes for one. In a list of plain dicts it is a dict as well. A dict with a `role` may be sent
    to a provider as it stands, and some refuse a field that they do not know, so it has an id and
    marks only where its neighbour has such fields.

    Args:
        encoding: How the list is written.
        call_id: The id of the call that it answers.
        tool: The tool's name; None is written as `unknown`.
        text: Its content, not empty.
        message_id: Its message id.
        marks: What `additional_kwargs.repair_service` is to hold: texts, numbers, lists, mappings.
        like: A message of the same list, best the AI message that made the call.

    Raises:
        Unreadable: The list holds dicts in Anthropic's own format, where a result is no message.
    """
    codec = CODECS[encoding]
    name = tool or NO_NAME
    fields: dict[str, object] = {
        "content": text,
        "additional_kwargs": {MARK: dict(marks)},
        "response_metadata": {},
        "type": "tool",
        "name": name,
        "id": message_id,
        "tool_call_id": call_id,
        "artifact": None,
        "status": "error",
    }
    if like is not None and not is_object(like.raw):
        fields = _like_dict(codec, fields, like)
        raw = codec.encode(fields)
    elif encoding == "msgpack":
        raw = pack_object("tool", fields)
    else:
        raw = codec.encode(_constructor(fields))
    return Message(raw, "tool", message_id, answers=call_id, name=name, placeholder=True)


def with_id(encoding: Encoding, message: Message, message_id: str) -> Message:
    """The same message with its id, all else as it stands; for one that was never merged.

    Raises:
        Unreadable: The message stands in a form that has no place for an id.
    """
    codec = CODECS[encoding]
    identifier = Raw(codec.encode(message_id))
    try:
        raw = _with_id(codec, message.raw, identifier)
    except (msgspec.DecodeError, RecursionError, IndexError) as error:
        raise Unreadable("A message cannot be given an id: its form is not known.") from error
    return replace(message, raw=raw, id=message_id)


def _with_id(codec: Codec, raw: bytes, identifier: Raw) -> bytes:
    if is_extension(raw):
        found = decode_extension(raw)
        parts = codec.elements(bytes(found.data)) or []
        parts[2] = Raw(codec.encode(codec.mapping(parts[2]) | {"id": identifier}))
        return extension(found.code, codec.encode(parts))
    entries = codec.mapping(raw)
    if "lc" in entries and "kwargs" in entries:
        fields = Raw(codec.encode(codec.mapping(entries["kwargs"]) | {"id": identifier}))
        return codec.encode(entries | {"kwargs": fields})
    return codec.encode(entries | {"id": identifier})


def _constructor(fields: Mapping[str, object]) -> dict[str, object]:
    """The form of LangGraph.js, whose class says the type and whose artifact is left out."""
    order = (
        "status",
        "content",
        "tool_call_id",
        "name",
        "additional_kwargs",
        "response_metadata",
        "id",
    )
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain_core", "messages", "ToolMessage"],
        "kwargs": {key: fields[key] for key in order},
    }


def _like_dict(codec: Codec, fields: Mapping[str, object], like: Message) -> dict[str, object]:
    """The fields of a result as a dict of the neighbour's format."""
    found = unwrap(codec, like.raw) if is_mapping(like.raw) else None
    if found is None:
        return dict(fields)
    neighbour = found[0]
    if like.calls and is_list(neighbour.content) and is_empty(neighbour.tool_calls):
        raise Unreadable(
            "The list holds message dicts in a provider's own format, where a result is a content"
            " block and no message of its own. Mend this thread with the application."
        )
    if neighbour.role is None:
        return dict(fields)
    made = {
        "role": "tool",
        "content": fields["content"],
        "tool_call_id": fields["tool_call_id"],
        "name": fields["name"],
    }
    if neighbour.id:
        made["id"] = fields["id"]
    if neighbour.additional_kwargs:
        made |= {key: fields[key] for key in ("additional_kwargs", "status")}
    return made
