"""Quantized layers: int8 and int4 weights, int8 activations; one thread an output.

Weight layouts, as the exporter packs them:
    q8      int8 [N, K], K padded to a multiple of 4; a scale for each row
    q4      uint8 [N, K / 2], the low half first, each half plus 8; scales [K / group, N]
    q4 rows uint8 [N, K / 2], the high half first, each half plus 8; a scale for each row
    convolution int8 [O, KH * KW * C / groups], taps outermost; depthwise [KH, KW, O]
Sums of two integers are exact (i32); sums with a float are in f32.
"""

from __future__ import annotations

import math

from ..expression import literal
from ..kernels import Binding, read
from .generated import emit_compute
from .lookup import index_binding
from .pool import Pair, pair
from .quantize import Parameters, fixed, quantized
from .registry import Call, operator

ACTIVATIONS = {"none": "{x}", "relu": "max({x}, 0.0)"}


def binding(call: Call, name: str, index: int) -> Binding:
    tensor = call.tensor_id(index)
    return read(name, tensor, call.lowering.elem(tensor))


def bias_term(call: Call, index: int, at: str) -> tuple[str, tuple[Binding, ...]]:
    """WGSL that adds the bias of output channel `at`, where there is one."""
    if call.optional_id(index) is None:
        return "", ()
    return f" + f32(bias[bias_offset + {at}])", (binding(call, "bias", index),)


def emit_linear(
    call: Call, weight: str, x: str, bindings: tuple[Binding, ...], finish: str, *, start: str = "0.0"
) -> None:
    """out [rows, N]: sum over k of x times weight, both WGSL in `row`, `o`, `k`; finish is WGSL in `sum`."""
    shape = call.shape(call.out)
    k = call.tensor(0).shape[-1]
    body = (
        f"    let o = i % {shape[-1]}u;\n    let row = i / {shape[-1]}u;\n    var sum = {start};\n"
        f"    for (var k = 0u; k < {k}u; k++) {{\n        sum += {x} * {weight};\n    }}\n"
        f"    return {call.lowering.elem(call.out)}({finish});\n"
    )
    emit_compute(call, body, bindings)


def row_of_x(call: Call, kind: str = "f32") -> str:
    return f"{kind}(x[x_offset + row * {call.tensor(0).shape[-1]}u + k])"


def four_bits(width: int, row: str, *, low_first: bool) -> str:
    """WGSL for element k of a row of packed halves, from -8 to 7."""
    first = "k % 2u" if low_first else "1u - k % 2u"
    return f"(f32(extractBits(weight[weight_offset + {row} * {width}u + k / 2u], 4u * ({first}), 4u)) - 8.0)"


@operator("et_vk.linear_qcs4w.default")
def linear_qcs4w(call: Call) -> None:
    """x [.., K], weight q4 rows, scales [N]."""
    width = call.tensor(1).shape[1]
    bindings = (binding(call, "x", 0), binding(call, "weight", 1), binding(call, "scales", 2))
    weight = four_bits(width, "o", low_first=False)
    emit_linear(call, weight, row_of_x(call), bindings, "sum * f32(scales[scales_offset + o])")


def q4_group(call: Call, group: int, scales: int) -> str:
    """WGSL for the scale of weight (o, k): scales [K / group, N]."""
    return f"f32(scales[scales_offset + (k / {group}u) * {call.tensor(scales).shape[-1]}u + o])"


@operator("et_vk.linear_q4gsw.default")
def linear_q4gsw(call: Call) -> None:
    """x [.., K], weight q4, scales, group size, bias."""
    weight = f"{four_bits(call.tensor(1).shape[1], 'o', low_first=True)} * {q4_group(call, call.integer(3), 2)}"
    bias, extra = bias_term(call, 4, "o")
    bindings = (binding(call, "x", 0), binding(call, "weight", 1), binding(call, "scales", 2), *extra)
    emit_linear(call, weight, row_of_x(call), bindings, f"sum{bias}")


