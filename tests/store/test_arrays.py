"""A list of ids is read by Postgres as what it was."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repair_service.store.arrays import text_array
from tests.conftest import Database

TEXTS = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["NULL", "null", "", '"', "\\", '","', "{}", "a b", " "])
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TEXTS)
def test_any_texts(database: Database, texts: list[str]) -> None:
    with database.connect() as connection:
        row = connection.execute("SELECT %s::text[]", [text_array(texts)]).fetchone()
    assert row == (texts,)


@pytest.mark.parametrize("texts", [[], [""], ["a", "b"], ["a\\b", 'c"d'], ['","']])
def test_plain_and_quoted_ones(database: Database, texts: list[str]) -> None:
    with database.connect() as connection:
        row = connection.execute("SELECT %s::text[]", [text_array(texts)]).fetchone()
    assert row == (texts,)
