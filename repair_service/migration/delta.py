"""Delta channels whose whole value has to be stored: what they are rebuilt from stays behind.

A delta channel is rebuilt from the writes of the checkpoints before, the head's own pending ones
among them once a checkpoint stands behind it; by its name, and in its namespace.
"""

from collections.abc import Sequence

from repair_service.checkpoint.delta import History, history_of
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import BlobRow, HeadRows, WriteRow
from repair_service.checkpoint.transcripts import read_transcripts
from repair_service.errors import NotCarried, Unreadable
from repair_service.migration.rewriting import Rewriting
from repair_service.transcript.message import Transcript
from repair_service.transcript.wire import SNAPSHOT_CODE, decode_extension, is_extension, lenient
from repair_service.transcript.write import write_snapshot, write_transcript


class DeltaValues:
    """The whole values of a head's delta channels that have none stored here."""

    def __init__(self, head: Head, ancestors: Sequence[HeadRows], pruned: bool) -> None:
        self._head = head
        self._ancestors = ancestors
        self._pruned = pruned
        self._transcripts: dict[str, Transcript] | None = None

    @property
    def channels(self) -> frozenset[str]:
        """The channels that have a version, and no value at this head."""
        head = self._head
        return frozenset(head.delta_channels & head.versions.keys() - head.valued)

    def history(self, channel: str) -> History:
        """What a channel is rebuilt from.

        Raises:
            Unreadable: It is not complete.
        """
        return history_of(channel, self._head.rows, self._ancestors, self._pruned)

    def changed(self, channel: str, rewriting: Rewriting) -> bool:
        """Whether something changes in what a channel is rebuilt from.

        Raises:
            Unreadable: It is not complete, or cannot be read.
        """
        if not rewriting.everywhere:
            return False
        history = self.history(channel)
        stored: list[BlobRow | WriteRow] = [*history.writes]
        if history.seed is not None:
            stored.append(history.seed)
        for each in stored:
            if each.problem is not None:
                raise Unreadable(f"the channel {channel!r} cannot be read: {each.problem}")
            if each.blob is None or each.type in ("null", "bytes", "bytearray"):
                continue
            if rewriting.value(self._head, channel, each.type, each.blob) is not each.blob:
                return True
        return False

    def snapshot(self, channel: str) -> BlobRow | None:
        """A channel's whole value as a snapshot; None where it has none yet.

        Raises:
            Unreadable: Its history is not complete, or cannot be read.
            NotCarried: How its writes are merged is not known.
        """
        history = self.history(channel)
        if not history.writes:
            return _of_seed(history.seed)
        if self._transcripts is None:
            self._transcripts = read_transcripts(self._head, self._ancestors, self._pruned)
        transcript = self._transcripts.get(channel)
        if transcript is None:
            raise NotCarried(
                f"the delta channel {channel!r} is no list of messages, so how it is merged is not "
                "known: let the thread go on until its next snapshot, or write it with update_state"
            )
        ciphers = {write.cipher for write in history.writes}
        ciphers |= {history.seed.cipher} if history.seed is not None else set()
        cipher = next((each for each in sorted(ciphers, key=str) if each is not None), None)
        data = write_snapshot(write_transcript(transcript))
        return BlobRow(channel, "", "msgpack", data, cipher=cipher)


def _of_seed(seed: BlobRow | None) -> BlobRow | None:
    if seed is None or seed.type in ("empty", "null"):
        return None
    if seed.problem is not None or seed.blob is None:
        raise Unreadable(seed.problem or "a delta channel's snapshot has no bytes")
    found = lenient(decode_extension, seed.blob) if is_extension(seed.blob) else None
    if found is not None and found.code == SNAPSHOT_CODE:
        return seed
    return BlobRow(seed.channel, "", seed.type, write_snapshot(seed.blob), cipher=seed.cipher)