@operator("et_vk.linear_dq8ca_q4gsw.default")
def linear_dq8ca_q4gsw(call: Call) -> None:
    """As linear_q4gsw, with x rounded to int8 by a scale and zero point for each row."""
    low, high = -128, 127
    parameters = Parameters("f32(x_scales[x_scales_offset + row])", "f32(x_zeros[x_zeros_offset + row])")
    x = f"(({quantized(row_of_x(call), parameters, low, high)}) - {parameters.zero_point}) * {parameters.scale}"
    weight = f"{four_bits(call.tensor(3).shape[1], 'o', low_first=True)} * {q4_group(call, call.integer(6), 5)}"
    bias, extra = bias_term(call, 7, "o")
    named = (("x", 0), ("x_scales", 1), ("x_zeros", 2), ("weight", 3), ("scales", 5))
    emit_linear(call, weight, x, (*(binding(call, n, i) for n, i in named), *extra), f"sum{bias}")


def int8_weight(call: Call, index: int) -> str:
    return f"i32(weight[weight_offset + o * {call.tensor(index).shape[-1]}u + k])"


def emit_q8_linear(call: Call, bias: int, finish: str) -> None:
    """x int8 (arguments 1 and 2: its scale and zero point), weight q8 (3), scales (5); finish in `value`."""
    zero = call.integer(2)
    term, extra = bias_term(call, bias, "o")
    value = f"f32(sum) * {literal(call.number(1), 'f32')} * f32(scales[scales_offset + o]){term}"
    bindings = (binding(call, "x", 0), binding(call, "weight", 3), binding(call, "scales", 5), *extra)
    x = f"({row_of_x(call, 'i32')} - ({zero}))"
    emit_linear(call, int8_weight(call, 3), x, bindings, finish.format(value=value), start="0")


@operator("et_vk.linear_q8ta_q8csw.default")
def linear_q8ta_q8csw(call: Call) -> None:
    """x int8, weight q8; out in floats."""
    emit_q8_linear(call, 6, "{value}")


def requantized(call: Call, value: str, scale: int, activation: int) -> str:
    """WGSL for a float as the output's int8: argument scale and the zero point after it."""
    kind = call.arg(activation, "none")
    if not isinstance(kind, str) or kind not in ACTIVATIONS:
        raise call.unsupported(f"activation {kind!r}; there are {', '.join(ACTIVATIONS)}")
    return quantized(ACTIVATIONS[kind].format(x=f"({value})"), fixed(call, scale, scale + 1), -128, 127)


@operator("et_vk.q8ta_linear.default", "et_vk.q8ta_linear_gemv.default")
def q8ta_linear(call: Call) -> None:
    """x int8, weight q8, out int8; arguments 6 and 7: the output's scale and zero point."""
    emit_q8_linear(call, 8, requantized(call, "{value}", 6, 9))


@operator("aten._weight_int8pack_mm.default")
def weight_int8pack_mm(call: Call) -> None:
    """x [M, K], weight int8 [N, K], scales [N]."""
    weight = f"f32({int8_weight(call, 1)})"
    bindings = (binding(call, "x", 0), binding(call, "weight", 1), binding(call, "scales", 2))
    emit_linear(call, weight, row_of_x(call), bindings, "sum * f32(scales[scales_offset + o])")


@operator("et_vk.q8ta_add.default")
def q8ta_add(call: Call) -> None:
    """a + alpha * b, each int8 with its own scale and zero point."""
    a, b = fixed(call, 2, 3), fixed(call, 4, 5)
    value = (
        f"(f32(a[a_offset + i]) - {a.zero_point}) * {a.scale} + "
        f"{literal(call.number(8, 1), 'f32')} * (f32(b[b_offset + i]) - {b.zero_point}) * {b.scale}"
    )
    body = f"    return i32({quantized(f'({value})', fixed(call, 6, 7), -128, 127)});\n"
    emit_compute(call, body, (binding(call, "a", 0), binding(call, "b", 1)))


@operator("et_vk.q8ta_relu.default")
def q8ta_relu(call: Call) -> None:
    x = fixed(call, 1, 2)
    value = f"max((f32(x[x_offset + i]) - {x.zero_point}) * {x.scale}, 0.0)"
    emit_compute(call, f"    return i32({quantized(value, fixed(call, 3, 4), -128, 127)});\n", (binding(call, "x", 0),))


