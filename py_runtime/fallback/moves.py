"""Kernels that move elements or make tensors. Shapes of views come from the output."""

from __future__ import annotations

from typing import Any

import numpy as np

from .registry import Array, kernel


@kernel("view_copy.out", 2)
@kernel("squeeze_copy.dims_out", 2)
@kernel("squeeze_copy.dim_out", 2)
@kernel("unsqueeze_copy.out", 2)
@kernel("dim_order_ops::_to_dim_order_copy.out", 3)
@kernel("dim_order_ops::_clone_dim_order.out", 3)
@kernel("executorch_prim::et_view.default", 2)
def reshaped(x: Array, *_: Any) -> Array:
    return x


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


@kernel("as_strided_copy.out", 4)
def as_strided(x: Array, size: list[int], stride: list[int], offset: int | None) -> Array:
    at = np.full(size, offset or 0, np.int64)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        at += (np.arange(n) * step).reshape(-1, *[1] * (len(size) - axis - 1))
    return x.reshape(-1)[at]


@kernel("diagonal_copy.out", 4)
def diagonal(x: Array, offset: int, a: int, b: int) -> Array:
    return np.diagonal(x, offset, a, b)


@kernel("view_as_real_copy.out", 1)
def view_as_real(x: Array) -> Array:
    return np.stack([x.real, x.imag], -1)


@kernel("split_copy.Tensor_out", 3)
def split(x: Array, size: int, dim: int) -> list[Array]:
    return np.split(x, range(size, x.shape[dim], size), dim) if size else [x]


@kernel("split_with_sizes_copy.out", 3)
def split_with_sizes(x: Array, sizes: list[int], dim: int) -> list[Array]:
    return np.split(x, np.cumsum(sizes)[:-1], dim)


@kernel("unbind_copy.int_out", 2)
def unbind(x: Array, dim: int) -> list[Array]:
    return list(np.moveaxis(x, dim, 0))


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


@kernel("repeat_interleave.Tensor_out", 2)
def repeat_interleave(counts: Array, _size: int | None) -> Array:
    return np.repeat(np.arange(counts.size), counts.astype(np.intp))


@kernel("flip.out", 2)
def flip(x: Array, dims: list[int]) -> Array:
    return np.flip(x, tuple(dims))


@kernel("roll.out", 3)
def roll(x: Array, shifts: list[int], dims: list[int]) -> Array:
    return np.roll(x, shifts, dims) if dims else np.roll(x, shifts[0])


@kernel("tril.out", 2)
def tril(x: Array, diagonal: int) -> Array:
    return np.tril(x, diagonal)


@kernel("unfold_copy.out", 4)
def unfold(x: Array, dim: int, size: int, step: int) -> Array:
    if not x.ndim:
        return x.reshape(1)[:size]
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dim)
    return windows[(*[slice(None)] * (dim % x.ndim), slice(None, None, step))]


@kernel("constant_pad_nd.out", 3)
def constant_pad(x: Array, pads: list[int], value: float) -> Array:
    return padded(x, pads, mode="constant", constant_values=value)


def padded(x: Array, pads: list[int], **how: Any) -> Array:
    """x with its last dimensions padded, or cut where a pad is negative; the last dimension's pads come first."""
    cut, widths = [slice(None)] * x.ndim, [(0, 0)] * x.ndim
    for i in range(0, len(pads), 2):
        axis = x.ndim - 1 - i // 2
        before, after = pads[i], pads[i + 1]
        cut[axis] = slice(max(0, -before), x.shape[axis] - max(0, -after))
        widths[axis] = (max(0, before), max(0, after))
    return np.pad(x[tuple(cut)], widths, **how)


@kernel("reflection_pad1d.out", 2)
@kernel("reflection_pad2d.out", 2)
@kernel("reflection_pad3d.out", 2)
def reflection_pad(x: Array, pads: list[int]) -> Array:
    return padded(x, pads, mode="reflect")


@kernel("replication_pad1d.out", 2)
@kernel("replication_pad2d.out", 2)
@kernel("replication_pad3d.out", 2)
def replication_pad(x: Array, pads: list[int]) -> Array:
    return padded(x, pads, mode="edge")


@kernel("pixel_shuffle.out", 2)
def pixel_shuffle(x: Array, r: int) -> Array:
    *outer, channels, height, width = x.shape
    parts = x.reshape(-1, channels // (r * r), r, r, height, width)
    return parts.transpose(0, 1, 4, 2, 5, 3).reshape(*outer, channels // (r * r), height * r, width * r)


@kernel("pixel_unshuffle.out", 2)
def pixel_unshuffle(x: Array, r: int) -> Array:
    *outer, channels, height, width = x.shape
    parts = x.reshape(-1, channels, height // r, r, width // r, r)
    return parts.transpose(0, 1, 3, 5, 2, 4).reshape(*outer, channels * r * r, height // r, width // r)


@kernel("full.out", 2)
def full(size: list[int], value: float) -> Array:
    return np.full(size, value)


@kernel("full_like.out", 3)
@kernel("fill.Scalar_out", 2)
@kernel("fill.Tensor_out", 2)
def full_like(x: Array, value: Any, *_: Any) -> Array:
    return np.full(x.shape, value)


@kernel("scalar_tensor.out", 1)
def scalar_tensor(value: float) -> Array:
    return np.asarray(value)


@kernel("zeros.out", 1)
@kernel("empty.out", 2)
@kernel("dim_order_ops::_empty_dim_order.out", 2)
def zeros(size: list[int], *_: Any) -> Array:
    """Memory that nobody has written is zero here."""
    return np.zeros(size)


@kernel("ones.out", 1)
def ones(size: list[int]) -> Array:
    return np.ones(size)


@kernel("rand.out", 1)
def rand(size: list[int]) -> Array:
    return np.random.default_rng().random(size, np.float32)


@kernel("randn.out", 1)
def randn(size: list[int]) -> Array:
    return np.random.default_rng().standard_normal(size, np.float32)


@kernel("arange.out", 1)
def arange(end: float) -> Array:
    return np.arange(end)


@kernel("arange.start_out", 3)
def arange_start(start: float, end: float, step: float) -> Array:
    return np.arange(start, end, step)


@kernel("copy.out", 3)
def copy(x: Array, source: Array, *_: Any) -> Array:
    return np.broadcast_to(source, x.shape)


@kernel("copy_", 3, 0, writes=(0,))
def copy_in_place(x: Array, source: Array, *_: Any) -> Array:
    return np.broadcast_to(source, x.shape)
