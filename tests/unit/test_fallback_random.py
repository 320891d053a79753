"""CPU kernels against PyTorch on random shapes, dtypes, layouts and arguments; seeded and bounded in time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from py_runtime.fallback.elementwise import BINARY, COMPARISONS, UNARY
from py_runtime.fallback.promote import result_dtype

from .kernel_calls import compare, to_torch

DTYPES = ("float32", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
bounded = settings(max_examples=60, derandomize=True, deadline=None, database=None)


def draw_array(draw: Any, shape: tuple[int, ...], dtypes: tuple[str, ...] = DTYPES) -> np.ndarray:
    """Numbers of a dtype, now and then not contiguous, of floats sometimes NaN and infinite."""
    dtype = draw(st.sampled_from(dtypes))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    values = rng.uniform(-6, 6, shape) if np.dtype(dtype).kind == "f" else rng.integers(-6, 6, shape)
    array = np.asarray(values)
    if dtype == "uint8":
        array = np.abs(array)
    array = array.astype(dtype)
    if array.dtype.kind == "f" and array.size and draw(st.booleans()):
        array = array.copy()
        array.reshape(-1)[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf])
    if array.ndim > 1 and draw(st.booleans()):
        array = array.swapaxes(0, 1).copy().swapaxes(0, 1)
    return array


def draw_shape(draw: Any, low: int = 0, high: int = 4, smallest: int = 0) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(smallest, 5), min_size=low, max_size=high)))


def draw_part(draw: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to this one."""
    cut = shape[draw(st.integers(0, len(shape))) :]
    return tuple(1 if draw(st.booleans()) else n for n in cut)


def takes(name: str, *args: Any) -> bool:
    """Whether PyTorch's operator takes these dtypes."""
    try:
        from .kernel_calls import golden

        golden(name, *args)
    except (RuntimeError, NotImplementedError, IndexError):
        return False
    return True


@pytest.mark.parametrize("name", sorted(UNARY))
@given(st.data())
@settings(bounded, max_examples=15)
def test_unary(name: str, data: Any) -> None:
    x = draw_array(data.draw, draw_shape(data.draw))
    assume(takes(name, x))
    compare(name, x)


@pytest.mark.parametrize("name", sorted(BINARY))
@given(st.data())
@settings(bounded, max_examples=25)
def test_binary(name: str, data: Any) -> None:
    draw = data.draw
    shape = draw_shape(draw)
    x, y = draw_array(draw, shape), draw_array(draw, draw_part(draw, shape))
    if "Scalar" in name:
        y = draw(st.sampled_from([2, -3, 1.5, True]))
        if x.dtype == np.uint8 and y == -3:
            y = 3  # wraps in one library, is refused by the other
        if name == "pow.Scalar_out":
            x, y = y, x
    if name.startswith(("remainder", "fmod", "floor_divide", "div")) and isinstance(y, np.ndarray):
        assume(np.all(y != 0))
    if name.startswith("pow") and isinstance(y, np.ndarray | int) and np.asarray(y).dtype.kind in "iu":
        y = abs(y) if isinstance(x, np.ndarray) and x.dtype.kind in "iu" else y
    if name.partition(".")[0] in COMPARISONS and "Scalar" in name and isinstance(x, np.ndarray):
        assume(x.dtype.kind == "f" or not isinstance(y, float))  # where ATen and its kernels differ
    assume(takes(name, x, y))
    compare(name, x, y)


@given(st.data())
@bounded
def test_promotion(data: Any) -> None:
    """Tensors with and without dimensions and plain numbers."""
    draw = data.draw
    x = draw_array(draw, draw(st.sampled_from([(), (2,)])))
    y: Any = draw_array(draw, draw(st.sampled_from([(), (2,)])))
    if draw(st.booleans()):
        y = draw(st.sampled_from([1, 1.5, True]))
    want = torch.result_type(to_torch(x), to_torch(y))
    assert result_dtype(x, y).name == str(want).removeprefix("torch.")


REDUCTIONS = ("sum.IntList_out", "mean.out", "amax.out", "amin.out", "any.dims_out", "var.correction_out")


@pytest.mark.parametrize("name", REDUCTIONS)
@given(st.data())
@settings(bounded, max_examples=30)
def test_reduction(name: str, data: Any) -> None:
    draw = data.draw
    shape = draw_shape(draw, smallest=1)
    x = draw_array(draw, shape, ("float32", "float16") if name[:3] in ("mea", "var") else DTYPES)
    dims = draw(st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True)) if shape else []
    keep = draw(st.booleans())
    extra = {"sum.IntList_out": (keep, None), "mean.out": (keep, None), "var.correction_out": (1.0, keep)}
    args = (x, dims or None if "var" in name else dims, *extra.get(name, (keep,)))
    assume(takes(name, *args))
    compare(name, *args)


