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

INTEGER_ONLY = ("bitwise",)
POSITIVE_ONLY = {"sqrt", "log", "log2", "log10", "log1p", "rsqrt", "acosh"}
UNIT_ONLY = {"asin", "acos", "atanh"}
LAST = 9223372036854775807


def randn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape, np.float32)


def integers(*shape: int, seed: int = 0, low: int = -9, high: int = 9) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(low, high, shape)


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
    if "shift" in name:
        y = np.abs(y)
    if name == "pow.Scalar_out":
        compare(name, 1.5, y)
    elif "Scalar" in name:
        compare(name, x, 3 if name.startswith(INTEGER_ONLY) else 1.5)
    else:
        compare(name, x, y)


ROWS = [
    ("add.out", randn(3, 4), randn(4), 2),
    ("add.Scalar_out", randn(3, 4), 1.5, 2),
    ("sub.out", randn(3, 4), randn(3, 1), 1),
    ("sub.Scalar_out", integers(3, 4), 2, 3),
    ("rsub.Scalar_out", randn(3, 4), 1.5, 2),
    ("div.out_mode", randn(3, 4), randn(3, 4, seed=1), "floor"),
    ("div.out_mode", integers(3, 4), integers(3, 4, seed=1, low=1), "trunc"),
    ("div.out_mode", integers(3, 4), integers(3, 4, seed=1, low=1), "floor"),
    ("div.out_mode", integers(3, 4), integers(3, 4, seed=1, low=1), None),
    ("div.Scalar_mode_out", randn(3, 4), 0.3, "trunc"),
    ("pow.Tensor_Tensor_out", integers(40), integers(40, seed=1, low=-3, high=4)),
    ("clamp.out", randn(3, 4), -0.5, None),
    ("clamp.out", integers(3, 4), None, 2),
    ("clamp.Tensor_out", randn(3, 4), randn(4), None),
    ("hardtanh.out", randn(3, 4), -0.5, 0.25),
    ("gelu.out", randn(3, 4), "none"),
    ("gelu.out", randn(3, 4), "tanh"),
    ("leaky_relu.out", randn(3, 4), 0.2),
    ("elu.out", randn(3, 4), 1.5, 2.0, 0.5),
    ("logit.out", np.abs(np.tanh(randn(3, 4))), 0.3),
    ("logit.out", np.abs(np.tanh(randn(3, 4))), None),
    ("glu.out", randn(3, 4), -1),
    ("where.self_out", randn(3, 4) > 0, randn(3, 4), randn(4)),
    ("masked_fill.Scalar_out", randn(3, 4), randn(3, 4, seed=1) > 0, -1.0),
    ("_to_copy.out", randn(3, 4), False, None),
    ("clone.out", randn(3, 4), None),
    ("alias_copy.out", randn(3, 4)),
    ("detach_copy.out", randn(3, 4)),
    ("lift_fresh_copy.out", randn(3, 4)),
    ("mm.out", randn(3, 4), randn(4, 5)),
    ("mm.out", integers(3, 4), integers(4, 5)),
    ("bmm.out", randn(2, 3, 4), randn(2, 4, 5)),
    ("addmm.out", randn(5), randn(3, 4), randn(4, 5), 0.5, 2.0),
    ("addmm.out", np.full(5, np.nan, np.float32), randn(3, 4), randn(4, 5), 0.0, 2.0),
    ("linear.out", randn(2, 3, 4), randn(5, 4), randn(5)),
    ("linear.out", randn(2, 3, 4), randn(5, 4), None),
    ("_softmax.out", randn(3, 4), 1, False),
    ("_softmax.out", randn(), 0, False),
    ("_log_softmax.out", randn(3, 4), 0, False),
    ("sum.IntList_out", randn(2, 3, 4), [0, 2], True, None),
    ("sum.IntList_out", randn(3, 4) > 0, None, False, None),
    ("mean.out", randn(2, 3, 4), [1], False, None),
    ("mean.dtype_out", randn(2, 3, 4), None),
    ("prod.out", integers(2, 3), None),
    ("prod.int_out", randn(2, 3, 4), 1, True, None),
    ("amax.out", randn(2, 3, 4), [0, 2], False),
    ("amin.out", randn(2, 3, 4), [-1], True),
    ("max.unary_out", randn(3, 4)),
    ("min.unary_out", integers(3, 4)),
    ("max.dim_max", randn(3, 4), 1, True),
    ("min.dim_min", randn(3, 4), 0, False),
    ("any.out", randn(3, 4) > 1, 1, False),
    ("any.dims_out", randn(3, 4) > 1, [0], True),
    ("any.all_out", randn(3, 4) > 9),
    ("argmax.out", randn(3, 4), 1, True),
    ("argmin.out", randn(3, 4), None, False),
    ("cumsum.out", randn(3, 4), 1, None),
    ("cumsum.out", integers(3, 4), 0, None),
    ("var.correction_out", randn(3, 4), [1], 1.0, False),
    ("var.out", randn(3, 4), [0, 1], False, True),
    ("var_mean.correction_out", randn(3, 4), [0], 0.5, True),
    ("topk.values", randn(3, 7), 3, 1, True, True),
    ("topk.values", randn(3, 7), 2, 0, False, True),
    ("sort.values", randn(3, 7), 1, False),
    ("sort.values", randn(3, 7), -2, True),
    ("sort.values", np.array([2, 1, 2, 1, 2]), 0, True),
    ("sort.values", np.array(3.0, np.float32), 0, False),
    ("sort.values_stable", np.array([[2, np.nan, 1, 2]], np.float32), True, 1, True),
    ("sort.values_stable", np.zeros((2, 0), np.float32), True, 1, False),
    ("_cdist_forward.out", randn(2, 3, 4), randn(2, 5, 4), 2.0, None),
    ("_cdist_forward.out", randn(3, 4), randn(5, 4), 1.0, None),
    ("_cdist_forward.out", randn(3, 4), randn(5, 4), math.inf, None),
    ("_cdist_forward.out", randn(3, 4), randn(5, 4), 0.0, None),
    ("_pdist_forward.out", randn(5, 4), 2.0),
    ("_pdist_forward.out", randn(5, 4), 3.0),
    ("native_layer_norm.out", randn(3, 4, 5), [4, 5], randn(4, 5), randn(4, 5), 1e-5),
    ("native_group_norm.out", randn(2, 6, 5), randn(6), randn(6), 2, 6, 5, 3, 1e-5),
    ("_native_batch_norm_legit_no_training.out", randn(2, 3, 4), randn(3), None, randn(3), randn(3) ** 2, 0.1, 1e-5),
    ("_native_batch_norm_legit.no_stats_out", randn(4, 3, 5), randn(3), randn(3), True, 0.1, 1e-5),
    ("max_pool2d_with_indices.out", randn(2, 3, 7, 8), [3, 2], [2, 1], [1, 1], [1, 2], True),
    ("max_pool2d_with_indices.out", randn(3, 6, 6), [2, 2], [], [0, 0], [1, 1], False),
    ("avg_pool2d.out", randn(2, 3, 7, 8), [3, 2], [2, 1], [1, 1], True, True, None),
    ("avg_pool2d.out", randn(2, 3, 7, 8), [3, 3], [2, 2], [1, 1], True, False, None),
    ("avg_pool2d.out", randn(3, 7, 8), [3], [], [0], False, True, 5),
    ("_adaptive_avg_pool2d.out", randn(2, 3, 7, 8), [3, 5]),
    ("permute_copy.out", randn(2, 3, 4), [2, 0, 1]),
    ("transpose_copy.int_out", randn(2, 3, 4), 0, -1),
    ("t_copy.out", randn(2, 3)),
    ("view_copy.out", randn(2, 6), [3, 4]),
    ("squeeze_copy.dim_out", randn(2, 1), 1),
    ("squeeze_copy.dims_out", randn(1, 2, 1), [0, 2]),
    ("unsqueeze_copy.out", randn(2, 3), 1),
    ("as_strided_copy.out", randn(4, 6), [3, 2], [6, 2], 1),
    ("diagonal_copy.out", randn(3, 4, 5), 1, 0, 2),
    ("slice_copy.Tensor_out", randn(4, 6), 1, 1, LAST, 2),
    ("slice_scatter.out", randn(4, 6), randn(4, 3), 1, 1, LAST, 2),
    ("select_copy.int_out", randn(4, 6), 1, -1),
    ("select_scatter.out", randn(4, 6), randn(4), 1, -1),
    ("narrow_copy.out", randn(4, 6), 1, 2, 3),
    ("cat.out", [randn(2, 3), randn(2, 1)], 1),
    ("cat.out", [randn(0), randn(2, 1)], 1),
    ("stack.out", [randn(2, 3), randn(2, 3)], 1),
    ("split_copy.Tensor_out", randn(7, 3), 3, 0),
    ("split_with_sizes_copy.out", randn(2, 7), [1, 4, 2], 1),
    ("unbind_copy.int_out", randn(3, 2), 1),
    ("unfold_copy.out", randn(3, 9), 1, 4, 2),
    ("repeat.out", randn(2, 3), [2, 1, 2]),
    ("repeat_interleave.Tensor_out", np.array([2, 0, 3]), None),
    ("flip.out", randn(2, 3), [0, 1]),
    ("roll.out", randn(4, 5), [1, -2], [0, 1]),
    ("roll.out", randn(4, 5), [3], []),
    ("tril.out", randn(4, 5), 1),
    ("constant_pad_nd.out", randn(3, 4), [1, -1, 0, 2], 0.5),
    ("reflection_pad1d.out", randn(2, 5), [2, 3]),
    ("reflection_pad2d.out", randn(2, 5, 6), [2, 3, 1, 4]),
    ("reflection_pad3d.out", randn(2, 3, 5, 6), [2, 3, 1, 4, 0, 2]),
    ("replication_pad1d.out", randn(2, 5), [2, 3]),
    ("replication_pad2d.out", randn(2, 5, 6), [2, 3, 1, 4]),
    ("replication_pad3d.out", randn(1, 2, 3, 5, 6), [2, 3, 1, 4, 0, 2]),
    ("embedding.out", randn(7, 3), np.array([[1, 6], [0, 2]]), -1, False, False),
    ("index_select.out", randn(4, 5), 1, np.array([3, 0])),
    ("gather.out", randn(4, 5), 1, np.array([[1, 2], [0, 4]]), False),
    ("scatter.src_out", randn(4, 5), 1, np.array([[1, 2], [0, 4]]), randn(3, 3)),
    ("scatter.value_out", randn(4, 5), 0, np.array([[1, 2], [0, 3]]), 7.5),
    ("scatter_add.out", randn(4, 5), 0, np.array([[1, 2], [1, 2]]), randn(3, 3)),
    ("index.Tensor_out", randn(4, 5, 6), [None, np.array([1, 3])]),
    ("index.Tensor_out", randn(4, 5, 6), [np.array([1, 3]), None, np.array([[1], [2]])]),
    ("index.Tensor_out", randn(4, 5), [randn(4, 5) > 0]),
    ("index_put.out", randn(4, 5), [np.array([1, 3])], randn(2, 5), False),
    ("index_put.out", randn(4, 5), [np.array([1, 1])], randn(2, 5), True),
    ("index_put_", randn(4, 5), [np.array([1, 3])], randn(2, 5), False),
    ("index_copy.out", randn(4, 5), 1, np.array([0, 3]), randn(4, 2)),
    ("masked_select.out", randn(4, 5), randn(5) > 0),
    ("masked_scatter.out", randn(4, 5), randn(4, 5, seed=1) > 0, randn(20)),
    ("nonzero.out", randn(4, 5) > 0.5),
    ("expand_copy.out", randn(3, 1), [2, -1, 4], False),
    ("pixel_shuffle.out", randn(2, 12, 3, 2), 2),
    ("pixel_unshuffle.out", randn(2, 3, 4, 6), 2),
    ("upsample_nearest2d.vec_out", randn(1, 2, 5, 5), [8, 8], None),
    ("upsample_nearest2d.vec_out", randn(1, 2, 5, 6), None, [1.7, 2.0]),
    ("upsample_bilinear2d.vec_out", randn(1, 2, 5, 6), [8, 3], False, None),
    ("upsample_bilinear2d.vec_out", randn(1, 2, 5, 6), [8, 9], True, None),
    ("upsample_bilinear2d.vec_out", randn(1, 2, 5, 6), None, False, [1.7, 2.0]),
    ("_upsample_bilinear2d_aa.out", randn(1, 2, 9, 6), [4, 8], False, None, None),
    ("_upsample_bilinear2d_aa.out", randn(1, 2, 9, 6), [4, 8], True, None, None),
    ("full.out", [2, 3], 1.5),
    ("full_like.out", randn(2, 3), 1.5, None),
    ("fill.Scalar_out", randn(2, 3), 1.5),
    ("fill.Tensor_out", randn(2, 3), randn()),
    ("scalar_tensor.out", 1.5),
    ("zeros.out", [2, 3]),
    ("ones.out", [2, 3]),
    ("arange.out", 5),
    ("arange.start_out", 1.0, 4.0, 0.5),
    ("copy.out", randn(2, 3), randn(3), False),
    ("copy_", randn(2, 3), randn(3), False),
    ("native_dropout.out", randn(2, 3), 0.5, False),
    ("view_as_real_copy.out", (randn(3) + 1j * randn(3, seed=1)).astype(np.complex64)),
    ("_fft_r2c.out", randn(3, 8), [1], 1, True),
    ("_fft_r2c.out", randn(3, 7), [0, 1], 0, False),
    ("_fft_c2r.out", np.fft.rfftn(randn(3, 8)).astype(np.complex64), [0, 1], 2, 8),
    ("convolution_backward.out", randn(2, 6, 4, 4), randn(2, 4, 8, 9), randn(6, 2, 3, 3), [6], [2, 2], [1, 0], [1, 1],
     False, [0, 0], 2, [True, True, True]),
    ("convolution_backward.out", randn(2, 6, 16), randn(2, 4, 8), randn(4, 3, 3), [6], [2], [1], [1],
     True, [1], 2, [True, True, True]),
]  # fmt: skip

ROWS += [
    ("grid_sampler_2d.out", randn(2, 3, 5, 6), randn(2, 4, 7, 2), interpolation, padding, align)
    for interpolation in (0, 1, 2)
    for padding in (0, 1, 2)
    for align in (False, True)
]

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
