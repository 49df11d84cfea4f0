"""Every store of the corpus, once its list of messages or its classes have another name."""

from collections.abc import Mapping
from typing import Any

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.layout import versions_seen
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import read_transcripts
from repair_service.errors import Unreadable
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.namespaces import parent_task
from repair_service.repair.verdict import Migration, Policy, Verdict
from repair_service.store.gateway import Store
from tests.acceptance.service import audit, rows, sweep
from tests.conftest import Corpus, Database


def migration(kind: Any, renames: Mapping[str, str]) -> Policy:
    return Policy(min_idle=0, migration=Migration(kind, renames))


def newer(head: Head, renames: Mapping[str, str]) -> set[tuple[str, str]]:
    """What each node, and the static breakpoints, have not seen yet."""
    return {
        (node, renames.get(channel, channel))
        for node, seen in versions_seen(head.row).items()
        for channel, version in head.versions.items()
        if channel in seen and version != seen[channel]
    }


def summary(database: Database, renames: Mapping[str, str]) -> dict[str, Any]:
    """By thread, its root head's lists, pending tasks and unseen channels."""
    found: dict[str, Any] = {}
    with Store.connect(database.url, schema=database.schema) as store:
        names = [head.thread_id for batch in store.scan(namespace="") for head in batch]
        for name, thread in store.threads(names).items():
            try:
                head = read_head(thread.heads[""])
                lists = read_transcripts(head, thread.ancestors.get("", ()), "" in thread.pruned)
            except Unreadable:
                continue
            found[name] = (
                {
                    renames.get(channel, channel): [
                        (each.kind, each.id, each.answers, [call.id for call in each.calls])
                        for each in transcript.messages
                    ]
                    for channel, transcript in lists.items()
                },
                [(t.kind, t.node, t.finished, t.interrupted, len(t.writes)) for t in head.tasks],
                newer(head, renames),
            )
    return found


def tried(database: Database, policy: Policy) -> dict[str, Diagnosis]:
    """Migrate; what was there stays, and a second look finds only what was left."""
    there = rows(database)
    done = {item.thread_id: item for item in sweep(database, policy)}
    after = rows(database)
    for table, known in there.items():
        assert set(known) <= set(after[table])
    left = {name for name, item in done.items() if item.verdict is not Verdict.REPAIRED}
    assert {item.thread_id for item in audit(database, policy)} == left
    assert all(parent_task(item.checkpoint_ns) is None for item in done.values())
    return done


def test_a_list_under_another_key_is_the_same_list_at_the_same_step(corpus: Corpus) -> None:
    renames = {"messages": "talk"}
    before = summary(corpus.database, renames)

    done = tried(corpus.database, migration("channels", renames))

    carried = {name for name, item in done.items() if item.verdict is Verdict.REPAIRED}
    assert carried
    after = summary(corpus.database, {})
    for name in carried & before.keys():
        assert after[name] == before[name]
        assert "messages" not in after[name][0]
    for item in done.values():
        if item.verdict is not Verdict.REPAIRED:
            assert item.verdict is Verdict.MANUAL, item
            assert "kept with its parent" in item.reason or "Send" in item.reason, item.reason


def test_moved_classes_leave_every_list_as_it_is_read(corpus: Corpus) -> None:
    moved = {
        "langchain_core.messages.ai.AIMessage": "elsewhere.of.mine.AIMessage",
        "langchain_core.messages.AIMessage": "elsewhere.AIMessage",
    }
    database = corpus.database
    before = summary(database, {})

    done = tried(database, migration("types", moved))

    carried = {name for name, item in done.items() if item.verdict is Verdict.REPAIRED}
    assert carried
    after = summary(database, {})
    assert {name: after[name] for name in carried & before.keys()} == {
        name: before[name] for name in carried & before.keys()
    }
    with database.connect() as connection:
        found = connection.execute(
            "SELECT count(*) FROM checkpoint_blobs WHERE position('elsewhere'::bytea IN blob) > 0"
        ).fetchone()
    assert found is not None
    assert found[0] >= len(carried)

    back = {new: old for old, new in moved.items()}
    tried(database, migration("types", back))
    again = summary(database, {})
    assert {name: again[name] for name in carried & before.keys()} == {
        name: before[name] for name in carried & before.keys()
    }
    for item in done.values():
        if item.verdict is not Verdict.REPAIRED:
            assert item.verdict in (Verdict.MANUAL, Verdict.UNREADABLE), item
            assert "kept with its parent" in item.reason or item.thread_id == "corrupt", item
