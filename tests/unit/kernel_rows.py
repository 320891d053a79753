"""Arguments for CPU kernels: one row a kernel and form, for PyTorch's operators to be asked the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

INTEGER_ONLY = ("bitwise",)
POSITIVE_ONLY = {"sqrt", "log", "log2", "log10", "log1p", "rsqrt", "acosh"}
UNIT_ONLY = {"asin", "acos", "atanh"}
LAST = 9223372036854775807


def randn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape, np.float32)


def integers(*shape: int, seed: int = 0, low: int = -9, high: int = 9) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(low, high, shape)


def unary_arguments(name: str) -> tuple[Any, ...]:
    x = randn(3, 5)
    base = name.removesuffix(".out")
    if base in POSITIVE_ONLY:
        x = np.abs(x) + 1
    if base in UNIT_ONLY:
        x = np.tanh(x)
    if base.startswith(INTEGER_ONLY):
        x = (x * 9).astype(np.int32)
    return (x,)


def binary_arguments(name: str) -> tuple[Any, ...]:
    x, y = randn(3, 5), randn(5, seed=1)
    if name.startswith(("pow", "remainder", "fmod", "floor_divide", "div")):
        x, y = np.abs(x) + 0.1, np.abs(y) + 0.5
    if name.startswith(INTEGER_ONLY):
        x, y = (x * 9).astype(np.int32), (y * 9).astype(np.int32)
    if "shift" in name:
        y = np.abs(y)
    if name == "pow.Scalar_out":
        return (1.5, y)
    if "Scalar" in name:
        return (x, 3 if name.startswith(INTEGER_ONLY) else 1.5)
    return (x, y)


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

#: Integers that 32 bits do not hold, or whose result they do not: NumPy's default integer has 32 in a browser.
LARGE = 2**40 + 3
MANY = np.array([2**31 - 1, 5, 2**30, 7], np.int32)
HUGE = np.array([LARGE, -LARGE, 2**62, 9], np.int64)
ROWS += [
    ("sum.IntList_out", MANY, None, False, None),
    ("sum.IntList_out", HUGE[:2] * 5, [0], False, None),
    ("prod.out", np.array([100_000, 100_000, 7], np.int32), None),
    ("prod.int_out", np.array([100_000, 100_000, 7], np.int32), 0, False, None),
    ("cumsum.out", MANY, 0, None),
    ("add.out", HUGE, MANY, 2),
    ("add.Scalar_out", HUGE[:2], LARGE, 1),
    ("mul.out", HUGE[:2], np.array([3, -5], np.int32)),
    ("mul.Scalar_out", MANY.astype(np.int64), LARGE),
    ("sub.out", MANY.astype(np.int64), HUGE[:1], 3),
    ("neg.out", HUGE),
    ("abs.out", HUGE),
    ("maximum.out", HUGE, MANY),
    ("clamp.out", HUGE, -LARGE, LARGE - 1),
    ("eq.Scalar_out", HUGE, LARGE),
    ("gt.Tensor_out", HUGE, MANY.astype(np.int64)),
    ("floor_divide.out", HUGE, MANY),
    ("remainder.Tensor_out", HUGE, MANY),
    ("remainder.Scalar_out", HUGE, LARGE - 1),
    ("fmod.Tensor_out", HUGE, MANY),
    ("pow.Tensor_Scalar_out", np.array([3, -3, 7], np.int64), 21),
    ("bitwise_left_shift.Tensor_Scalar_out", np.array([1, 5], np.int64), 40),
    ("bitwise_and.Scalar_out", HUGE, LARGE),
    ("full.out", [3], LARGE),
    ("full_like.out", HUGE, LARGE, None),
    ("fill.Scalar_out", HUGE, LARGE),
    ("scalar_tensor.out", LARGE),
    ("masked_fill.Scalar_out", HUGE, np.array([True, False, True, False]), LARGE),
    ("where.self_out", np.array([True, False, True, False]), HUGE, MANY.astype(np.int64)),
    ("arange.start_out", LARGE, LARGE + 5, 1),
    ("amax.out", HUGE, [0], False),
    ("argmax.out", HUGE, None, False),
    ("constant_pad_nd.out", HUGE, [1, 1], LARGE),
    ("_to_copy.out", HUGE, False, None),
]
