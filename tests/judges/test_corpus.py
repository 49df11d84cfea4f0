"""Every list that real programs left behind: refused as it was, taken by everyone once repaired."""

from langchain_core.language_models import BaseChatModel

from repair_service.repair.verdict import FaultKind
from tests.judges.clients import as_a_turn, refusal
from tests.judges.conftest import Swept

UNANSWERED = {FaultKind.UNANSWERED_CALL, FaultKind.UNCOMMITTED_RESULT}

ORDERLY = ("openai-chat", "anthropic")
"""The providers that see every fault. Responses pairs a call with its result over any distance, and
Gemini's client puts results behind their calls and leaves out those that are one too many."""


def test_every_provider_refuses_a_list_with_an_unanswered_call(
    swept: Swept, clients: dict[str, BaseChatModel]
) -> None:
    left = [key for key, head in swept.found.items() if {f.kind for f in head.faults} & UNANSWERED]
    accepted = [
        (key, name)
        for key in left
        for name, client in clients.items()
        if refusal(client, as_a_turn(swept.before[key])) is None
    ]
    assert len(left) > 10
    assert accepted == []


def test_every_other_fault_is_refused_where_the_client_does_not_hide_it(
    swept: Swept, clients: dict[str, BaseChatModel]
) -> None:
    left = [
        key for key, head in swept.found.items() if not {f.kind for f in head.faults} & UNANSWERED
    ]
    accepted = [
        (key, name)
        for key in left
        for name in ORDERLY
        if refusal(clients[name], as_a_turn(swept.before[key])) is None
    ]
    assert {key[0] for key in left} == {"misplaced", "duplicate", "orphan"}
    assert accepted == []


def test_every_provider_takes_every_repaired_list(
    swept: Swept, clients: dict[str, BaseChatModel]
) -> None:
    refused = {
        (key, name): said
        for key, messages in swept.after.items()
        for name, client in clients.items()
        if (said := refusal(client, as_a_turn(messages))) is not None
    }
    assert refused == {}


def test_a_list_that_ends_with_results_is_taken_as_it_is(
    swept: Swept, clients: dict[str, BaseChatModel]
) -> None:
    # What `invoke(None)` sends: the node that reads tool results is next.
    ended = [messages for messages in swept.after.values() if messages[-1].type == "tool"]
    refused = [
        said
        for messages in ended
        for client in clients.values()
        if (said := refusal(client, messages)) is not None
    ]
    assert len(ended) > 5
    assert refused == []
