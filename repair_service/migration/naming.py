"""Names of nodes in the channels that start them."""

from collections.abc import Mapping

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.identifiers import NAMESPACE_SEPARATOR
from repair_service.checkpoint.layout import NODE_CHANNEL_LAYOUTS
from repair_service.checkpoint.triggers import INPUT, JOIN, named_node

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
        middle = _renamed_senders(middle, nodes)
    else:
        source, separator, condition = middle.partition(":")
        middle = nodes.get(source, source) + separator + condition if separator else middle
    return f"{kind}:{middle}:{nodes.get(node, node)}"


def _renamed_senders(senders: str, nodes: Mapping[str, str]) -> str:
    """The nodes that a barrier waits for, renamed; a name that holds a `+` itself counts too."""
    if senders in nodes:
        return nodes[senders]
    return SENDER.join(nodes.get(name, name) for name in senders.split(SENDER))
