"""What others run at request time finds nothing left to do on a repaired list."""

import pytest
from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
from langchain_core.messages import BaseMessage
from langgraph.prebuilt.chat_agent_executor import _validate_chat_history
from langgraph.runtime import Runtime

from repair_service.repair.verdict import FaultKind
from tests.judges.conftest import Swept


def patched_by_deepagents(messages: list[BaseMessage]) -> bool:
    state = {"messages": messages}
    return PatchToolCallsMiddleware().before_agent(state, Runtime()) is not None  # type: ignore[arg-type]


def test_deepagents_patches_a_list_as_it_was_left(swept: Swept) -> None:
    left = [
        key
        for key, head in swept.found.items()
        if FaultKind.UNANSWERED_CALL in {fault.kind for fault in head.faults}
    ]
    assert left
    assert [key for key in left if not patched_by_deepagents(swept.before[key])] == []


def test_deepagents_patches_no_repaired_list(swept: Swept) -> None:
    assert [key for key, messages in swept.after.items() if patched_by_deepagents(messages)] == []


def test_create_react_agent_refuses_a_list_as_it_was_left(swept: Swept) -> None:
    left = [
        key
        for key, head in swept.found.items()
        if FaultKind.UNANSWERED_CALL in {fault.kind for fault in head.faults}
    ]
    assert left
    for key in left:
        with pytest.raises(ValueError, match="do not have a corresponding ToolMessage"):
            _validate_chat_history(swept.before[key])


def test_create_react_agent_takes_every_repaired_list(swept: Swept) -> None:
    for messages in swept.after.values():
        _validate_chat_history(messages)
