"""What the rows of one thread say about the graph that wrote them."""

from collections.abc import Mapping
from dataclasses import dataclass

from repair_service.checkpoint.head import Head, Layout
from repair_service.repair.namespaces import shape


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph as far as one thread shows it.

    Attributes:
        layout: The layout of its checkpoints.
        namespace: The namespace without task ids.
        name: The graph's name as the metadata says it; None where it does not.
        nodes: The nodes that ran.
        channels: The channels that have versions, reserved ones aside.
    """

    layout: Layout
    namespace: str
    name: str | None
    nodes: frozenset[str]
    channels: frozenset[str]

    def may_be(self, other: "Graph") -> bool:
        """Whether another thread's graph, further along, can be taken for this one.

        Nothing may speak against it: all that this thread shows, the other one shows as well.
        """
        if (self.layout, self.namespace) != (other.layout, other.namespace):
            return False
        if self.name is not None and other.name is not None and self.name != other.name:
            return False
        return self.nodes <= other.nodes and self.channels <= other.channels


def graph_of(head: Head) -> Graph:
    """What a head shows of its graph."""
    seen = head.row.checkpoint.get("versions_seen")
    names = seen if isinstance(seen, Mapping) else {}
    return Graph(
        layout=head.layout,
        namespace=shape(head.row.checkpoint_ns),
        name=_name(head.row.metadata),
        nodes=frozenset(name for name in names if not name.startswith("__")),
        channels=frozenset(name for name in head.versions if not name.startswith("__")),
    )


def _name(metadata: Mapping[str, object]) -> str | None:
    """The name that servers and integrations write into the metadata."""
    for key in ("graph_id", "assistant_id", "ls_integration"):
        value = metadata.get(key)
        if isinstance(value, str):
            return f"{key}={value}"
    return None
