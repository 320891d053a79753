"""Kernels that move elements or make tensors. Shapes of views come from the output (see `run_kernel`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .registry import KERNELS, Array, Kernel, kernel


@kernel("view_copy.out", 2)
@kernel("squeeze_copy.dims_out", 2)
@kernel("squeeze_copy.dim_out", 2)
@kernel("unsqueeze_copy.out", 2)
def reshaped(x: Array, *_: Any) -> Array:
    return x


for _name in ("_to_dim_order_copy.out", "_clone_dim_order.out"):
    KERNELS[f"dim_order_ops::{_name}"] = Kernel(reshaped, 3)


@kernel("expand_copy.out", 3)
def expand(x: Array, size: list[int], *_: Any) -> Array:
    padded = (1,) * (len(size) - x.ndim) + x.shape
    return np.broadcast_to(x, [have if want == -1 else want for have, want in zip(padded, size, strict=True)])


@kernel("permute_copy.out", 2)
def permute(x: Array, dims: list[int]) -> Array:
    return x.transpose(dims)


@kernel("transpose_copy.int_out", 3)
def transpose(x: Array, a: int, b: int) -> Array:
    return x.swapaxes(a, b) if x.ndim else x


@kernel("t_copy.out", 1)
def t(x: Array) -> Array:
    return x.T


@kernel("slice_copy.Tensor_out", 5)
def slice_copy(x: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    return x[(*[slice(None)] * (dim % x.ndim), slice(start, end, step))]


@kernel("select_copy.int_out", 3)
def select(x: Array, dim: int, index: int) -> Array:
    return x.take(index, dim)


@kernel("narrow_copy.out", 4)
def narrow(x: Array, dim: int, start: int, length: int) -> Array:
    return x.take(range(start, start + length), dim)


@kernel("cat.out", 2)
def cat(parts: list[Array], dim: int) -> Array:
    kept = [p for p in parts if p.shape != (0,)] or parts  # PyTorch ignores empty vectors here
    return np.concatenate(kept, dim)


@kernel("stack.out", 2)
def stack(parts: list[Array], dim: int) -> Array:
    return np.stack(parts, dim)


@kernel("repeat.out", 2)
def repeat(x: Array, counts: list[int]) -> Array:
    return np.tile(x, counts)


@kernel("flip.out", 2)
def flip(x: Array, dims: list[int]) -> Array:
    return np.flip(x, tuple(dims))


@kernel("roll.out", 3)
def roll(x: Array, shifts: list[int], dims: list[int]) -> Array:
    return np.roll(x, shifts, dims) if dims else np.roll(x, shifts[0])


@kernel("tril.out", 2)
def tril(x: Array, diagonal: int) -> Array:
    return np.tril(x, diagonal)


@kernel("constant_pad_nd.out", 3)
def constant_pad(x: Array, pads: list[int], value: float) -> Array:
    out = x
    for i in range(0, len(pads), 2):
        axis = x.ndim - 1 - i // 2
        keep = [slice(None)] * x.ndim
        keep[axis] = slice(max(0, -pads[i]), out.shape[axis] - max(0, -pads[i + 1]))
        widths = [(0, 0)] * x.ndim
        widths[axis] = (max(0, pads[i]), max(0, pads[i + 1]))
        out = np.pad(out[tuple(keep)], widths, constant_values=value)
    return out


@kernel("embedding.out", 5)
def embedding(weight: Array, indices: Array, *_: Any) -> Array:
    return weight[indices]


@kernel("index_select.out", 3)
def index_select(x: Array, dim: int, index: Array) -> Array:
    return x.take(index, dim)


@kernel("gather.out", 4)
def gather(x: Array, dim: int, index: Array, *_: Any) -> Array:
    cut = tuple(slice(None) if d == dim % x.ndim else slice(n) for d, n in enumerate(index.shape))
    return np.take_along_axis(x[cut], index, dim)


@kernel("index.Tensor_out", 2)
def index(x: Array, indices: list[Array | None]) -> Array:
    return x[tuple(slice(None) if i is None else i for i in indices)]


@kernel("index_put.out", 4)
def index_put(x: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    out = x.copy()
    at: Any = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        np.add.at(out, at, values)
    else:
        out[at] = values
    return out


@kernel("index_copy.out", 4)
def index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    out = x.copy()
    out[(*[slice(None)] * (dim % x.ndim), index)] = source
    return out


@kernel("full.out", 2)
def full(size: list[int], value: float) -> Array:
    return np.full(size, value)


@kernel("full_like.out", 3)
def full_like(x: Array, value: float, *_: Any) -> Array:
    return np.full(x.shape, value)


@kernel("scalar_tensor.out", 1)
def scalar_tensor(value: float) -> Array:
    return np.asarray(value)


@kernel("zeros.out", 1)
def zeros(size: list[int]) -> Array:
    return np.zeros(size)


@kernel("ones.out", 1)
def ones(size: list[int]) -> Array:
    return np.ones(size)


@kernel("arange.out", 1)
def arange(end: float) -> Array:
    return np.arange(end)


@kernel("arange.start_out", 3)
def arange_start(start: float, end: float, step: float) -> Array:
    return np.arange(start, end, step)


@kernel("copy.out", 3)
def copy(x: Array, source: Array, *_: Any) -> Array:
    return np.broadcast_to(source, x.shape)


@kernel("pixel_shuffle.out", 2)
def pixel_shuffle(x: Array, r: int) -> Array:
    *outer, channels, height, width = x.shape
    parts = x.reshape(-1, channels // (r * r), r, r, height, width)
    return parts.transpose(0, 1, 4, 2, 5, 3).reshape(*outer, channels // (r * r), height * r, width * r)
