"""Fold elementwise operators into the node before them.

A group is a set of elementwise nodes of one output shape, with at most one producer (a
convolution, say) in front. A node joins when everybody who reads its result is in the
group already, so nothing is computed twice and nothing that others need is lost. The
group stays at the place of its last node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..functions import CASTS, ELEMENTWISE
from ..graph import Graph, Node

PRODUCTS = ("aten.linear.default", "aten.mm.default", "aten.bmm.default", "aten.addmm.default")
PRODUCERS = frozenset({"aten.convolution.default", "et_vk.conv_with_clamp.default", *PRODUCTS})

#: Tensors one group may read: WebGPU's default of 8 storage buffers, less the output.
MAX_READS = 7


@dataclass(frozen=True)
class Group:
    """Nodes by their position in the graph, in order, but a producer always first."""

    members: tuple[int, ...]
    has_producer: bool


def fuse_elementwise(graph: Graph) -> Graph:
    """The graph with elementwise chains in `Node.fused` of the node they follow."""
    made_by = {t: i for i, node in enumerate(graph.nodes) for t in node.outputs}
    readers: dict[int, set[int]] = {}
    for i, node in enumerate(graph.nodes):
        for tensor in node.tensors():
            readers.setdefault(tensor, set()).add(i)
    groups: dict[int, Group] = {}  # by the position of a group's last node
    written = {*graph.older, *graph.older.values()}
    fixed = {i for i, node in enumerate(graph.nodes) if not written.isdisjoint(node.tensors())}
    for i, node in enumerate(graph.nodes):
        if node.op in PRODUCERS and len(node.outputs) == 1:
            groups[i] = Group((i,), has_producer=True)
        elif is_elementwise(node, graph):
            groups[i] = Group((i,), has_producer=False)
            _grow(i, graph, groups, made_by, readers, fixed)
    return graph.with_nodes(
        [
            _merged(groups[i], graph) if i in groups else node
            for i, node in enumerate(graph.nodes)
            if i in groups or not (node.op in PRODUCERS or is_elementwise(node, graph))
        ]
    )


def is_elementwise(node: Node, graph: Graph) -> bool:
    """Whether a node computes each output element from the ones that broadcast to it."""
    if node.op not in ELEMENTWISE or any(t not in graph.tensors for t in node.outputs):
        return False
    if node.op in CASTS:  # a cast to the same dtype is a view, and left to that pass
        (source,) = node.tensors()
        return graph.tensors[source].dtype != graph.tensors[node.outputs[0]].dtype
    return True


def _grow(
    last: int,
    graph: Graph,
    groups: dict[int, Group],
    made_by: dict[int, int],
    readers: dict[int, set[int]],
    fixed: set[int],
) -> None:
    """Take groups that only this one reads into it, until none is left.

    fixed: nodes that read what is written again, and so can't move to a later place.
    """
    shape = graph.tensors[graph.nodes[last].outputs[0]].shape
    grown = True
    while grown:
        grown = False
        group = groups[last]
        for tensor in _reads(group, graph):
            maker = made_by.get(tensor)
            other = groups.get(maker) if maker is not None else None
            if maker is None or other is None or maker == last or tensor in graph.outputs:
                continue
            if graph.tensors[tensor].shape != shape or (other.has_producer and group.has_producer):
                continue
            if not readers[tensor] <= set(group.members) or not fixed.isdisjoint(other.members):
                continue
            joined = _join(group, other)
            if len(_reads(joined, graph)) > MAX_READS or _feeds_its_producer(joined, graph):
                continue
            groups[last] = joined
            del groups[maker]
            grown = True
            break


def _join(one: Group, other: Group) -> Group:
    producer = [g.members[0] for g in (one, other) if g.has_producer]
    rest = sorted({*one.members, *other.members} - set(producer))
    return Group((*producer, *rest), bool(producer))


def _feeds_its_producer(group: Group, graph: Graph) -> bool:
    """Whether the producer needs what a later member makes: then it can't come first."""
    if not group.has_producer:
        return False
    first, *rest = group.members
    made = {t for i in rest for t in graph.nodes[i].outputs}
    return not made.isdisjoint(graph.nodes[first].tensors())


def _reads(group: Group, graph: Graph) -> list[int]:
    """Tensors that a group reads from outside."""
    made = {t for i in group.members for t in graph.nodes[i].outputs}
    reads = dict.fromkeys(t for i in group.members for t in graph.nodes[i].tensors())
    return [t for t in reads if t not in made]


def _merged(group: Group, graph: Graph) -> Node:
    first, *rest = (graph.nodes[i] for i in group.members)
    return replace(first, fused=tuple(rest))
