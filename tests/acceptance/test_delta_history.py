"""A list that is rebuilt from its history is the one that LangGraph reads, or is not touched."""

from random import Random
from typing import Annotated, Any, TypedDict

import pytest
from deepagents._messages_reducer import _messages_delta_reducer as delta_reducer
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import read_transcripts
from repair_service.demo.programs import EARLIER, LINES, Graph, said, thread
from repair_service.demo.witness import KILLED
from repair_service.repair.verdict import Verdict
from repair_service.store.gateway import Store
from repair_service.transcript.write import write_transcript
from tests.acceptance.nursery import Nursery
from tests.acceptance.programs import FAMILIES
from tests.acceptance.service import (
    REFUSED,
    assert_accepted,
    assert_repaired,
    audit,
    never_again,
    results,
    rows,
    sweep,
)
from tests.conftest import Database

STEPS = 45
KEPT = {"call_4_1": "fast call_4_1", "call_4_3": "fast call_4_3"}


class Planned(TypedDict):
    """What each node is to write, and the list that all of them write to."""

    messages: Annotated[list[Any], DeltaChannel(delta_reducer, snapshot_frequency=7)]
    plan: dict[str, list[Any]]


def planned_graph(saver: PostgresSaver) -> Graph:
    """Two nodes at once, and one behind them; each writes what it is told."""

    def node(name: str) -> Any:
        return lambda state: {"messages": state.get("plan", {}).get(name, [])}

    builder = StateGraph(Planned)
    for name in ("left", "right", "last"):
        builder.add_node(name, node(name))
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    builder.add_edge(["left", "right"], "last")
    builder.add_edge("last", END)
    return builder.compile(checkpointer=saver)


def some_messages(random: Random) -> list[AnyMessage]:
    """A few messages: new ones, new forms of old ones, removals."""
    made: list[AnyMessage] = []
    for _ in range(random.randrange(4)):
        identifier = random.choice([None, *"abcdefgh"])
        text = f"text {random.random()}"
        kind = random.randrange(12)
        if kind == 0:
            made.append(RemoveMessage(REMOVE_ALL_MESSAGES))
        elif kind < 3 and identifier:
            made.append(RemoveMessage(identifier))
        elif kind < 6:
            made.append(HumanMessage(text, id=identifier))
        elif kind < 9:
            made.append(AIMessage(text, id=identifier))
        else:
            made.append(ToolMessage(text, tool_call_id="call", id=identifier))
    return made


def take_a_step(graph: Graph, random: Random) -> None:
    """A run in some durability, or an update by hand."""
    if random.random() < 0.4:
        node = random.choice(["left", "right", "last"])
        graph.update_state(thread("long"), {"messages": some_messages(random)}, as_node=node)
        return
    plan = {name: some_messages(random) for name in ("left", "right", "last")}
    given = {"messages": some_messages(random), "plan": plan}
    graph.invoke(given, thread("long"), durability=random.choice(["sync", "async", "exit"]))


def rebuilt(database: Database, saver: PostgresSaver, thread_id: str) -> Any:
    """The list as the service reads it, as LangChain's objects."""
    with Store.connect(database.url, schema=database.schema) as store:
        rows = store.threads([thread_id])[thread_id]
    head = read_head(rows.heads[""])
    found = read_transcripts(head, rows.ancestors[""], "" in rows.pruned)
    if "messages" not in found:
        return []
    return saver.serde.loads_typed(("msgpack", write_transcript(found["messages"])))


@pytest.mark.parametrize("seed", range(2))
def test_any_history_reads_as_langgraph_reads_it(
    seed: int, database: Database, saver: PostgresSaver
) -> None:
    random = Random(seed)
    graph = planned_graph(saver)
    for step in range(STEPS):
        take_a_step(graph, random)
        values = graph.get_state(thread("long")).values
        assert rebuilt(database, saver, "long") == values.get("messages", []), step


def die(nursery: Nursery, database: Database, thread_id: str) -> None:
    """Three turns, and a death in the fourth; a snapshot is written every five updates."""
    inputs = [EARLIER, EARLIER, EARLIER, LINES["three-calls"]]
    assert nursery.run("talk", "delta", database.url, thread_id, inputs) == KILLED


