"""Kernels of layers: products, norms, distances, Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from .registry import Array, Function, kernel


@kernel("mm.out", 2)
@kernel("bmm.out", 2)
def matmul(a: Array, b: Array) -> Array:
    return np.matmul(a, b)


@kernel("addmm.out", 5)
def addmm(bias: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    product = np.matmul(a, b)
    return np.asarray(alpha * product + beta * bias if beta else alpha * product)


@kernel("linear.out", 3)
def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    product = np.matmul(x, weight.T)
    return product if bias is None else product + bias


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


@kernel("native_dropout.out", 3, 2)
def dropout(x: Array, *_: Any) -> tuple[Array, ...]:
    """At inference: nothing is dropped."""
    return x, np.ones(x.shape, bool)


def statistics(x: Array) -> tuple[Array, Array]:
    """Mean and biased variance of each channel (dimension 1)."""
    dims = (0, *range(2, x.ndim))
    return x.mean(dims, np.float64), x.var(dims, np.float64)


@kernel("_native_batch_norm_legit.no_stats_out", 6, 3)
def batch_norm_of_batch(
    x: Array, weight: Array | None, bias: Array | None, training: bool, momentum: float, eps: float
) -> tuple[Array, ...]:
    mean, variance = statistics(x)
    out, *_ = batch_norm(x, weight, bias, mean, variance, momentum, eps)
    return out, mean, 1 / np.sqrt(variance + eps)


@kernel("_native_batch_norm_legit.out", 8, 3, writes=(3, 4))
def batch_norm_running(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_variance: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, ...]:
    if not training:
        kept = running_mean, running_variance
        return *batch_norm(x, weight, bias, *kept, momentum, eps), *kept
    mean, variance = statistics(x)
    count = x.size // x.shape[1]
    unbiased = variance * count / max(count - 1, 1)
    return (
        *batch_norm_of_batch(x, weight, bias, training, momentum, eps),
        running_mean + momentum * (mean - running_mean),
        running_variance + momentum * (unbiased - running_variance),
    )


def distance(difference: Array, p: float) -> Array:
    """The p-norm over the last dimension."""
    return np.linalg.norm(difference, p, -1) if difference.shape[-1] else np.zeros(difference.shape[:-1])


@kernel("_cdist_forward.out", 4)
def cdist(x: Array, y: Array, p: float, *_: Any) -> Array:
    return distance(x[..., :, None, :] - y[..., None, :, :], p)


@kernel("_pdist_forward.out", 2)
def pdist(x: Array, p: float) -> Array:
    first, second = np.triu_indices(len(x), 1)
    return distance(x[first] - x[second], p)


#: PyTorch's fft_norm_mode: what a transform of n points is multiplied by
FFT_SCALE: dict[int, Function] = {0: lambda n: 1.0, 1: lambda n: n**-0.5, 2: lambda n: 1.0 / n}


@kernel("_fft_r2c.out", 4)
def fft_r2c(x: Array, dims: list[int], normalization: int, onesided: bool) -> Array:
    count = int(np.prod([x.shape[d] for d in dims]))
    found = np.fft.rfftn(x, axes=dims) if onesided else np.fft.fftn(x, axes=dims)
    return found * FFT_SCALE[normalization](count)


@kernel("_fft_c2r.out", 4)
def fft_c2r(x: Array, dims: list[int], normalization: int, last: int) -> Array:
    """The inverse, without NumPy's division by the count."""
    sizes = [*(x.shape[d] for d in dims[:-1]), last]
    count = int(np.prod(sizes))
    return np.fft.irfftn(x, sizes, axes=dims) * count * FFT_SCALE[normalization](count)
