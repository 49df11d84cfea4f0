"""What the demo does, one act after the other, and what it says meanwhile."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from repair_service.demo.model import ProviderRefusal
from repair_service.demo.programs import Scenario, build, said, thread
from repair_service.demo.witness import KILLED
from repair_service.errors import RepairServiceError
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Selection, Sweep

MESSAGE = "Are you there?"
ANSWER = "yes"


@dataclass(frozen=True, slots=True)
class Cast:
    """Threads that are damaged in the same way, one for each way of going on.

    Attributes:
        name: What their ids begin with.
        scenario: The program that leaves them behind.
        ways: How they are gone on with, by the last part of their ids.
        code: How the program ends.
        story: What happens to them, in a line.
    """

    name: str
    scenario: Scenario
    ways: tuple[str, ...]
    code: int
    story: str

    @property
    def thread_ids(self) -> list[str]:
        return [f"{self.name}-{way}" for way in self.ways]


BOTH = ("continued", "told")
CASTS = (
    Cast(
        "one-call",
        Scenario("create_agent", "one-call", history=True),
        BOTH,
        KILLED,
        "one tool call; the process dies in the tool",
    ),
    Cast(
        "three-calls",
        Scenario("create_agent", "three-calls"),
        BOTH,
        KILLED,
        "three calls at once; two have finished when it dies",
    ),
    Cast(
        "overtaken",
        Scenario("create_agent", "three-calls"),
        BOTH,
        KILLED,
        "the same; then the user, who saw nothing, types on",
    ),
    Cast(
        "waiting",
        Scenario("create_agent", "waiting"),
        ("answered",),
        0,
        "interrupt(): the agent waits for a person; not damaged",
    ),
)


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
        written = self._sweep()
        gone_on = self._go_on()
        self._sum_up(found, written)
        return gone_on

    def leave_one(self) -> None:
        """Leave one more damaged thread behind, named `yours`."""
        self._run([(CASTS[1], "yours")])

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
        for thread_id in CASTS[2].thread_ids:
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
        table = _table("thread", "verdict", "what is wrong")
        for item in found:
            table.add_row(item.thread_id, _colored(item.verdict), _wrong(item))
        self._console.print(table)
        self._console.print()
        return found

    def _sweep(self) -> list[Diagnosis]:
        self._act(4, "repair-service sweep: one new checkpoint behind each, no row changed")
        with Store.connect(self._url) as store:
            done = list(Sweep(store, Policy(min_idle=0), Selection()).repair())
        table = _table("thread", "verdict", "goes on at", "results kept", "made up")
        for item in done:
            if item.verdict is Verdict.REPAIRED:
                kept, made_up = _mended(item)
                where = ", ".join(item.route) or item.resume or ""
                table.add_row(
                    item.thread_id, _colored(item.verdict), where, str(kept), str(made_up)
                )
            else:
                table.add_row(item.thread_id, _colored(item.verdict), "", "", "")
        self._console.print(table)
        self._console.print()
        return done

    def _go_on(self) -> bool:
        self._act(5, "LangGraph goes on, both ways, with the model that refused before")
        table = _table("thread", "call", "the model answers")
        passed = True
        for cast in CASTS[:3]:
            continued, told = cast.thread_ids
            for thread_id, call, given in (
                (continued, "invoke(None)", None),
                (told, "a new message", said(MESSAGE)),
            ):
                answer, good = self._answer(thread_id, given)
                passed = passed and good
                table.add_row(thread_id, call, answer)
        (waiting,) = CASTS[3].thread_ids
        questions = self._graph.get_state(thread(waiting)).interrupts
        answer, good = self._answer(waiting, Command(resume=ANSWER))
        table.add_row(waiting, f"resume={ANSWER!r}", answer)
        self._console.print(table)
        if len(questions) == 1:
            self._console.print(f"   {waiting} still asked: {questions[0].value}\n")
        return passed and good and len(questions) == 1

    def _answer(self, thread_id: str, given: object) -> tuple[str, bool]:
        """What the thread says to an input, and whether it went on at all."""
        try:
            state = self._graph.invoke(given, thread(thread_id))
        except ProviderRefusal as refusal:
            return f"[red]{escape(str(refusal))}[/]", False
        last = state["messages"][-1]
        return escape(_shortened(last.text, 200)), last.type == "ai" and bool(last.text)

    def _sum_up(self, found: Sequence[Diagnosis], done: Sequence[Diagnosis]) -> None:
        damaged = sum(item.verdict is Verdict.REPAIRABLE for item in found)
        waiting = sum(item.verdict is Verdict.WAITING for item in found)
        repaired = [item for item in done if item.verdict is Verdict.REPAIRED]
        kept, made_up = (sum(counts) for counts in zip(*map(_mended, repaired), strict=True))
        say = self._console.print
        say(f"[bold]Found:[/] {damaged} damaged threads, and {waiting} that waits for a person.")
        say(f"[bold]Written:[/] {len(repaired)} checkpoints, one a damaged thread.")
        say(f"   {kept} real results were still on disk and are in the lists again;")
        say(f"   {made_up} calls had none, and got a result that says so: no tool ran again.\n")
        say("[bold]Your own database[/] (doctor and audit write nothing):")
        say("  export DATABASE_URL=postgresql://user:password@host/database")
        say("  repair-service doctor    is everything there that is needed?")
        say("  repair-service audit     which threads are damaged, and how?")
        say("  repair-service sweep     mend them; asks before it writes")


def _never_again(after: int) -> str:
    raise DemoFailed("A tool ran again, which no repair may cause.")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(" ")  # the margin under a heading
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _mended(item: Diagnosis) -> tuple[int, int]:
    """How many real results a patch takes up, and how many it makes up."""
    mends = [fault.mend for fault in item.faults]
    return mends.count("salvage"), mends.count("placeholder")


def _wrong(item: Diagnosis) -> str:
    """What is wrong with a head, in a few words."""
    kept, made_up = _mended(item)
    parts = []
    if made_up:
        parts.append(f"{made_up} call{'s' * (made_up > 1)} without a result")
    if kept:
        parts.append(f"{kept} result{'s' * (kept > 1)} on disk, not in the list")
    return "; ".join(parts) or "nothing: a question is open"


def _colored(verdict: Verdict) -> str:
    colors = {Verdict.REPAIRABLE: "yellow", Verdict.REPAIRED: "green", Verdict.WAITING: "cyan"}
    return f"[{colors.get(verdict, 'red')}]{verdict}[/]"


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
