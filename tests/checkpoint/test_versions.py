"""A patch's version is greater than all of the head's, and never a live run's."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.checkpoint.versions import next_version
from repair_service.errors import Unreadable
from tests.checkpoint.heads import HEAD, PARENT, text

NUMBERS = st.lists(
    st.integers(1, 10_000) | st.integers(1, 10_000_000).map(lambda n: n / 1024), min_size=1
)


def test_a_text_version_has_the_next_integer_part_in_the_savers_form() -> None:
    version = next_version([text(2), text(11), text(9)], HEAD)
    savers = PostgresSaver.get_next_version(None, text(11), None)  # type: ignore[arg-type]
    assert str(version).split(".")[0] == savers.split(".")[0]
    assert 0 <= float(str(version).partition(".")[2]) < 1


def test_it_is_made_from_the_seed_alone() -> None:
    assert next_version([text(4)], HEAD) == next_version([text(4)], HEAD)
    assert next_version([text(4)], HEAD) != next_version([text(4)], PARENT)


def test_a_head_without_versions_starts_at_one() -> None:
    assert str(next_version([], HEAD)).startswith(f"{1:032}.")


@given(versions=NUMBERS, seed=st.text())
def test_a_number_lies_strictly_between_the_greatest_and_the_live_runs_next(
    versions: list[float], seed: str
) -> None:
    version = next_version(versions, seed)
    assert isinstance(version, float)
    assert max(versions) < version < max(versions) + 1
    assert not version.is_integer()


def test_a_patch_behind_a_patch_comes_to_no_integer_either() -> None:
    for fraction in range(1024):
        greatest = 7 + fraction / 1024
        version = next_version([greatest], HEAD)
        assert isinstance(version, float)
        assert greatest < version < greatest + 1
        assert not version.is_integer()


@given(versions=NUMBERS, seed=st.text())
def test_a_number_has_one_text_in_json_python_and_javascript(
    versions: list[float], seed: str
) -> None:
    version = next_version(versions, seed)
    assert json.dumps(version) == str(version)
    assert "e" not in str(version)
    assert float(str(version)) == version


@pytest.mark.parametrize(
    "versions", [[float("nan")], [float("inf")], [1 << 60], [10**400], ["x.1"]]
)
def test_versions_that_cannot_be_counted_on_from_are_unreadable(versions: list[float]) -> None:
    with pytest.raises(Unreadable):
        next_version(versions, HEAD)
