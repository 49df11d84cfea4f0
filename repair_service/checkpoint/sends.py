"""Scheduled Sends: which node each one starts, and which tool calls its argument carries."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from repair_service.checkpoint.head import Layout
from repair_service.checkpoint.layout import PARENT_SENDS_LAYOUTS, channel_versions
from repair_service.checkpoint.rows import HeadRows
from repair_service.checkpoint.triggers import SENDS
from repair_service.checkpoint.values import constructed, decode, encode
from repair_service.errors import Unreadable

_CALL_KEYS = ("tool_call", "lg_tool_call")
"""Where an argument that is no call itself carries one (ToolCallWithContext, LangGraph.js)."""


@dataclass(frozen=True, slots=True)
class ScheduledSend:
    """One Send.

    Attributes:
        index: Its place among the Sends.
        node: The node it starts.
        call_ids: The ids of the tool calls in its argument.
    """

    index: int
    node: str
    call_ids: tuple[str, ...]


def scheduled_sends(rows: HeadRows, layout: Layout) -> tuple[ScheduledSend, ...]:
    """The Sends scheduled at a head, in order.

    Before format version 4 they are pending writes of the parent, from then on the value of a
    channel (langgraph/checkpoint/postgres/base.py `_migrate_pending_sends`).

    Raises:
        Unreadable: One of them cannot be read.
    """
    return tuple(_send(value, index) for index, value in enumerate(_values(rows, layout)))


def _values(rows: HeadRows, layout: Layout) -> list[Any]:
    if layout in PARENT_SENDS_LAYOUTS:
        writes = [write for write in rows.parent_writes if write.channel == SENDS]
        writes.sort(key=lambda write: (write.task_path, write.task_id, write.idx))
        for write in writes:
            if write.problem is not None:
                raise Unreadable(write.problem)
        return [decode(write.type, write.blob) for write in writes]
    blob = rows.blobs.get(SENDS)
    if blob is None and SENDS in channel_versions(rows.row):
        # A list never stands in the checkpoint itself, and an empty one has its row too.
        raise Unreadable("the blob of the scheduled Sends is missing; restore it from a backup")
    if blob is None or blob.type == "empty":
        return []
    if blob.problem is not None:
        raise Unreadable(blob.problem)
    value = unwrap_topic(decode(blob.type, blob.blob))
    if not isinstance(value, list):
        raise Unreadable("the scheduled Sends are no list; restore the row from a backup")
    return value


def unwrap_topic(value: Any) -> Any:
    """The values of a topic channel, which older LangGraph.js stores as `[seen, values]`."""
    paired = isinstance(value, list) and len(value) == 2
    return value[1] if paired and all(isinstance(part, list) for part in value) else value


def _send(value: Any, index: int) -> ScheduledSend:
    if isinstance(value, Mapping):
        node, argument = value.get("node"), value.get("args")
    else:
        found = constructed(value)
        if (
            found is None
            or found[0] != "Send"
            or not isinstance(found[1], list)
            or len(found[1]) < 2
        ):
            raise Unreadable("a scheduled Send has an unknown form")
        node, argument = found[1][:2]
    if not isinstance(node, str):
        raise Unreadable("a scheduled Send names no node")
    return ScheduledSend(index, node, tuple(_call_ids(argument)))


def _call_ids(argument: object) -> list[str]:
    calls = argument if isinstance(argument, list) else [argument]
    ids = []
    for call in calls:
        if not isinstance(call, Mapping):
            continue
        carried = next(
            (call[key] for key in _CALL_KEYS if isinstance(call.get(key), Mapping)), None
        )
        if carried is None and "name" in call and ("args" in call or "type" in call):
            carried = call
        if carried is not None and isinstance(carried.get("id"), str):
            ids.append(carried["id"])
    return ids


def emptied_topic(rows: HeadRows) -> tuple[str, bytes] | None:
    """The value that says that the scheduled Sends were taken up; None where there are none.

    Raises:
        Unreadable: The Sends cannot be read.
    """
    blob = rows.blobs.get(SENDS)
    if blob is None or blob.type == "empty":
        return None
    value = decode(blob.type, blob.blob)
    sends = unwrap_topic(value)
    if not sends:
        return None
    return blob.type, encode(blob.type, [] if sends is value else [value[0], []])
