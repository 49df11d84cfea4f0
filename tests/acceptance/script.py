"""What the model of the tests' programs is told and says, and the tools that they have."""

from collections.abc import Callable

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, tool
from langgraph.types import interrupt

from repair_service.demo.model import ScriptedModel
from repair_service.demo.programs import SCRIPT, Graph, Saver, Slow, make_tools

MODEL = ScriptedModel(
    script={
        **SCRIPT,
        "Ask me, and call slow.": (("approve", {"question": "May I?"}), ("slow", {"after": 1})),
        "Ask me twice.": (("approve", {"question": "This?"}), ("approve", {"question": "That?"})),
        "Ask me twice, and call slow.": (
            ("approve", {"question": "This?"}),
            ("approve", {"question": "That?"}),
            ("slow", {"after": 2}),
        ),
        "Ask me first, then be slow.": (("ask_then_slow", {}),),
        "Write a file, and call slow.": (
            ("write_file", {"file_path": "/kept.txt", "content": "kept"}),
            ("slow", {"after": 1}),
        ),
        "Take a note, and call slow.": (("take_note", {}), ("slow", {"after": 1})),
        "Have slow called.": (
            ("task", {"description": "Call slow.", "subagent_type": "helper"}),
            ("fast", {}),
        ),
        "Hand over.": (("hand_over", {}),),
        "Open the page.": (("browser", {}),),
    }
)
"""The demo's script and what the tests add to it."""


class Forgetful(ScriptedModel):
    """A model whose call ids start anew in every turn."""

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        answer = super()._answer(messages)
        for number, call in enumerate(answer.tool_calls, start=1):
            call["id"] = f"call_{number}"
        return answer


Family = Callable[[Saver, Slow], Graph]
"""Builds a graph on a saver; its tool `slow` does what it is given."""


def all_tools(slow: Slow) -> list[BaseTool]:
    """The demo's tools, and one that asks before it is slow."""

    @tool
    def ask_then_slow() -> str:
        """Ask a person, then take long."""
        answer = interrupt("May I be slow?")
        return f"{answer}: {slow(0)}"

    return [*make_tools(slow), ask_then_slow]
