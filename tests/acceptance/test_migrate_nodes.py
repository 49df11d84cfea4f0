"""A deploy renamed a node: threads that stand at it go on in the new graph, and can go back."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command

from repair_service.demo.programs import (
    EARLIER,
    GRAPHS,
    LINES,
    Builder,
    Graph,
    said,
    thread,
)
from repair_service.demo.witness import KILLED
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Migration, Policy, Verdict
from tests.acceptance import renamed
from tests.acceptance.moved import talk
from tests.acceptance.nursery import Nursery
from tests.acceptance.script import MODEL, all_tools
from tests.acceptance.service import assert_accepted, audit, rows, sweep
from tests.conftest import Database


def migration(*removed: str, **renames: str) -> Policy:
    """A policy that renames and removes nodes."""
    return Policy(min_idle=0, migration=Migration("nodes", renames, frozenset(removed)))


RENAMED = migration(approve="review")


def carry_over(database: Database, policy: Policy = RENAMED, count: int = 1) -> list[Diagnosis]:
    """Migrate: so many heads get one new checkpoint; every row that was there stays."""
    before = rows(database)
    planned = audit(database, policy)
    assert rows(database) == before
    done = sweep(database, policy)
    assert [item.verdict for item in done] == [Verdict.REPAIRED] * count, [d.reason for d in done]
    assert [item.checkpoint_id for item in planned] == [item.checkpoint_id for item in done]
    after = rows(database)
    for table, there in before.items():
        assert set(there) <= set(after[table])
    assert audit(database, policy) == []
    return done


def questions(graph: Graph, name: str) -> list[Any]:
    """What the thread asks, in order."""
    return [each.value for each in graph.get_state(thread(name)).interrupts]


@pytest.mark.parametrize("by_id", [False, True])
def test_an_answer_reaches_the_renamed_node(
    by_id: bool, database: Database, saver: PostgresSaver
) -> None:
    old, new = renamed.approval(saver, "approve"), renamed.approval(saver, "review")
    old.invoke({"text": "hello"}, thread("waits"))
    assert questions(new, "waits") == []
    assert new.get_state(thread("waits")).next == ()

    (item,) = carry_over(database)

    assert "approve becomes review" in item.reason
    state = new.get_state(thread("waits"))
    assert state.next == ("review",)
    assert [each.value for each in state.interrupts] == [{"question": "May I?"}]
    answer: Any = {state.interrupts[0].id: "yes"} if by_id else "yes"
    done = new.invoke(Command(resume=answer), thread("waits"))
    assert done["log"] == ["drafted", "asked", "sent: yes"]
    assert new.get_state(thread("waits")).next == ()


def test_a_second_question_after_an_answer_is_asked_again(
    database: Database, saver: PostgresSaver
) -> None:
    old, new = renamed.twice(saver, "approve"), renamed.twice(saver, "review")
    old.invoke({"text": "hello"}, thread("asks"))
    old.invoke(Command(resume="one"), thread("asks"))
    assert questions(old, "asks") == ["Second?"]

    carry_over(database)

    assert questions(new, "asks") == ["Second?"]
    (question,) = new.get_state(thread("asks")).interrupts
    done = new.invoke(Command(resume={question.id: "two"}), thread("asks"))
    assert done["log"] == ["one two"]


@pytest.mark.parametrize("program", [renamed.siblings, renamed.uneven])
@pytest.mark.parametrize("fast", ["fast", "quick"])
def test_finished_siblings_and_barriers_go_with_it(
    program: renamed.Program, fast: str, database: Database, saver: PostgresSaver
) -> None:
    old, new = program(saver, "approve"), program(saver, "review", fast)
    old.invoke({"text": "hello"}, thread("waits"))

    carry_over(database, migration(approve="review", fast=fast))

    assert questions(new, "waits") == ["Well?"]
    done = new.invoke(Command(resume="now"), thread("waits"))
    assert sorted(done["log"]) == sorted(
        ["told now", "worked", "joined"] + ["worked"] * (program is renamed.uneven)
    )


def test_what_a_finished_sibling_wrote_to_a_delta_channel_is_merged_once(
    database: Database, saver: PostgresSaver
) -> None:
    old = talk(saver, "messages", delta=True)
    hello = {"messages": [HumanMessage("hello")], "messages_count": 0}
    old.invoke(hello, thread("waits"))

    carry_over(database, migration(speak="say"))

    new = talk(saver, "messages", delta=True, speaker="say")
    new.invoke(Command(resume="yes"), thread("waits"))
    # Read anew, from the rows.
    found = new.get_state(thread("waits")).values["messages"]
    assert sorted(each.text for each in found) == sorted(
        ["hello", "told yes, 1 before", "counted", "round 1 of 3"]
    )


def test_only_a_finished_sibling_has_another_name(database: Database, saver: PostgresSaver) -> None:
    old, new = renamed.siblings(saver, "approve"), renamed.siblings(saver, "approve", "quick")
    old.invoke({"text": "hello"}, thread("waits"))

    carry_over(database, migration(fast="quick"))

    done = new.invoke(Command(resume="now"), thread("waits"))
    assert sorted(done["log"]) == ["joined", "told now", "worked"]


def test_scheduled_sends_keep_their_results(database: Database, saver: PostgresSaver) -> None:
    old, new = renamed.fan_out(saver, "approve"), renamed.fan_out(saver, "review")
    old.invoke({"text": "hello"}, thread("waits"))

    carry_over(database)

    assert questions(new, "waits") == ["One?"]
    done = new.invoke(Command(resume="two"), thread("waits"))
    assert done["log"] == ["planned", "0 done", "1 two", "2 done"]


@pytest.mark.parametrize(
    ("team", "gate", "renames"),
    [
        pytest.param("crew", "approve", {"team": "crew"}, id="the outermost"),
        pytest.param("team", "review", {"team|deep|approve": "review"}, id="the innermost"),
        pytest.param(
            "crew", "review", {"team": "crew", "team|deep|approve": "review"}, id="both of them"
        ),
    ],
)
def test_a_sub_graph_in_the_middle_of_a_task_goes_with_it(
    team: str,
    gate: str,
    renames: dict[str, str],
    database: Database,
    saver: PostgresSaver,
) -> None:
    old, new = renamed.nested(saver, "team", "approve"), renamed.nested(saver, team, gate)
    old.invoke({"text": "hello"}, thread("waits"))

    (item,) = carry_over(database, Policy(min_idle=0, migration=Migration("nodes", renames)))

    assert "2 sub-graph heads with it" in item.reason
    state = new.get_state(thread("waits"), subgraphs=True)
    assert state.next == (team,)
    assert questions(new, "waits") == ["Deep?"]
    answer = {state.interrupts[0].id: "well"}
    done = new.invoke(Command(resume=answer), thread("waits"))
    # What the inner graphs had done before is not done again.
    assert done["log"].count("inner told well") == 1
    assert new.get_state(thread("waits")).next == ()


@pytest.mark.parametrize("text", ["note", "ask"])
@pytest.mark.parametrize(
    "renames", [{"team": "crew"}, {"team|ask": "question"}], ids=["around it", "in it"]
)
def test_a_sub_graph_with_memory_of_its_own_is_left_to_a_person(
    text: str, renames: dict[str, str], database: Database, saver: PostgresSaver
) -> None:
    old = renamed.remembering(saver, "team")
    old.invoke({"text": text}, thread("waits"))
    before = rows(database)

    done = sweep(database, Policy(min_idle=0, migration=Migration("nodes", renames)))

    concerned = text == "ask" or "team" in renames
    assert {item.verdict for item in done} == ({Verdict.MANUAL} if concerned else set())
    assert all("memory of the sub-graph 'team'" in item.reason for item in done)
    assert rows(database) == before


def test_a_loop_comes_back_to_the_new_node(database: Database, saver: PostgresSaver) -> None:
    old, new = renamed.loop(saver, "approve"), renamed.loop(saver, "review")
    old.invoke({"text": "hello"}, thread("waits"))
    old.invoke(Command(resume="again"), thread("waits"))

    carry_over(database)

    assert questions(new, "waits") == ["Round 1?"]
    new.invoke(Command(resume="more"), thread("waits"))
    assert questions(new, "waits") == ["Round 2?"]
    done = new.invoke(Command(resume="stop"), thread("waits"))
    assert done["log"] == ["again", "more", "stop"]


def test_a_static_breakpoint_stays_passed_and_an_open_one_stays_open(
    database: Database, saver: PostgresSaver
) -> None:
    old = renamed.approval(saver, "approve", interrupt_before=["approve"])
    new = renamed.approval(saver, "review", interrupt_before=["review"])
    for name in ("stopped", "passed"):
        old.invoke({"text": "hello"}, thread(name))
    old.invoke(None, thread("passed"))
    assert questions(old, "passed") == [{"question": "May I?"}]

    carry_over(database, count=2)

    new.invoke(None, thread("stopped"))
    for name in ("stopped", "passed"):
        assert questions(new, name) == [{"question": "May I?"}]
        done = new.invoke(Command(resume="yes"), thread(name))
        assert done["log"] == ["drafted", "asked", "sent: yes"]


def test_heads_at_rest_need_nothing(database: Database, saver: PostgresSaver) -> None:
    old, new = renamed.loop(saver, "approve"), renamed.loop(saver, "review")
    old.invoke({"text": "hello"}, thread("rests"))
    old.invoke(Command(resume="stop"), thread("rests"))

    assert audit(database, RENAMED) == []

    new.invoke({"text": "again"}, thread("rests"))
    assert questions(new, "rests") == ["Round 1?"]
    done = new.invoke(Command(resume="stop"), thread("rests"))
    assert done["log"] == ["stop", "stop"]


def test_a_head_at_a_removed_node_is_parked(database: Database, saver: PostgresSaver) -> None:
    old = renamed.approval(saver, "approve")
    old.invoke({"text": "hello"}, thread("waits"))

    (item,) = carry_over(database, migration("approve"))

    assert item.resume == "park"
    assert "1 open question abandoned" in item.reason
    new = renamed.approval(saver, "review")
    assert old.get_state(thread("waits")).next == ()
    new.invoke({"text": "anew"}, thread("waits"))
    assert questions(new, "waits") == [{"question": "May I?"}]


def test_removing_leaves_what_is_pending_beside_it(
    database: Database, saver: PostgresSaver
) -> None:
    old = renamed.fan_out(saver, "approve")
    old.invoke({"text": "hello"}, thread("waits"))

    done = sweep(database, migration("approve"))

    assert [item.verdict for item in done] == [Verdict.MANUAL]
    assert "has finished" in done[0].reason


def test_a_node_that_is_not_in_use_is_reported_without_any_rename(
    database: Database, saver: PostgresSaver
) -> None:
    old = renamed.approval(saver, "approve")
    old.invoke({"text": "hello"}, thread("waits"))
    inner = renamed.nested(saver, "team", "approve")
    inner.invoke({"text": "hello"}, thread("deep"))
    known = frozenset({"draft", "send", "review", "team", "team|deep", "team|wait", "team|deep|x"})

    found = audit(database, Policy(min_idle=0, nodes=known))

    stuck = [item for item in found if item.verdict is Verdict.MANUAL]
    assert [(item.thread_id, item.checkpoint_ns.count("|")) for item in stuck] == [
        ("deep", 1),
        ("waits", 0),
    ]
    assert [fault.kind for item in stuck for fault in item.faults] == ["stuck_node"] * 2
    assert "migrate nodes --rename approve=NEW" in stuck[1].reason
    assert "--rename team|deep|approve=NEW" in stuck[0].reason
    named = Policy(min_idle=0, nodes=known | {"approve", "team|deep|approve"})
    assert {item.verdict for item in audit(database, named)} == {Verdict.WAITING}


def test_a_run_that_is_alive_wins(database: Database, saver: PostgresSaver) -> None:
    old, new = renamed.approval(saver, "approve"), renamed.approval(saver, "review")
    old.invoke({"text": "hello"}, thread("waits"))
    head = old.get_state(thread("waits")).config

    carry_over(database)
    # A run that had loaded the old head before the migration.
    old.invoke(Command(resume="yes"), head)

    assert new.get_state(thread("waits")).values["log"] == ["drafted", "asked", "sent: yes"]


PRESET = migration(agent="model")


def agents(saver: PostgresSaver, version: str, **options: Any) -> tuple[Graph, Graph]:
    """The old prebuilt agent, and the new one."""
    old: Builder = GRAPHS[version]
    new: Builder = GRAPHS["create_agent"]
    tools = all_tools(quick)
    return old(MODEL, tools, saver, **options), new(MODEL, tools, saver)


def quick(after: int) -> str:
    """A tool `slow` that lives."""
    return "slow finished"


def finish(graph: Graph, name: str, answer: Any) -> str:
    """Go on, or answer; then say something: both ways on have to lead to the model."""
    state = graph.invoke(answer, thread(name), durability="sync")
    last: str = state["messages"][-1].text
    state = graph.invoke(said("Are you there?"), thread(name), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"
    assert_accepted(state["messages"])
    return last


@pytest.mark.parametrize("version", ["react_v1", "react_v2"])
def test_create_react_agent_goes_on_as_create_agent(
    version: str, database: Database, saver: PostgresSaver
) -> None:
    old, new = agents(saver, version)
    before_model = agents(saver, version, interrupt_before=["agent"])[0]
    before_tools = agents(saver, version, interrupt_before=["tools"])[0]
    old.invoke(said("Ask me first."), thread("asks"))
    old.invoke(said(EARLIER), thread("rests"))
    before_model.invoke(said(EARLIER), thread("before the model"))
    before_tools.invoke(said(LINES["one-call"]), thread("before the tools"))

    done = sweep(database, PRESET)

    # What stands before the tools is found by the same name in the new agent.
    assert {item.thread_id for item in done} == {"before the model"}
    assert {item.verdict for item in done} == {Verdict.REPAIRED}
    assert finish(new, "before the model", None).startswith("The tools said: fast ")
    assert finish(new, "before the tools", None) == "The tools said: slow finished"
    assert finish(new, "rests", said(EARLIER)).startswith("The tools said: fast ")
    assert finish(new, "asks", Command(resume="yes")) == "The tools said: approved: yes"


@pytest.mark.parametrize("version", ["react_v1", "react_v2"])
def test_what_a_kill_left_of_create_react_agent_goes_on_as_create_agent(
    version: str, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    for name in ("continued", "repaired"):
        scenario = f"{version}:three-calls"
        assert nursery.run("scenario", scenario, database.url, name) == KILLED
    new = agents(saver, version)[1]

    done = sweep(database, PRESET)

    # The results that are on disk start the model in the old graph's words.
    carried = {"continued", "repaired"} if version == "react_v2" else set()
    assert {item.thread_id for item in done} == carried
    assert finish(new, "continued", None)
