"""Operators whose elements are computed from their place: constants, ranges, padding, batch norm.

Each is one generated `compute(i)` in the elementwise kernel. Those that read no tensor run
once, at load.
"""

from __future__ import annotations

import math

from ..errors import UnsupportedError
from ..expression import NOT_FINITE, compute_type, convert, literal, strides
from ..kernels import Binding, Dispatch, linear_grid, read, write
from .registry import Call, operator


def emit_compute(
    call: Call, body: str, bindings: tuple[Binding, ...] = (), out: int | None = None, *, functions: str = ""
) -> None:
    """One dispatch of `fn compute(i: u32)` over an output; body returns a value of its stored type.

    functions: WGSL functions that the body calls.
    """
    out = call.node.outputs[0] if out is None else out
    elem, count = call.lowering.elem(out), call.lowering.tensors[out].count
    code = f"{functions}fn compute(i: u32) -> {elem} {{\n{body}}}\n"
    if "_BITS" in code:
        code = NOT_FINITE + code
    call.emit(
        Dispatch(
            op=call.op,
            route="elementwise",
            shader="elementwise.wgsl",
            bindings=(*bindings, write("out", out, elem)),
            grid=linear_grid(count, 64, call.target),
            constants={"count": count},
            code=code,
        )
    )


def stored(call: Call, text: str, kind: str) -> str:
    """WGSL text of a compute type as the output's stored type."""
    own = compute_type(call.lowering.tensors[call.node.outputs[0]].dtype)
    value = convert(text, kind, own)
    return (
        f"select(0u, 1u, {value})" if own == "bool" else convert(value, own, call.lowering.elem(call.node.outputs[0]))
    )


def fill(call: Call, value: float | bool) -> None:
    kind = compute_type(call.lowering.tensors[call.node.outputs[0]].dtype)
    emit_compute(call, f"    return {stored(call, literal(value, kind), kind)};\n")


@operator("aten.full.default", "aten.full_like.default")
def full(call: Call) -> None:
    fill(call, call.number(1))


@operator("aten.scalar_tensor.default")
def scalar_tensor(call: Call) -> None:
    fill(call, call.number(0))


@operator("aten.zeros.default", "aten.zeros_like.default")
def zeros(call: Call) -> None:
    fill(call, 0)


@operator("aten.ones.default", "aten.ones_like.default")
def ones(call: Call) -> None:
    fill(call, 1)


@operator("aten.arange.start_step")
def arange(call: Call) -> None:
    """start, start + step, …; arguments: start, end, step."""
    kind = compute_type(call.lowering.tensors[call.node.outputs[0]].dtype)
    start, step = literal(call.number(0), kind), literal(call.number(2, 1), kind)
    emit_compute(call, f"    return {stored(call, f'{start} + {kind}(i) * {step}', kind)};\n")


@operator("et_vk.grid_priors.default")
def grid_priors(call: Call) -> None:
    """[H * W, 2] anchor points (x, y) * stride of a feature map; arguments: map, stride, offset."""
    width = call.tensor(0).shape[-1]
    stride, offset = literal(call.number(1), "f32"), literal(call.number(2), "f32")
    at = f"select((i / 2u) / {width}u, (i / 2u) % {width}u, i % 2u == 0u)"
    emit_compute(call, f"    return {stored(call, f'(f32({at}) + {offset}) * {stride}', 'f32')};\n")


@operator("aten.constant_pad_nd.default")
def constant_pad(call: Call) -> None:
    """x with borders of a value; pads are (before, after) from the last dimension on, negative ones crop."""
    x, out = call.tensor(0), call.lowering.tensors[call.node.outputs[0]]
    pads = call.integers(1)
    kind = compute_type(out.dtype)
    value = literal(call.number(2, 0), kind)
    lines, terms, inside = [], [], ["true"]
    own, steps = strides(x.shape), strides(out.shape)
    for dim, size in enumerate(x.shape):
        back = len(x.shape) - 1 - dim
        before = pads[2 * back] if 2 * back < len(pads) else 0
        lines.append(f"    let at{dim} = i32((i / {steps[dim]}u) % {max(out.shape[dim], 1)}u) - ({before});\n")
        inside.append(f"at{dim} >= 0 && at{dim} < {size}")
        terms.append(f"u32(at{dim}) * {own[dim]}u")
    elem = call.lowering.elem(call.tensor_id(0))
    body = "".join(lines) + (
        f"    if (!({' && '.join(inside)})) {{\n        return {stored(call, value, kind)};\n    }}\n"
        f"    return {call.lowering.elem(out_id(call))}(x[x_offset + {' + '.join(terms) or '0u'}]);\n"
    )
    emit_compute(call, body, (read("x", call.tensor_id(0), elem),))


def out_id(call: Call) -> int:
    return call.node.outputs[0]


@operator("aten._native_batch_norm_legit_no_training.default")
def batch_norm(call: Call) -> None:
    """(x - mean) / sqrt(variance + eps) * weight + bias by channel; x [N, C, …].

    Arguments: x, weight or None, bias or None, mean, variance, momentum, eps. The two
    other outputs are empty at inference.
    """
    x = call.tensor(0)
    if len(x.shape) < 2:
        raise UnsupportedError(f"batch norm takes [N, C, …]; {list(x.shape)} is given")
    inner = math.prod(x.shape[2:])
    bindings = [read("x", call.tensor_id(0), call.lowering.elem(call.tensor_id(0)))]
    values = {}
    for name, index in (("weight", 1), ("bias", 2), ("mean", 3), ("variance", 4)):
        tensor = call.optional_id(index)
        if tensor is None:
            values[name] = "1.0" if name == "weight" else "0.0"
            continue
        bindings.append(read(name, tensor, call.lowering.elem(tensor)))
        values[name] = f"f32({name}[{name}_offset + c])"
    eps = literal(call.number(6), "f32")
    body = (
        f"    let c = (i / {inner}u) % {x.shape[1]}u;\n"
        f"    let scale = {values['weight']} * inverseSqrt({values['variance']} + {eps});\n"
        f"    let value = (f32(x[x_offset + i]) - {values['mean']}) * scale + {values['bias']};\n"
        f"    return {call.lowering.elem(out_id(call))}(value);\n"
    )
    emit_compute(call, body, tuple(bindings))
