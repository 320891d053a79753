"""CPU kernels against PyTorch's operators: one row a kernel and form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from py_runtime.fallback import KERNELS, call_kernel
from py_runtime.fallback.elementwise import BINARY, UNARY
from py_runtime.fallback.numbers import BINARY as NUMBERS_BINARY
from py_runtime.fallback.numbers import UNARY as NUMBERS_UNARY

from .kernel_calls import compare
from .kernel_rows import ROWS, binary_arguments, randn, unary_arguments


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary(name: str) -> None:
    compare(name, *unary_arguments(name))


@pytest.mark.parametrize("name", sorted(BINARY))
def test_binary(name: str) -> None:
    compare(name, *binary_arguments(name))


#: names that have tests of their own below, or none that PyTorch can be asked for
APART = {
    "aten::_native_batch_norm_legit.out", "aten::convolution.out", "aten::max_pool2d_with_indices_backward.grad_input",
    "aten::rand.out", "aten::randn.out", "aten::empty.out", "dim_order_ops::_empty_dim_order.out",
    "aten::sym_size.int", "aten::sym_numel", "aten::_local_scalar_dense",
    "dim_order_ops::_to_dim_order_copy.out", "dim_order_ops::_clone_dim_order.out",
    "et_copy::_d2h_copy.out", "et_copy::_h2d_copy.out",
    "executorch_prim::et_view.default", "executorch_prim::et_copy_index.tensor", "executorch_prim::sym_ite.Scalar",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args"), [(row[0], row[1:]) for row in ROWS], ids=lambda v: v if isinstance(v, str) else ""
)
def test_kernel(name: str, args: tuple[Any, ...]) -> None:
    compare(name, *args)


def test_every_portable_kernel_is_there_and_tested() -> None:
    """The list is that of the installed package's portable kernels."""
    from executorch.extension.pybindings.portable_lib import _get_operator_names

    listed = set(_get_operator_names())
    assert len(listed) > 230
    missing = listed - KERNELS.keys()
    assert len(missing) <= 0.05 * len(listed), sorted(missing)
    tested = {f"aten::{row[0]}" for row in ROWS} | {f"aten::{name}" for name in (*UNARY, *BINARY)}
    assert KERNELS.keys() - tested - NUMBERS_UNARY.keys() - NUMBERS_BINARY.keys() == APART


def call(name: str, *args: Any) -> list[Any]:
    return call_kernel(KERNELS[name], args)


@pytest.mark.parametrize("name", sorted(NUMBERS_UNARY))
def test_number(name: str) -> None:
    function = {"neg": lambda v: -v, "sym_not": lambda v: not v, "sym_float": float, "sym_int": int}
    base = name.removeprefix("executorch_prim::").removesuffix(".Scalar")
    expected = function.get(base) or {"ceil": math.ceil, "round": round, "trunc": math.trunc}[base]
    for value in (-2.5, 0.0, 3.25):
        (got,) = call(name, value)
        assert got == expected(value) and type(got) is type(expected(value))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("add", 10), ("sub", 4), ("mul", 21), ("truediv", 7 / 3), ("floordiv", 2), ("mod", 1), ("eq", False),
     ("ge", True), ("gt", True), ("le", False), ("lt", False), ("sym_max", 7), ("sym_min", 3)],
)  # fmt: skip
def test_numbers(name: str, expected: Any) -> None:
    assert call(f"executorch_prim::{name}.Scalar", 7, 3) == [expected]


def test_sizes_and_scalars() -> None:
    assert call("aten::sym_size.int", (4, 5), -1) == [5]
    assert call("aten::sym_numel", (4, 5)) == [20]
    assert call("aten::_local_scalar_dense", np.array([7])) == [7]
    assert call("executorch_prim::sym_ite.Scalar", False, 1, 2) == [2]


def test_a_loop_collects_rows() -> None:
    collected = np.zeros((0, 2), np.float32)
    for at in range(3):
        (collected,) = call("executorch_prim::et_copy_index.tensor", collected, np.full(2, at, np.float32), at)
    assert collected.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_random_numbers_are_spread() -> None:
    (uniform,) = call("aten::rand.out", [1000])
    (normal,) = call("aten::randn.out", [1000])
    assert uniform.min() >= 0 and uniform.max() < 1 and 0.4 < uniform.mean() < 0.6
    assert 0.8 < normal.std() < 1.2


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_keeps_statistics(training: bool) -> None:
    import torch

    x, mean, variance = randn(4, 3, 5), randn(3), randn(3) ** 2
    results = call("aten::_native_batch_norm_legit.out", x, None, None, mean, variance, training, 0.1, 1e-5)
    kept = [torch.from_numpy(v.copy()) for v in (mean, variance)]
    want = torch.ops.aten._native_batch_norm_legit(torch.from_numpy(x), None, None, *kept, training, 0.1, 1e-5)
    for got, golden in zip((results[0], *results[3:]), (want[0], *kept), strict=True):
        np.testing.assert_allclose(got, golden.numpy(), rtol=1e-4, atol=1e-5)


def test_max_pool_backward() -> None:
    import torch

    x = randn(2, 3, 7, 8)
    form = ([3, 2], [2, 1], [1, 1], [1, 2], True)
    out, at = torch.ops.aten.max_pool2d_with_indices(torch.from_numpy(x), *form)
    gradient = randn(*out.shape)
    want = torch.ops.aten.max_pool2d_with_indices_backward(torch.from_numpy(gradient), torch.from_numpy(x), *form, at)
    (got,) = call("aten::max_pool2d_with_indices_backward.grad_input", gradient, x, *form, at.numpy())
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-5)
