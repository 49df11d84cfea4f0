"""Names of nodes in the channels that start them."""

from collections.abc import Iterator, Mapping, Sequence

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.identifiers import NAMESPACE_SEPARATOR
from repair_service.checkpoint.layout import NODE_CHANNEL_LAYOUTS, versions_seen
from repair_service.checkpoint.triggers import INPUT, JOIN, known_nodes, named_node
from repair_service.errors import NotCarried

SENDER = "+"
"""Between the nodes that a barrier waits for (langgraph/graph/state.py `attach_edge`)."""


def placed(path: str, name: str) -> str:
    """A name of the graph at a path, as the operator says it: `NODE`, or `PARENT|NODE`."""
    return f"{path}{NAMESPACE_SEPARATOR}{name}" if path else name


def renamed_trigger(head: Head, channel: str, nodes: Mapping[str, str]) -> str:
    """A channel's name once nodes have other names; the same where it names none of them.

    Args:
        head: The head that has the channel.
        channel: The channel.
        nodes: By name, the new names of the head's own graph's nodes.

    Raises:
        NotCarried: It is a barrier, and which nodes it waits for is not certain.
    """
    if channel in nodes and head.layout in NODE_CHANNEL_LAYOUTS:
        return nodes[channel]
    node = named_node(channel)
    if node is None or node == INPUT:
        return channel
    kind, _, rest = channel.partition(":")
    middle, _, _ = rest.rpartition(":")
    if kind == "start":
        return f"start:{nodes.get(node, node)}"
    if kind == JOIN[:-1]:
        middle = _renamed_senders(head, middle, nodes)
    else:
        source, separator, condition = middle.partition(":")
        middle = nodes.get(source, source) + separator + condition if separator else middle
    return f"{kind}:{middle}:{nodes.get(node, node)}"


def _renamed_senders(head: Head, senders: str, nodes: Mapping[str, str]) -> str:
    """The nodes that a barrier waits for, renamed.

    A node's name may hold a `+` itself: then each way to read the whole has to come to the same.
    """
    known = {*nodes, *known_nodes(versions_seen(head.row), head.versions)}
    joined = frozenset(name for name in known if SENDER in name)
    found = {
        SENDER.join(nodes.get(name, name) for name in names)
        for names in _readings(senders.split(SENDER), joined)
    }
    if len(found) > 1:
        raise NotCarried(
            f"the barrier of {senders!r} may wait for nodes of other names than it seems, as a "
            "node's name has a + in it: let it go on with the old graph"
        )
    return found.pop()


def _readings(parts: Sequence[str], joined: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Each way to read parts as names: a part is one, and so are some in a row that are known."""
    if not parts:
        yield ()
        return
    for end in range(1, len(parts) + 1):
        name = SENDER.join(parts[:end])
        if end == 1 or name in joined:
            for rest in _readings(parts[end:], joined):
                yield name, *rest
