"""Turn operators that move no data into addresses.

After this pass a tensor has a place: a root tensor that owns memory and an element
offset in it. Reshapes, squeezes and copies share their source's place; slices and
splits of the outermost dimension are offsets into it; the parts of a cat along the
outermost dimension are written where the cat wants them. What is left of a node, if
anything, still computes.

WebGPU lets one dispatch not write a buffer that it also reads, so a part of a cat is
placed only where no node would read and write the same root.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from ..graph import Arg, Graph, Node, Ref
from .mutations import roots_written

#: Element offsets keep this alignment, so that vector loads and 4-byte copies stay possible.
ALIGNMENT = 4


@dataclass(frozen=True)
class Place:
    """Where a tensor lies: `offset` elements into the tensor `root`."""

    root: int
    offset: int = 0


@dataclass(frozen=True)
class Placed:
    """A graph whose pure views are gone, and the place of every tensor."""

    graph: Graph
    places: dict[int, Place]

    def place(self, tensor: int) -> Place:
        return self.places.get(tensor, Place(tensor))


PlaceOf = Callable[[int], Place]

CAT = "aten.cat.default"
SAME_DATA = frozenset(
    {
        "aten.view_copy.default",
        "aten.squeeze_copy.dims",
        "aten.squeeze_copy.dim",
        "aten.unsqueeze_copy.default",
        "aten.alias_copy.default",
        "aten.clone.default",
        "aten.expand_copy.default",
        "aten.permute_copy.default",
        "aten.permute.default",
        "aten.repeat.default",
        "aten._to_copy.default",
        "dim_order_ops._clone_dim_order.default",
        "dim_order_ops._to_dim_order_copy.default",
        "et_vk.prepack.default",
    }
)


def place_views(graph: Graph) -> Placed:
    """Resolve views to places and drop the nodes that nothing is left of."""
    places: dict[int, Place] = {newer: Place(before) for newer, before in graph.older.items()}
    written = roots_written(graph)

    def place(tensor: int) -> Place:
        found = places.get(tensor, Place(tensor))
        if found.root in places and found.root != tensor:
            outer = place(found.root)
            found = Place(outer.root, outer.offset + found.offset)
        return found

    kept = []
    for i, node in enumerate(graph.nodes):
        offsets = None if node.fused else _view_offsets(node, graph)
        if offsets is None or i < written.get(place(_source(node)).root, -1):  # what is written later is copied
            kept.append(node)
            continue
        source = place(_source(node))
        for output, offset in zip(node.outputs, offsets, strict=True):
            places[output] = Place(source.root, source.offset + offset)
    for node in kept:
        if node.op == CAT and not node.fused:
            _place_parts(node, graph, kept, places, place, written)
    resolved = {tensor: place(tensor) for tensor in graph.tensors}
    left = [n for n in kept if not _is_placed_cat(n, graph, resolved.__getitem__)]
    return Placed(graph.with_nodes(left), resolved)


def _source(node: Node) -> int:
    first = node.args[0]
    assert isinstance(first, Ref)
    return first.id


def _view_offsets(node: Node, graph: Graph) -> list[int] | None:
    """Element offsets of a node's outputs in its first argument; None when it is no view."""
    if not node.args or not isinstance(node.args[0], Ref) or any(o not in graph.tensors for o in node.outputs):
        return None
    source = graph.tensors[node.args[0].id]
    outs = [graph.tensors[o] for o in node.outputs]
    if any(out.dtype.storage != source.dtype.storage for out in outs):
        return None
    if node.op in SAME_DATA:
        if outs[0].count != source.count or outs[0].dtype != source.dtype:
            return None
        if "permute" in node.op and not _keeps_order(node.args[1], source.shape):
            return None
        return [0]
    if node.op in SLICES:
        return SLICES[node.op](node, graph)
    return None


def _keeps_order(dims: Arg, shape: tuple[int, ...]) -> bool:
    assert isinstance(dims, tuple)
    moved = [int(d) % len(shape) for d in dims if isinstance(d, int)]
    order = [d for d in moved if shape[d] != 1]
    return order == sorted(order)


def _inner(shape: tuple[int, ...], dim: int) -> int | None:
    """Elements a step along dim skips; None when dim is not the outermost that counts."""
    if any(size != 1 for size in shape[:dim]):
        return None
    step = 1
    for size in shape[dim + 1 :]:
        step *= size
    return step


