"""Kernels of layers: products, convolution, norms, pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from .registry import Array, kernel


@kernel("mm.out", 2)
@kernel("bmm.out", 2)
def matmul(a: Array, b: Array) -> Array:
    return np.matmul(a, b)


@kernel("addmm.out", 5)
def addmm(bias: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    return np.asarray(beta * bias + alpha * np.matmul(a, b))


@kernel("linear.out", 3)
def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    product = np.matmul(x, weight.T)
    return product if bias is None else product + bias


def each(values: list[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


@kernel("convolution.out", 9)
def convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
) -> Array:
    """Any rank, groups, dilation; a sum over the kernel's taps of matrix products.

    x [N, C, *spatial], weight [O, C/groups, *kernel] (transposed: [C, O/groups, *kernel]).
    """
    rank = weight.ndim - 2
    stride, padding, dilation = (each(v, rank) for v in (stride, padding, dilation))
    extra = each(output_padding or [0], rank)
    kernel_size = weight.shape[2:]
    spatial = x.shape[2:]
    if transposed:
        size = [
            (n - 1) * s - 2 * p + d * (k - 1) + e + 1
            for n, s, p, d, k, e in zip(spatial, stride, padding, dilation, kernel_size, extra, strict=True)
        ]
        channels = weight.shape[1] * groups
    else:
        size = [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, s, p, d, k in zip(spatial, stride, padding, dilation, kernel_size, strict=True)
        ]
        channels = weight.shape[0]
    batch, in_channels = x.shape[:2]
    whole = [n + 2 * p for n, p in zip(size if transposed else spatial, padding, strict=True)]
    padded = np.zeros((batch, channels if transposed else in_channels, *whole), x.dtype)
    inner = (
        slice(None),
        slice(None),
        *(slice(p, p + n) for p, n in zip(padding, size if transposed else spatial, strict=True)),
    )
    if not transposed:
        padded[inner] = x
    grouped = (batch, groups, in_channels // groups, -1)
    out = np.zeros((batch, groups, channels // groups, int(np.prod(size))), x.dtype)
    steps = spatial if transposed else size
    for tap in np.ndindex(*kernel_size):
        cut = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilation, steps, stride, strict=True)
        )
        taps = weight[(slice(None), slice(None), *tap)]
        if transposed:
            by_group = taps.reshape(groups, in_channels // groups, -1).transpose(0, 2, 1)
            part = np.matmul(by_group, x.reshape(grouped))
            padded[(slice(None), slice(None), *cut)] += part.reshape(batch, channels, *spatial)
        else:
            by_group = taps.reshape(groups, channels // groups, -1)
            out += np.matmul(by_group, padded[(slice(None), slice(None), *cut)].reshape(grouped))
    result = padded[inner] if transposed else out.reshape(batch, channels, *size)
    if bias is not None:
        result = result + bias.reshape(-1, *[1] * rank)
    return np.asarray(result)


@kernel("native_layer_norm.out", 5, 3)
def layer_norm(x: Array, size: list[int], weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, ...]:
    axis = tuple(range(x.ndim - len(size), x.ndim))
    mean = x.mean(axis, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axis, keepdims=True) + eps)
    out = (x - mean) * rstd
    return (affine(out, weight, bias, None), mean, rstd)


@kernel("native_group_norm.out", 8, 3)
def group_norm(
    x: Array, weight: Array | None, bias: Array | None, n: int, c: int, inner: int, groups: int, eps: float
) -> tuple[Array, ...]:
    rows = x.reshape(n, groups, -1)
    mean = rows.mean(2, keepdims=True)
    rstd = 1 / np.sqrt(rows.var(2, keepdims=True) + eps)
    out = ((rows - mean) * rstd).reshape(x.shape)
    return (affine(out, weight, bias, x.ndim), mean[..., 0], rstd[..., 0])


@kernel("_native_batch_norm_legit_no_training.out", 7, 3)
def batch_norm(
    x: Array, weight: Array | None, bias: Array | None, mean: Array, variance: Array, momentum: float, eps: float
) -> tuple[Array, ...]:
    shape = (1, -1, *[1] * (x.ndim - 2))
    out = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + eps)
    empty = np.zeros(0, x.dtype)
    return (affine(out, weight, bias, x.ndim), empty, empty)


def affine(x: Array, weight: Array | None, bias: Array | None, rank: int | None) -> Array:
    """x * weight + bias; with a rank, both lie along dimension 1."""

    def fitted(v: Array) -> Array:
        return v if rank is None else v.reshape(1, -1, *[1] * (rank - 2))

    out = x if weight is None else x * fitted(weight)
    return out if bias is None else out + fitted(bias)


@kernel("max_pool2d_with_indices.out", 6, 2)
def max_pool2d(
    x: Array, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int], ceil: bool
) -> tuple[Array, ...]:
    size, step = each(kernel_size, 2), each(stride or kernel_size, 2)
    pad, gap = each(padding, 2), each(dilation, 2)
    counts = []
    for n, k, s, p, d in zip(x.shape[-2:], size, step, pad, gap, strict=True):
        span = n + 2 * p - d * (k - 1) - 1
        count = (-(-span // s) if ceil else span // s) + 1
        counts.append(count - (ceil and (count - 1) * s >= n + p))
    best = np.full((*x.shape[:-2], *counts), -np.inf)
    at = np.zeros(best.shape, np.int64)
    height, width = x.shape[-2:]
    for ky, kx in np.ndindex(*size):
        y = np.arange(counts[0]) * step[0] - pad[0] + ky * gap[0]
        column = np.arange(counts[1]) * step[1] - pad[1] + kx * gap[1]
        inside = ((y >= 0) & (y < height))[:, None] & ((column >= 0) & (column < width))[None]
        values = x[..., np.clip(y, 0, height - 1)[:, None], np.clip(column, 0, width - 1)[None]]
        better = inside & ((values > best) | (np.isnan(values) & ~np.isnan(best)))
        best = np.where(better, values, best)
        at = np.where(better, y[:, None] * width + column[None], at)
    return best, at


@kernel("upsample_nearest2d.vec_out", 3)
def upsample_nearest(x: Array, size: list[int] | None, factors: list[float] | None) -> Array:
    shape = size or [int(n * f) for n, f in zip(x.shape[-2:], factors or [], strict=True)]
    scales = [1 / f for f in factors] if factors else [n / m for n, m in zip(x.shape[-2:], shape, strict=True)]
    rows, columns = (
        np.minimum((np.arange(m) * s).astype(np.intp), n - 1)
        for m, s, n in zip(shape, scales, x.shape[-2:], strict=True)
    )
    return x[..., rows[:, None], columns[None]]


@kernel("native_dropout.out", 3, 2)
def dropout(x: Array, *_: Any) -> tuple[Array, ...]:
    """At inference: nothing is dropped."""
    return x, np.ones(x.shape, bool)
