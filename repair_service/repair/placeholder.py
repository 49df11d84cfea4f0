"""The results that are made up for calls that have none."""

import uuid
from typing import Any

from repair_service.checkpoint.head import Head
from repair_service.repair.verdict import Placeholders
from repair_service.transcript.message import Encoding, Message, ToolCall
from repair_service.transcript.write import compose_result

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "repair-service/message")


def message_id(head: Head, channel: str, index: int, call_id: str) -> str:
    """The id of a message that we add: the same whenever the same head is mended.

    A call's id is unique in its message: where it is not, nothing is mended.
    """
    row = head.row
    parts = (row.thread_id, row.checkpoint_ns, row.checkpoint_id, channel, index, call_id)
    return str(uuid.uuid5(_NAMESPACE, "\x00".join(map(str, parts))))


def placeholder(
    head: Head,
    channel: str,
    index: int,
    call: ToolCall,
    *,
    templates: Placeholders,
    encoding: Encoding,
    like: Message | None,
) -> Message:
    """A tool message that says that no result was recorded, and nothing that is not known.

    Args:
        head: The head that is mended.
        channel: The transcript's channel.
        index: Index of the AI message in the list as it was found.
        call: The call; its id is not empty.
        templates: The operator's texts.
        encoding: How the list is written.
        like: A message of the list, whose form the new one takes.
    """
    cause = "invalid_call" if call.invalid else "interrupted"
    default = templates.invalid if call.invalid else templates.interrupted
    template = templates.by_tool.get(call.name or "", default)
    marks: dict[str, Any] = {"cause": cause, "checkpoint_id": head.row.checkpoint_id}
    call_id = call.id or ""
    return compose_result(
        encoding,
        call_id=call_id,
        tool=call.name,
        text=template.format(tool=call.name or "the tool", call_id=call_id),
        message_id=message_id(head, channel, index, call_id),
        marks=marks,
        like=like,
    )
