"""Threads of the corpus as rows, for tests that change a row and ask for the verdict again."""

from collections.abc import Callable

import pytest

from repair_service.checkpoint.rows import ThreadRows
from repair_service.store.gateway import Store
from tests.conftest import Corpus

LoadThread = Callable[[str], ThreadRows]


@pytest.fixture
def thread_rows(load_corpus: Callable[[str], Corpus]) -> LoadThread:
    """Loads one thread that a real program of LangGraph 1.2 left behind."""
    database = load_corpus("python-1.2.24").database

    def load(thread_id: str) -> ThreadRows:
        with Store.connect(database.url, schema=database.schema) as store:
            return store.threads([thread_id])[thread_id]

    return load


LoadFrom = Callable[[str, str], ThreadRows]


@pytest.fixture
def rows_of(load_corpus: Callable[[str], Corpus]) -> LoadFrom:
    """Loads one thread that a real program of a release left behind."""

    def load(version: str, thread_id: str) -> ThreadRows:
        database = load_corpus(version).database
        with Store.connect(database.url, schema=database.schema) as store:
            return store.threads([thread_id])[thread_id]

    return load
