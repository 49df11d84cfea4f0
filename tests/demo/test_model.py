"""The scripted model refuses exactly what the providers refuse, and plays its script."""

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from repair_service.demo.model import ProviderRefusal, ScriptedModel, check

ASK = HumanMessage("Go.")


def calls(*ids: str | None) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name="fast", args={}, id=id_) for id_ in ids])


def result(of: str, text: str = "done") -> ToolMessage:
    return ToolMessage(text, tool_call_id=of)


ACCEPTED = {
    "no call": [ASK],
    "a system message first": [SystemMessage("Be kind."), ASK],
    "one call": [ASK, calls("a"), result("a")],
    "two calls, answered in another order": [ASK, calls("a", "b"), result("b"), result("a")],
    "an id used again in a later turn": [
        *(ASK, calls("a"), result("a"), AIMessage("Done.")),
        *(ASK, calls("a"), result("a")),
    ],
}

REFUSED = {
    "no result": [ASK, calls("a")],
    "no result for one of two": [ASK, calls("a", "b"), result("a")],
    "a message between": [ASK, calls("a"), ASK, result("a")],
    "a message between two results": [ASK, calls("a", "b"), result("a"), ASK, result("b")],
    "overtaken": [ASK, calls("a"), ASK],
    "two results": [ASK, calls("a"), result("a"), result("a")],
    "a result of an earlier turn does not count": [
        *(ASK, calls("a"), result("a"), AIMessage("Done.")),
        *(ASK, calls("a"), ASK),
    ],
    "a result first": [result("a"), ASK],
    "a result that answers no call": [ASK, calls("a"), result("a"), result("b")],
    "an empty id": [ASK, calls(""), result("")],
    "no id": [ASK, calls(None), ASK],
    "an id used twice in one message": [ASK, calls("a", "a"), result("a")],
    "an empty result": [ASK, calls("a"), result("a", "")],
    "an invalid call without a result": [
        ASK,
        AIMessage(
            "",
            invalid_tool_calls=[
                {"name": "fast", "args": "{", "id": "a", "error": None, "type": "invalid_tool_call"}
            ],
        ),
        ASK,
    ],
    "nothing to answer": [ASK, AIMessage("Done.")],
}


@pytest.mark.parametrize("messages", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepts(messages: list[BaseMessage]) -> None:
    check(messages)


@pytest.mark.parametrize("messages", REFUSED.values(), ids=REFUSED.keys())
def test_refuses_with_a_400(messages: list[BaseMessage]) -> None:
    with pytest.raises(ProviderRefusal, match=r"^Error code: 400 - ") as refusal:
        ScriptedModel().invoke(messages)
    assert refusal.value.status_code == 400


def test_calls_what_its_script_says_with_ids_that_never_come_twice() -> None:
    model = ScriptedModel(script={"Go.": (("fast", {}), ("slow", {"after": 1}))})

    first = model.invoke([ASK])
    second = model.invoke([ASK, first, result("call_1_1"), result("call_1_2"), ASK])

    assert [(c["name"], c["args"]) for c in first.tool_calls] == [
        ("fast", {}),
        ("slow", {"after": 1}),
    ]
    assert [c["id"] for c in (*first.tool_calls, *second.tool_calls)] == [
        *("call_1_1", "call_1_2"),
        *("call_2_1", "call_2_2"),
    ]


def test_says_what_the_tools_said() -> None:
    model = ScriptedModel()
    messages = [ASK, calls("a", "b"), result("a", "one"), result("b", "two")]
    assert model.bind_tools([]).invoke(messages).text == "The tools said: one / two"
    assert model.invoke([ASK]).text == "You said: Go."
