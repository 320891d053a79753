"""The largest values of the numbers that a graph is given, as far as its tensors tell."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph import Graph, Symbol

#: Operators with an argument that is the shape of their output.
SHAPE_ARGUMENT = {
    "aten.view_copy.default": 1,
    "aten.expand_copy.default": 1,
    "aten.full.default": 0,
    "aten.zeros.default": 0,
    "aten.ones.default": 0,
}


def number_bounds(graph: Graph, numbers: Iterable[int]) -> dict[int, int]:
    """A bound for each of these symbols.

    The exporter stores none for a number, but for each tensor; a number that no tensor's size
    comes from keeps what the graph says, which is 0.
    """
    found: dict[int, int] = {}
    for node in graph.nodes:
        at = SHAPE_ARGUMENT.get(node.op)
        shape = node.args[at] if at is not None and at < len(node.args) else None
        if isinstance(shape, tuple):
            for item, size in zip(shape, graph.tensors[node.outputs[0]].shape, strict=False):
                if isinstance(item, Symbol):
                    found.setdefault(item.id, size)
    return {symbol: found.get(symbol, graph.symbols[symbol]) for symbol in numbers}
