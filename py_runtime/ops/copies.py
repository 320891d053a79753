"""Operators that move elements: permute, slice, split, select, cat, expand, repeat, clone.

Each is one kernel that copies out[target(i)] = x[source(i)]; both maps are written here
from shapes and strides. Most of these are views and never get here (passes/views.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..expression import broadcast_index, strides
from ..functions import CASTS
from ..graph import Element, Ref
from ..kernels import Binding, Dispatch, linear_grid, read, write
from ..passes.views import unplaced_parts
from .elementwise import elementwise
from .registry import Call, operator

IDENTITY = "i"


def strided_index(shape: Sequence[int], steps: Sequence[int], start: int = 0) -> str:
    """WGSL for the element that row-major index `i` of `shape` meets at these strides."""
    terms = [f"{start}u"] if start else []
    own = strides(shape)
    for dim, (size, step) in enumerate(zip(shape, steps, strict=True)):
        if size == 1 or step == 0:
            continue
        at = "i" if own[dim] == 1 else f"i / {own[dim]}u"
        if math.prod(shape[:dim]) != 1:
            at = f"({at}) % {size}u"
        terms.append(f"({at}) * {step}u")
    return " + ".join(terms) or "0u"


def copy(
    call: Call,
    x: int,
    out: int,
    count: int,
    source: str,
    target: str = IDENTITY,
    extra: tuple[Binding, ...] = (),
) -> None:
    """Emit one copy of `count` elements; source and target are WGSL in `i`, and may read extra bindings."""
    elem, out_elem = call.lowering.elem(x), call.lowering.elem(out)
    code = f"alias out_elem = {out_elem};\n" + "".join(
        f"fn {name}(i: u32) -> u32 {{\n    return {text};\n}}\n"
        for name, text in (("source_index", source), ("target_index", target))
    )
    call.emit(
        Dispatch(
            op=call.op,
            route="gather_copy",
            shader="gather_copy.wgsl",
            bindings=(read("x", x, elem), *extra, write("out", out, out_elem)),
            grid=linear_grid(count, 64, call.target),
            constants={"count": count},
            code=code,
        )
    )


@operator(
    "aten.view_copy.default",
    "aten.squeeze_copy.dims",
    "aten.squeeze_copy.dim",
    "aten.unsqueeze_copy.default",
    "aten.alias_copy.default",
    "aten.clone.default",
    "dim_order_ops._clone_dim_order.default",
    "et_vk.prepack.default",
    *sorted(CASTS),
)
def same_elements(call: Call) -> None:
    """A copy in order; a view in all but odd cases (a change of dtype)."""
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    if x.dtype != out.dtype or call.node.fused:
        if call.op not in CASTS:
            raise call.unsupported(f"it should keep {x.dtype.name} and makes {out.dtype.name}")
        elementwise(call)
        return
    copy(call, call.tensor_id(0), call.out, out.count, IDENTITY)


@operator("aten.t_copy.default")
def transpose(call: Call) -> None:
    """A matrix with its dimensions swapped; below rank 2 a copy."""
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    copy(call, call.tensor_id(0), call.out, out.count, strided_index(out.shape, strides(x.shape)[::-1]))


@operator("aten.copy.default")
def copy_from(call: Call) -> None:
    """Argument 1, broadcast to the shape of argument 0."""
    x, out = call.tensor(1), call.lowering.tensors[call.out]
    copy(call, call.tensor_id(1), call.out, out.count, broadcast_index(x.shape, out.shape, "i"))


@operator("aten.flip.default")
def flip(call: Call) -> None:
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    dims = {dim % len(x.shape) for dim in call.integers(1)} if x.shape else set()
    steps, terms = strides(x.shape), []
    for dim, (size, step) in enumerate(zip(x.shape, steps, strict=True)):
        at = f"((i / {step}u) % {size}u)"
        terms.append(f"({size - 1}u - {at}) * {step}u" if dim in dims else f"{at} * {step}u")
    copy(call, call.tensor_id(0), call.out, out.count, " + ".join(terms) or "0u")


@operator("aten.unfold_copy.default")
def unfold(call: Call) -> None:
    """Windows of `size` along a dimension, `step` apart, as a last dimension of their own."""
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    dim, step = call.integer(1) % max(len(x.shape), 1), call.integer(3)
    own = strides(x.shape)
    steps = [s * step if d == dim else s for d, s in enumerate(own)] + [own[dim] if own else 1]
    copy(call, call.tensor_id(0), call.out, out.count, strided_index(out.shape, steps))


@operator("aten.permute_copy.default", "aten.permute.default")
def permute(call: Call) -> None:
    """out[i] = x with dims in the order of argument 1."""
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    steps = strides(x.shape)
    dims = [dim % len(x.shape) for dim in call.integers(1)]
    source = strided_index(out.shape, [steps[dim] for dim in dims])
    copy(call, call.tensor_id(0), call.out, out.count, source)


@operator("aten.expand_copy.default")
def expand(call: Call) -> None:
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    copy(call, call.tensor_id(0), call.out, out.count, broadcast_index(x.shape, out.shape, "i"))


@operator("aten.repeat.default")
def repeat(call: Call) -> None:
    """x tiled; the repeats count from the first dimension of the output."""
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    padded = [1] * (len(out.shape) - len(x.shape)) + list(x.shape)
    own, terms = strides(out.shape), []
    for dim, (size, step) in enumerate(zip(padded, strides(padded), strict=True)):
        if size != 1:
            terms.append(f"(((i / {own[dim]}u) % {size}u) * {step}u)")
    copy(call, call.tensor_id(0), call.out, out.count, " + ".join(terms) or "0u")


@operator("aten.slice_copy.Tensor")
def slice_(call: Call) -> None:
    """x[start:end:step] along one dimension; bounds may be None, negative or huge."""
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    dim = call.integer(1, 0) % len(x.shape)
    size, steps = x.shape[dim], strides(x.shape)
    if isinstance(call.arg(2), Element):
        text, extra = call.scalar(2, "start")
        first = f"u32(clamp({text}, 0i, {size - out.shape[dim]}i)) * {steps[dim]}u"
        source = f"{first} + {strided_index(out.shape, steps)}"
        copy(call, call.tensor_id(0), call.out, out.count, source, extra=extra)
        return
    start, step = call.integer(2, 0), call.integer(4, 1)
    start = min(max(start + size if start < 0 else start, 0), size)
    scaled = [s * step if d == dim else s for d, s in enumerate(steps)]
    source = strided_index(out.shape, scaled, start * steps[dim])
    copy(call, call.tensor_id(0), call.out, out.count, source)


@operator("aten.select_copy.int")
def select(call: Call) -> None:
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    dim = call.integer(1) % len(x.shape)
    index = call.integer(2) % x.shape[dim]
    steps = strides(x.shape)
    source = strided_index(out.shape, steps[:dim] + steps[dim + 1 :], index * steps[dim])
    copy(call, call.tensor_id(0), call.out, out.count, source)


@operator("aten.split_with_sizes_copy.default")
def split(call: Call) -> None:
    x = call.tensor(0)
    dim = call.integer(2, 0) % len(x.shape)
    steps = strides(x.shape)
    start = 0
    for out in call.node.outputs:
        shape = call.shape(out)
        source = strided_index(shape, steps, start * steps[dim])
        copy(call, call.tensor_id(0), out, call.lowering.tensors[out].count, source)
        start += shape[dim]


@operator("aten.cat.default")
def cat(call: Call) -> None:
    """Parts side by side along one dimension; parts that already lie there are skipped."""
    parts = call.arg(0)
    if not isinstance(parts, tuple):
        raise call.unsupported("its first argument is no list of tensors")
    out = call.lowering.tensors[call.out]
    dim = call.integer(1, 0) % len(out.shape)
    steps = strides(out.shape)
    missing = set(unplaced_parts(call.node, call.lowering.graph, call.lowering.place))
    start = 0
    for i, part in enumerate(parts):
        if not isinstance(part, Ref):
            raise call.unsupported(f"part {i} is no tensor")
        tensor = call.lowering.tensors[part.id]
        if i in missing and tensor.count:
            target = strided_index(tensor.shape, steps, start * steps[dim])
            copy(call, part.id, call.out, tensor.count, IDENTITY, target)
        if len(tensor.shape) == len(out.shape):
            start += tensor.shape[dim]
