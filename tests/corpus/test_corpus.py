"""The corpus loads whole."""

from tests.conftest import Corpus

ROWS = {
    "python-0.2.76": (108, 312, 194, 10),
    "python-0.4.10": (129, 296, 202, 10),
    "python-1.0.10": (164, 196, 274, 10),
    "python-1.2.24": (198, 226, 334, 10),
    "js-1.7.3": (12, 31, 19, 5),
}


def test_every_row_of_a_store_is_loaded(corpus: Corpus) -> None:
    with corpus.database.connect() as connection:
        counted = connection.execute(
            "SELECT (SELECT count(*) FROM checkpoints), (SELECT count(*) FROM checkpoint_blobs),"
            " (SELECT count(*) FROM checkpoint_writes),"
            " (SELECT count(*) FROM checkpoint_migrations)"
        ).fetchone()
    assert counted == ROWS[corpus.version]


def test_every_thread_of_a_store_has_an_expected_verdict(corpus: Corpus) -> None:
    with corpus.database.connect() as connection:
        threads = connection.execute("SELECT DISTINCT thread_id FROM checkpoints").fetchall()
    assert {each.thread_id for each in corpus.expected} == {thread for (thread,) in threads}
