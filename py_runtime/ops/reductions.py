"""Reductions over any dimensions: sum, mean, amax, amin, argmax, argmin."""

from __future__ import annotations

import math

from ..expression import NOT_FINITE, compute_type, strides
from ..kernels import Dispatch, linear_grid, read, write
from .copies import strided_index
from .registry import Call, operator

# Extremes: NaN wins, as in PyTorch; of equals the first.
EXTREMES = {
    "aten.amax.default": ">",
    "aten.amin.default": "<",
    "aten.argmax.default": ">",
    "aten.argmin.default": "<",
}


@operator("aten.sum.dim_IntList", "aten.mean.dim")
def total(call: Call) -> None:
    """Argument 1 lists the dimensions, none means all."""
    kind = compute_type(call.tensor(0).dtype)
    value = "f32" if kind == "f32" else "i32"
    size = math.prod(call.tensor(0).shape[d] for d in dimensions(call))
    out = call.lowering.elem(call.out)
    factor = f" * f32({1 / max(size, 1)!r})" if "mean" in call.op else ""
    if factor and value != "f32":
        raise call.unsupported(f"a mean of {call.tensor(0).dtype.name}; floats are there")
    emit_reduction(
        call,
        f"alias state_type = {value};\nalias value_type = {value};\n"
        f"fn start() -> {value} {{\n    return {value}(0);\n}}\n"
        f"fn step(state: {value}, value: {value}, r: u32) -> {value} {{\n    return state + value;\n}}\n"
        f"fn finish(state: {value}) -> {out} {{\n    return {out}(state{factor});\n}}\n",
    )


@operator(*EXTREMES)
def extreme(call: Call) -> None:
    """The largest or smallest value, or its index among the reduced elements."""
    kind = compute_type(call.tensor(0).dtype)
    value = "f32" if kind == "f32" else "i32"
    out = call.lowering.elem(call.out)
    result = "state.at" if "arg" in call.op else "state.value"
    better = f"value {EXTREMES[call.op]} state.value"
    if value == "f32":
        better += " || (is_nan(value) && !is_nan(state.value))"
    emit_reduction(
        call,
        f"alias value_type = {value};\n"
        f"struct State {{\n    value: {value},\n    at: u32,\n    any: bool,\n}}\n"
        f"fn start() -> State {{\n    return State({value}(0), 0u, false);\n}}\n"
        f"fn step(state: State, value: {value}, r: u32) -> State {{\n"
        f"    if (!state.any || {better}) {{\n        return State(value, r, true);\n    }}\n    return state;\n}}\n"
        f"fn finish(state: State) -> {out} {{\n    return {out}({result});\n}}\n",
    )


def dimensions(call: Call) -> list[int]:
    """The reduced dimensions, in order; argument 1 is a list, one integer or None."""
    rank = len(call.tensor(0).shape)
    raw = call.arg(1)
    listed = call.integers(1, ()) if raw is None or isinstance(raw, tuple) else (call.integer(1),)
    return sorted({d % rank for d in listed}) if listed and rank else list(range(rank))


def emit_reduction(call: Call, code: str) -> None:
    shape = call.tensor(0).shape
    dims = dimensions(call)
    kept = [d for d in range(len(shape)) if d not in dims]
    steps = strides(shape)
    base = strided_index([shape[d] for d in kept], [steps[d] for d in kept])
    reduced = strided_index([shape[d] for d in dims], [steps[d] for d in dims]).replace("i", "r")
    maps = (
        f"fn base(i: u32) -> u32 {{\n    return {base};\n}}\nfn reduced(r: u32) -> u32 {{\n    return {reduced};\n}}\n"
    )
    count = call.lowering.tensors[call.out].count
    x = call.tensor_id(0)
    call.emit(
        Dispatch(
            op=call.op,
            route="reduce",
            shader="reduce.wgsl",
            bindings=(read("x", x, call.lowering.elem(x)), write("out", call.out, call.lowering.elem(call.out))),
            grid=linear_grid(count, 64, call.target),
            constants={"SIZE": math.prod(shape[d] for d in dims), "count": count},
            code=(NOT_FINITE if "_BITS" in code else "") + maps + code,
        )
    )
