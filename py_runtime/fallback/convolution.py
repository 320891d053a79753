"""Convolution of any rank, and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from .registry import Array, kernel


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


def weight_gradient(
    small: Array, large: Array, kernel_size: tuple[int, ...], stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    """The gradient of a weight [S, L/groups, *kernel]: small times what each tap sees of large.

    small [N, S, *spatial] is the side with one position a window, large [N, L, *spatial] the other.
    """
    widths = [(0, 0), (0, 0), *((p, p) for p in padding)]
    padded = np.pad(large, widths)
    rows = small.reshape(len(small), groups, small.shape[1] // groups, -1)
    result = np.zeros((small.shape[1], large.shape[1] // groups, *kernel_size), small.dtype)
    for tap in np.ndindex(*kernel_size):
        cut = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, dilation, small.shape[2:], stride, strict=True)
        )
        seen = padded[(slice(None), slice(None), *cut)].reshape(len(large), groups, large.shape[1] // groups, -1)
        result[(slice(None), slice(None), *tap)] = np.einsum("ngsp,nglp->gsl", rows, seen).reshape(len(result), -1)
    return result


@kernel("convolution_backward.out", 11, 3)
def convolution_backward(
    gradient: Array,
    x: Array,
    weight: Array,
    _bias_sizes: list[int] | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    _output_padding: list[int],
    groups: int,
    mask: Any,
) -> tuple[Array | None, ...]:
    """The gradients of input, weight and bias; those that the mask leaves out are None."""
    rank = weight.ndim - 2
    stride, padding, dilation = (each(v, rank) for v in (stride, padding, dilation))
    of_input = of_weight = None
    if mask[0]:
        reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        extra = [
            n - ((g - 1) * s - 2 * p + r + 1)
            for n, g, s, p, r in zip(x.shape[2:], gradient.shape[2:], stride, padding, reach, strict=True)
        ]
        of_input = convolution(
            gradient, weight, None, stride, padding, dilation, not transposed, [0] if transposed else extra, groups
        )
    if mask[1]:
        pair = (x, gradient) if transposed else (gradient, x)
        of_weight = weight_gradient(*pair, weight.shape[2:], stride, padding, dilation, groups)
    return of_input, of_weight, gradient.sum((0, *range(2, gradient.ndim))) if mask[2] else None
