"""Elementwise operators as WGSL, in tables; and the functions that WGSL lacks.

{x} and {y} stand for the operands. `expression.py` makes kernels of chains of these.
"""

from __future__ import annotations

# x is the operand. NaN stays NaN: GPUs turn a select into max or min, which drop it, so floats are
# guarded by keep_nan.
UNARY = {
    "aten.relu.default": "select({x}, 0, {x} < 0)",
    "aten.neg.default": "-{x}",
    "aten.abs.default": "abs({x})",
}
FLOAT_UNARY = {
    "aten.sigmoid.default": "1.0 / (1.0 + exp(-{x}))",
    "aten.tanh.default": "tanh(clamp({x}, -15.0, 15.0))",
    "aten.exp.default": "exp({x})",
    "aten.sqrt.default": "sqrt({x})",
    "aten.rsqrt.default": "inverseSqrt({x})",
    "aten.sin.default": "sine({x})",
    "aten.cos.default": "sine({x} + 1.5707963267948966)",
    "aten.log10.default": "log_10({x})",
    "aten.round.default": "round({x})",
    "aten.hardswish.default": "{x} * clamp({x} + 3.0, 0.0, 6.0) / 6.0",
}
GELU = {
    # approximate: WGSL; erf is in LIBRARY
    "none": "0.5 * {x} * (1.0 + erf({x} * 0.7071067811865476))",
    "tanh": "0.5 * {x} * (1.0 + tanh(clamp(0.7978845608028654 * ({x} + 0.044715 * {x} * {x} * {x}), -15.0, 15.0)))",
}
BINARY = {
    "aten.add.Tensor": "{x} + {y}",
    "aten.sub.Tensor": "{x} - {y}",
    "aten.mul.Tensor": "{x} * {y}",
    "aten.div.Tensor": "{x} / {y}",
}
EXTREMES = {"aten.minimum.default": "min", "aten.maximum.default": "max"}
BITWISE = {
    # operator: (on bool, on integers)
    "aten.bitwise_and.Tensor": ("{x} && {y}", "{x} & {y}"),
    "aten.bitwise_or.Tensor": ("{x} || {y}", "{x} | {y}"),
    "aten.bitwise_not.default": ("!{x}", "~{x}"),
}
LOGICAL = {
    "aten.logical_and.default": "{x} && {y}",
    "aten.logical_or.default": "{x} || {y}",
    "aten.logical_not.default": "!{x}",
}
POWERS = frozenset({"aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar"})
DIV_MODES = {
    # rounding mode: (on floats, on integers)
    "floor": ("floor({x} / {y})", "floor_div({x}, {y})"),
    "trunc": ("trunc({x} / {y})", "{x} / {y}"),
    None: ("{x} / {y}", "{x} / {y}"),
}
SCALED = frozenset({"aten.add.Tensor", "aten.sub.Tensor"})  # third argument: alpha
COMPARE = {
    "eq": "{x} == {y}",
    "ne": "!({x} == {y})",  # so that NaN differs from everything
    "lt": "{x} < {y}",
    "le": "{x} <= {y}",
    "gt": "{x} > {y}",
    "ge": "{x} >= {y}",
}
COMPARISONS = {f"aten.{name}.{form}": text for name, text in COMPARE.items() for form in ("Tensor", "Scalar")}
CLAMPS = {
    # operator: (index of min, index of max)
    "aten.clamp.default": (1, 2),
    "aten.hardtanh.default": (1, 2),
}
WHERE = "aten.where.self"
LEAKY_RELU = "aten.leaky_relu.default"
CASTS = frozenset({"aten._to_copy.default", "dim_order_ops._to_dim_order_copy.default"})

ELEMENTWISE = frozenset(
    {
        *UNARY,
        *FLOAT_UNARY,
        *BINARY,
        *EXTREMES,
        *BITWISE,
        *LOGICAL,
        *COMPARISONS,
        *CLAMPS,
        *CASTS,
        *POWERS,
        WHERE,
        LEAKY_RELU,
        "aten.gelu.default",
        "aten.div.Tensor_mode",
        "aten.hardshrink.default",
    }
)

# Functions that WGSL lacks, added to a kernel that uses them.
LIBRARY = {
    # WGSL's own is only good to 2^-11. The argument is brought to [-pi/2, pi/2] in three steps
    # (Cody and Waite, Software Manual for the Elementary Functions, 1980), then Taylor's series.
    "sine(": """\
fn sine(x: f32) -> f32 {
    let turns = round(x * 0.3183098861837907);
    let r = ((x - turns * 3.140625) - turns * 0.0009670257568359375) - turns * 6.2771141529083252e-7;
    let s = r * r;
    let tail = s * (-0.00019841270 + s * (2.7557319e-6 - s * 2.5052108e-8));
    let series = 1.0 + s * (-0.16666667 + s * (0.008333333 + tail));
    return select(r * series, -r * series, i32(turns) % 2 != 0);
}
""",
    # Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26; error below 1.5e-7.
    "erf(": """\
fn erf(x: f32) -> f32 {
    let a = abs(x);
    let t = 1.0 / (1.0 + 0.3275911 * a);
    let tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    let y = 1.0 - tail * exp(-a * a);
    return select(y, -y, x < 0.0);
}
""",
    # WGSL leaves the logarithm of what is not positive open.
    "log_10(": """\
fn log_10(x: f32) -> f32 {
    let outside = select(-bitcast<f32>(INF_BITS), bitcast<f32>(NAN_BITS), x < 0.0);
    return select(outside, log(max(x, 1e-45)) / log(10.0), x > 0.0);
}
""",
    # PyTorch's pow: 0 to the 0 is 1, a negative base takes whole exponents only.
    "power(": """\
fn power(x: f32, y: f32) -> f32 {
    if (y == 0.0) {
        return 1.0;
    }
    if (y == 2.0) {
        return x * x;
    }
    let size = pow(abs(x), y);
    if (x >= 0.0) {
        return size;
    }
    let whole = y == trunc(y);
    let odd = abs(y % 2.0) == 1.0;
    return select(bitcast<f32>(NAN_BITS), select(size, -size, odd), whole);
}
""",
    "floor_div(": """\
fn floor_div(x: i32, y: i32) -> i32 {
    let q = x / y;
    return select(q, q - 1, x % y != 0 && (x < 0) != (y < 0));
}
""",
}
