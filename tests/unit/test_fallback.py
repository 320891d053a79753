"""CPU kernels against PyTorch's operators, called as a program calls them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from py_runtime.fallback import KERNELS
from py_runtime.fallback.elementwise import BINARY, UNARY

INTEGER_ONLY = ("bitwise",)
POSITIVE_ONLY = {"sqrt", "log", "log2", "log10", "log1p", "rsqrt", "acosh"}
UNIT_ONLY = {"asin", "acos", "atanh"}


def randn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape, np.float32)


def functional(operator: str, names: list[str]) -> Any:
    """The overload that takes the same arguments and gives new tensors."""
    packet = getattr(torch.ops.aten, operator)
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        if [a.name for a in schema.arguments] == names and not any(a.is_out for a in schema.arguments):
            if "Scalar" in overload or "Tensor" in overload:
                continue  # told apart by types: the packet picks
            return getattr(packet, overload)
    return packet


def compare(name: str, *args: Any) -> None:
    """Call a kernel and PyTorch's operator of the same out-variant, and compare all outputs."""
    operator, _, overload = name.partition(".")
    schema = getattr(getattr(torch.ops.aten, operator), overload)._schema
    positional = [a for a in schema.arguments if not a.is_out]
    assert KERNELS[f"aten::{name}"].inputs == len(positional), f"{name} takes {len(positional)} arguments"

    def convert(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value.copy())
        return [convert(v) for v in value] if isinstance(value, list) else value

    given_args = [convert(a) for a in args]
    kept = {a.name: v for a, v in zip(positional, given_args, strict=True) if a.kwarg_only}
    plain = [v for a, v in zip(positional, given_args, strict=True) if not a.kwarg_only]
    want = functional(operator, [a.name for a in positional])(*plain, **kept)
    got = KERNELS[f"aten::{name}"].function(*args)
    results = got if isinstance(got, tuple) else (got,)
    wanted = want if isinstance(want, list | tuple) else (want,)
    for result, golden in zip(results, wanted, strict=True):
        assert np.asarray(result).reshape(golden.shape).shape == tuple(golden.shape)
        np.testing.assert_allclose(
            np.asarray(result).reshape(golden.shape).astype(golden.numpy().dtype), golden.numpy(), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary(name: str) -> None:
    x = randn(3, 5)
    base = name.removesuffix(".out")
    if base in POSITIVE_ONLY:
        x = np.abs(x) + 1
    if base in UNIT_ONLY:
        x = np.tanh(x)
    if base.startswith(INTEGER_ONLY):
        x = (x * 9).astype(np.int32)
    compare(name, x)


@pytest.mark.parametrize("name", sorted(BINARY))
def test_binary(name: str) -> None:
    x, y = randn(3, 5), randn(5, seed=1)
    if name.startswith(("pow", "remainder", "fmod", "floor_divide", "div")):
        x, y = np.abs(x) + 0.1, np.abs(y) + 0.5
    if name.startswith(INTEGER_ONLY):
        x, y = (x * 9).astype(np.int32), (y * 9).astype(np.int32)
    if name == "pow.Scalar_out":
        compare(name, 1.5, y)
    elif "Scalar" in name:
        compare(name, x, 3 if name.startswith(INTEGER_ONLY) else 1.5)
    else:
        compare(name, x, y)


LAYERS = [
    ("add.out", randn(3, 4), randn(4), 2),
    ("sub.out", randn(3, 4), randn(3, 1), 1),
    ("rsub.Scalar_out", randn(3, 4), 1.5, 2),
    ("div.out_mode", randn(3, 4), randn(3, 4, seed=1), "floor"),
    ("clamp.out", randn(3, 4), -0.5, None),
    ("hardtanh.out", randn(3, 4), -0.5, 0.25),
    ("gelu.out", randn(3, 4), "none"),
    ("gelu.out", randn(3, 4), "tanh"),
    ("leaky_relu.out", randn(3, 4), 0.2),
    ("elu.out", randn(3, 4), 1.0, 1.0, 1.0),
    ("where.self_out", randn(3, 4) > 0, randn(3, 4), randn(4)),
    ("masked_fill.Scalar_out", randn(3, 4), randn(3, 4, seed=1) > 0, -1.0),
    ("mm.out", randn(3, 4), randn(4, 5)),
    ("bmm.out", randn(2, 3, 4), randn(2, 4, 5)),
    ("addmm.out", randn(5), randn(3, 4), randn(4, 5), 0.5, 2.0),
    ("_softmax.out", randn(3, 4), 1, False),
    ("_log_softmax.out", randn(3, 4), 0, False),
    ("sum.IntList_out", randn(2, 3, 4), [0, 2], True, None),
    ("mean.out", randn(2, 3, 4), [1], False, None),
    ("amax.out", randn(2, 3, 4), [0, 2], False),
    ("amin.out", randn(2, 3, 4), [-1], True),
    ("any.out", randn(3, 4) > 1, 1, False),
    ("argmax.out", randn(3, 4), 1, True),
    ("argmin.out", randn(3, 4), None, False),
    ("cumsum.out", randn(3, 4), 1, None),
    ("var.correction_out", randn(3, 4), [1], 1.0, False),
    ("native_layer_norm.out", randn(3, 4, 5), [4, 5], randn(4, 5), randn(4, 5), 1e-5),
    ("native_group_norm.out", randn(2, 6, 5), randn(6), randn(6), 2, 6, 5, 3, 1e-5),
    ("max_pool2d_with_indices.out", randn(2, 3, 7, 8), [3, 2], [2, 1], [1, 1], [1, 2], True),
    ("permute_copy.out", randn(2, 3, 4), [2, 0, 1]),
    ("slice_copy.Tensor_out", randn(4, 6), 1, 1, 9223372036854775807, 2),
    ("select_copy.int_out", randn(4, 6), 1, -1),
    ("cat.out", [randn(2, 3), randn(2, 1)], 1),
    ("stack.out", [randn(2, 3), randn(2, 3)], 1),
    ("repeat.out", randn(2, 3), [2, 1, 2]),
    ("flip.out", randn(2, 3), [0, 1]),
    ("roll.out", randn(4, 5), [1, -2], [0, 1]),
    ("tril.out", randn(4, 5), 1),
    ("constant_pad_nd.out", randn(3, 4), [1, -1, 0, 2], 0.5),
    ("embedding.out", randn(7, 3), np.array([[1, 6], [0, 2]]), -1, False, False),
    ("index_select.out", randn(4, 5), 1, np.array([3, 0])),
    ("gather.out", randn(4, 5), 1, np.array([[1, 2], [0, 4]]), False),
    ("index_put.out", randn(4, 5), [np.array([1, 3])], randn(2, 5), False),
    ("index_put.out", randn(4, 5), [np.array([1, 1])], randn(2, 5), True),
    ("index_copy.out", randn(4, 5), 1, np.array([0, 3]), randn(4, 2)),
    ("expand_copy.out", randn(3, 1), [2, -1, 4], False),
    ("pixel_shuffle.out", randn(2, 12, 3, 2), 2),
    ("upsample_nearest2d.vec_out", randn(1, 2, 5, 5), [8, 8], None),
]


@pytest.mark.parametrize(
    ("name", "args"), [(row[0], row[1:]) for row in LAYERS], ids=lambda v: v if isinstance(v, str) else ""
)
def test_kernel(name: str, args: tuple[Any, ...]) -> None:
    compare(name, *args)


@given(st.data())
@settings(max_examples=80, derandomize=True, deadline=None, database=None)
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
    x = randn(2, groups * each_in, *spatial)
    weight = randn(*((groups * each_in, each_out) if transposed else (groups * each_out, each_in)), *kernel, seed=1)
    bias = randn(groups * each_out) if draw(st.booleans()) else None
    compare("convolution.out", x, weight, bias, stride, padding, dilation, transposed, extra, groups)
