"""Which classes a store names: over values, pending writes and delta history, and bounded."""

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from repair_service.demo.programs import said, thread
from repair_service.migration.classes import Named
from repair_service.report.classes import AllowList
from repair_service.store.gateway import Store
from repair_service.sweep import classes
from repair_service.sweep.classes import ClassCounts, count_classes
from repair_service.sweep.selection import Selection
from repair_service.sweep.totals import Totals
from tests.acceptance.moved import OLD, deployed, shop
from tests.conftest import Corpus, Database

ITEM, SAID = Named(OLD.module, OLD.item), Named(OLD.module, OLD.said)


def count(database: Database) -> ClassCounts:
    def moved(totals: Totals) -> None:
        assert totals.heads

    with Store.connect(database.url, schema=database.schema) as store:
        return count_classes(store, Selection(), moved)


@pytest.mark.parametrize("delta", [False, True], ids=["stored whole", "delta channel"])
def test_every_object_of_the_newest_state_is_counted(delta: bool, database: Database) -> None:
    with PostgresSaver.from_conn_string(database.url) as saver, deployed(OLD) as (item, spoken):
        graph = shop(saver, item, spoken, delta=delta)
        for name in ("one", "two"):
            graph.invoke(said("hello"), thread(name))

    found = count(database)

    # The last thing with one in it, two in Sends, one in a question, one that is put already.
    assert (found.objects[ITEM], found.heads[ITEM]) == (12, 2)
    assert (found.objects[SAID], found.heads[SAID]) == (4, 2)
    assert (found.unread, found.others) == (0, 0)


def test_what_is_said_to_be_refused_is_what_langgraph_refuses(
    database: Database, load_corpus: Callable[[str], Corpus]
) -> None:
    allowed = AllowList.installed()
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    with PostgresSaver.from_conn_string(database.url) as saver, deployed(OLD) as (item, spoken):
        shop(saver, item, spoken).invoke(said("hello"), thread("one"))
        values: dict[Named, Any] = {ITEM: item("x"), SAID: spoken("x")}
        for named, value in values.items():
            assert allowed.says(named) == "refused"
            assert not isinstance(strict.loads_typed(strict.dumps_typed(value)), type(value))
    for named in count(load_corpus("python-1.2.24").database).objects:
        assert allowed.says(named) == "allowed"


def test_an_application_that_makes_classes_without_end_takes_no_memory_without_end(
    load_corpus: Callable[[str], Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = load_corpus("python-1.2.24").database
    whole = count(database)
    monkeypatch.setattr(classes, "MOST_CLASSES", 2)
    bounded = count(database)
    assert len(bounded.objects) == 2
    assert bounded.objects.total() + bounded.others == whole.objects.total()


def test_every_store_of_the_corpus_is_read(corpus: Corpus) -> None:
    found = count(corpus.database)
    assert sum(named.name == "AIMessage" for named in found.objects) == 1
    assert found.unread == (corpus.version == "python-1.2.24")
