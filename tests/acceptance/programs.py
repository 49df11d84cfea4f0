"""The programs that the nursery runs: those of the demo, and some that only tests need."""

from repair_service.demo import programs as demo
from repair_service.demo.programs import LINES, SCRIPT, Scenario, build, said, thread
from repair_service.demo.witness import WitnessSaver


def scenario(name: str, database_url: str, thread_id: str) -> None:
    """A scenario of the demo."""
    demo.run(Scenario.parse(name), database_url, thread_id)


def die_behind_the_tools(name: str, database_url: str, thread_id: str) -> None:
    """All tools of the line finish, and the process dies before it writes the next checkpoint."""
    chosen = Scenario.parse(name)
    calls = len(SCRIPT[LINES[chosen.line]])
    tasks = calls if chosen.graph in demo.TASK_A_CALL else 1
    with WitnessSaver.connect(database_url) as saver:

        def slow(after: int) -> str:
            saver.die_before_next(tasks)
            return "slow finished"

        build(chosen.graph, saver, slow).invoke(
            said(LINES[chosen.line]), thread(thread_id), durability="sync"
        )
