"""Elementwise kernels, as tables of NumPy functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .promote import cast, common, floats
from .registry import Array, Function, kernel, register_table


def on_floats(function: Function) -> Function:
    """On tensors and numbers in their common dtype, integers as float32."""
    return lambda *values: function(*floats(*values))


def on_common(function: Function) -> Function:
    """On tensors and numbers in their common dtype."""
    return lambda *values: function(*common(*values))


def erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x) if x.size else x


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def power(x: Array, y: Array) -> Array:
    """Integers to negative powers: 0 but for 1 and -1."""
    if x.dtype.kind not in "iu" or not (y < 0).any():
        return np.power(x, y)
    magnitude = np.power(x, np.abs(y))
    return np.where(y < 0, np.where(np.abs(x) == 1, magnitude, 0), magnitude).astype(x.dtype)


def truncated(x: Array, y: Array) -> Array:
    """The quotient rounded to zero."""
    if x.dtype.kind not in "iu":
        return np.trunc(x / y)
    down = np.floor_divide(x, y)
    return np.asarray(down + ((down < 0) & (down * y != x)))


def shifted(function: Function, fill: Function) -> Function:
    """A shift by fewer bits than there are; beyond, what PyTorch gives."""

    def shift(x: Any, y: Any) -> Array:
        x, y = common(x, y)
        bits = x.dtype.itemsize * 8
        return np.where((y >= 0) & (y < bits), function(x, np.clip(y, 0, bits - 1)), fill(x))

    return shift


def kept(function: Function) -> Function:
    """Rounding: integers stay as they are."""
    return lambda x: x if x.dtype.kind in "iub" else function(x)


UNARY: dict[str, Function] = {
    **{f"{name}.out": on_floats(getattr(np, numpy_name)) for name, numpy_name in (
        ("sqrt", "sqrt"), ("exp", "exp"), ("log", "log"), ("log2", "log2"), ("log10", "log10"), ("log1p", "log1p"),
        ("expm1", "expm1"), ("sin", "sin"), ("cos", "cos"), ("tan", "tan"), ("tanh", "tanh"), ("sinh", "sinh"),
        ("cosh", "cosh"), ("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan"), ("asinh", "arcsinh"),
        ("acosh", "arccosh"), ("atanh", "arctanh"), ("isnan", "isnan"), ("isinf", "isinf"),
    )},
    "rsqrt.out": on_floats(lambda x: 1 / np.sqrt(x)),
    "reciprocal.out": on_floats(lambda x: 1 / x),
    "sigmoid.out": on_floats(sigmoid),
    "erf.out": on_floats(erf),
    "abs.out": np.abs,
    "neg.out": np.negative,
    "sign.out": lambda x: x if x.dtype == bool else np.where(np.isnan(x), 0, np.sign(x)),
    "floor.out": kept(np.floor),
    "ceil.out": kept(np.ceil),
    "trunc.out": kept(np.trunc),
    "round.out": kept(np.round),
    "relu.out": lambda x: np.maximum(x, x.dtype.type(0)),
    "logical_not.out": np.logical_not,
    "bitwise_not.out": np.invert,
    "_conj_physical.out": np.conjugate,
}  # fmt: skip

COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

BINARY: dict[str, Function] = {
    "mul.out": on_common(np.multiply),
    "mul.Scalar_out": on_common(np.multiply),
    "div.out": on_floats(np.true_divide),
    "div.Scalar_out": on_floats(np.true_divide),
    "floor_divide.out": on_common(np.floor_divide),
    "minimum.out": on_common(np.minimum),
    "maximum.out": on_common(np.maximum),
    "atan2.out": on_floats(np.arctan2),
    "pow.Tensor_Tensor_out": on_common(power),
    "pow.Tensor_Scalar_out": on_common(power),
    "pow.Scalar_out": on_common(power),
    "remainder.Tensor_out": on_common(np.remainder),
    "remainder.Scalar_out": on_common(np.remainder),
    "fmod.Tensor_out": on_common(np.fmod),
    "fmod.Scalar_out": on_common(np.fmod),
    "logical_and.out": np.logical_and,
    "logical_or.out": np.logical_or,
    "logical_xor.out": np.logical_xor,
    **{
        f"bitwise_{name}.{form}_out": on_common(getattr(np, f"bitwise_{name}"))
        for name in ("and", "or", "xor")
        for form in ("Tensor", "Scalar")
    },
    **{
        f"bitwise_{side}_shift.{form}_out": shifted(getattr(np, f"{side}_shift"), fill)
        for side, fill in (("left", np.zeros_like), ("right", lambda x: -(x < 0).astype(x.dtype)))
        for form in ("Tensor", "Tensor_Scalar")
    },
    **{
        f"{name}.{form}_out": on_common(function)
        for name, function in COMPARISONS.items()
        for form in ("Tensor", "Scalar")
    },
}

register_table(UNARY, 1)
register_table(BINARY, 2)


@kernel("add.out", 3)
@kernel("add.Scalar_out", 3)
def add(x: Array, y: Any, alpha: float = 1) -> Array:
    x, y = common(x, y)
    return np.add(x, y * cast(alpha, y.dtype) if alpha != 1 else y)


@kernel("sub.out", 3)
@kernel("sub.Scalar_out", 3)
def sub(x: Array, y: Any, alpha: float = 1) -> Array:
    x, y = common(x, y)
    return np.subtract(x, y * cast(alpha, y.dtype) if alpha != 1 else y)


@kernel("rsub.Scalar_out", 3)
def rsub(x: Array, y: float, alpha: float = 1) -> Array:
    return sub(cast(y, common(x, y)[0].dtype), x, alpha)


@kernel("div.out_mode", 3)
@kernel("div.Scalar_mode_out", 3)
def div_mode(x: Array, y: Any, mode: str | None) -> Array:
    if mode is None:
        return np.true_divide(*floats(x, y))
    rounded: dict[str, Function] = {"floor": np.floor_divide, "trunc": truncated}
    return rounded[mode](*common(x, y))


@kernel("gelu.out", 2)
def gelu(x: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return np.asarray(0.5 * x * (1 + erf(x / math.sqrt(2))))


@kernel("leaky_relu.out", 2)
def leaky_relu(x: Array, slope: float) -> Array:
    return np.where(x < 0, x * slope, x)


@kernel("elu.out", 4)
def elu(x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    return np.where(x > 0, x * scale, alpha * scale * np.expm1(np.minimum(x, 0) * input_scale))


@kernel("logit.out", 2)
def logit(x: Array, eps: float | None) -> Array:
    (x,) = floats(x)
    if eps is not None:
        x = np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


@kernel("glu.out", 2)
def glu(x: Array, dim: int) -> Array:
    first, gate = np.split(x, 2, dim)
    return np.asarray(first * sigmoid(gate))


@kernel("clamp.out", 3)
@kernel("clamp.Tensor_out", 3)
@kernel("hardtanh.out", 3)
def clamp(x: Array, low: Any, high: Any) -> Array:
    dtype = common(*(v for v in (x, low, high) if v is not None))[0].dtype
    out = cast(x, dtype)
    if low is not None:
        out = np.maximum(out, cast(low, dtype))
    return out if high is None else np.minimum(out, cast(high, dtype))


@kernel("where.self_out", 3)
def where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition != 0, *common(x, y))


@kernel("masked_fill.Scalar_out", 3)
def masked_fill(x: Array, mask: Array, value: float) -> Array:
    return np.where(mask, cast(value, x.dtype), x)


@kernel("_to_copy.out", 3)
@kernel("clone.out", 2)
@kernel("alias_copy.out", 1)
@kernel("detach_copy.out", 1)
@kernel("lift_fresh_copy.out", 1)
@kernel("et_copy::_h2d_copy.out", 1)
@kernel("et_copy::_d2h_copy.out", 1)
def same(x: Array, *_: Any) -> Array:
    return x
