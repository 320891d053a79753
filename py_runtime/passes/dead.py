"""Drop nodes whose results nobody reads."""

from __future__ import annotations

from ..graph import Graph


def drop_dead(graph: Graph) -> Graph:
    """The graph without nodes that reach no output."""
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.results) and needed.isdisjoint(node.outputs):
            continue
        needed.update(node.tensors())
        kept.append(node)
    return graph.with_nodes(kept[::-1])
