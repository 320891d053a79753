"""Drop nodes whose results nobody reads."""

from __future__ import annotations

from ..graph import Graph


def drop_dead(graph: Graph) -> Graph:
    """The graph without nodes that reach no output and no state."""
    needed = set(graph.outputs)
    for newer, before in graph.older.items():
        if before in graph.states or before in needed:
            needed.add(newer)  # the last version is what the next run starts from
    kept = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.results) and needed.isdisjoint(node.outputs):
            continue
        needed.update(node.tensors())
        kept.append(node)
    return graph.with_nodes(kept[::-1])
