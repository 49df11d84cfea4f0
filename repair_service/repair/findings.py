"""What is wrong in one transcript of a head, with the real results that were found for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import HeadRows
from repair_service.repair.salvage import OpenCall, Salvaged, from_ancestors, from_siblings, named
from repair_service.repair.verdict import Fault
from repair_service.transcript.fault import Finding
from repair_service.transcript.message import Transcript
from repair_service.transcript.pairing import find_faults, open_calls, tail_index


@dataclass(frozen=True, slots=True)
class Findings:
    """The faults of one transcript.

    Attributes:
        findings: The faults, never empty.
        open_calls: The calls that have no result in the list.
        step_calls: Those of them that belong to the last message but for results: the calls that
            the pending step is about.
        called: The ids of all calls of that message where some of them are open.
        salvaged: The real results found for open calls.
        beside: The channels that a dropped task wrote beside a result, so that it is not taken.
        allow: The kinds that the operator allowed to be mended.
        start: Index of the first message at which a fault may be mended.
    """

    findings: tuple[Finding, ...]
    open_calls: tuple[OpenCall, ...]
    step_calls: tuple[OpenCall, ...]
    called: frozenset[str]
    salvaged: Salvaged
    beside: frozenset[str]
    allow: frozenset[str]
    start: int

    @property
    def left(self) -> tuple[Finding, ...]:
        """The faults within bounds that no mend is known for."""
        return tuple(
            finding
            for finding in self.findings
            if finding.mend == "none" and finding.message_index >= self.start
        )

    @property
    def early(self) -> bool:
        """Whether all faults stand before the first message at which one may be mended."""
        return all(finding.message_index < self.start for finding in self.findings)


def examine(
    head: Head,
    channel: str,
    transcript: Transcript,
    ancestors: Sequence[HeadRows],
    allow: frozenset[str] = frozenset(),
    last: int | None = None,
) -> Findings | None:
    """Find the faults of one transcript; None where there is none.

    Args:
        head: The head.
        channel: The transcript's channel.
        transcript: The list of messages.
        ancestors: The checkpoints before the head, nearest first; results that an overtaking input
            dropped are looked for there.
        allow: The kinds that the operator allowed to be mended.
        last: Only faults among so many messages at the end are mended; None for all.

    Raises:
        Unreadable: A pending write that may hold a result cannot be read.
    """
    messages = transcript.messages
    if not find_faults(messages):
        return None
    calls = open_calls(messages)
    tail = tail_index(messages)
    step_calls = tuple(call for call in calls if call[0] == tail)
    salvaged = from_siblings(head.tasks, channel, step_calls)
    start = 0 if last is None else max(0, len(messages) - last)
    others = [call for call in calls if call[:2] not in salvaged and call[0] >= start]
    dropped = from_ancestors(head, transcript, channel, ancestors, others)
    salvaged |= dropped.results
    salvaged = named(head, channel, transcript, salvaged)
    stepping = messages[tail].calls if tail is not None and step_calls else ()
    return Findings(
        findings=find_faults(messages, salvage=salvaged, allow=allow, start=start),
        open_calls=calls,
        step_calls=step_calls,
        called=frozenset(call.id for call in stepping if call.id),
        salvaged=salvaged,
        beside=dropped.beside,
        allow=allow,
        start=start,
    )


def faults_of(channel: str, transcript: Transcript, found: Findings) -> tuple[Fault, ...]:
    """The findings as faults: with the tool and the model that they concern."""
    faults = []
    for finding in found.findings:
        message = transcript.messages[finding.message_index]
        call = finding.call
        faults.append(
            Fault(
                kind=finding.kind,
                channel=channel,
                message_index=finding.message_index,
                tool_call_id=call.id if call else message.answers,
                tool_name=call.name if call else message.name,
                model=message.model,
                mend=finding.mend,
            )
        )
    return tuple(faults)
