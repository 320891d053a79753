"""Kernels that reduce dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .elementwise import float_of
from .registry import Array, kernel


def axes(dims: Any) -> tuple[int, ...] | None:
    """NumPy's axis for a list of dimensions, one, or none for all."""
    if dims is None or (isinstance(dims, list | tuple) and not dims):
        return None
    return tuple(dims) if isinstance(dims, list | tuple) else (dims,)


@kernel("sum.IntList_out", 4)
def sum_out(x: Array, dims: Any, keep: bool, *_: Any) -> Array:
    return np.asarray(x.sum(axes(dims), keepdims=keep))


@kernel("mean.out", 4)
def mean(x: Array, dims: Any, keep: bool, *_: Any) -> Array:
    return np.asarray(x.mean(axes(dims), keepdims=keep))


@kernel("amax.out", 3)
def amax(x: Array, dims: Any, keep: bool) -> Array:
    return np.asarray(x.max(axes(dims), keepdims=keep))


@kernel("amin.out", 3)
def amin(x: Array, dims: Any, keep: bool) -> Array:
    return np.asarray(x.min(axes(dims), keepdims=keep))


@kernel("any.out", 3)
@kernel("any.dims_out", 3)
def any_out(x: Array, dims: Any, keep: bool) -> Array:
    return np.asarray((x != 0).any(axes(dims), keepdims=keep))


@kernel("any.all_out", 1)
def any_all(x: Array) -> Array:
    return np.asarray((x != 0).any())


@kernel("argmax.out", 3)
def argmax(x: Array, dim: int | None, keep: bool) -> Array:
    return np.asarray(x.argmax(dim, keepdims=keep))


@kernel("argmin.out", 3)
def argmin(x: Array, dim: int | None, keep: bool) -> Array:
    return np.asarray(x.argmin(dim, keepdims=keep))


@kernel("cumsum.out", 3)
def cumsum(x: Array, dim: int, *_: Any) -> Array:
    return x.cumsum(dim) if x.ndim else x


@kernel("var.correction_out", 4)
def var(x: Array, dims: Any, correction: float | None, keep: bool) -> Array:
    return np.asarray(x.var(axes(dims), ddof=1 if correction is None else correction, keepdims=keep))


def softmax_of(x: Array, dim: int) -> Array:
    powers = np.exp(float_of(x) - x.max(dim, keepdims=True))
    return np.asarray(powers / powers.sum(dim, keepdims=True))


@kernel("_softmax.out", 3)
def softmax(x: Array, dim: int, *_: Any) -> Array:
    return softmax_of(x, dim) if x.ndim else np.ones_like(x)


@kernel("_log_softmax.out", 3)
def log_softmax(x: Array, dim: int, *_: Any) -> Array:
    centred = x - x.max(dim, keepdims=True)
    return np.asarray(centred - np.log(np.exp(centred).sum(dim, keepdims=True)))
