"""Agents that hand over to each other: langgraph-supervisor and langgraph-swarm."""

import warnings
from collections.abc import Mapping

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from repair_service.demo.model import Line, ScriptedModel
from repair_service.demo.programs import LINES, SCRIPT, Graph, Saver, Slow
from tests.acceptance.script import Family, all_tools

ALL_THREE = SCRIPT[LINES["three-calls"]]
AFTER_THE_OTHER = -1
"""What `slow` is told: die once so many tasks of the root have written, its sign turned."""


class Teammate(ScriptedModel):
    """A model that goes to work as soon as it is handed the conversation.

    Attributes:
        handed: The name of the tool that hands over to it.
        work: The tool calls that it makes then.
    """

    handed: str
    work: Line

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        last = messages[-1]
        if not isinstance(last, ToolMessage) or last.name != self.handed:
            return super()._answer(messages)
        calls = [
            ToolCall(name=name, args=dict(arguments), id=f"work_{len(messages)}_{number}")
            for number, (name, arguments) in enumerate(self.work, start=1)
        ]
        return AIMessage("", tool_calls=calls, response_metadata={"model_name": "scripted-1"})


def supervisor(saver: Saver, slow: Slow) -> Graph:
    """A supervisor with a worker, who calls three tools, a helper, and one who asks a person."""
    leads = ScriptedModel(
        script={
            "Have the worker work.": (("transfer_to_worker", {}),),
            "Have the helper help.": (("transfer_to_helper", {}),),
            "Have the asker ask.": (("transfer_to_asker", {}),),
        }
    )
    works = Teammate(handed="transfer_to_worker", work=ALL_THREE)
    helps = Teammate(handed="transfer_to_helper", work=(("fast", {}),))
    asks = Teammate(
        handed="transfer_to_asker", work=(("approve", {"question": "May I?"}), ("fast", {}))
    )
    team = [
        create_agent(works, all_tools(slow), name="worker"),
        create_agent(helps, all_tools(slow), name="helper"),
        create_agent(asks, all_tools(slow), name="asker"),
    ]
    with warnings.catch_warnings():
        # It builds the supervisor with create_react_agent, which is deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        return create_supervisor(team, model=leads).compile(checkpointer=saver)


def swarm(saver: Saver, slow: Slow) -> Graph:
    """Alice and Bob, who hand the conversation to each other; Bob calls three tools at once."""
    alice = ScriptedModel(
        script={"Get me Bob.": (("transfer_to_bob", {}),), "Call fast.": (("fast", {}),)}
    )
    bob = Teammate(
        handed="transfer_to_bob",
        work=ALL_THREE,
        script={**SCRIPT, "Get me Alice.": (("transfer_to_alice", {}),)},
    )
    to_bob, to_alice = (
        create_handoff_tool(agent_name="bob"),
        create_handoff_tool(agent_name="alice"),
    )
    team = [
        create_agent(alice, [*all_tools(slow), to_bob], name="alice"),
        create_agent(bob, [*all_tools(slow), to_alice], name="bob"),
    ]
    return create_swarm(team, default_active_agent="alice").compile(checkpointer=saver)


def side_by_side(saver: Saver, slow: Slow) -> Graph:
    """Two agents that run at once; one is slow, and dies when the other has finished."""
    quick = ScriptedModel(script={"Work.": (("fast", {}),), "Ask.": (("fast", {}),)})
    patient = ScriptedModel(
        script={
            "Work.": (("slow", {"after": AFTER_THE_OTHER}),),
            "Ask.": (("approve", {"question": "May I?"}),),
        }
    )
    builder = StateGraph(MessagesState)
    for name, model in (("quick", quick), ("patient", patient)):
        builder.add_node(name, create_agent(model, all_tools(slow), name=name))
        builder.add_edge(START, name)
    return builder.compile(checkpointer=saver)


FAMILIES: Mapping[str, Family] = {
    "supervisor": supervisor,
    "swarm": swarm,
    "side_by_side": side_by_side,
}
