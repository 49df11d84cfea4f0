"""Heads in the shapes that LangGraph writes, made for one test each."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Send

from repair_service.checkpoint.identifiers import NULL_TASK, pull_task_ids, push_task_ids
from repair_service.checkpoint.rows import BlobRow, CheckpointRow, HeadRows, WriteRow

HEAD = "1f1ecfe3-cfd4-628b-8003-544fedb14bd2"
PARENT = "1f1ecfe3-cfcf-6963-8002-15e6f44c3f2d"
STEP = 3
SERDE = JsonPlusSerializer()

Values = Mapping[str, tuple[str, bytes]]


def stored(value: object) -> tuple[str, bytes]:
    """A value as LangGraph's own serializer stores it."""
    return SERDE.dumps_typed(value)


def snapshot(value: object) -> tuple[str, bytes]:
    return SERDE.dumps_typed(_DeltaSnapshot(value))


def text(version: int) -> str:
    """A channel version as Python's saver writes it."""
    return f"{version:032}.0.5"


def call_of(call_id: str, tool: str = "slow") -> dict[str, Any]:
    return {"name": tool, "args": {}, "id": call_id, "type": "tool_call"}


def conversation(*call_ids: str) -> list[BaseMessage]:
    """A question and the AI message with calls that nobody has answered."""
    calls = [call_of(call_id) for call_id in call_ids or ("a1",)]
    return [HumanMessage("hi", id="h1"), AIMessage("", id="ai1", tool_calls=calls)]


def result(call_id: str) -> ToolMessage:
    return ToolMessage("done", tool_call_id=call_id, name="slow", id=f"t-{call_id}")


def send_of(node: str, argument: object) -> Send:
    return Send(node, argument)


def question(identifier: str) -> list[Interrupt]:
    return [Interrupt(value="sure?", id=identifier)]


def pulled(node: str, trigger: str | None = None) -> str:
    """The id of a triggered node's task at the head."""
    return pull_task_ids(HEAD, "", STEP, node, (trigger or f"branch:to:{node}",))[0]


def pushed(node: str, index: int) -> str:
    return push_task_ids(HEAD, "", STEP, node, index)[0]


def write(
    task_id: str, idx: int, channel: str, value: object, path: str = "", at: str = HEAD
) -> WriteRow:
    type_, blob = stored(value)
    return WriteRow(at, task_id, idx, channel, type_, blob, path)


def caller(channel: str, value: object) -> WriteRow:
    return write(NULL_TASK, -4 if channel == "__resume__" else 0, channel, value)


def head_rows(
    values: Values,
    versions: Mapping[str, str | int | float] | None = None,
    *,
    v: int = 4,
    inline: Mapping[str, Any] | None = None,
    seen: Mapping[str, Mapping[str, Any]] | None = None,
    writes: Sequence[WriteRow] = (),
    parent_writes: Sequence[WriteRow] = (),
    metadata: Mapping[str, Any] | None = None,
    checkpoint_id: str = HEAD,
    parent: str | None = PARENT,
    **more: Any,
) -> HeadRows:
    """A head.

    Args:
        values: By channel, the type and bytes of its blob.
        versions: The channels' versions; 5 as text where none are given.
        v: The format's version.
        inline: `channel_values`; absent where None is given for a layout without.
        seen: `versions_seen`.
        writes: The pending writes.
        parent_writes: The parent's writes on `__pregel_tasks`.
        metadata: Metadata beside step, source and parents.
        checkpoint_id: Its id.
        parent: Its parent's id.
        more: Further keys of the checkpoint.
    """
    versions = versions or dict.fromkeys((*values, *(inline or {})), text(5))
    checkpoint: dict[str, Any] = {
        "v": v,
        "id": checkpoint_id,
        "ts": "2026-11-30T20:40:11+00:00",
        "channel_versions": dict(versions),
        "versions_seen": {"__input__": {}, **(seen or {})},
        **more,
    }
    if v == 4 and all(isinstance(version, str) for version in versions.values()):
        checkpoint["channel_values"] = dict(inline or {})
        checkpoint.setdefault("updated_channels", ["messages"])
    row = CheckpointRow(
        thread_id="thread",
        checkpoint_ns="",
        checkpoint_id=checkpoint_id,
        parent_checkpoint_id=parent,
        checkpoint=checkpoint,
        metadata={"step": STEP, "source": "loop", "parents": {}, **(metadata or {})},
    )
    blobs = {
        channel: BlobRow(channel, str(versions[channel]), type_, blob)
        for channel, (type_, blob) in values.items()
    }
    return HeadRows(row, blobs, tuple(writes), tuple(parent_writes))
