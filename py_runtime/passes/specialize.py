"""A graph of symbolic sizes for one set of input shapes: every size becomes a number.

A program with dynamic shapes stores upper bounds. Given the shapes that came in, the
shape of every tensor follows from the operators (`SHAPES`), and symbolic integers from
`SYMBOLIC`. What comes out is an ordinary graph. Nodes whose inputs have their bounds keep
their outputs' bounds, so only operators between a dynamic input and an output need a rule.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..container import broken_file
from ..errors import UnsupportedError
from ..functions import ELEMENTWISE
from ..graph import Arg, Element, Graph, Node, Ref, Symbol

Shape = tuple[int, ...]

#: On what a run computes: `(value, number)`, in this order or, for the first two, the other.
ON_ELEMENTS: dict[str, Callable[[Element, int], Element]] = {
    "add": lambda e, n: replace(e, offset=e.offset + n),
    "mul": lambda e, n: replace(e, scale=e.scale * n, offset=e.offset * n),
    "sub": lambda e, n: replace(e, offset=e.offset - n),
}

SYMBOLIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
}


@dataclass(frozen=True)
class Shapes:
    """A node's arguments with the shapes of their tensors; all integers are numbers by now."""

    node: Node
    of: Mapping[int, Shape]

    def tensor(self, index: int) -> Shape:
        arg = self.node.args[index]
        if not isinstance(arg, Ref):
            raise UnsupportedError(f"{self.node.op}: argument {index} is {arg!r}, a tensor is needed")
        return self.of[arg.id]

    def arg(self, index: int, default: Arg = None) -> Arg:
        found = self.node.args[index] if index < len(self.node.args) else default
        return default if found is None else found

    def integer(self, index: int, default: int = 0) -> int:
        found = self.arg(index, default)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if not isinstance(found, int):
            raise UnsupportedError(f"{self.node.op}: argument {index} is {found!r}, an integer is needed")
        return found

    def integers(self, index: int, default: Shape = ()) -> Shape:
        found = self.arg(index, default)
        if not isinstance(found, tuple):
            raise UnsupportedError(f"{self.node.op}: argument {index} is {found!r}, a list is needed")
        return tuple(int(item) for item in found if isinstance(item, int | float))


def specialize(graph: Graph, inputs: Mapping[int, Shape], numbers: Mapping[int, int] | None = None) -> Graph:
    """The graph for these shapes of its inputs (by tensor id); others keep their bounds.

    numbers: the symbols that are given from outside. The result's symbols are numbers; those
    that only a run computes are not among them.
    Raises UnsupportedError for an operator whose output shape is not known.
    """
    shapes: dict[int, Shape] = {tensor: t.shape for tensor, t in graph.tensors.items()} | dict(inputs)
    symbols: dict[int, int | Element] = dict(numbers or {})
    nodes = []
    for node in graph.nodes:
        node = Node(node.op, tuple(_resolve(arg, symbols, node) for arg in node.args), node.outputs, node.fused)
        (first, *_) = node.outputs
        with broken_file(f"call of {node.op}"):
            if first in graph.symbols:
                if first not in symbols:
                    symbols[first] = _symbol(node, shapes)
                continue
            for output, shape in zip(node.outputs, _output_shapes(node, graph, shapes), strict=False):
                shapes[output] = shape
        nodes.append(node)
    tensors = {i: replace(t, shape=shapes[i]) for i, t in graph.tensors.items()}
    known = {symbol: value for symbol, value in symbols.items() if isinstance(value, int)}
    return replace(graph, tensors=tensors, nodes=tuple(nodes), symbols=known)


def _resolve(arg: Arg, symbols: Mapping[int, int | Element], node: Node) -> Arg:
    if isinstance(arg, Symbol):
        if arg.id not in symbols:
            raise UnsupportedError(f"{node.op} needs a size that only running the model gives")
        return symbols[arg.id]
    if isinstance(arg, tuple):
        return tuple(_resolve(item, symbols, node) for item in arg)
    return arg