def _slice_offset(node: Node, graph: Graph) -> list[int] | None:
    shape = graph.tensors[_source(node)].shape
    _, dim, start, _, step = (*node.args, None, None, None, None)[:5]
    if step not in (None, 1) or isinstance(start, float) or not isinstance(dim, int | None):
        return None
    axis = (dim or 0) % max(len(shape), 1)
    first = 0 if start is None else start
    if not isinstance(first, int):
        return None
    size = shape[axis]
    first = min(max(first + size if first < 0 else first, 0), size)
    return _aligned([first], shape, axis)


def _select_offset(node: Node, graph: Graph) -> list[int] | None:
    shape = graph.tensors[_source(node)].shape
    dim, index = node.args[1], node.args[2]
    if not isinstance(dim, int) or not isinstance(index, int):
        return None
    axis = dim % len(shape)
    return _aligned([index % max(shape[axis], 1)], shape, axis)


def _split_offsets(node: Node, graph: Graph) -> list[int] | None:
    shape = graph.tensors[_source(node)].shape
    dim = node.args[2] if len(node.args) > 2 else 0
    if not isinstance(dim, int):
        return None
    axis = dim % len(shape)
    starts, total = [], 0
    for output in node.outputs:
        starts.append(total)
        total += graph.tensors[output].shape[axis]
    return _aligned(starts, shape, axis)


SLICES = {
    "aten.slice_copy.Tensor": _slice_offset,
    "aten.select_copy.int": _select_offset,
    "aten.split_with_sizes_copy.default": _split_offsets,
}


def _aligned(starts: list[int], shape: tuple[int, ...], axis: int) -> list[int] | None:
    step = _inner(shape, axis)
    if step is None:
        return None
    offsets = [start * step for start in starts]
    return offsets if all(offset % ALIGNMENT == 0 for offset in offsets) else None


def cat_offsets(node: Node, graph: Graph) -> list[int] | None:
    """Where the parts of a cat lie in its output, when each is one piece there."""
    dim = node.args[1] if len(node.args) > 1 else 0
    shape = graph.tensors[node.outputs[0]].shape
    if not isinstance(dim, int) or not isinstance(node.args[0], tuple):
        return None
    starts, total = [], 0
    for part in node.args[0]:
        assert isinstance(part, Ref)
        starts.append(total)
        total += graph.tensors[part.id].shape[dim % len(shape)]
    return _aligned(starts, shape, dim % len(shape))


def unplaced_parts(node: Node, graph: Graph, place: PlaceOf) -> list[int]:
    """Which parts of a cat, by position, do not lie where the cat wants them."""
    assert isinstance(node.args[0], tuple)
    offsets = cat_offsets(node, graph)
    if offsets is None:
        return list(range(len(node.args[0])))
    out = place(node.outputs[0])
    return [
        i
        for i, (part, offset) in enumerate(zip(node.args[0], offsets, strict=True))
        if not isinstance(part, Ref) or place(part.id) != Place(out.root, out.offset + offset)
    ]


def _place_parts(
    node: Node, graph: Graph, kept: list[Node], places: dict[int, Place], place: PlaceOf, written: Container[int]
) -> None:
    """Move the parts of one cat into its output, as far as that is allowed."""
    offsets = cat_offsets(node, graph)
    if offsets is None:
        return
    assert isinstance(node.args[0], tuple)
    output = node.outputs[0]
    for part, offset in zip(node.args[0], offsets, strict=True):
        assert isinstance(part, Ref)
        tensor = graph.tensors[part.id]
        at = place(part.id)
        root = graph.tensors[at.root]
        if (
            at.offset != 0
            or at.root == place(output).root
            or root.count != tensor.count
            or root.constant is not None
            or at.root in graph.inputs
            or at.root in written
            or tensor.dtype != graph.tensors[output].dtype
        ):
            continue
        places[at.root] = Place(output, offset)
        if any(_reads_what_it_writes(n, graph, place) for n in kept):
            del places[at.root]


def _reads_what_it_writes(node: Node, graph: Graph, place: PlaceOf) -> bool:
    written = {place(t).root for t in node.results}
    if node.op == CAT and not node.fused:
        parts = node.args[0]
        assert isinstance(parts, tuple)
        read = [parts[i] for i in unplaced_parts(node, graph, place)]
        return any(isinstance(p, Ref) and place(p.id).root in written for p in read)
    older = {graph.older.get(t) for t in node.results}  # what it writes in place, it may read
    return any(place(t).root in written for t in node.tensors() if t not in older)


def _is_placed_cat(node: Node, graph: Graph, place: PlaceOf) -> bool:
    return node.op == CAT and not node.fused and not unplaced_parts(node, graph, place)
