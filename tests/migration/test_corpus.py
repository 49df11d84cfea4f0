"""Every store of the corpus, once its node `tools` has another name: what is carried over, and how.

LangGraph itself, of today, reads the heads before under the old name and behind under the new one.
"""

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Migration, Policy, Verdict
from repair_service.store.gateway import Store
from tests.acceptance.service import audit, rows, sweep
from tests.conftest import Corpus, Database

RENAMED = Policy(min_idle=0, migration=Migration("nodes", {"tools": "hands"}))


def pending_at(database: Database, node: str) -> dict[str, Any]:
    """By thread, what stands at a node in its root graph: writes by channel, index and content."""
    from repair_service.checkpoint.tasks import read_head
    from repair_service.errors import Unreadable

    found = {}
    with Store.connect(database.url, schema=database.schema) as store:
        for batch in store.scan():
            for head in store.in_whole(batch):
                if head.row.checkpoint_ns:
                    continue
                try:
                    tasks = [task for task in read_head(head).tasks if task.node == node]
                except Unreadable:
                    continue
                if tasks:
                    found[head.row.thread_id] = [
                        (
                            task.kind,
                            task.index,
                            task.call_ids,
                            (task.finished, task.failed, task.interrupted, task.answered),
                            [(write.channel, write.idx, write.type) for write in task.writes],
                            all(write.task_id in task.ids for write in task.writes),
                        )
                        for task in tasks
                    ]
    return found


def test_what_stands_at_the_node_stands_at_the_new_one(corpus: Corpus) -> None:
    database = corpus.database
    before, there = pending_at(database, "tools"), rows(database)
    assert before

    done = {item.thread_id: item for item in sweep(database, RENAMED)}

    carried = {name for name, item in done.items() if item.verdict is Verdict.REPAIRED}
    left = {name: item for name, item in done.items() if name not in carried}
    assert pending_at(database, "hands") == {name: before[name] for name in carried}
    assert set(pending_at(database, "tools")) == before.keys() - carried
    for item in left.values():
        assert item.verdict in (Verdict.MANUAL, Verdict.UNREADABLE), item
    if corpus.version == "python-0.4.10":
        # Its Sends are kept with the parent.
        assert {name for name in left if not name.startswith("react_v2")} == set()
        assert all("are kept with its parent" in item.reason for item in left.values())
    else:
        assert left == {}
    for table, known in there.items():
        assert set(known) <= set(rows(database)[table])
    assert {item.thread_id for item in audit(database, RENAMED)} == set(left)


def graph(saver: Any, node: str) -> Any:
    """A graph of two nodes, of which one has another name after the deploy."""
    builder = StateGraph(MessagesState)
    for name in ("agent", "model", "chat", node):
        builder.add_node(name, lambda state: {})
        builder.add_edge(name, END)
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("version", ["python-0.2.76", "python-0.4.10", "python-1.2.24"])
def test_langgraph_reads_the_same_step_under_the_new_name(
    version: str, load_corpus: Callable[[str], Corpus]
) -> None:
    database = load_corpus(version).database
    # Half a blob is nothing that LangGraph reads.
    names = [item.thread_id for item in audit(database, RENAMED) if item.thread_id != "corrupt"]
    with PostgresSaver.from_conn_string(database.url) as saver:
        saver.setup()
        before = {name: read(graph(saver, "tools"), name) for name in names}
        done: list[Diagnosis] = sweep(database, RENAMED)
        for item in done:
            if item.verdict is Verdict.REPAIRED and item.thread_id in before:
                found = read(graph(saver, "hands"), item.thread_id)
                assert found == before[item.thread_id], item


def read(graph: Any, name: str) -> Any:
    """What LangGraph says of a thread: how many tasks are next, what they ask, and the state."""
    state = graph.get_state({"configurable": {"thread_id": name}})
    asked = [each.value for task in state.tasks for each in task.interrupts]
    # An id that a message does not have yet is made up anew at each look.
    results = [
        [message.content for message in (task.result or {}).get("messages", [])]
        for task in state.tasks
    ]
    values = dict(state.values)
    said = [
        (each.type, each.content, getattr(each, "tool_calls", None))
        for each in values.pop("messages", [])
    ]
    return len(state.next), asked, results, said, values
