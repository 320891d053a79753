"""Elementwise operators as WGSL expressions, and chains of them as one function.

The operators are tables in `functions.py`. A chain of elementwise nodes becomes
`fn fused(value: T, i: u32) -> S` (after a producer, whose result is `value`) or
`fn compute(i: u32) -> S`; `i` counts the output's elements in row-major order.

Floats are computed in f32, integers in i32, whatever the storage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .dtypes import DType
from .errors import UnsupportedError
from .functions import (
    BINARY,
    BITWISE,
    CASTS,
    CLAMPS,
    COMPARISONS,
    DIV_MODES,
    EXTREMES,
    FLOAT_UNARY,
    GELU,
    LEAKY_RELU,
    LIBRARY,
    LOGICAL,
    POWERS,
    SCALED,
    UNARY,
    WHERE,
)
from .graph import Arg, Node, Ref, Symbol, Tensor
from .kernels import Binding, read


def compute_type(dtype: DType) -> str:
    """The WGSL type in which values of dtype are computed."""
    if dtype.is_float:
        return "f32"
    return "bool" if dtype.name == "bool" else "i32"


def literal(value: float | bool, kind: str) -> str:
    """A number as WGSL text of type `kind` ("f32", "i32" or "bool")."""
    if kind == "bool":
        return "true" if value else "false"
    if kind == "i32":
        whole = min(max(int(value), -(2**31)), 2**31 - 1)
        return "i32(-2147483648)" if whole == -(2**31) else str(whole)
    if math.isnan(value):
        return "bitcast<f32>(NAN_BITS)"
    if math.isinf(value) or abs(value) > 3.4028234663852886e38:
        return "bitcast<f32>(INF_BITS)" if value > 0 else "-bitcast<f32>(INF_BITS)"
    return f"f32({float(value)!r})"


# WGSL refuses constant expressions that are not finite; a private variable is none.
NOT_FINITE = """\
var<private> INF_BITS: u32 = 0x7f800000u;
var<private> NAN_BITS: u32 = 0x7fc00000u;
"""


def convert(text: str, have: str, want: str) -> str:
    """WGSL text of one compute type as another; bool counts as 0 and 1."""
    if have == want:
        return text
    return f"(!({text} == 0))" if want == "bool" else f"{want}({text})"


def keep_nan(text: str, x: str) -> str:
    """A function of x that leaves NaN as it is, which GPUs' own functions need not."""
    return f"select({text.format(x=x)}, {x}, is_nan({x}))"


@dataclass(frozen=True)
class Fused:
    """Generated code: a function, the extra tensors it reads, and what it returns."""

    code: str
    bindings: tuple[Binding, ...]
    result: str


def strides(shape: Sequence[int]) -> list[int]:
    """Row-major strides in elements."""
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return steps[::-1]


def broadcast_index(shape: Sequence[int], out: Sequence[int], flat: str) -> str:
    """WGSL for the element of an operand of `shape` that meets element `flat` of `out`."""
    if tuple(shape) == tuple(out):
        return flat
    padded = [1] * (len(out) - len(shape)) + list(shape)
    terms: list[str] = []
    own, steps = strides(padded), strides(out)
    dim = 0
    while dim < len(out):
        if padded[dim] == 1:
            dim += 1
            continue
        last = dim  # neighbours that both sides keep together count as one dimension
        while last + 1 < len(out) and padded[last + 1] == out[last + 1]:
            last += 1
        size = math.prod(out[dim : last + 1])
        term = flat if steps[last] == 1 else f"({flat} / {steps[last]}u)"
        if any(s != 1 for s in out[:dim]):
            term = f"({term} % {size}u)"
        terms.append(term if own[last] == 1 else f"{term} * {own[last]}u")
        dim = last + 1
    return " + ".join(terms) if terms else "0u"


Special = Callable[["Emitter", str, tuple[Arg, ...], str], str]


