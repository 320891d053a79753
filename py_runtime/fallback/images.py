"""Kernels over the last two dimensions of pictures: pooling and resampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .convolution import each
from .registry import Array, kernel


@dataclass(frozen=True)
class Windows:
    """Where a pooling's windows lie in a picture; lists are for height and width."""

    size: tuple[int, int]
    kernel: list[int]
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    counts: tuple[int, ...]

    def taps(self) -> Iterator[tuple[Array, Array, Array]]:
        """For each place of the kernel: the rows and columns that the windows see, and whether they are inside."""
        for tap in np.ndindex(*self.kernel):
            rows, columns = (
                np.arange(n) * s - p + t * d
                for n, s, p, t, d in zip(self.counts, self.stride, self.padding, tap, self.dilation, strict=True)
            )
            height, width = self.size
            inside = ((rows >= 0) & (rows < height))[:, None] & ((columns >= 0) & (columns < width))[None]
            yield np.clip(rows, 0, height - 1)[:, None], np.clip(columns, 0, width - 1)[None], inside


def windows_of(x: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> Windows:
    """The windows of a pooling: with ceil, also a last one that starts inside the picture or its left padding."""
    size, step = each(kernel_size, 2), each(stride or kernel_size, 2)
    pad, gap = each(padding, 2), each(dilation, 2)
    counts = []
    for n, k, s, p, d in zip(x.shape[-2:], size, step, pad, gap, strict=True):
        span = n + 2 * p - d * (k - 1) - 1
        count = (-(-span // s) if ceil else span // s) + 1
        counts.append(count - (ceil and (count - 1) * s >= n + p))
    return Windows(x.shape[-2:], size, step, pad, gap, tuple(counts))


@kernel("max_pool2d_with_indices.out", 6, 2)
def max_pool2d(
    x: Array, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int], ceil: bool
) -> tuple[Array, ...]:
    windows = windows_of(x, kernel_size, stride, padding, dilation, ceil)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    best = np.full((*x.shape[:-2], *windows.counts), lowest, x.dtype)
    at = np.full(best.shape, -1, np.int64)
    for rows, columns, inside in windows.taps():
        values = x[..., rows, columns]
        better = inside & ((values > best) | (np.isnan(values) & ~np.isnan(best)) | (at < 0))
        best = np.where(better, values, best)
        at = np.where(better, rows * x.shape[-1] + columns, at)
    return best, at


@kernel("max_pool2d_with_indices_backward.grad_input", 8)
def max_pool2d_backward(gradient: Array, x: Array, *rest: Any) -> Array:
    at = rest[-1].reshape(-1, *rest[-1].shape[-2:])
    planes = np.zeros((len(at), x.shape[-2] * x.shape[-1]), gradient.dtype)
    np.add.at(planes, (np.arange(len(at))[:, None, None], at), gradient.reshape(at.shape))
    return planes.reshape(x.shape)


@kernel("avg_pool2d.out", 7)
def avg_pool2d(
    x: Array,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    ceil: bool,
    include_padding: bool,
    divisor: int | None,
) -> Array:
    windows = windows_of(x, kernel_size, stride, padding, [1], ceil)
    total = np.zeros((*x.shape[:-2], *windows.counts))
    seen: Array = np.zeros(windows.counts)
    for rows, columns, inside in windows.taps():
        total += np.where(inside, x[..., rows, columns], 0)
        seen += inside
    if divisor:
        return total / divisor
    if include_padding:  # of a window that reaches behind the padding, only what is in it
        ends = (
            np.minimum(np.arange(n) * s - p + k, size + p) - (np.arange(n) * s - p)
            for n, s, p, k, size in zip(
                windows.counts, windows.stride, windows.padding, windows.kernel, windows.size, strict=True
            )
        )
        down, across = ends
        seen = down[:, None] * across[None]
    return total / seen


@kernel("_adaptive_avg_pool2d.out", 2)
def adaptive_avg_pool2d(x: Array, size: list[int]) -> Array:
    bounds = [[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(x.shape[-2:], size, strict=True)]
    out = np.zeros((*x.shape[:-2], *size))
    for (i, (top, bottom)), (j, (left, right)) in (
        (row, column) for row in enumerate(bounds[0]) for column in enumerate(bounds[1])
    ):
        out[..., i, j] = x[..., top:bottom, left:right].mean((-2, -1), np.float64)
    return out


NO_FACTORS: list[float | None] = [None, None]


def target_size(x: Array, size: list[int] | None, factors: list[float] | None) -> list[int]:
    return size or [int(n * f) for n, f in zip(x.shape[-2:], factors or [], strict=True)]


def scale_of(n: int, m: int, factor: float | None, align: bool) -> float:
    """Input pixels from one output pixel to the next (ATen's area_pixel_compute_scale)."""
    if align:
        return (n - 1) / (m - 1) if m > 1 else 0.0
    return 1 / factor if factor else n / m


@kernel("upsample_nearest2d.vec_out", 3)
def upsample_nearest(x: Array, size: list[int] | None, factors: list[float] | None) -> Array:
    shape = target_size(x, size, factors)
    rows, columns = (
        np.minimum((np.arange(m, dtype=np.float32) * np.float32(scale_of(n, m, f, False))).astype(np.intp), n - 1)
        for m, n, f in zip(shape, x.shape[-2:], factors or NO_FACTORS, strict=True)
    )
    return x[..., rows[:, None], columns[None]]


@kernel("upsample_bilinear2d.vec_out", 4)
def upsample_bilinear(x: Array, size: list[int] | None, align: bool, factors: list[float] | None) -> Array:
    out = x
    for axis, m, f in zip((-2, -1), target_size(x, size, factors), factors or NO_FACTORS, strict=True):
        n = x.shape[axis]
        scale = scale_of(n, m, f, align)
        at = np.arange(m) * scale if align else np.maximum((np.arange(m) + 0.5) * scale - 0.5, 0)
        low = np.minimum(at.astype(np.intp), n - 1)
        weight = (at - low).reshape(-1, *[1] * (-1 - axis))
        out = out.take(low, axis) * (1 - weight) + out.take(np.minimum(low + 1, n - 1), axis) * weight
    return out


@kernel("_upsample_bilinear2d_aa.out", 5)
def upsample_antialiased(
    x: Array, size: list[int], align: bool, factor_h: float | None, factor_w: float | None
) -> Array:
    """A triangle as wide as the step between output pixels, cut at the picture's edge and normalized."""
    out = x
    for axis, m, f in zip((-2, -1), size, (factor_h, factor_w), strict=True):
        n = x.shape[axis]
        scale = scale_of(n, m, f, align)
        support = max(scale, 1.0)
        parts = []
        for i in range(m):
            center = scale * (i + 0.5)
            first = max(int(center - support + 0.5), 0)
            taps = np.arange(first, min(int(center + support + 0.5), n))
            weights = np.maximum(1 - np.abs((taps - center + 0.5) / support), 0)
            weights = (weights / (weights.sum() or 1)).reshape(-1, *[1] * (-1 - axis))
            parts.append((out.take(taps, axis) * weights).sum(axis, keepdims=True))
        out = np.concatenate(parts, axis)
    return out


def _reflected(at: Array, n: int, align: bool) -> Array:
    """Coordinates folded back at the first and last pixel's centre, or at the picture's edges."""
    low, span = (0.0, n - 1) if align else (-0.5, n)
    if span <= 0:
        return np.zeros_like(at)
    offset = np.abs(at - low)
    turns, rest = np.floor(offset / span), np.fmod(offset, span)
    return np.clip(np.where(turns % 2 == 0, rest + low, span - rest + low), 0, n - 1)


#: grid_sampler's padding modes: what becomes of coordinates outside
PADDING: tuple[Callable[[Array, int, bool], Array], ...] = (
    lambda at, n, align: at,
    lambda at, n, align: np.clip(at, 0, n - 1),
    _reflected,
)


def _cubic(t: Array) -> list[Array]:
    """Weights of the four taps around a place, t behind the second (a = -0.75)."""
    a = -0.75

    def near(d: Array) -> Array:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Array) -> Array:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


@kernel("grid_sampler_2d.out", 5)
def grid_sampler(x: Array, grid: Array, interpolation: int, padding: int, align: bool) -> Array:
    """x [N, C, H, W] at grid [N, h, w, 2] of (x, y) in -1 to 1. interpolation: bilinear, nearest, bicubic."""
    batch = np.arange(len(x))[:, None, None]
    sizes = (x.shape[3], x.shape[2])

    def pixels(at: Array, n: int) -> Array:
        return (at + 1) / 2 * (n - 1) if align else ((at + 1) * n - 1) / 2

    def inside(at: Array, n: int) -> Array:
        return PADDING[padding](at, n, align)

    def picked(column: Array, row: Array) -> Array:
        """The pixels at whole coordinates, 0 outside: [N, C, h, w]."""
        valid = (column >= 0) & (column < sizes[0]) & (row >= 0) & (row < sizes[1])
        at = [np.clip(np.nan_to_num(c), 0, n - 1).astype(np.intp) for c, n in ((row, sizes[1]), (column, sizes[0]))]
        return np.where(valid[..., None], x.transpose(0, 2, 3, 1)[batch, at[0], at[1]], 0).transpose(0, 3, 1, 2)

    columns, rows = (pixels(grid[..., i].astype(np.float64), n) for i, n in enumerate(sizes))
    if interpolation != 2:
        columns, rows = inside(columns, sizes[0]), inside(rows, sizes[1])
    if interpolation == 1:
        return picked(np.rint(columns), np.rint(rows))
    left, top = np.floor(columns), np.floor(rows)
    across, down = columns - left, rows - top
    if interpolation == 0:
        weights = [[1 - across, across], [1 - down, down]]
        first = 0
    else:
        weights = [_cubic(across), _cubic(down)]
        first = -1
    total = np.zeros((len(x), x.shape[1], *grid.shape[1:3]))
    for j, by_row in enumerate(weights[1]):
        for i, by_column in enumerate(weights[0]):
            column, row = left + first + i, top + first + j
            if interpolation == 2:
                column, row = inside(column, sizes[0]), inside(row, sizes[1])
            total += picked(column, row) * (by_row * by_column)[:, None]
    return total