@operator("et_vk.q8ta_pixel_shuffle.default")
def q8ta_pixel_shuffle(call: Call) -> None:
    """Pixel shuffle of int8; argument 3 is one over the output's scale."""
    x, r = fixed(call, 1, 2), call.integer(5)
    *_, height, width = call.shape(call.out)
    place = (
        f"    let x_out = i % {width}u;\n    let y_out = (i / {width}u) % {height}u;\n"
        f"    let plane = (i / {width * height}u) * {r * r}u + (y_out % {r}u) * {r}u + x_out % {r}u;\n"
        f"    let at = (plane * {height // r}u + y_out / {r}u) * {width // r}u + x_out / {r}u;\n"
    )
    value = f"((f32(x[x_offset + at]) - {x.zero_point}) * {x.scale})"
    out = Parameters(literal(1 / call.number(3), "f32"), literal(call.number(4), "f32"))
    emit_compute(call, f"{place}    return i32({quantized(value, out, -128, 127)});\n", (binding(call, "x", 0),))


def emit_convolution(call: Call, *, transposed: bool = False, depthwise: bool = False) -> None:
    """int8 convolution: x (0), weight (3), scales (5), bias (8), then kernel, stride, padding, …"""
    _, channels, height, width = call.tensor(0).shape
    _, out_channels, out_height, out_width = call.shape(call.out)
    shift = 1 if transposed else 0  # output_padding stands before the dilation
    kernel: Pair = pair(call.integers(9))
    stride, padding, dilation = pair(call.integers(10)), pair(call.integers(11)), pair(call.integers(12 + shift))
    groups = call.integer(13 + shift)
    each = channels // groups
    weight = call.tensor(3).shape
    at = f"o * {weight[-1]}u + (ky * {kernel[1]}u + kx) * {each}u + c"
    if depthwise:
        at = f"(ky * {kernel[1]}u + kx) * {weight[-1]}u + o"
    if transposed:
        y = f"i32(oy) + {padding[0]} - i32(ky) * {dilation[0]}"
        column = f"i32(ox) + {padding[1]} - i32(kx) * {dilation[1]}"
        outside = f"y < 0 || y % {stride[0]} != 0 || column < 0 || column % {stride[1]} != 0"
        scaled = (f"y / {stride[0]}", f"column / {stride[1]}")
    else:
        y = f"i32(oy) * {stride[0]} - {padding[0]} + i32(ky) * {dilation[0]}"
        column = f"i32(ox) * {stride[1]} - {padding[1]} + i32(kx) * {dilation[1]}"
        outside = "y < 0 || column < 0"
        scaled = ("y", "column")
    bias, extra = bias_term(call, 8, "o")
    value = f"f32(sum) * {literal(call.number(1), 'f32')} * f32(scales[scales_offset + o]){bias}"
    body = f"""\
    let ox = i % {out_width}u;
    let oy = (i / {out_width}u) % {out_height}u;
    let o = (i / {out_width * out_height}u) % {out_channels}u;
    let n = i / {out_width * out_height * out_channels}u;
    let first = n * {channels}u + (o / {out_channels // groups}u) * {each}u;
    var sum = 0;
    for (var ky = 0u; ky < {kernel[0]}u; ky++) {{
        for (var kx = 0u; kx < {kernel[1]}u; kx++) {{
            let y = {y};
            let column = {column};
            if ({outside} || {scaled[0]} >= {height} || {scaled[1]} >= {width}) {{
                continue;
            }}
            for (var c = 0u; c < {each}u; c++) {{
                let value = x[x_offset + ((first + c) * {height}u + u32({scaled[0]})) * {width}u + u32({scaled[1]})];
                sum += (value - ({call.integer(2)})) * weight[weight_offset + {at}];
            }}
        }}
    }}
    return i32({requantized(call, value, 6, 14 + shift)});
"""
    emit_compute(call, body, (binding(call, "x", 0), binding(call, "weight", 3), binding(call, "scales", 5), *extra))


@operator("et_vk.q8ta_conv2d.default", "et_vk.q8ta_conv2d_pw.default")
def q8ta_conv2d(call: Call) -> None:
    emit_convolution(call)


@operator("et_vk.q8ta_conv2d_dw.default")
def q8ta_conv2d_dw(call: Call) -> None:
    emit_convolution(call, depthwise=True)