def _symbol(node: Node, shapes: Mapping[int, Shape]) -> int | Element:
    name = node.op.removeprefix("aten.").partition(".")[0]
    given = Shapes(node, shapes)
    if name == "sym_size":
        return given.tensor(0)[given.integer(1)]
    if node.op == "et_vk.select_as_symint.default" and isinstance(node.args[0], Ref):
        shape = given.tensor(0)
        return Element(node.args[0].id, _flat_index(shape, given.integer(1), given.integer(2)))
    if name in SYMBOLIC and len(node.args) == 2:
        found = _on_elements(name, node.args[0], node.args[1])
        return found or SYMBOLIC[name](given.integer(0), given.integer(1))
    raise UnsupportedError(f"{node.op} gives a size that depends on the data; export the model with a fixed size there")


def _flat_index(shape: Shape, dim: int, index: int) -> int:
    """Where the only element of x.select(dim, index) lies in x."""
    if math.prod(shape) != (shape[dim] if shape else 1):
        raise UnsupportedError(
            f"et_vk.select_as_symint.default takes one number of {list(shape)}; it has several there"
        )
    return index % shape[dim] if shape else 0


def _on_elements(name: str, first: Arg, second: Arg) -> Element | None:
    if name in ("add", "mul") and isinstance(second, Element):
        first, second = second, first
    if isinstance(first, Element) and isinstance(second, int) and name in ON_ELEMENTS:
        return ON_ELEMENTS[name](first, second)
    return None


def _output_shapes(node: Node, graph: Graph, shapes: Mapping[int, Shape]) -> Sequence[Shape]:
    rule = SHAPES.get(node.op) or (broadcast if node.op in ELEMENTWISE else None)
    changed = any(shapes[t] != graph.tensors[t].shape for t in node.tensors())
    if rule is None or not (changed or node.op in FROM_ARGUMENTS):
        if changed:
            raise UnsupportedError(f"{node.op} has no rule for dynamic shapes; export the model with fixed ones")
        return [graph.tensors[t].shape for t in node.outputs]
    result = rule(Shapes(node, shapes))
    return result if isinstance(result, list) else [result]


def broadcast(s: Shapes) -> Shape:
    given = [s.of[arg.id] for arg in s.node.args if isinstance(arg, Ref)]
    rank = max(len(shape) for shape in given)
    padded = [(1,) * (rank - len(shape)) + shape for shape in given]
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*padded, strict=True))


def same(s: Shapes) -> Shape:
    return s.tensor(0)


