"""Numbers to quantized integers and back, and the choice of scale and zero point.

q = clamp(round(x / scale) + zero point, lowest, highest); x = (q - zero point) * scale. Scales
and zero points belong to a tensor, a channel, a row ("token") or a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..expression import literal, strides
from ..kernels import Binding, read
from .copies import strided_index
from .generated import emit_compute
from .registry import Call, operator

F32_EPSILON = 1.1920928955078125e-07


@dataclass(frozen=True)
class Parameters:
    """WGSL for scale and zero point of element `i`, and the tensors that they read."""

    scale: str
    zero_point: str
    bindings: tuple[Binding, ...] = ()


def quantized(value: str, parameters: Parameters, low: int, high: int) -> str:
    """WGSL for a quantized value; divides as PyTorch does, by multiplying with the inverse."""
    return f"clamp(round({value} * (1.0 / {parameters.scale})) + {parameters.zero_point}, {low}.0, {high}.0)"


def fixed(call: Call, scale: int, zero_point: int) -> Parameters:
    """Both given as numbers, arguments scale and zero_point."""
    return Parameters(literal(call.number(scale), "f32"), literal(call.number(zero_point, 0), "f32"))


def stored(call: Call, scale: int, zero_point: int, index: str) -> Parameters:
    """Both given as tensors, read at a WGSL index in `i`; without a zero point it is 0."""
    elem = call.lowering.elem
    scales, zeros = call.tensor_id(scale), call.optional_id(zero_point)
    bindings = [read("scales", scales, elem(scales))]
    zero = "0.0"
    if zeros is not None:
        bindings.append(read("zeros", zeros, elem(zeros)))
        zero = f"f32(zeros[zeros_offset + {index}])"
    return Parameters(f"f32(scales[scales_offset + {index}])", zero, tuple(bindings))


def channel_index(call: Call) -> str:
    """Index of the channel of element i along the axis of argument 3."""
    shape = call.tensor(0).shape
    axis = call.integer(3) % len(shape)
    return f"(i / {strides(shape)[axis]}u) % {shape[axis]}u"


def row_index(call: Call) -> str:
    return f"i / {call.tensor(0).shape[-1]}u"


def block_index(call: Call) -> str:
    """Index of the block of element i; argument 1 lists the block's size in each dimension."""
    shape, block = call.tensor(0).shape, call.integers(1)
    counts = [size // b for size, b in zip(shape, block, strict=True)]
    own = strides(shape)
    terms = [
        f"(((i / {own[d]}u) % {shape[d]}u) / {block[d]}u) * {step}u"
        for d, step in enumerate(strides(counts))
        if counts[d] != 1
    ]
    return " + ".join(terms) or "0u"


# operator: (parameters from a call, index of the lowest value's argument)
Source = tuple[Callable[[Call], Parameters], int]
SOURCES: dict[str, Source] = {
    "per_tensor.default": (lambda call: fixed(call, 1, 2), 3),
    "per_tensor.tensor": (lambda call: stored(call, 1, 2, "0u"), 3),
    "per_channel.default": (lambda call: stored(call, 1, 2, channel_index(call)), 4),
    "per_token.default": (lambda call: stored(call, 1, 2, row_index(call)), 3),
    "affine.default": (lambda call: stored(call, 2, 3, block_index(call)), 5),
}


def source_of(op: str) -> Source:
    return SOURCES[op.rpartition("quantize_")[2]]


#: What the lowest and highest value are where the graph does not say.
RANGES = {"int8": (-128, 127), "uint8": (0, 255)}

QUANTIZE = [
    *(f"quantized_decomposed.quantize_{name}" for name in SOURCES if "affine" not in name),
    "torchao.quantize_affine.default",
]


@operator(*QUANTIZE)
def quantize(call: Call) -> None:
    """Floats to integers of the output's dtype."""
    parameters_of, low = source_of(call.op)
    parameters = parameters_of(call)
    elem = call.lowering.elem
    lowest, highest = RANGES.get(call.lowering.tensors[call.out].dtype.name, RANGES["int8"])
    ends = call.integer(low, lowest), call.integer(low + 1, highest)
    value = quantized("f32(x[x_offset + i])", parameters, *ends)
    bindings = (read("x", call.tensor_id(0), elem(call.tensor_id(0))), *parameters.bindings)
    emit_compute(call, f"    return {elem(call.out)}({value});\n", bindings)


@operator(*(name.replace("quantize", "dequantize", 1) if "torchao" in name else
            name.replace(".quantize", ".dequantize") for name in QUANTIZE))  # fmt: skip
def dequantize(call: Call) -> None:
    """Integers to floats."""
    parameters = source_of(call.op)[0](call)
    elem = call.lowering.elem
    value = f"(f32(x[x_offset + i]) - {parameters.zero_point}) * {parameters.scale}"
    bindings = (read("x", call.tensor_id(0), elem(call.tensor_id(0))), *parameters.bindings)
    emit_compute(call, f"    return {elem(call.out)}({value});\n", bindings)


def emit_choice(
    call: Call, shape: tuple[int, ...], block: tuple[int, ...], low: int, high: int, eps: float, *, by_error: bool
) -> None:
    """Scale and zero point of each block of x, from its smallest and largest value.

    by_error picks the zero point from the end with the smaller error (XNNPACK's way), else
    it is low - round(smallest / scale).
    """
    counts = [size // b for size, b in zip(shape, block, strict=True)]
    steps = strides(shape)
    base = strided_index(counts, [step * b for step, b in zip(steps, block, strict=True)])
    inner = strided_index(list(block), steps).replace("i", "r")
    elem = call.lowering.elem
    zero = f"{low}.0 - round(smallest / scale)"
    if by_error:
        zero = (
            f"round(clamp(select({high}.0 - largest / scale, {low}.0 - smallest / scale, "
            f"({low}.0 + smallest / scale) + ({high}.0 + largest / scale) > 0.0), {low}.0, {high}.0))"
        )
    search = (
        "    var smallest = 0.0;\n    var largest = 0.0;\n"
        f"    for (var r = 0u; r < {math.prod(block)}u; r++) {{\n"
        f"        let value = f32(x[x_offset + {base} + {inner}]);\n"
        "        smallest = min(smallest, value);\n        largest = max(largest, value);\n    }\n"
        f"    let scale = max((largest - smallest) / {high - low}.0, {literal(eps, 'f32')});\n"
    )
    x = (read("x", call.tensor_id(0), elem(call.tensor_id(0))),)
    scales, zeros = call.node.outputs
    emit_compute(call, f"{search}    return {elem(scales)}(scale);\n", x, scales)
    emit_compute(call, f"{search}    return {elem(zeros)}(clamp({zero}, {low}.0, {high}.0));\n", x, zeros)


@operator("torchao.choose_qparams_affine.default")
def choose_affine(call: Call) -> None:
    """x, mapping, block size, dtype, lowest, highest, eps; outputs scale and zero point of each block."""
    if call.arg(1) != "ASYMMETRIC":
        raise call.unsupported(f"mapping {call.arg(1)!r}; ASYMMETRIC is there")
    shape = call.tensor(0).shape
    low, high = call.integer(4, -128), call.integer(5, 127)
    emit_choice(call, shape, call.integers(2), low, high, call.number(6, F32_EPSILON), by_error=False)


@operator("quantized_decomposed.choose_qparams.tensor")
def choose_tensor(call: Call) -> None:
    """x, lowest, highest, eps; outputs scale and zero point of the whole tensor."""
    shape = call.tensor(0).shape
    low, high = call.integer(1), call.integer(2)
    emit_choice(call, shape, shape, low, high, call.number(3, F32_EPSILON), by_error=False)


@operator("quantized_decomposed.choose_qparams_per_token_asymmetric.default")
def choose_per_token(call: Call) -> None:
    """x; outputs scale and zero point of each row, for int8."""
    shape = call.tensor(0).shape
    block = (*[1] * (len(shape) - 1), shape[-1])
    emit_choice(call, shape, block, -128, 127, F32_EPSILON, by_error=True)