@operator("et_vk.q8ta_conv2d_transposed.default")
def q8ta_conv2d_transposed(call: Call) -> None:
    emit_convolution(call, transposed=True)


def emit_q4_embedding(call: Call, index: int, group: int, zeros: int | None, *, low_first: bool) -> None:
    """Rows of a q4 table [V, D / 2] (argument 0) with scales [V, D / group] (1) and zero points like them or None."""
    depth = 2 * call.tensor(0).shape[1]
    groups = call.tensor(1).shape[-1] if len(call.tensor(1).shape) > 1 else 1
    value = four_bits(depth // 2, "row", low_first=low_first)
    bindings = [binding(call, "weight", 0), binding(call, "scales", 1), index_binding(call, call.tensor_id(index))]
    if zeros is not None:
        bindings.append(binding(call, "zeros", zeros))
        value = f"({value} - f32(zeros[zeros_offset + group]))"
    body = (
        f"    let k = i % {depth}u;\n    let row = u32(index[index_offset + i / {depth}u]);\n"
        f"    let group = row * {groups}u + k / {group}u;\n"
        f"    return {call.lowering.elem(call.out)}({value} * f32(scales[scales_offset + group]));\n"
    )
    emit_compute(call, body, tuple(bindings))


@operator("et_vk.embedding_q4gsw.default")
def embedding_q4gsw(call: Call) -> None:
    """Arguments: table, scales, group size, indices, whether the low half is first."""
    emit_q4_embedding(call, 3, call.integer(2), None, low_first=bool(call.arg(4, False)))


@operator("quantized_decomposed.embedding_4bit.dtype")
def embedding_4bit(call: Call) -> None:
    """Arguments: table, scales [V] or [V, groups], zero points or None, -8, 7, indices."""
    scales = call.tensor(1).shape
    group = 2 * call.tensor(0).shape[1] // (scales[1] if len(scales) > 1 else 1)
    emit_q4_embedding(call, 5, group, None if call.arg(2) is None else 2, low_first=False)


@operator("et_vk.linear_q4gsw_backward.default")
def linear_q4gsw_backward(call: Call) -> None:
    """Gradient of linear_q4gsw's input: d_out [.., N] times the weight [N, K]."""
    width = call.tensor(1).shape[1]
    columns, rows = 2 * width, call.tensor(1).shape[0]
    weight = four_bits(width, "o", low_first=True)
    body = (
        f"    let k = i % {columns}u;\n    let row = i / {columns}u;\n    var sum = 0.0;\n"
        f"    for (var o = 0u; o < {rows}u; o++) {{\n"
        f"        let scale = {q4_group(call, call.integer(3), 2)};\n"
        f"        sum += f32(x[x_offset + row * {rows}u + o]) * {weight} * scale;\n    }}\n"
        f"    return {call.lowering.elem(call.out)}(sum);\n"
    )
    emit_compute(call, body, (binding(call, "x", 0), binding(call, "weight", 1), binding(call, "scales", 2)))


@operator("et_vk.q4gsw_requant.default")
def q4gsw_requant(call: Call) -> None:
    """Floats [N, K] to q4 halves with scales [K / group, N]; a scale of 0 gives 0."""
    rows, columns = call.tensor(0).shape
    group, packed = call.integer(2), math.ceil(columns / 2)
    half = (
        f"fn half(o: u32, k: u32) -> u32 {{\n    if (k >= {columns}u) {{\n        return 0u;\n    }}\n"
        f"    let scale = f32(scales[scales_offset + (k / {group}u) * {rows}u + o]);\n"
        "    let value = select(round(f32(x[x_offset + o * COLUMNS + k]) / scale), 0.0, scale == 0.0);\n"
        "    return u32(i32(clamp(value, -8.0, 7.0)) + 8);\n}\n"
    ).replace("COLUMNS", f"{columns}u")
    body = (
        f"    let o = i / {packed}u;\n    let k = 2u * (i % {packed}u);\n"
        "    return half(o, k) | (half(o, k + 1u) << 4u);\n"
    )
    emit_compute(call, body, (binding(call, "x", 0), binding(call, "scales", 1)), functions=half)