def view(s: Shapes) -> Shape:
    sizes = s.integers(1)
    known = math.prod(size for size in sizes if size >= 0)
    return tuple(size if size >= 0 else math.prod(s.tensor(0)) // max(known, 1) for size in sizes)


def expand(s: Shapes) -> Shape:
    own, sizes = s.tensor(0), s.integers(1)
    padded = (1,) * (len(sizes) - len(own)) + own
    return tuple(have if want == -1 else want for have, want in zip(padded, sizes, strict=True))


def permute(s: Shapes) -> Shape:
    return tuple(s.tensor(0)[dim] for dim in s.integers(1))


def squeeze(s: Shapes) -> Shape:
    shape = s.tensor(0)
    dims = {dim % len(shape) for dim in s.integers(1)}
    return tuple(size for dim, size in enumerate(shape) if dim not in dims or size != 1)


def unsqueeze(s: Shapes) -> Shape:
    shape = s.tensor(0)
    dim = s.integer(1) % (len(shape) + 1)
    return (*shape[:dim], 1, *shape[dim:])


def slice_(s: Shapes) -> Shape:
    shape = list(s.tensor(0))
    dim = s.integer(1) % len(shape)
    first, last = s.arg(2), s.arg(3)
    if isinstance(first, Element) and isinstance(last, Element) and replace(first, offset=last.offset) == last:
        shape[dim] = last.offset - first.offset  # from a place that a run computes, but always so many
        return tuple(shape)
    start, stop, step = slice(
        s.integer(2), s.integer(3, 2**62) if s.arg(3) is not None else None, s.integer(4, 1)
    ).indices(shape[dim])
    shape[dim] = max(0, -(-(stop - start) // step))
    return tuple(shape)


def select(s: Shapes) -> Shape:
    shape = s.tensor(0)
    dim = s.integer(1) % len(shape)
    return shape[:dim] + shape[dim + 1 :]


def split(s: Shapes) -> list[Shape]:
    shape, dim = s.tensor(0), s.integer(2) % len(s.tensor(0))
    return [(*shape[:dim], size, *shape[dim + 1 :]) for size in s.integers(1)]


def cat(s: Shapes) -> Shape:
    parts = s.node.args[0]
    assert isinstance(parts, tuple)
    given = [s.of[part.id] for part in parts if isinstance(part, Ref)]
    dim = s.integer(1) % len(given[0])
    return (*given[0][:dim], sum(shape[dim] for shape in given), *given[0][dim + 1 :])


def repeat(s: Shapes) -> Shape:
    counts, own = s.integers(1), s.tensor(0)
    padded = (1,) * (len(counts) - len(own)) + own
    return tuple(size * count for size, count in zip(padded, counts, strict=True))


def matrix(s: Shapes) -> Shape:
    return (*s.tensor(0)[:-1], s.tensor(1)[-1])


def attention(s: Shapes) -> Shape:
    return (*s.tensor(0)[:-1], s.tensor(2)[-1])


def norm(s: Shapes) -> list[Shape]:
    shape, count = s.tensor(0), len(s.integers(1))
    rows = (*shape[: len(shape) - count], *[1] * count)
    return [shape, rows, rows]


def reduce(s: Shapes) -> Shape:
    shape = s.tensor(0)
    raw = s.arg(1)
    listed = s.integers(1) if raw is None or isinstance(raw, tuple) else (s.integer(1),)
    dims = {d % len(shape) for d in listed} or set(range(len(shape)))
    keep = bool(s.arg(2, False))
    return tuple(1 if d in dims else size for d, size in enumerate(shape) if keep or d not in dims)


def embedding(s: Shapes) -> Shape:
    return (*s.tensor(1), s.tensor(0)[-1])


def convolution(s: Shapes) -> Shape:
    shape, weight = s.tensor(0), s.tensor(1)
    rank = len(weight) - 2
    stride, padding, dilation = (_each(s.integers(i), rank) for i in (3, 4, 5))
    transposed, extra = bool(s.arg(6, False)), _each(s.integers(7) or (0,), rank)
    spatial = []
    for i, size in enumerate(shape[-rank:]):
        reach = dilation[i] * (weight[2 + i] - 1)
        if transposed:
            spatial.append((size - 1) * stride[i] - 2 * padding[i] + reach + extra[i] + 1)
        else:
            spatial.append((size + 2 * padding[i] - reach - 1) // stride[i] + 1)
    channels = weight[1] * s.integer(8, 1) if transposed else weight[0]
    return (*shape[: len(shape) - rank - 1], channels, *spatial)


def _each(values: Shape, rank: int) -> Shape:
    return values * rank if len(values) == 1 else values


def pool(s: Shapes) -> list[Shape]:
    """Max and average pooling; ceil_mode is argument 5 of the one and 4 of the other."""
    shape = s.tensor(0)
    maximum = "max_pool" in s.node.op
    kernel = _each(s.integers(1), 2)
    stride = _each(s.integers(2) or kernel, 2)
    padding = _each(s.integers(3) or (0,), 2)
    dilation = _each((s.integers(4) if maximum else ()) or (1,), 2)
    ceil = bool(s.arg(5 if maximum else 4, False))
    spatial = []
    for i, size in enumerate(shape[-2:]):
        span = size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1
        count = (-(-span // stride[i]) if ceil else span // stride[i]) + 1
        if ceil and (count - 1) * stride[i] >= size + padding[i]:
            count -= 1  # a window must start inside the input or its padding on the left
        spatial.append(count)
    out = (*shape[:-2], *spatial)
    return [out, out]


def resize(s: Shapes) -> Shape:
    shape, factor_index = s.tensor(0), len(s.node.args) - 1
    size = s.integers(1)
    if size:
        return (*shape[:-2], *size)
    factors = s.arg(factor_index)
    assert isinstance(factors, tuple)
    scaled = (int(n * f) for n, f in zip(shape[-2:], factors, strict=True) if isinstance(f, int | float))
    return (*shape[:-2], *scaled)


def pad(s: Shapes) -> Shape:
    shape, pads = list(s.tensor(0)), s.integers(1)
    for i in range(0, len(pads), 2):
        shape[len(shape) - 1 - i // 2] += pads[i] + pads[i + 1]
    return tuple(shape)


def pixel_shuffle(s: Shapes) -> Shape:
    *outer, channels, height, width = s.tensor(0)
    r = s.integer(1)
    return (*outer, channels // (r * r), height * r, width * r)


def arange(s: Shapes) -> Shape:
    start, stop, step = (s.arg(i, 1 if i == 2 else 0) for i in range(3))
    assert isinstance(start, int | float) and isinstance(stop, int | float) and isinstance(step, int | float)
    return (max(0, math.ceil((stop - start) / step)),)


Rule = Callable[[Shapes], Shape | list[Shape]]

#: Operators whose shape comes from integers among their arguments, whatever their tensors.
FROM_ARGUMENTS: dict[str, Rule] = {
    "aten.view_copy.default": view,
    "aten.expand_copy.default": expand,
    "aten.slice_copy.Tensor": slice_,
    "aten.split_with_sizes_copy.default": split,
    "aten.repeat.default": repeat,
    "aten.arange.start_step": arange,
    "aten.full.default": lambda s: s.integers(0),
    "aten.zeros.default": lambda s: s.integers(0),
    "aten.ones.default": lambda s: s.integers(0),
}

SHAPES: dict[str, Rule] = {
    **FROM_ARGUMENTS,
    **dict.fromkeys(("aten.permute_copy.default", "aten.permute.default"), permute),
    "aten.squeeze_copy.dims": squeeze,
    "aten.unsqueeze_copy.default": unsqueeze,
    "aten.select_copy.int": select,
    "aten.cat.default": cat,
    **dict.fromkeys(("aten.mm.default", "aten.bmm.default"), matrix),
    "aten.linear.default": lambda s: (*s.tensor(0)[:-1], s.tensor(1)[0]),
    "aten.addmm.default": lambda s: (s.tensor(1)[0], s.tensor(2)[1]),
    "et_vk.sdpa.default": attention,
    "aten.native_layer_norm.default": norm,
    "aten.embedding.default": embedding,
    "aten.gather.default": lambda s: s.tensor(2),
    **dict.fromkeys(("aten.convolution.default", "et_vk.conv_with_clamp.default"), convolution),
    **dict.fromkeys(
        ("aten.max_pool2d_with_indices.default", "aten.max_pool2d.default", "aten.avg_pool2d.default"), pool
    ),
    **dict.fromkeys(("aten.upsample_nearest2d.vec", "aten.upsample_bilinear2d.vec"), resize),
    "aten.constant_pad_nd.default": pad,
    "aten.pixel_shuffle.default": pixel_shuffle,
    **dict.fromkeys(("update_cache.default", "llama.update_cache.default"), lambda s: (1,)),
    **dict.fromkeys(("aten.amax.default", "aten.amin.default", "aten.mean.dim", "aten.sum.dim_IntList"), reduce),
    **dict.fromkeys(("aten.argmax.default", "aten.argmin.default"), reduce),
    **dict.fromkeys(
        (
            "aten._softmax.default",
            "aten._log_softmax.default",
            "sdpa_with_kv_cache.default",
            "llama.sdpa_with_kv_cache.default",
            "llama.custom_sdpa.default",
            "aten.alias_copy.default",
            "aten.clone.default",
            "aten.flip.default",
            "aten.full_like.default",
            "aten.ones_like.default",
            "aten.zeros_like.default",
            "dim_order_ops._clone_dim_order.default",
            "et_vk.rms_norm.default",
            "aten._native_batch_norm_legit_no_training.default",
        ),
        same,
    ),
}
