"""The same agent over every state that an application keeps its messages in.

Its nodes are written by hand, with a task for each call, since the prebuilt ones take no messages
but LangChain's own under the usual name.
"""

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from deepagents._messages_reducer import _messages_delta_reducer as delta_reducer
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Send

from repair_service.demo.programs import Graph, Saver, Slow
from tests.acceptance.script import MODEL, Family, all_tools

Write = Callable[[BaseMessage], Any]


class Said(HumanMessage):
    """A human message of the application's own class."""


class Answered(AIMessage):
    """An AI message of the application's own class."""


class Done(ToolMessage):
    """A tool message of the application's own class."""


OWN: Mapping[str, type[BaseMessage]] = {"human": Said, "ai": Answered, "tool": Done}


def as_itself(message: BaseMessage) -> BaseMessage:
    """LangChain's own object."""
    return message


def as_role_dict(message: BaseMessage) -> dict[str, Any]:
    """A dict as OpenAI's chat completions know it."""
    if isinstance(message, ToolMessage):
        return {
            "role": "tool",
            "content": message.content,
            "tool_call_id": message.tool_call_id,
            "name": message.name,
        }
    role = "assistant" if isinstance(message, AIMessage) else "user"
    made: dict[str, Any] = {"role": role, "content": message.content}
    if isinstance(message, AIMessage) and message.tool_calls:
        made["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for call in message.tool_calls
        ]
    return made


def as_type_dict(message: BaseMessage) -> dict[str, Any]:
    """What `model_dump` makes of a message."""
    return message.model_dump()


def as_own_class(message: BaseMessage) -> BaseMessage:
    """An object of the application's own class."""
    return OWN[message.type](**message.model_dump())


def as_chunk(message: BaseMessage) -> BaseMessage:
    """What a streaming application keeps: an AI message as a chunk."""
    if not isinstance(message, AIMessage):
        return message
    return AIMessageChunk(message.content, tool_calls=message.tool_calls)


@dataclass(frozen=True, slots=True)
class Form:
    """How an application keeps its messages.

    Attributes:
        schema: The graph's state.
        keys: The keys that hold the list; empty where the list is the whole state.
        write: How a message is written.
        whole: Whether a node returns the whole state, so that only one task may write.
    """

    schema: Any
    keys: tuple[str, ...] = ("messages",)
    write: Write = as_itself
    whole: bool = False

    def read(self, state: Any) -> list[BaseMessage]:
        """The messages of a state, as LangChain's objects."""
        return convert_to_messages(state[self.keys[0]] if self.keys else state)

    def update(self, state: Any, messages: Sequence[BaseMessage]) -> Any:
        """What a node returns to add messages."""
        written = [self.write(message) for message in messages]
        if not self.keys:
            return written
        if self.whole:
            (key,) = self.keys
            return {**state, key: [*state.get(key, []), *written]}
        return dict.fromkeys(self.keys, written)

    def said(self, text: str, state: Any = None) -> Any:
        """The input that a new human message is."""
        return self.update(state or {}, [HumanMessage(text)])


Listed = Annotated[list[Any], operator.add]
Merged = Annotated[list[Any], add_messages]


class Plain(TypedDict):
    messages: Listed


class Conversation(TypedDict):
    conversation: Merged
    turns: int


class Delta(TypedDict):
    """A list that is rebuilt from its history, with a snapshot every five updates."""

    messages: Annotated[list[Any], DeltaChannel(delta_reducer, snapshot_frequency=5)]


class TwoLists(TypedDict):
    messages: Merged
    journal: Listed


FORMS: Mapping[str, Form] = {
    "role_dicts": Form(Plain, write=as_role_dict),
    "type_dicts": Form(Plain, write=as_type_dict),
    "own_classes": Form(Plain, write=as_own_class),
    "chunks": Form(Plain, write=as_chunk),
    "another_channel": Form(Conversation, keys=("conversation",)),
    "delta": Form(Delta),
    "two_lists": Form(TwoLists, keys=("messages", "journal")),
    "root_list": Form(Listed, keys=()),
    "root_mapping": Form(dict, whole=True),
}


def by_hand(form: Form, saver: Saver, slow: Slow) -> Graph:
    """An agent whose nodes read and write a state of that form."""
    # One task for all calls writes nothing before the last of them is done.
    tools = {tool.name: tool for tool in all_tools((lambda _: slow(0)) if form.whole else slow)}

    def answered(call: Any) -> BaseMessage:
        result: BaseMessage = tools[call["name"]].invoke(call)
        return result

    def chat(state: Any) -> Any:
        return form.update(state, [MODEL.invoke(form.read(state))])

    def call_one(call: Any) -> Any:
        return form.update({}, [answered(call)])

    def call_all(state: Any) -> Any:
        last = form.read(state)[-1]
        assert isinstance(last, AIMessage)
        return form.update(state, [answered(call) for call in last.tool_calls])

    def next_of(state: Any) -> Any:
        last = form.read(state)[-1]
        calls = last.tool_calls if isinstance(last, AIMessage) else []
        if form.whole:
            return "tools" if calls else END
        return [Send("tools", {**call, "type": "tool_call"}) for call in calls] or END

    builder = StateGraph(form.schema)
    builder.add_node("chat", chat)
    builder.add_node("tools", call_all if form.whole else call_one)
    builder.add_edge(START, "chat")
    builder.add_conditional_edges("chat", next_of, ["tools", END])
    builder.add_edge("tools", "chat")
    return builder.compile(checkpointer=saver)


def family(form: Form) -> Family:
    """The family of one form."""
    return lambda saver, slow: by_hand(form, saver, slow)


FAMILIES: Mapping[str, Family] = {name: family(form) for name, form in FORMS.items()}
