"""Elementwise operators: one kernel for every chain of them (see expression.py)."""

from __future__ import annotations

from ..expression import compute
from ..functions import CASTS, ELEMENTWISE
from ..kernels import Dispatch, linear_grid, write
from .registry import Call, operator


@operator(*sorted(ELEMENTWISE - CASTS))
def elementwise(call: Call) -> None:
    """out[i] = f(operands broadcast to out's shape); floats in f32, integers in i32."""
    chain = compute((call.node, *call.node.fused), call.lowering.tensors, call.lowering.elem)
    count = call.lowering.tensors[call.out].count
    call.emit(
        Dispatch(
            op=call.op,
            route="elementwise",
            shader="elementwise.wgsl",
            bindings=(*chain.bindings, write("out", call.out, chain.result)),
            grid=linear_grid(count, 64, call.target),
            constants={"count": count},
            code=chain.code,
        )
    )