class Emitter:
    """Writes a chain of elementwise nodes as one WGSL function."""

    def __init__(self, tensors: dict[int, Tensor], elem: Callable[[int], str], out: int) -> None:
        self.tensors, self.elem, self.out = tensors, elem, out
        self.lines: list[str] = []
        self.known: dict[int, str] = {}
        self.bindings: list[Binding] = []

    def operand(self, arg: Arg) -> tuple[str, str]:
        """An argument as (WGSL text, compute type)."""
        if isinstance(arg, Ref):
            kind = compute_type(self.tensors[arg.id].dtype)
            if arg.id not in self.known:
                name = f"operand{len(self.bindings)}"
                self.bindings.append(read(name, arg.id, self.elem(arg.id)))
                index = broadcast_index(self.tensors[arg.id].shape, self.tensors[self.out].shape, "i")
                stored = f"{name}[{name}_offset + {index}]"
                loaded = f"{stored} != 0u" if kind == "bool" else f"{kind}({stored})"
                self.known[arg.id] = self.let(loaded)
            return self.known[arg.id], kind
        if isinstance(arg, bool):
            return literal(arg, "bool"), "bool"
        if isinstance(arg, Symbol):
            return literal(arg.value, "i32"), "i32"
        if isinstance(arg, int):
            return literal(arg, "i32"), "i32"
        if isinstance(arg, float):
            return literal(arg, "f32"), "f32"
        raise UnsupportedError(f"an elementwise operator has the argument {arg!r}, which is no tensor or number")

    def let(self, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"    let {name} = {text};")
        return name

    def scalar(self, arg: Arg, kind: str) -> str:
        if not isinstance(arg, int | float):
            raise UnsupportedError(f"a number is needed, {arg!r} is given")
        return literal(arg, kind)

    def node(self, node: Node) -> None:
        """Add one node; its result is known under its output's id."""
        kind = compute_type(self.tensors[node.outputs[0]].dtype)
        self.known[node.outputs[0]] = self.let(self.text(node, kind))

    def text(self, node: Node, kind: str) -> str:
        op, args = node.op, node.args
        x, x_kind = self.operand(args[0])
        if op in CASTS:
            return convert(x, x_kind, kind)
        if op == WHERE:
            a, b = (convert(*self.operand(arg), kind) for arg in args[1:3])
            return f"select({b}, {a}, {convert(x, x_kind, 'bool')})"
        if op in COMPARISONS:
            y, y_kind = self.operand(args[1])
            common = "f32" if "f32" in (x_kind, y_kind) else "i32"
            return COMPARISONS[op].format(x=convert(x, x_kind, common), y=convert(y, y_kind, common))
        x = convert(x, x_kind, kind)
        if op in UNARY:
            return keep_nan(UNARY[op], x) if kind == "f32" else UNARY[op].format(x=x)
        if op in SPECIAL:
            return SPECIAL[op](self, x, args, kind)
        if op in FLOAT_UNARY:
            return keep_nan(FLOAT_UNARY[op], x)
        if op == LEAKY_RELU:
            slope = args[1] if len(args) > 1 else 0.01
            return f"select({x}, {x} * {self.scalar(slope, kind)}, {x} < 0)"
        if op in CLAMPS:
            return self.clamp(x, [args[i] if i < len(args) else None for i in CLAMPS[op]], kind)
        y = convert(*self.operand(args[1]), kind)
        if op in SCALED and len(args) > 2 and args[2] not in (None, 1):
            y = f"({y} * {self.scalar(args[2], kind)})"
        return BINARY[op].format(x=x, y=y)

    def second(self, args: tuple[Arg, ...], kind: str) -> str:
        """The other operand of a binary operator; nothing for a unary one."""
        return convert(*self.operand(args[1]), kind) if len(args) > 1 else ""

    def clamp(self, x: str, bounds: list[Arg], kind: str) -> str:
        low, high = bounds
        given = x
        if low is not None and low != -math.inf:
            x = self.let(f"select({x}, {self.scalar(low, kind)}, {x} < {self.scalar(low, kind)})")
        if high is not None and high != math.inf:
            x = self.let(f"select({x}, {self.scalar(high, kind)}, {x} > {self.scalar(high, kind)})")
        if kind == "f32" and x != given:
            x = self.let(f"select({x}, {given}, is_nan({given}))")
        return x


def _bitwise(op: str) -> Special:
    on_bool, on_int = BITWISE[op]

    def text(emitter: Emitter, x: str, args: tuple[Arg, ...], kind: str) -> str:
        form = on_bool if kind == "bool" else on_int
        return form.format(x=x, y=emitter.second(args, kind))

    return text


