"""Elementwise kernels, as tables of NumPy functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .registry import Array, kernel, register_table


def float_of(x: Array) -> Array:
    """Integers as f32, as PyTorch promotes them for functions of floats."""
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def on_floats(function: Any) -> Any:
    return lambda x: function(float_of(np.asarray(x)))


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x) if x.size else x


def sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-float_of(x))))


def gelu(x: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return np.asarray(0.5 * x * (1 + _erf(x / math.sqrt(2))))


UNARY = {
    **{f"{name}.out": on_floats(getattr(np, numpy_name)) for name, numpy_name in (
        ("sqrt", "sqrt"), ("exp", "exp"), ("log", "log"), ("log2", "log2"), ("log10", "log10"), ("log1p", "log1p"),
        ("expm1", "expm1"), ("sin", "sin"), ("cos", "cos"), ("tan", "tan"), ("tanh", "tanh"), ("sinh", "sinh"),
        ("cosh", "cosh"), ("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan"), ("asinh", "arcsinh"),
        ("acosh", "arccosh"), ("atanh", "arctanh"), ("isnan", "isnan"), ("isinf", "isinf"),
    )},
    "rsqrt.out": on_floats(lambda x: 1 / np.sqrt(x)),
    "reciprocal.out": on_floats(lambda x: 1 / x),
    "sigmoid.out": sigmoid,
    "erf.out": on_floats(_erf),
    "abs.out": np.abs,
    "neg.out": np.negative,
    "sign.out": np.sign,
    "floor.out": np.floor,
    "ceil.out": np.ceil,
    "trunc.out": np.trunc,
    "round.out": np.round,
    "relu.out": lambda x: np.maximum(x, x.dtype.type(0)),
    "logical_not.out": np.logical_not,
    "bitwise_not.out": np.invert,
}  # fmt: skip

COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

BINARY = {
    "mul.out": np.multiply,
    "mul.Scalar_out": np.multiply,
    "div.out": np.true_divide,
    "div.Scalar_out": np.true_divide,
    "floor_divide.out": np.floor_divide,
    "minimum.out": np.minimum,
    "maximum.out": np.maximum,
    "atan2.out": np.arctan2,
    "pow.Tensor_Tensor_out": np.power,
    "pow.Tensor_Scalar_out": np.power,
    "pow.Scalar_out": np.power,
    "remainder.Tensor_out": np.remainder,
    "remainder.Scalar_out": np.remainder,
    "fmod.Tensor_out": np.fmod,
    "fmod.Scalar_out": np.fmod,
    "logical_and.out": np.logical_and,
    "logical_or.out": np.logical_or,
    "logical_xor.out": np.logical_xor,
    **{
        f"bitwise_{name}.{form}_out": getattr(np, f"bitwise_{name}")
        for name in ("and", "or", "xor")
        for form in ("Tensor", "Scalar")
    },
    **{f"{name}.{form}_out": function for name, function in COMPARISONS.items() for form in ("Tensor", "Scalar")},
}

register_table(UNARY, 1)
register_table(BINARY, 2)


@kernel("add.out", 3)
@kernel("add.Scalar_out", 3)
def add(x: Array, y: Any, alpha: float = 1) -> Array:
    return np.asarray(x + np.multiply(y, alpha) if alpha != 1 else np.add(x, y))


@kernel("sub.out", 3)
@kernel("sub.Scalar_out", 3)
def sub(x: Array, y: Any, alpha: float = 1) -> Array:
    return np.asarray(x - np.multiply(y, alpha))


@kernel("rsub.Scalar_out", 3)
def rsub(x: Array, y: float, alpha: float = 1) -> Array:
    return np.asarray(y - x * alpha)


@kernel("div.out_mode", 3)
@kernel("div.Scalar_mode_out", 3)
def div_mode(x: Array, y: Any, mode: str | None) -> Array:
    quotient = np.true_divide(x, y)
    return quotient if mode is None else {"floor": np.floor, "trunc": np.trunc}[mode](quotient)


@kernel("gelu.out", 2)
def gelu_out(x: Array, approximate: str) -> Array:
    return gelu(x, approximate)


@kernel("leaky_relu.out", 2)
def leaky_relu(x: Array, slope: float) -> Array:
    return np.where(x < 0, x * slope, x)


@kernel("elu.out", 4)
def elu(x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    return np.where(x > 0, x * scale, alpha * scale * np.expm1(np.minimum(x, 0) * input_scale))


@kernel("clamp.out", 3)
@kernel("clamp.Tensor_out", 3)
@kernel("hardtanh.out", 3)
def clamp(x: Array, low: Any, high: Any) -> Array:
    below = x if low is None else np.maximum(x, low)
    return np.asarray(below if high is None else np.minimum(below, high))


@kernel("where.self_out", 3)
def where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition != 0, x, y)


@kernel("masked_fill.Scalar_out", 3)
def masked_fill(x: Array, mask: Array, value: float) -> Array:
    return np.where(mask, np.asarray(value, x.dtype), x)


@kernel("_to_copy.out", 3)
@kernel("clone.out", 2)
@kernel("alias_copy.out", 1)
@kernel("detach_copy.out", 1)
@kernel("lift_fresh_copy.out", 1)
def same(x: Array, *_: Any) -> Array:
    return x