def prune(database: Database, thread_id: str, *, all_but_head: bool) -> None:
    """Remove old checkpoints: those before the newest snapshot, or all but the head."""
    newest = "" if all_but_head else "AND checkpoint #>> '{channel_values,messages}' = 'true'"
    with database.connect() as connection:
        pruned = connection.execute(
            "DELETE FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_id <"
            f" (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = %(thread)s {newest})",
            {"thread": thread_id},
        )
        assert pruned.rowcount > 0


def test_history_that_was_pruned_before_the_snapshot_is_not_missed(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    for thread_id in ("continued", "told"):
        die(nursery, database, thread_id)
        prune(database, thread_id, all_but_head=False)
    graph = FAMILIES["delta"](saver, never_again)
    before = {name: graph.get_state(thread(name)).values["messages"] for name in ("told",)}

    assert_repaired(database, ("continued", ""), ("told", ""))

    for thread_id in ("continued", "told"):
        messages = graph.get_state(thread(thread_id)).values["messages"]
        assert_accepted(messages)
        assert results(messages).items() >= KEPT.items()
    assert {m.id for m in before["told"]} <= {
        m.id for m in graph.get_state(thread("told")).values["messages"]
    }
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text.startswith("The tools said: fast call_4_1")
    state = graph.invoke(said("Are you there?"), thread("told"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"


def test_a_list_whose_history_was_pruned_is_unreadable(
    database: Database, nursery: Nursery
) -> None:
    die(nursery, database, "pruned")
    prune(database, "pruned", all_but_head=True)

    before = rows(database)
    (item,) = sweep(database)
    assert item.verdict is Verdict.UNREADABLE
    assert "pruned" in item.reason
    assert rows(database) == before


def test_results_that_a_message_overtook_stand_once_in_a_rebuilt_list(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["delta"](saver, never_again)
    for thread_id in ("continued", "told"):
        inputs = [EARLIER, LINES["three-calls"]]
        assert nursery.run("talk", "delta", database.url, thread_id, inputs) == KILLED
        with pytest.raises(REFUSED):
            graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")

    assert_repaired(database, ("continued", ""), ("told", ""))

    for thread_id in ("continued", "told"):
        messages = graph.get_state(thread(thread_id)).values["messages"]
        assert_accepted(messages)
        found = [(m.tool_call_id, m.text) for m in messages if isinstance(m, ToolMessage)]
        for call_id in ("call_2_1", "call_2_3"):
            assert found.count((call_id, f"fast {call_id}")) == 1
        assert len(found) == 4
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"
    state = graph.invoke(said("Hello?"), thread("told"), durability="sync")
    assert state["messages"][-1].text == "You said: Hello?"
    assert audit(database) == []


def test_a_deep_agent_that_mended_itself_is_left_alone(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    inputs = [EARLIER, LINES["three-calls"]]
    assert nursery.run("talk", "deep_agent", database.url, "mended", inputs) == KILLED
    graph = FAMILIES["deep_agent"](saver, never_again)
    # Its middleware says of each open call that it was cancelled before the model sees the list.
    state = graph.invoke(said("Are you there?"), thread("mended"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"

    before = rows(database)
    assert sweep(database) == []
    assert rows(database) == before


def test_the_other_rebuilt_channels_keep_their_value(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["deep_agent"](saver, never_again)
    inputs = ["Write a file, and call slow.", EARLIER, LINES["one-call"]]
    for thread_id in ("continued", "told"):
        assert nursery.run("talk", "deep_agent", database.url, thread_id, inputs) == KILLED
    before = graph.get_state(thread("told")).values["files"]
    assert list(before) == ["/kept.txt"]

    assert_repaired(database, ("continued", ""), ("told", ""))

    assert graph.get_state(thread("told")).values["files"] == before
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text.startswith("The tools said: ")
    assert state["files"].keys() == before.keys()
    state = graph.invoke(said("Are you there?"), thread("told"), durability="sync")
    assert state["files"] == before
