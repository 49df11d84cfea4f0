"""A namespace is live only while the task it names is pending at its parent's head."""

from repair_service.checkpoint.head import Head, Task
from repair_service.checkpoint.rows import CheckpointRow, HeadRows
from repair_service.repair.namespaces import is_live, live_below, outer, parent_task, shape

ROOT_HEAD = "1f1ecfe3-cfd4-628b-8003-544fedb14bd2"
TASK = "7e84b979-0055-60d3-7bdd-84af8198c575"


def head(
    namespace: str = "",
    tasks: tuple[Task, ...] = (),
    parents: dict[str, str] | None = None,
    checkpoint_id: str = ROOT_HEAD,
) -> Head:
    row = CheckpointRow("t", namespace, checkpoint_id, None, {}, {"parents": parents or {}})
    return Head(HeadRows(row, {}), "python-4", 1, 0.0, {}, frozenset(), tasks, (), frozenset())


def worker(*, finished: bool = False) -> Task:
    return Task("pull", "worker", ids=(TASK,), finished=finished)


def test_the_root_and_a_subgraph_with_memory_of_its_own_are_always_live() -> None:
    heads = {"": head(), "memory": head("memory")}
    assert is_live("", heads)
    assert is_live("memory", heads)


def test_a_subgraph_is_live_while_its_task_is_pending() -> None:
    child = f"worker:{TASK}"
    assert is_live(child, {"": head(tasks=(worker(),)), child: head(child)})


def test_a_subgraph_is_dead_once_its_task_has_finished() -> None:
    child = f"worker:{TASK}"
    heads = {"": head(tasks=(worker(finished=True),)), child: head(child, parents={"": ROOT_HEAD})}
    assert not is_live(child, heads)


def test_a_subgraph_is_dead_once_its_parent_moved_on() -> None:
    child = f"worker:{TASK}"
    moved = Task("pull", "other", ids=("00000000-0000-0000-0000-00000000000a",))
    heads = {"": head(tasks=(moved,)), child: head(child, parents={"": "an-older-checkpoint"})}
    assert not is_live(child, heads)


def test_a_task_whose_id_cannot_be_recomputed_is_known_by_its_parents_head() -> None:
    child = f"worker:{TASK}"
    unknown = Task("pull", "worker", ids=())
    heads = {"": head(tasks=(unknown,)), child: head(child, parents={"": ROOT_HEAD})}
    assert is_live(child, heads)


def test_a_subgraph_below_a_dead_one_is_dead() -> None:
    middle, inner = f"worker:{TASK}", f"worker:{TASK}|inner:{TASK}"
    heads = {
        "": head(),
        middle: head(middle, tasks=(Task("pull", "inner", ids=(TASK,)),)),
        inner: head(inner),
    }
    assert not is_live(inner, heads)


def test_a_second_subgraph_of_one_task_hangs_under_the_same_task() -> None:
    parent = parent_task(f"worker:{TASK}|1")
    assert parent is not None
    assert (parent.namespace, parent.node, parent.task_id) == ("", "worker", TASK)


def test_outer_namespaces_come_outermost_first() -> None:
    assert outer(f"a:{TASK}|b:{TASK}|c:{TASK}") == ["", f"a:{TASK}", f"a:{TASK}|b:{TASK}"]


def test_what_hangs_below_is_found_at_any_depth() -> None:
    middle, inner = f"worker:{TASK}", f"worker:{TASK}|inner:{TASK}"
    heads = {
        "": head(tasks=(worker(),)),
        middle: head(middle, tasks=(Task("pull", "inner", ids=(TASK,)),)),
        inner: head(inner),
        "memory": head("memory", parents={"": "another-checkpoint"}),
    }
    assert live_below("", heads) == [middle, inner]


def test_a_subgraph_with_memory_hangs_under_the_checkpoint_that_called_it() -> None:
    heads = {"": head(tasks=(worker(),)), "memory": head("memory", parents={"": ROOT_HEAD})}
    assert live_below("", heads) == ["memory"]


def test_the_shape_of_a_namespace_has_no_task_ids() -> None:
    assert shape(f"a:{TASK}|b:{TASK}|1") == "a|b|1"
