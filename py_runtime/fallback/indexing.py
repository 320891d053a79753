"""Kernels that pick elements by index or mask, or put them there."""

from __future__ import annotations

from typing import Any

import numpy as np

from .registry import Array, kernel


def along(x: Array, dim: int, part: Any) -> tuple[Any, ...]:
    """An index of x that takes a part of one dimension and all of the others."""
    return (*[slice(None)] * (dim % max(x.ndim, 1)), part)


@kernel("slice_copy.Tensor_out", 5)
def slice_copy(x: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    return x[along(x, dim, slice(start, end, step))]


@kernel("slice_scatter.out", 6)
def slice_scatter(x: Array, source: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    return put(x, along(x, dim, slice(start, end, step)), source)


def put(x: Array, at: Any, values: Any) -> Array:
    """A copy of x with values at an index."""
    out = x.copy()
    out[at] = values
    return out


@kernel("select_copy.int_out", 3)
def select(x: Array, dim: int, index: int) -> Array:
    return x.take(index, dim)


@kernel("select_scatter.out", 4)
def select_scatter(x: Array, source: Array, dim: int, index: int) -> Array:
    return put(x, along(x, dim, index), source)


@kernel("narrow_copy.out", 4)
def narrow(x: Array, dim: int, start: int, length: int) -> Array:
    return x.take(range(start, start + length), dim)


@kernel("embedding.out", 5)
def embedding(weight: Array, indices: Array, *_: Any) -> Array:
    return weight[indices]


@kernel("index_select.out", 3)
def index_select(x: Array, dim: int, index: Array) -> Array:
    # take wants the address size's integers, of which int64 is not one on wasm32
    return x.take(index.reshape(-1).astype(np.intp), dim) if x.ndim else x


def places(x: Array, dim: int, index: Array) -> Any:
    """Where gather and scatter read or write: index gives the place along dim, its own position the others."""
    grid = list(np.indices(index.shape, sparse=True))
    grid[dim % x.ndim] = index
    return tuple(grid)


def fitting(source: Array, index: Array) -> Array:
    """The part of a scatter's source that its index covers."""
    return source[tuple(slice(n) for n in index.shape)]


@kernel("gather.out", 4)
def gather(x: Array, dim: int, index: Array, *_: Any) -> Array:
    return x[places(x, dim, index)] if x.ndim else np.broadcast_to(x, index.shape)


@kernel("scatter.src_out", 4)
def scatter(x: Array, dim: int, index: Array, source: Array) -> Array:
    return put(x, places(x, dim, index), fitting(source, index)) if x.ndim else source.reshape(())


@kernel("scatter.value_out", 4)
def scatter_value(x: Array, dim: int, index: Array, value: float) -> Array:
    return put(x, places(x, dim, index), value) if x.ndim else np.asarray(value)


@kernel("scatter_add.out", 4)
def scatter_add(x: Array, dim: int, index: Array, source: Array) -> Array:
    if not x.ndim:
        return x + source.reshape(())
    out = x.copy()
    np.add.at(out, places(x, dim, index), fitting(source, index))
    return out


def index_of(indices: list[Array | None]) -> tuple[Any, ...]:
    """Advanced indices as NumPy takes them; absent ones take all of their dimension."""
    return tuple(slice(None) if i is None else i for i in indices)


@kernel("index.Tensor_out", 2)
def index(x: Array, indices: list[Array | None]) -> Array:
    return x[index_of(indices)]


@kernel("index_put.out", 4)
@kernel("index_put_", 4, 0, writes=(0,))
def index_put(x: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    if not accumulate:
        return put(x, index_of(indices), values)
    out = x.copy()
    np.add.at(out, index_of(indices), values)
    return out


@kernel("index_copy.out", 4)
def index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    return put(x, along(x, dim, index.reshape(-1)), source) if x.ndim else source.reshape(())


@kernel("executorch_prim::et_copy_index.tensor", 3, 0, writes=(0,))
def copy_index(x: Array, row: Array, at: int) -> Array:
    """Append row `at` to what a loop collects (x, in rows 0 to at - 1)."""
    return np.concatenate([x.reshape(-1, *row.shape)[:at], row[None]])


@kernel("masked_select.out", 2)
def masked_select(x: Array, mask: Array) -> Array:
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


@kernel("masked_scatter.out", 3)
def masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    x, mask = np.broadcast_arrays(x, mask)
    return put(x, mask, source.reshape(-1)[: int(mask.sum())])


@kernel("nonzero.out", 1)
def nonzero(x: Array) -> Array:
    return np.argwhere(x)
