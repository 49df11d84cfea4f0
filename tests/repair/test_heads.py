"""A thread's heads are read when they are asked for, once each."""

from dataclasses import replace

from repair_service.checkpoint.rows import HeadRows
from repair_service.repair.heads import ThreadHeads
from tests.checkpoint.heads import conversation, head_rows, stored

HEALTHY = head_rows({"messages": stored(conversation())})
BROKEN = replace(HEALTHY, row=replace(HEALTHY.row, metadata={"step": "none"}))


class Shelf(dict[str, HeadRows]):
    """Notes which rows are taken from it."""

    def __init__(self, rows: dict[str, HeadRows]) -> None:
        super().__init__(rows)
        self.taken: list[str] = []

    def __getitem__(self, namespace: str) -> HeadRows:
        self.taken.append(namespace)
        return super().__getitem__(namespace)


def test_a_head_is_read_when_it_is_asked_for_and_once() -> None:
    shelf = Shelf({"": HEALTHY, "a:1": HEALTHY, "a:2": BROKEN})
    heads = ThreadHeads(shelf)
    assert shelf.taken == []
    assert heads[""] is heads[""]
    assert heads.problem("a:2")
    assert heads.problem("a:2")
    assert shelf.taken == ["", "a:2"]


def test_a_head_that_cannot_be_read_is_none_of_them_and_says_why() -> None:
    heads = ThreadHeads({"": HEALTHY, "a:1": BROKEN})
    assert list(heads) == [""]
    assert len(heads) == 1
    assert heads.get("a:1") is None
    assert "step" in (heads.problem("a:1") or "")
    assert heads.problem("") is None


def test_a_namespace_without_a_head_has_no_problem() -> None:
    heads = ThreadHeads({"": HEALTHY})
    assert heads.get("gone:1") is None
    assert heads.problem("gone:1") is None
