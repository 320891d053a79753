"""Kernels that reduce dimensions, sort or count along them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .promote import floats
from .registry import Array, kernel


def axes(x: Array, dims: Any) -> tuple[int, ...] | None:
    """NumPy's axis for a list of dimensions or one; for none of them, and of a tensor without any: all."""
    if dims is None or (isinstance(dims, list | tuple) and not dims) or not x.ndim:
        return None
    return tuple(dims) if isinstance(dims, list | tuple) else (dims,)


def wide(x: Array) -> Any:
    """The type to sum in: f64 for floats, i64 for integers."""
    return {"f": np.float64, "c": np.complex128}.get(x.dtype.kind, np.int64)


@kernel("sum.IntList_out", 4)
def sum_out(x: Array, dims: Any, keep: bool, *_: Any) -> Array:
    return np.asarray(x.sum(axes(x, dims), wide(x), keepdims=keep))


@kernel("mean.out", 4)
def mean(x: Array, dims: Any, keep: bool, *_: Any) -> Array:
    return np.asarray(x.mean(axes(x, dims), np.float64, keepdims=keep))


@kernel("mean.dtype_out", 2)
def mean_all(x: Array, *_: Any) -> Array:
    return mean(x, None, False)


@kernel("prod.out", 2)
def prod(x: Array, *_: Any) -> Array:
    return np.asarray(x.prod(dtype=wide(x)))


@kernel("prod.int_out", 4)
def prod_dim(x: Array, dim: int, keep: bool, *_: Any) -> Array:
    return np.asarray(x.prod(axes(x, dim), wide(x), keepdims=keep))


@kernel("amax.out", 3)
def amax(x: Array, dims: Any, keep: bool) -> Array:
    return np.asarray(x.max(axes(x, dims), keepdims=keep))


@kernel("amin.out", 3)
def amin(x: Array, dims: Any, keep: bool) -> Array:
    return np.asarray(x.min(axes(x, dims), keepdims=keep))


@kernel("max.unary_out", 1)
def max_all(x: Array) -> Array:
    return np.asarray(x.max())


@kernel("min.unary_out", 1)
def min_all(x: Array) -> Array:
    return np.asarray(x.min())


@kernel("argmax.out", 3)
def argmax(x: Array, dim: int | None, keep: bool) -> Array:
    return np.asarray(x.argmax(dim if x.ndim else None, keepdims=keep))


@kernel("argmin.out", 3)
def argmin(x: Array, dim: int | None, keep: bool) -> Array:
    return np.asarray(x.argmin(dim if x.ndim else None, keepdims=keep))


@kernel("max.dim_max", 3, 2)
def max_dim(x: Array, dim: int, keep: bool) -> tuple[Array, Array]:
    return amax(x, dim, keep), argmax(x, dim, keep)


@kernel("min.dim_min", 3, 2)
def min_dim(x: Array, dim: int, keep: bool) -> tuple[Array, Array]:
    return amin(x, dim, keep), argmin(x, dim, keep)


@kernel("any.dims_out", 3)
def any_dims(x: Array, dims: Any, keep: bool) -> Array:
    """No dimension means each element by itself, unlike in other reductions."""
    return x != 0 if dims == [] else any_out(x, dims, keep)


@kernel("any.out", 3)
def any_out(x: Array, dims: Any, keep: bool) -> Array:
    return np.asarray((x != 0).any(axes(x, dims), keepdims=keep))


@kernel("any.all_out", 1)
def any_all(x: Array) -> Array:
    return np.asarray((x != 0).any())


@kernel("cumsum.out", 3)
def cumsum(x: Array, dim: int, *_: Any) -> Array:
    return x.cumsum(dim, wide(x)) if x.ndim else x


@kernel("var.correction_out", 4)
def var(x: Array, dims: Any, correction: float | None, keep: bool) -> Array:
    return var_mean(x, dims, correction, keep)[0]


@kernel("var.out", 4)
def var_unbiased(x: Array, dims: Any, unbiased: bool, keep: bool) -> Array:
    return var_mean(x, dims, int(unbiased), keep)[0]


@kernel("var_mean.correction_out", 4, 2)
def var_mean(x: Array, dims: Any, correction: float | None, keep: bool) -> tuple[Array, Array]:
    """Divided by the count less the correction, which is 1 where it is not given; never by less than 0."""
    axis = axes(x, dims)
    middle = x.mean(axis, np.float64, keepdims=True)
    square = ((x - middle) ** 2).sum(axis, np.float64, keepdims=keep)
    count = x.size // max(middle.size, 1)
    divisor = max(count - (1 if correction is None else correction), 0)
    return np.asarray(square / np.float64(divisor)), middle.reshape(np.shape(square))


@kernel("topk.values", 5, 2)
def topk(x: Array, k: int, dim: int, largest: bool, *_: Any) -> tuple[Array, Array]:
    """Sorted; of equal ones the first come first; NaN is the largest."""
    if not x.ndim:
        return x, np.zeros((), np.int64)
    rows = np.moveaxis(x, dim, -1)
    if largest:
        order = rows.shape[-1] - 1 - np.argsort(rows[..., ::-1], -1, kind="stable")[..., ::-1]
    else:
        order = np.argsort(rows, -1, kind="stable")
    order = order[..., :k]
    return np.moveaxis(np.take_along_axis(rows, order, -1), -1, dim), np.moveaxis(order, -1, dim)


# Not of the portable library, but in programs all the same: the exporter lets it pass.
@kernel("sort.values", 3, 2)
def sort(x: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    values, order = topk(x, x.shape[dim] if x.ndim else 1, dim, descending)
    return values, order


@kernel("sort.values_stable", 4, 2)
def sort_stable(x: Array, _: bool | None, dim: int, descending: bool) -> tuple[Array, Array]:
    values, order = sort(x, dim, descending)
    return values, order


def softmax_of(x: Array, dim: int) -> Array:
    powers = np.exp(x - x.max(dim, keepdims=True))
    return np.asarray(powers / powers.sum(dim, keepdims=True))


@kernel("_softmax.out", 3)
def softmax(x: Array, dim: int, *_: Any) -> Array:
    (x,) = floats(x)
    return softmax_of(x, dim) if x.ndim else np.ones_like(x)


@kernel("_log_softmax.out", 3)
def log_softmax(x: Array, dim: int, *_: Any) -> Array:
    if not x.ndim:
        return np.zeros_like(x)
    (x,) = floats(x)
    centred = x - x.max(dim, keepdims=True)
    return np.asarray(centred - np.log(np.exp(centred).sum(dim, keepdims=True)))
