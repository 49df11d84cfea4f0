"""From a decision to a patch: the mended lists, and the checkpoint that holds them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from repair_service.checkpoint.compose import Change, compose, is_patch, leaked_channels
from repair_service.checkpoint.digest import writes_digest
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.layout import stores_inline
from repair_service.checkpoint.rows import BlobRow
from repair_service.checkpoint.triggers import has_fired
from repair_service.repair.diagnosis import Diagnosis, Patch, Removal
from repair_service.repair.findings import Findings
from repair_service.repair.placeholder import placeholder
from repair_service.repair.route import Route
from repair_service.repair.step import Step
from repair_service.repair.verdict import Mend, Placeholders, Resume, Verdict
from repair_service.transcript.mend import mend
from repair_service.transcript.message import Message, ToolCall, Transcript
from repair_service.transcript.write import write_transcript

ONE_STEP_CHANNELS = frozenset({"jump_to"})
"""Channels that create_agent clears a step after they were set (langchain/agents/factory.py)."""


@dataclass(frozen=True, slots=True)
class Mending:
    """A decision to repair: what is mended, and where the thread goes on.

    Attributes:
        one_step: The channels that the history shows to live for one step.
    """

    head: Head
    transcripts: Mapping[str, Transcript]
    found: Mapping[str, Findings]
    step: Step
    resume: Resume
    route: Route | None
    one_step: frozenset[str] = frozenset()


def compose_patch(
    mending: Mending,
    diagnosis: Diagnosis,
    *,
    templates: Placeholders,
    above: Mapping[str, str],
    now: float,
) -> Diagnosis:
    """The diagnosis with its patch, or with the reason why there can be none.

    Args:
        mending: The decision.
        diagnosis: The diagnosis so far.
        templates: The texts of placeholders.
        above: The heads of the namespaces above this one, which must not move either.
        now: The present, seconds since 1970, for the new checkpoint's `ts`.
    """
    head, step = mending.head, mending.step
    channels = mending.route.channels if mending.route else {}
    mended = _mended(mending, templates)
    change = Change(
        transcripts={
            name: (transcript.encoding, write_transcript(transcript))
            for name, transcript in mended.items()
        },
        consumed=step.consumed,
        route=channels,
        touched=step.touched,
        cleared=(ONE_STEP_CHANNELS & head.valued) | mending.one_step
        if step.consumed
        else frozenset(),
    )
    leaked = leaked_channels(head, change)
    if leaked:
        return replace(
            diagnosis,
            verdict=Verdict.MANUAL,
            reason=f"pending writes that belong to no finished call would reach {min(leaked)!r}",
        )
    timestamp = datetime.fromtimestamp(now, UTC).isoformat()
    row, blobs = compose(head, change, timestamp=timestamp)
    mends = Counter(
        finding.mend for findings in mending.found.values() for finding in findings.findings
    )
    patch = Patch(
        row=row,
        blobs=blobs,
        head_id=head.row.checkpoint_id,
        writes_digest=writes_digest(head.rows.writes),
        pending=_fired(head, channels, blobs) if step.consumed else pending_keys(head),
        above=above,
        left=mends["none"],
        salvaged=mends["salvage"],
        placeholders=mends["placeholder"],
        removed=tuple(removal for name in mended for removal in _removed(mending, name)),
    )
    return replace(
        diagnosis,
        verdict=Verdict.REPAIRABLE,
        reason=_reason(mends) + (", come after the placeholder" if is_patch(head.row) else ""),
        resume=mending.resume,
        route=_route_nodes(mending),
        route_source=mending.route.source if mending.route else None,
        patch=patch,
    )


def _fired(head: Head, channels: Iterable[str], blobs: Iterable[BlobRow]) -> frozenset[str]:
    """Those of the trigger channels written that start their node: a barrier may wait for more."""
    stored = {blob.channel: blob for blob in blobs}
    inline = stores_inline(head.row, head.layout)
    return frozenset(
        channel for channel in channels if has_fired(channel, stored.get(channel), inline=inline)
    )


def pending_keys(head: Head) -> frozenset[str]:
    """What is pending at a head, by name: trigger channels, and Sends by their index."""
    return frozenset(
        key
        for task in head.tasks
        for key in (task.triggers if task.kind == "pull" else (f"send {task.index}",))
    )


def _mended(mending: Mending, templates: Placeholders) -> dict[str, Transcript]:
    mended = {}
    for channel, findings in mending.found.items():
        transcript = mending.transcripts[channel]
        result = mend(
            transcript.messages,
            findings.findings,
            salvage=findings.salvaged,
            placeholder=partial(_placeholder, mending.head, channel, transcript, templates),
            allow=findings.allow,
        )
        mended[channel] = replace(transcript, messages=result.messages)
    return mended


def _placeholder(
    head: Head,
    channel: str,
    transcript: Transcript,
    templates: Placeholders,
    index: int,
    call: ToolCall,
) -> Message:
    """The result that is made up for a call of the message at an index."""
    return placeholder(
        head,
        channel,
        index,
        call,
        templates=templates,
        encoding=transcript.encoding,
        like=transcript.messages[index],
    )


def _removed(mending: Mending, channel: str) -> Iterator[Removal]:
    """The messages that a mended list no longer holds; a ledger keeps them."""
    transcript = mending.transcripts[channel]
    stored = mending.head.rows.blobs.get(channel)
    for finding in mending.found[channel].findings:
        if finding.mend == "remove":
            message = transcript.messages[finding.message_index]
            yield Removal(
                channel=channel,
                message_index=finding.message_index,
                tool_call_id=message.answers,
                type=transcript.encoding,
                message=message.raw,
                cipher=stored.cipher if stored else None,
            )


def _route_nodes(mending: Mending) -> tuple[str, ...]:
    if mending.resume == "keep":
        return tuple(dict.fromkeys(task.node for task in mending.head.tasks if task.node))
    return mending.route.nodes if mending.route else ()


def _reason(mends: Mapping[Mend, int]) -> str:
    words: dict[Mend, tuple[str, str]] = {
        "salvage": ("real result taken up", "real results taken up"),
        "placeholder": ("call without a result", "calls without a result"),
        "move": ("result moved behind its call", "results moved behind their calls"),
        "remove": ("result removed", "results removed"),
    }
    return ", ".join(
        f"{count} {one if count == 1 else many}"
        for mend, (one, many) in words.items()
        if (count := mends.get(mend, 0))
    )
