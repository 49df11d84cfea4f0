"""The command line of the damaged programs."""

import pytest

from repair_service.demo.programs import GRAPHS, LINES, Scenario, main


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("history", [False, True])
def test_a_scenario_is_read_as_it_is_written(graph: str, line: str, history: bool) -> None:
    scenario = Scenario(graph, line, history)
    assert Scenario.parse(str(scenario)) == scenario


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["create_agent:one-call"],
        ["create_agent:one-call:future", "postgresql://", "t"],
        ["create_agent", "postgresql://", "t"],
        ["no_such:one-call", "postgresql://", "t"],
    ],
    ids=" ".join,
)
def test_wrong_usage_gets_a_sentence(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 64
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