@pytest.mark.parametrize("name", ["argmax.out", "argmin.out", "max.dim_max", "min.dim_min", "any.out"])
@given(st.data())
@settings(bounded, max_examples=20)
def test_along_one_dimension(name: str, data: Any) -> None:
    shape = draw_shape(data.draw, low=1, smallest=1)
    x = draw_array(data.draw, shape, ("float32", "int64"))
    if x.dtype.kind != "f":
        x = np.random.default_rng(x.size).permutation(x.size).reshape(shape)  # of equal ones either may win
    compare(name, x, data.draw(st.integers(-len(shape), len(shape) - 1)), data.draw(st.booleans()))


@given(st.data())
@bounded
def test_slices(data: Any) -> None:
    draw = data.draw
    shape = draw_shape(draw, low=1, smallest=1)
    x = draw_array(draw, shape)
    dim = draw(st.integers(-len(shape), len(shape) - 1))
    edge = st.one_of(st.none(), st.integers(-9, 9), st.just(9223372036854775807))
    compare("slice_copy.Tensor_out", x, dim, draw(edge), draw(edge), draw(st.integers(1, 3)))


@given(st.data())
@bounded
def test_indices(data: Any) -> None:
    """index.Tensor and index_put: absent, broadcast, negative; next to each other and apart."""
    draw = data.draw
    shape = draw_shape(draw, low=1, smallest=1)
    x = draw_array(draw, shape)
    rng = np.random.default_rng(x.size)
    form = draw(st.sampled_from([(2,), (3, 1), (1, 2), ()]))
    indices: list[Any] = [
        None if draw(st.booleans()) else rng.integers(-n, n, form) for n in shape[: draw(st.integers(1, len(shape)))]
    ]
    assume(any(i is not None for i in indices))
    compare("index.Tensor_out", x, indices)
    compare("index_put.out", x, indices, np.asarray(x.reshape(-1)[0]), False)


@given(st.data())
@bounded
def test_gather_and_scatter(data: Any) -> None:
    draw = data.draw
    shape = draw_shape(draw, low=1, smallest=1)
    x = draw_array(draw, shape, ("float32", "int64"))
    dim = draw(st.integers(0, len(shape) - 1))
    form = tuple(draw(st.integers(1, n)) for n in shape)
    index = np.random.default_rng(x.size).integers(0, shape[dim], form)
    compare("gather.out", x, dim, index, False)
    compare("scatter_add.out", x, dim, index, x, rtol=1e-3)


@given(st.data())
@bounded
def test_moves(data: Any) -> None:
    draw = data.draw
    shape = draw_shape(draw, low=1, smallest=1)
    x = draw_array(draw, shape)
    compare("permute_copy.out", x, draw(st.permutations(range(len(shape)))))
    compare("flip.out", x, draw(st.lists(st.integers(0, len(shape) - 1), unique=True)))
    compare("repeat.out", x, [draw(st.integers(0, 2)) for _ in range(len(shape) + draw(st.integers(0, 1)))])
    pads = [draw(st.integers(-1, 2)) for _ in range(2 * draw(st.integers(1, len(shape))))]
    assume(all(n + pads[2 * i] + pads[2 * i + 1] >= 0 for i, n in enumerate(shape[::-1][: len(pads) // 2])))
    assume(takes("constant_pad_nd.out", x, pads, 1))
    compare("constant_pad_nd.out", x, pads, 1)


@given(st.data())
@settings(bounded, max_examples=80)
def test_convolution(data: Any) -> None:
    """Any rank from 1 to 3, groups, dilation, transposed with output padding."""
    draw = data.draw
    rank, groups, transposed = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.booleans())
    each_in, each_out = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel, stride, dilation, padding, spatial = (
        [draw(st.integers(low, high)) for _ in range(rank)] for low, high in ((1, 3), (1, 3), (1, 2), (0, 2), (1, 7))
    )
    extra = [draw(st.integers(0, max(s, d) - 1)) if transposed else 0 for s, d in zip(stride, dilation, strict=True)]
    for n, k, s, d, p, e in zip(spatial, kernel, stride, dilation, padding, extra, strict=True):
        reach = d * (k - 1) + 1
        assume((n - 1) * s - 2 * p + reach + e > 0 if transposed else n + 2 * p >= reach)
    rng = np.random.default_rng(math.prod(spatial))

    def randn(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    x = randn(2, groups * each_in, *spatial)
    weight = randn(*((groups * each_in, each_out) if transposed else (groups * each_out, each_in)), *kernel)
    bias = randn(groups * each_out) if draw(st.booleans()) else None
    compare("convolution.out", x, weight, bias, stride, padding, dilation, transposed, extra, groups)


@given(st.data())
@settings(bounded, max_examples=40)
def test_pooling(data: Any) -> None:
    draw = data.draw
    kernel, stride = ([draw(st.integers(1, 3)) for _ in range(2)] for _ in range(2))
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    ceil = draw(st.booleans())
    x = draw_array(draw, (2, 3, draw(st.integers(3, 8)), draw(st.integers(3, 8))), ("float32",))
    compare("max_pool2d_with_indices.out", x, kernel, stride, padding, [1, 1], ceil)
    divisor = draw(st.sampled_from([None, 3]))
    compare("avg_pool2d.out", x, kernel, stride, padding, ceil, draw(st.booleans()), divisor)
