"""The flags, each declared once; a verb takes those that mean something to it.

No flag has a default here: a flag not given leaves the setting to the environment, the file and
the defaults of `settings.Settings`, which also checks the values.
"""

from pathlib import Path
from typing import Annotated

import typer

STORE = "The store"
SELECTION = "Which threads"
POLICY = "What may be done"
BOUNDS = "How much"
LOAD = "How gently"
LEDGER = "What is kept"
OUTPUT = "The report"

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        help="The checkpoint store, as postgresql://USER@HOST/DATABASE. Or set DATABASE_URL.",
        metavar="URL",
        rich_help_panel=STORE,
        show_default=False,
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(help="The schema of its tables (public).", metavar="NAME", rich_help_panel=STORE),
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="A TOML file with settings by the names of these flags (repair-service.toml, where "
        "there is one).",
        metavar="FILE",
        rich_help_panel=STORE,
    ),
]
LedgerUrl = Annotated[
    str | None,
    typer.Option(
        help="The database of the ledger, where runs and patches are kept (the store's own; see "
        "db upgrade).",
        metavar="URL",
        rich_help_panel=LEDGER,
        show_default=False,
    ),
]
Reason = Annotated[
    str | None,
    typer.Option(help="Why; kept in the ledger.", metavar="TEXT", rich_help_panel=LEDGER),
]
Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show a traceback for an error that was not expected. Or set REPAIR_DEBUG=1.",
        rich_help_panel=OUTPUT,
    ),
]
ReportFormat = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help="table (default), json or jsonl.", rich_help_panel=OUTPUT
    ),
]
TextOrJson = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help="table (default) or json.", rich_help_panel=OUTPUT
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        help="Write the report to this file, not to stdout.",
        metavar="FILE",
        rich_help_panel=OUTPUT,
    ),
]
ShowContent = Annotated[
    bool | None,
    typer.Option(
        "--show-content",
        help="Show the text of messages. Nothing else ever does.",
        rich_help_panel=OUTPUT,
    ),
]
ExitZero = Annotated[
    bool | None,
    typer.Option(
        "--exit-zero",
        help="Exit 0 where faults alone would make it 2, for schedulers. Failures still show.",
        rich_help_panel=OUTPUT,
    ),
]
PastFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="table (default), json, jsonl, markdown (for a ticket) or html (one file, no script).",
        rich_help_panel=OUTPUT,
    ),
]
Thread = Annotated[
    list[str] | None,
    typer.Option(help="Only this thread; repeatable.", metavar="ID", rich_help_panel=SELECTION),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        help="Only this checkpoint namespace; '' is the root graph.",
        metavar="NS",
        rich_help_panel=SELECTION,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        help="Only heads newer than this (ISO 8601; UTC without a zone).",
        metavar="TIME",
        rich_help_panel=SELECTION,
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        help="Only this part of the threads: 2/8 is the second of eight. N alone takes the part "
        "from JOB_COMPLETION_INDEX, as a Kubernetes Indexed Job sets it.",
        metavar="I/N",
        rich_help_panel=SELECTION,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Share the work between this many processes (1), with two connections each.",
        metavar="N",
        rich_help_panel=SELECTION,
    ),
]
Full = Annotated[
    bool | None,
    typer.Option(
        "--full",
        help="Look at every head. Without, a run over the whole store passes by those that are "
        "older than the last one, were healthy then, and were not repaired in the week before. "
        "What no new checkpoint tells of, only this sees: threads copied in or restored, deleted "
        "checkpoints, a question that an old head was asked. Schedule one now and then.",
        rich_help_panel=SELECTION,
    ),
]
RunTime = Annotated[
    str | None,
    typer.Option(
        help="Begin no batch after this long; exit 3. With a ledger the next run of the same "
        "verb, selection and policy goes on from there (within 7 days); after --jobs with as many.",
        metavar="DURATION",
        rich_help_panel=BOUNDS,
    ),
]
MinIdle = Annotated[
    str | None,
    typer.Option(
        help="Leave threads alone that were active this recently (10m).",
        metavar="DURATION",
        rich_help_panel=SELECTION,
    ),
]
DeployedAt = Annotated[
    str | None,
    typer.Option(
        help="When the deploy began. Heads older than this are judged, however young they are, and "
        "others are left alone; --min-idle is not asked. Before it writes, a verb waits until "
        "--settle has passed.",
        metavar="TIME",
        rich_help_panel=SELECTION,
    ),
]
Settle = Annotated[
    str | None,
    typer.Option(
        help="How long after --deployed-at the last old process is gone (1m).",
        metavar="DURATION",
        rich_help_panel=SELECTION,
    ),
]
ActiveQuery = Annotated[
    str | None,
    typer.Option(
        help="A query on the store's database whose first column is the id of a thread that runs "
        "now: those are left alone. Asked once more before a patch is committed; it cannot write.",
        metavar="SQL",
        rich_help_panel=SELECTION,
    ),
]
Breakpoint = Annotated[
    list[str] | None,
    typer.Option(
        help="A node that the graph stops before on purpose (interrupt_before): a thread there "
        "is waiting; repeatable.",
        metavar="NODE",
        rich_help_panel=POLICY,
    ),
]
StoppedBefore = Annotated[
    list[str] | None,
    typer.Option(
        "--breakpoint",
        help="A node that the graph stops before or behind on purpose (interrupt_before, "
        "interrupt_after). Then every thread with an old name in its head is carried over, also "
        "one at rest: LangGraph would never let it pass such a stop. Repeatable.",
        metavar="NODE",
        rich_help_panel=POLICY,
    ),
]
InferBreakpoints = Annotated[
    bool | None,
    typer.Option(
        "--infer-breakpoints/--no-infer-breakpoints",
        help="Whether a node before which runs stop again and again is taken for a breakpoint "
        "(yes).",
        rich_help_panel=POLICY,
        show_default=False,
    ),
]
ClientTool = Annotated[
    list[str] | None,
    typer.Option(
        help="A tool that the client answers: its calls are waiting; repeatable.",
        metavar="NAME",
        rich_help_panel=POLICY,
    ),
]
ToolNode = Annotated[
    list[str] | None,
    typer.Option(
        help="A node that runs tools, where neither its name (tools) nor history shows it; "
        "repeatable.",
        metavar="NODE",
        rich_help_panel=POLICY,
    ),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        help="The nodes that the graph has now, with commas between (PARENT|NODE for those of a "
        "sub-graph): a head that is pending at another one is stuck.",
        metavar="NAMES",
        rich_help_panel=POLICY,
    ),
]
Types = Annotated[
    bool,
    typer.Option(
        "--types",
        help="List the classes that stored values name instead, with counts, and which of them "
        "LANGGRAPH_STRICT_MSGPACK refuses.",
        rich_help_panel=OUTPUT,
    ),
]
Rename = Annotated[
    list[str] | None,
    typer.Option(help="What has another name now; repeatable.", metavar="OLD=NEW"),
]
Remove = Annotated[
    list[str] | None,
    typer.Option(
        help="A node that is there no more: heads that are pending there are parked; repeatable.",
        metavar="NODE",
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(help="Ready-made renames: create-react-agent-to-create-agent.", metavar="NAME"),
]
PlanOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Write nothing but a plan of it to this file, for apply.",
        metavar="FILE",
        rich_help_panel=POLICY,
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        help="continue (default): at the node that reads tool results; park: wait for a new "
        "message.",
        metavar="HOW",
        rich_help_panel=POLICY,
    ),
]
Route = Annotated[
    str | None,
    typer.Option(
        help="The node to go on at, instead of the one learned from the store.",
        metavar="NODE",
        rich_help_panel=POLICY,
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        help="Mend what a default leaves to a person: at_rest, bound_prefix, duplicate_result, "
        "orphan_result, or quarantined (a thread that was repaired too often); repeatable.",
        metavar="KIND",
        rich_help_panel=POLICY,
    ),
]
Last = Annotated[
    int | None,
    typer.Option(
        help="Mend faults among the last so many messages of a list only (all).",
        metavar="N",
        rich_help_panel=POLICY,
    ),
]
MaxRepairs = Annotated[
    int | None,
    typer.Option(
        help="Write so many patches at most; exit 3 where more are left.",
        metavar="N",
        rich_help_panel=BOUNDS,
    ),
]
MaxRatio = Annotated[
    float | None,
    typer.Option(
        help="Write nothing, and exit 5, where more than this share of the heads would be written "
        "(0 to 1). Every head is looked at first.",
        metavar="SHARE",
        rich_help_panel=BOUNDS,
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        help="Look at so many heads a second at most, all --jobs together.",
        metavar="N",
        rich_help_panel=LOAD,
    ),
]
MaxLag = Annotated[
    str | None,
    typer.Option(
        help="Wait while a replica is further behind than this in applying what was written. The "
        "role has to be a member of pg_monitor.",
        metavar="DURATION",
        rich_help_panel=LOAD,
    ),
]
MaxActive = Annotated[
    int | None,
    typer.Option(
        help="Wait while more sessions of others than this are at work on the server. The role has "
        "to be a member of pg_monitor.",
        metavar="N",
        rich_help_panel=LOAD,
    ),
]
ThrottleQuery = Annotated[
    str | None,
    typer.Option(
        help="A query on the store's database: wait while its first column is true, or a number "
        "above 0. It cannot write.",
        metavar="SQL",
        rich_help_panel=LOAD,
    ),
]
PauseFile = Annotated[
    Path | None,
    typer.Option(
        help="Wait while this file is there: touch it to pause a run, remove it to go on.",
        metavar="FILE",
        rich_help_panel=LOAD,
    ),
]
ReadUrl = Annotated[
    str | None,
    typer.Option(
        help="A replica to look for damaged threads on. What is written is judged again by what "
        "the primary (--database-url) has.",
        metavar="URL",
        rich_help_panel=LOAD,
        show_default=False,
    ),
]
AuditReadUrl = Annotated[
    str | None,
    typer.Option(
        "--read-url",
        help="A replica to read in place of the primary (--database-url), which has the ledger.",
        metavar="URL",
        rich_help_panel=LOAD,
        show_default=False,
    ),
]
StatementTimeout = Annotated[
    str | None,
    typer.Option(
        help="Give up where one statement takes longer than this (1m); 0 never does.",
        metavar="DURATION",
        rich_help_panel=LOAD,
    ),
]
LockTimeout = Annotated[
    str | None,
    typer.Option(
        help="Wait so long at most for a table that somebody else has locked, a migration say "
        "(2s).",
        metavar="DURATION",
        rich_help_panel=LOAD,
    ),
]
Yes = Annotated[
    bool | None,
    typer.Option("--yes", "-y", help="Write without asking first.", rich_help_panel=POLICY),
]
DryRun = Annotated[
    bool | None,
    typer.Option(
        "--dry-run", help="Show what would be written; write nothing.", rich_help_panel=POLICY
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Where the plan is written to.", metavar="FILE")]
PlanFile = Annotated[Path, typer.Argument(metavar="FILE", help="A plan, as plan --out wrote it.")]
Target = Annotated[
    str, typer.Argument(metavar="THREAD|FILE", help="A thread's id, or the file of a plan.")
]
UndoThread = Annotated[
    str | None, typer.Argument(metavar="THREAD", help="The thread's id.", show_default=False)
]
UndoRun = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="Take back what this run wrote; `last` is the newest one.",
        metavar="RUN",
        rich_help_panel=SELECTION,
    ),
]
RunId = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, as runs lists it; `last` is the newest.")
]
ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]
