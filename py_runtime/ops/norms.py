"""Layer norm, group norm and RMS norm: one kernel that normalises rows."""

from __future__ import annotations

import math

from ..kernels import Dispatch, linear_grid, read, write
from .registry import Call, operator


def emit_norm(
    call: Call, size: int, weight: int | None, bias: int | None, eps: float, index: str, *, rms: bool = False
) -> None:
    """Normalise x in rows of `size`; index is WGSL in `row` and `k` for the weight's and bias's element."""
    lowering = call.lowering
    x = call.tensor_id(0)
    out, *statistics = call.node.outputs
    rows = call.tensor(0).count // size if size else 0
    bindings = [read("x", x, lowering.elem(x))]
    code = f"alias out_elem = {lowering.elem(out)};\n"
    for name, tensor, default in (("weight", weight, "1.0"), ("bias", bias, "0.0")):
        value = default
        if tensor is not None:
            bindings.append(read(name, tensor, lowering.elem(tensor)))
            value = f"f32({name}[{name}_offset + {index}])"
        code += f"fn {name}_of(row: u32, k: u32) -> f32 {{\n    return {value};\n}}\n"
    store = ""
    bindings.append(write("out", out, lowering.elem(out)))
    for name, tensor in zip(("mean", "rstd"), statistics, strict=False):
        bindings.append(write(f"{name}s", tensor, lowering.elem(tensor)))
        store += f"    {name}s[{name}s_offset + row] = {lowering.elem(tensor)}({name});\n"
    code += f"fn store_statistics(row: u32, mean: f32, rstd: f32) {{\n{store}}}\n"
    call.emit(
        Dispatch(
            op=call.op,
            route="row_norm",
            shader="row_norm.wgsl",
            bindings=tuple(bindings),
            grid=linear_grid(rows, 1, call.target),
            constants={"SIZE": size, "EPS": eps, "RMS": int(rms), "rows": rows},
            code=code,
        )
    )


@operator("aten.native_layer_norm.default")
def layer_norm(call: Call) -> None:
    """x [.., *normalized]; weight and bias [*normalized] or None; outputs: out, mean, rstd (or fewer)."""
    size = math.prod(call.integers(1))
    emit_norm(call, size, call.optional_id(2), call.optional_id(3), call.number(4), "k")


@operator("et_vk.rms_norm.default")
def rms_norm(call: Call) -> None:
    """x [.., D] / sqrt(mean(x²) + eps) * weight [D]."""
    emit_norm(call, call.tensor(0).shape[-1], call.optional_id(1), None, call.number(2), "k", rms=True)


@operator("aten.native_group_norm.default")
def group_norm(call: Call) -> None:
    """x [N, C, *]; arguments: x, weight, bias, N, C, elements a channel, groups, eps."""
    channels, inner, groups = call.integer(4), call.integer(5), call.integer(6)
    each = channels // groups
    index = f"(row % {groups}u) * {each}u + k / {max(inner, 1)}u"
    emit_norm(call, each * inner, call.optional_id(1), call.optional_id(2), call.number(7), index)
