"""Operators over rows of one dimension: softmax, sums and means, linear."""

from __future__ import annotations

import math

from ..expression import fuse_after
from ..kernels import Dispatch, linear_grid, read, write
from .registry import Call, operator


def row_sizes(call: Call, dim: int, last: int | None = None) -> dict[str, int | float]:
    """SIZE, INNER and the count of rows for a reduction over dims dim..last of argument 0."""
    shape = call.tensor(0).shape
    last = dim if last is None else last
    size = math.prod(shape[dim : last + 1])
    return {
        "SIZE": size,
        "INNER": math.prod(shape[last + 1 :]),
        "count": math.prod(shape) // size if size else 0,
    }


@operator("aten._softmax.default", "aten._log_softmax.default")
def softmax(call: Call) -> None:
    """out like x; argument 1 is the dimension. Accumulates in f32."""
    rank = len(call.tensor(0).shape)
    constants = row_sizes(call, call.integer(1) % rank if rank else 0)
    constants["LOG"] = int("log" in call.op)
    elem = call.lowering.elem(call.tensor_id(0))
    call.emit(
        Dispatch(
            op=call.op,
            route="softmax",
            shader="softmax.wgsl",
            bindings=(read("x", call.tensor_id(0), elem), write("out", call.out, call.lowering.elem(call.out))),
            grid=linear_grid(int(constants["count"]), 64, call.target),
            constants=constants,
            code=f"alias out_elem = {call.lowering.elem(call.out)};\n",
        )
    )


@operator("aten.sum.dim_IntList", "aten.mean.dim")
def reduce(call: Call) -> None:
    """Sum or mean over neighbouring dimensions; argument 1 lists them, none means all."""
    x = call.tensor(0)
    rank = len(x.shape)
    dims = sorted({d % rank for d in call.integers(1, ())} if rank else ()) or list(range(rank))
    if dims != list(range(dims[0], dims[-1] + 1)):
        raise call.unsupported(f"dimensions {dims} are not neighbours")
    if not x.dtype.is_float:
        raise call.unsupported(f"{x.dtype.name} input; floats are there")
    constants = row_sizes(call, dims[0], dims[-1])
    constants["FACTOR"] = 1 / constants["SIZE"] if "mean" in call.op else 1
    elem = call.lowering.elem(call.tensor_id(0))
    call.emit(
        Dispatch(
            op=call.op,
            route="reduce",
            shader="reduce.wgsl",
            bindings=(read("x", call.tensor_id(0), elem), write("out", call.out, call.lowering.elem(call.out))),
            grid=linear_grid(int(constants["count"]), 64, call.target),
            constants=constants,
            code=f"alias out_elem = {call.lowering.elem(call.out)};\n",
        )
    )


@operator("aten.linear.default")
def linear(call: Call) -> None:
    """x [.., K], weight [N, K], bias [N] or None; out [.., N]. Accumulates in f32."""
    weight = call.tensor(1).shape
    lowering = call.lowering
    after = fuse_after(call.node.fused, call.node.outputs[0], None, lowering.tensors, lowering.elem)
    count = lowering.tensors[call.out].count
    bindings = [
        read("x", call.tensor_id(0), lowering.elem(call.tensor_id(0))),
        read("weight", call.tensor_id(1), lowering.elem(call.tensor_id(1))),
    ]
    bias_id, bias = call.optional_id(2), "0.0"
    if bias_id is not None:
        bindings.append(read("bias", bias_id, lowering.elem(bias_id)))
        bias = "f32(bias[bias_offset + o])"
    call.emit(
        Dispatch(
            op=call.op,
            route="linear",
            shader="linear.wgsl",
            bindings=(*bindings, *after.bindings, write("out", call.out, after.result)),
            grid=linear_grid(count, 64, call.target),
            constants={"K": weight[1], "COLUMNS": weight[0], "count": count},
            code=f"fn bias_of(o: u32) -> f32 {{\n    return {bias};\n}}\n" + after.code,
        )
    )
