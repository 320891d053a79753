"""Integers that a graph takes out of its inputs' data but can't use on the GPU: the CPU reads them before the run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..graph import Arg, Graph, Node, Ref, Symbol

SELECT = "et_vk.select_as_symint.default"

#: Operators whose kernels read an integer argument from a tensor (ops.registry.Call.scalar): which arguments.
READ_ON_GPU: dict[str, tuple[int, ...]] = {
    "aten.slice_copy.Tensor": (2, 3),
    **dict.fromkeys(("update_cache.default", "llama.update_cache.default"), (2,)),
    **dict.fromkeys(("sdpa_with_kv_cache.default", "llama.sdpa_with_kv_cache.default"), (5, 6)),
    **dict.fromkeys(("custom_sdpa.default", "llama.custom_sdpa.default"), (3,)),
    "et_vk.apply_rotary_emb_hf.default": (4,),
}


@dataclass(frozen=True)
class InputElement:
    """A symbol that is one element of an input: `inputs[input].reshape(-1)[index]`."""

    symbol: int
    input: int
    index: int


def elements_to_read(graph: Graph, results: Collection[int]) -> tuple[InputElement, ...]:
    """The symbols taken from inputs that come out of the graph (results) or that a kernel needs as a number."""
    views = {tensor: at for at, tensor in enumerate(graph.inputs)}
    sources: dict[int, frozenset[int]] = {}  # of a symbol: the selected ones that it is computed from
    found: dict[int, InputElement] = {}
    wanted: set[int] = set()
    for node in graph.nodes:
        output = node.outputs[0]
        first = node.args[0] if node.args else None
        if node.op == "aten.view_copy.default" and isinstance(first, Ref) and first.id in views:
            views[output] = views[first.id]
        if output not in graph.symbols:
            wanted.update(s for symbol in _numbers(node) for s in sources.get(symbol, ()))
        elif node.op == SELECT and isinstance(first, Ref) and first.id in views:
            dim, index = node.args[1:3]
            shape = graph.tensors[first.id].shape
            if isinstance(dim, int) and isinstance(index, int) and math.prod(shape) == math.prod(shape[dim:][:1]):
                found[output] = InputElement(output, views[first.id], index)
                sources[output] = frozenset({output})
        else:
            sources[output] = frozenset(s for symbol in _symbols(node.args) for s in sources.get(symbol, ()))
    wanted.update(s for symbol in results for s in sources.get(symbol, ()))
    return tuple(found[symbol] for symbol in found if symbol in wanted)


def _numbers(node: Node) -> Iterator[int]:
    """The symbols that the kernel of a node takes as numbers."""
    taken = READ_ON_GPU.get(node.op, ())
    yield from _symbols(tuple(arg for at, arg in enumerate(node.args) if at not in taken))


def _symbols(args: tuple[Arg, ...]) -> Iterator[int]:
    for arg in args:
        if isinstance(arg, Symbol):
            yield arg.id
        elif isinstance(arg, tuple):
            yield from _symbols(arg)
