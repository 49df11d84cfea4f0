"""The operator's guide, deploy/README.md: what it tells to type, and where it points to."""

import re

from tests.deploy.commands import accepted, commands_in
from tests.deploy.conftest import DEPLOY

GUIDE = (DEPLOY / "README.md").read_text(encoding="utf-8")


def test_this_release_takes_every_command_of_the_guide() -> None:
    found = list(commands_in(GUIDE))
    assert len(found) > 15
    for arguments in found:
        assert accepted(arguments), arguments


def test_a_command_that_is_none_is_seen() -> None:
    text = "Try `repair-service\nsweep --yess`, or:\n\n    /opt/repair-service serv \\\n  --all\n"
    [broken, joined] = commands_in(text)
    assert (broken, joined) == (["sweep", "--yess"], ["serv", "--all"])
    assert not accepted(broken)
    assert not accepted(joined)


def test_every_file_that_the_guide_names_is_there() -> None:
    links = [f"deploy/{path}" for path in re.findall(r"\]\(([^)#:]+)\)", GUIDE)]
    patterns = [path.rstrip(".") for path in re.findall(r"\bdeploy/[\w./@*-]+", GUIDE)]
    assert len(links) > 4
    for path in links:
        assert (DEPLOY.parent / path).exists(), path
    for pattern in patterns:
        assert list(DEPLOY.parent.glob(pattern)), pattern
