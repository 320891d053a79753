"""Operators that read where another tensor says: embedding, index_select, gather, index.

Negative indices count from the end where PyTorch has them so. An index out of range reads
within the table's buffer and nowhere else; PyTorch would raise.
"""

from __future__ import annotations

from dataclasses import replace

from ..dtypes import STORAGE_SIZE
from ..expression import broadcast_index, strides
from ..graph import Ref
from ..kernels import Binding, Dispatch, linear_grid, read, write
from .copies import copy
from .registry import Call, operator


def wrapped(value: str, size: int) -> str:
    """WGSL for an index that may be negative, as u32."""
    return f"u32(select({value}, {value} + {size}, {value} < 0))"


def index_binding(call: Call, tensor: int, name: str = "index") -> Binding:
    elem = call.lowering.elem(tensor)
    if elem not in ("i32", "u32"):
        raise call.unsupported(f"indices are {call.lowering.tensors[tensor].dtype.name}; integers are needed")
    return read(name, tensor, elem)


def value_at(name: str, at: str) -> str:
    return f"i32({name}[{name}_offset + {at}])"


@operator("aten.embedding.default")
def embedding(call: Call) -> None:
    """weight [V, D], indices [..] -> [.., D]. A table larger than a binding is read part by part."""
    weight, index, out = call.tensor_id(0), call.tensor_id(1), call.out
    rows, width = call.tensor(0).shape
    elem, out_elem = call.lowering.elem(weight), call.lowering.elem(out)
    count = call.lowering.tensors[out].count
    each = max(1, (call.target.max_binding_size - call.target.offset_alignment) // (max(width, 1) * STORAGE_SIZE[elem]))
    whole = rows <= each
    for first in range(0, rows, each) if not whole else (0,):
        here = rows if whole else min(each, rows - first)
        row = f"min({wrapped(value_at('index', f'i / {width}u'), rows)}, {max(rows, 1) - 1}u)"
        code = f"alias out_elem = {out_elem};\nfn row_of(i: u32) -> u32 {{\n    return {row};\n}}\n"
        table = read("x", weight, elem)
        call.emit(
            Dispatch(
                op=call.op,
                route="embedding",
                shader="embedding.wgsl",
                bindings=(
                    table if whole else replace(table, part=(first * width, here * width)),
                    index_binding(call, index),
                    write("out", out, out_elem),
                ),
                grid=linear_grid(count, 64, call.target),
                constants={"count": count, "WIDTH": width, "FIRST": first, "ROWS": here},
                code=code,
            )
        )


@operator("aten.index_select.default")
def index_select(call: Call) -> None:
    """x with the entries of one dimension that index [n] names."""
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    dim = call.integer(1) % max(len(x.shape), 1)
    inner = strides(x.shape)[dim] if x.shape else 1
    chosen = out.shape[dim] if out.shape else 1
    size = x.shape[dim] if x.shape else 1
    at = wrapped(value_at("index", f"(i / {inner}u) % {chosen}u"), size)
    source = f"((i / {inner * chosen}u) * {size}u + {at}) * {inner}u + i % {inner}u"
    copy(call, call.tensor_id(0), call.out, out.count, source, extra=(index_binding(call, call.tensor_id(2)),))


@operator("aten.gather.default")
def gather(call: Call) -> None:
    """out[.., j, ..] = x[.., index[.., j, ..], ..]; index has out's shape."""
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    dim = call.integer(1) % max(len(x.shape), 1)
    own, steps = strides(x.shape), strides(out.shape)
    terms = []
    for d, size in enumerate(out.shape):
        at = wrapped(value_at("index", "i"), x.shape[d]) if d == dim else f"(i / {steps[d]}u) % {size}u"
        terms.append(f"({at}) * {own[d]}u")
    source = " + ".join(terms) or "0u"
    copy(call, call.tensor_id(0), call.out, out.count, source, extra=(index_binding(call, call.tensor_id(2)),))


@operator("aten.index.Tensor")
def index(call: Call) -> None:
    """x[i0, :, i2, …] with integer tensors that broadcast together; None keeps a dimension whole.

    As in PyTorch the indexed dimensions become one block, in their place where they are
    neighbours and in front where they are not.
    """
    x, out = call.tensor(0), call.lowering.tensors[call.out]
    listed = call.arg(1)
    if not isinstance(listed, tuple):
        raise call.unsupported("its indices are no list")
    indices = [*listed, *[None] * (len(x.shape) - len(listed))]
    dims = [d for d, item in enumerate(indices) if isinstance(item, Ref)]
    shapes = [call.lowering.tensors[item.id].shape for item in indices if isinstance(item, Ref)]
    if any(call.lowering.tensors[item.id].dtype.name == "bool" for item in indices if isinstance(item, Ref)):
        raise call.unsupported("boolean masks give a shape that is not known; use where")
    block = broadcast_shapes(shapes)
    together = dims == list(range(dims[0], dims[-1] + 1))
    first = dims[0] if together else 0
    steps, own = strides(out.shape), strides(x.shape)
    block_step = steps[first + len(block) - 1] if block else 1
    block_size = 1
    for size in block:
        block_size *= size
    block_index = f"((i / {block_step}u) % {block_size}u)"
    terms, extra = [], []
    kept = [d for d in range(len(x.shape)) if d not in dims]
    for d in range(len(x.shape)):
        item = indices[d]
        if isinstance(item, Ref):
            name = f"index{d}"
            extra.append(index_binding(call, item.id, name))
            element = broadcast_index(call.lowering.tensors[item.id].shape, block, block_index)
            terms.append(f"{wrapped(value_at(name, element), x.shape[d])} * {own[d]}u")
            continue
        position = kept.index(d)
        place = position if position < first else position + len(block)
        terms.append(f"((i / {steps[place]}u) % {out.shape[place]}u) * {own[d]}u")
    copy(call, call.tensor_id(0), call.out, out.count, " + ".join(terms) or "0u", extra=tuple(extra))


def broadcast_shapes(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*padded, strict=True))
