"""What the demo does, one act after the other, and what it says meanwhile."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command
from rich.console import Console
from rich.markup import escape

from repair_service.demo.installations import activation_of_environment
from repair_service.demo.model import ProviderRefusal
from repair_service.demo.programs import Scenario, build, said, thread
from repair_service.demo.witness import KILLED
from repair_service.errors import RepairServiceError
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection

MESSAGE = "Are you there?"
ANSWER = "yes"

WIDTH = 80
"""Columns that the text is written for."""

COLORS = {Verdict.REPAIRABLE: "yellow", Verdict.REPAIRED: "green", Verdict.WAITING: "cyan"}


@dataclass(frozen=True, slots=True)
class Cast:
    """Threads that are damaged in the same way, one for each way of going on.

    Attributes:
        name: What their ids begin with.
        thread_ids: The threads; of two, the first goes on by itself and the second by a message.
        scenario: The program that leaves them behind.
        code: How the program ends.
        story: What happens to them, in a line.
    """

    name: str
    thread_ids: tuple[str, ...]
    scenario: Scenario
    code: int
    story: str


ONE_CALL = Cast(
    "one-call",
    ("one-call-1", "one-call-2"),
    Scenario("create_agent", "one-call", history=True),
    KILLED,
    "one tool call; the process dies in the tool",
)
THREE_CALLS = Cast(
    "three-calls",
    ("three-calls-1", "three-calls-2"),
    Scenario("create_agent", "three-calls"),
    KILLED,
    "three calls at once; two have finished when it dies",
)
OVERTAKEN = Cast(
    "overtaken",
    ("overtaken-1", "overtaken-2"),
    THREE_CALLS.scenario,
    KILLED,
    "the same; then the user, who saw nothing, types on",
)
WAITING = Cast(
    "waiting",
    ("waiting",),
    Scenario("create_agent", "waiting"),
    0,
    "interrupt(): the agent waits for a person; not damaged",
)
DAMAGED = (ONE_CALL, THREE_CALLS, OVERTAKEN)
CASTS = (*DAMAGED, WAITING)


class DemoFailed(RepairServiceError):
    """The demo did not go as it is told; that is a defect of repair-service."""


class Story:
    """The acts of the demo over one database.

    Args:
        console: Where it is told.
        database_url: An empty database.
        stack: Closes what the story opens, on every way out.
    """

    def __init__(self, console: Console, database_url: str, stack: ExitStack) -> None:
        self._console = console
        self._url = database_url
        self._stack = stack
        self._saver = stack.enter_context(PostgresSaver.from_conn_string(database_url))
        self._graph = build("create_agent", self._saver, _never_again)

    def tell(self) -> bool:
        """Tell all of it.

        Returns:
            Whether every thread came out as it should.
        """
        self._saver.setup()
        self._kill()
        self._refuse()
        found = self._audit()
        done = self._sweep()
        gone_on = self._go_on()
        self._sum_up(found, done)
        threads = sum(len(cast.thread_ids) for cast in DAMAGED)
        repaired = sum(item.verdict is Verdict.REPAIRED for item in done)
        return gone_on and repaired == threads

    def leave_one(self) -> None:
        """Leave one more damaged thread behind, named `yours`."""
        self._run([(THREE_CALLS, "yours")])

    def _act(self, number: int, title: str) -> None:
        self._console.print(f"[bold]{number}. {title}[/]")

    def _kill(self) -> None:
        self._act(1, "Agents die (create_agent with PostgresSaver, a process each)")
        self._run([(cast, thread_id) for cast in CASTS for thread_id in cast.thread_ids])
        for cast in CASTS:
            self._console.print(f"   [cyan]{cast.name:<12}[/] {cast.story}")
        self._console.print()

    def _run(self, parts: Sequence[tuple[Cast, str]]) -> None:
        """Run one program a thread, all at once, and see that each ends as it is meant to."""
        running = [(cast, thread_id, self._start(cast, thread_id)) for cast, thread_id in parts]
        for cast, thread_id, process in running:
            _, complaint = process.communicate()
            if process.returncode != cast.code:
                last = complaint.strip().splitlines()[-1:] or ["it said nothing"]
                raise DemoFailed(
                    f"The program of thread {thread_id} ended with {process.returncode} "
                    f"instead of {cast.code}: {last[0]}"
                )

    def _start(self, cast: Cast, thread_id: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "repair_service.demo.programs"),
                *(str(cast.scenario), self._url, thread_id),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C goes to us alone; we end what we started.
            start_new_session=True,
        )
        self._stack.callback(process.kill)
        return process

    def _refuse(self) -> None:
        """A user types on in the threads that are to be overtaken, and is refused."""
        self._act(2, "A user types on in the overtaken threads")
        refusal = ""
        for thread_id in OVERTAKEN.thread_ids:
            for _ in range(2):
                refusal = self._refused(thread_id)
        self._console.print(f"   user:     {MESSAGE}")
        self._console.print(f"   provider: [red]{escape(_shortened(refusal, 62))}[/]")
        self._console.print("   user:     " + MESSAGE)
        self._console.print("   provider: [red]Error code: 400[/], and so on, every time.\n")

    def _refused(self, thread_id: str) -> str:
        try:
            self._graph.invoke(said(MESSAGE), thread(thread_id))
        except ProviderRefusal as refusal:
            return str(refusal)
        raise DemoFailed(f"Thread {thread_id} was to be refused, and was not.")

    def _audit(self) -> list[Diagnosis]:
        self._act(3, "repair-service audit: looks at every thread, writes nothing")
        with Store.connect(self._url) as store:
            found = list(Sweep(store, Policy(min_idle=0), Selection()).audit())
        for item in found:
            self._row(item.thread_id, item.verdict, _wrong(item))
        self._console.print()
        return found

    def _sweep(self) -> list[Diagnosis]:
        self._act(4, "repair-service sweep: one new checkpoint behind each, no row changed")
        with Store.connect(self._url) as store:
            done = list(Sweep(store, Policy(min_idle=0), Selection()).repair())
        for item in done:
            self._row(item.thread_id, item.verdict, _written(item))
        self._console.print()
        return done

    def _go_on(self) -> bool:
        self._act(5, "LangGraph goes on, both ways, with the model that refused before")
        passed = True
        for cast in DAMAGED:
            by_itself, by_message = cast.thread_ids
            passed &= self._answers(by_itself, "invoke(None)", None)
            passed &= self._answers(by_message, "new message", said(MESSAGE))
        (waiting,) = WAITING.thread_ids
        questions = self._graph.get_state(thread(waiting)).interrupts
        passed &= len(questions) == 1
        for question in questions:
            self._line(waiting, "still asks", question.value)
        passed &= self._answers(waiting, f"resume={ANSWER!r}", Command(resume=ANSWER))
        self._console.print()
        return passed

    def _answers(self, thread_id: str, call: str, given: object) -> bool:
        """Go on with a thread and say what the model answers; whether it did."""
        try:
            last = self._graph.invoke(given, thread(thread_id))["messages"][-1]
        except ProviderRefusal as refusal:
            self._line(thread_id, call, str(refusal), style="red")
            return False
        self._line(thread_id, call, last.text)
        return last.type == "ai" and bool(last.text)

    def _sum_up(self, found: Sequence[Diagnosis], done: Sequence[Diagnosis]) -> None:
        damaged = sum(item.verdict is Verdict.REPAIRABLE for item in found)
        waiting = sum(item.verdict is Verdict.WAITING for item in found)
        repaired = [item for item in done if item.verdict is Verdict.REPAIRED]
        kept = sum(_mended(item)[0] for item in repaired)
        made_up = sum(_mended(item)[1] for item in repaired)
        say = self._console.print
        say(f"[bold]Found:[/] {damaged} damaged threads, and {waiting} that waits for a person.")
        say(f"[bold]Written:[/] {len(repaired)} checkpoints, one a damaged thread.")
        say(f"   {kept} real results were still on disk and are in the lists again;")
        say(f"   {made_up} calls had none, and got a result that says so. No tool ran again.\n")
        say("[bold]Your own database[/] (doctor and audit write nothing):")
        activation = activation_of_environment()
        if activation is not None and shutil.which("repair-service") is None:
            say(f"  {activation}", soft_wrap=True)
        say("  export DATABASE_URL=postgresql://user:password@host/database")
        say("  repair-service doctor    is everything there that is needed?")
        say("  repair-service audit     which threads are damaged, and how?")
        say("  repair-service sweep     mend them; asks before it writes")

    def _row(self, thread_id: str, verdict: Verdict, text: str) -> None:
        self._line(thread_id, verdict, text, style=COLORS.get(verdict, "red"))

    def _line(self, thread_id: str, what: str, text: str, style: str = "cyan") -> None:
        """One line of a table: a thread, what is said of it in color, and a text cut to fit."""
        start = f"   {thread_id:<14}"
        middle = f"{what:<14}"
        rest = _shortened(text, WIDTH - len(start) - len(middle))
        self._console.print(f"{start}[{style}]{escape(middle)}[/]{escape(rest)}")


def _never_again(after: int) -> str:
    raise DemoFailed("A tool ran again, which no repair may cause.")


def _mended(item: Diagnosis) -> tuple[int, int]:
    """How many real results a patch takes up, and how many it makes up."""
    mends = [fault.mend for fault in item.faults]
    return mends.count("salvage"), mends.count("placeholder")


def _wrong(item: Diagnosis) -> str:
    """What is wrong with a head, in a few words."""
    if item.verdict is Verdict.WAITING:
        return "nothing: a question is open"
    kept, made_up = _mended(item)
    parts = []
    if made_up:
        parts.append(f"{made_up} call{'s' * (made_up > 1)} without a result")
    if kept:
        parts.append(f"{kept} result{'s' * (kept > 1)} left on disk")
    return ", ".join(parts) or item.reason


def _written(item: Diagnosis) -> str:
    """What was written for a head, in a few words."""
    if item.verdict is not Verdict.REPAIRED:
        return "nothing written"
    kept, made_up = _mended(item)
    parts = [f"{made_up} placeholder{'s' * (made_up > 1)}"] if made_up else []
    if kept:
        parts.insert(0, f"{kept} real results kept")
    if item.route:
        parts.append(f"next: {', '.join(item.route)}")
    return ", ".join(parts)


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