def _logical(op: str) -> Special:
    def text(emitter: Emitter, x: str, args: tuple[Arg, ...], kind: str) -> str:
        return LOGICAL[op].format(x=x, y=emitter.second(args, "bool"))

    return text


def _extreme(op: str) -> Special:
    def text(emitter: Emitter, x: str, args: tuple[Arg, ...], kind: str) -> str:
        y = emitter.second(args, kind)
        best = f"{EXTREMES[op]}({x}, {y})"
        return f"select({best}, {x} + {y}, is_nan({x}) || is_nan({y}))" if kind == "f32" else best

    return text


def _gelu(emitter: Emitter, x: str, args: tuple[Arg, ...], kind: str) -> str:
    approximate = args[1] if len(args) > 1 else "none"
    if not isinstance(approximate, str) or approximate not in GELU:
        raise UnsupportedError(f"gelu with approximate={approximate!r}; there are {', '.join(GELU)}")
    return keep_nan(GELU[approximate], x)


def _divide(emitter: Emitter, x: str, args: tuple[Arg, ...], kind: str) -> str:
    mode = args[2] if len(args) > 2 else None
    if not (mode is None or isinstance(mode, str)) or mode not in DIV_MODES:
        raise UnsupportedError(f"div with rounding_mode={mode!r}; there are floor, trunc and None")
    return DIV_MODES[mode][kind == "i32"].format(x=x, y=emitter.second(args, kind))


def _power(emitter: Emitter, x: str, args: tuple[Arg, ...], kind: str) -> str:
    return convert(f"power({convert(x, kind, 'f32')}, {emitter.second(args, 'f32')})", "f32", kind)


def _hardshrink(emitter: Emitter, x: str, args: tuple[Arg, ...], kind: str) -> str:
    limit = emitter.scalar(args[1] if len(args) > 1 else 0.5, kind)
    return f"select({x}, 0.0, abs({x}) <= {limit})"


SPECIAL: dict[str, Special] = {
    **{op: _extreme(op) for op in EXTREMES},
    **{op: _bitwise(op) for op in BITWISE},
    **{op: _logical(op) for op in LOGICAL},
    **dict.fromkeys(POWERS, _power),
    "aten.gelu.default": _gelu,
    "aten.div.Tensor_mode": _divide,
    "aten.hardshrink.default": _hardshrink,
}


def fuse_after(
    nodes: Sequence[Node],
    value: int,
    clamp: tuple[Arg, Arg] | None,
    tensors: dict[int, Tensor],
    elem: Callable[[int], str],
) -> Fused:
    """`fn fused(value: T, i: u32) -> S`, T for tensor `value`, S as stored for the last node's output.

    clamp: bounds to apply to the value first.
    """
    out = nodes[-1].outputs[0] if nodes else value
    emitter = Emitter(tensors, elem, out)
    kind = compute_type(tensors[value].dtype)
    emitter.known[value] = "value" if clamp is None else emitter.clamp("value", list(clamp), kind)
    return _finish(emitter, nodes, out, f"fn fused(value: {kind}, i: u32)")


def compute(nodes: Sequence[Node], tensors: dict[int, Tensor], elem: Callable[[int], str]) -> Fused:
    """`fn compute(i: u32) -> S` for a chain of elementwise nodes that starts from tensors."""
    out = nodes[-1].outputs[0]
    return _finish(Emitter(tensors, elem, out), nodes, out, "fn compute(i: u32)")


def _finish(emitter: Emitter, nodes: Sequence[Node], out: int, head: str) -> Fused:
    for node in nodes:
        emitter.node(node)
    stored = emitter.elem(out)
    have = compute_type(emitter.tensors[out].dtype)
    last = emitter.known[out]
    result = f"select(0u, 1u, {last})" if have == "bool" else convert(last, have, stored)
    body = "\n".join([*emitter.lines, f"    return {result};"])
    code = f"{head} -> {stored} {{\n{body}\n}}\n"
    code = "".join(text for name, text in LIBRARY.items() if name in code) + code
    if "_BITS" in code:
        code = NOT_FINITE + code
    return Fused(code, tuple(emitter.bindings), stored)
