"""Softmax and log-softmax along one dimension."""

from __future__ import annotations

import math

from ..kernels import Dispatch, linear_grid, read, write
from .registry import Call, operator


def emit_softmax(call: Call, x: int, out: int, *, size: int, inner: int, log: bool = False) -> None:
    """Softmax of x [outer, size, inner] along the middle, in f32."""
    tensors, elem = call.lowering.tensors, call.lowering.elem
    count = tensors[x].count // size if size else 0
    call.emit(
        Dispatch(
            op=call.op,
            route="softmax",
            shader="softmax.wgsl",
            bindings=(read("x", x, elem(x)), write("out", out, elem(out))),
            grid=linear_grid(count, 64, call.target),
            constants={"SIZE": size, "INNER": inner, "LOG": int(log), "count": count},
            code=f"alias out_elem = {elem(out)};\n",
        )
    )


@operator("aten._softmax.default", "aten._log_softmax.default")
def softmax(call: Call) -> None:
    """out like x; argument 1 is the dimension. Accumulates in f32."""
    shape = call.tensor(0).shape or (1,)
    dim = call.integer(1) % len(shape)
    inner = math.prod(shape[dim + 1 :])
    emit_softmax(call, call.tensor_id(0), call.out, size=shape[dim], inner=inner, log="log" in call.op)
