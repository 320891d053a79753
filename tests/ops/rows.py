"""The rows: operators that the peer's suite leaves out, and the semantics that are easy to get wrong."""

from __future__ import annotations

import math

import numpy as np

from .cache_rows import ROWS as WRITING
from .cases import Case, booleans, case, half_of, integers, positive, randn, special
from .quantized_rows import ROWS as QUANTIZED
from .rank_rows import ROWS as RANKS
from .seldom_rows import ROWS as SELDOM

FLOAT_UNARY = ("sigmoid", "tanh", "exp", "sin", "cos", "hardswish", "relu", "neg", "abs", "round", "gelu", "hardshrink")
SCALAR_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def float_unary() -> list[Case]:
    rows = [case(f"aten.{name}.default", randn(3, 37)) for name in FLOAT_UNARY]
    rows += [
        case(f"aten.{name}.default", special(4, 5), name="special") for name in (*FLOAT_UNARY, "sqrt", "rsqrt", "log10")
    ]
    rows += [case(f"aten.{name}.default", positive(3, 37)) for name in ("sqrt", "rsqrt", "log10")]
    tanh = (("approximate", "tanh"),)
    rows.append(Case("tanh", "aten.gelu.default", (randn(5, 11), "tanh"), torch_args=1, torch_kwargs=tanh))
    return rows


def comparisons() -> list[Case]:
    rows = []
    for name in SCALAR_COMPARISONS:
        op = f"aten.{name}.Scalar"
        rows += [
            case(op, randn(3, 37), 0.25),
            case(op, integers(5, 7), 2),
            case(op, integers(5, 7), 2.0, name="integer with a double"),
            case(op, special(4, 5), 0.0, name="special"),
            case(op, randn(), 0.5),
        ]
    return rows


def selection() -> list[Case]:
    where, gather, index = "aten.where.self", "aten.gather.default", "aten.index.Tensor"
    return [
        case(where, booleans(3, 5), randn(3, 5), randn(3, 5, seed=1)),
        case(where, booleans(3, 1), randn(3, 5), randn(5)),
        case(where, booleans(2, 3, 4), randn(1), randn(2, 1, 4)),
        case(where, booleans(7), integers(7), integers(7, seed=1)),
        case(where, booleans(4, 5), special(4, 5), randn(4, 5), name="special"),
        case(gather, randn(5, 7), 1, integers(5, 3, low=0, high=7, dtype="int64")),
        case(gather, randn(5, 7), 0, integers(2, 7, low=0, high=5, dtype="int64")),
        case(gather, randn(2, 3, 4), -1, integers(2, 3, 9, low=0, high=4, dtype="int64")),
        case(gather, integers(6), 0, integers(11, low=0, high=6, dtype="int64")),
        case(gather, randn(2, 3, 4), 1, integers(1, 2, 3, low=0, high=3, dtype="int64")),
        case(index, randn(5, 7), [integers(4, low=0, high=5, dtype="int64")]),
        case(index, randn(5, 7), [None, integers(4, low=-7, high=7, dtype="int64")], name="second dimension, negative"),
        case(
            index,
            randn(5, 7, 3),
            [integers(2, 1, low=0, high=5, dtype="int64"), integers(4, low=0, high=7, dtype="int64")],
        ),
        case(
            index,
            randn(5, 7, 3),
            [integers(4, low=0, high=5, dtype="int64"), None, integers(4, low=0, high=3, dtype="int64")],
        ),
        case(
            index,
            randn(2, 5, 7),
            [None, integers(3, low=0, high=5, dtype="int64"), integers(3, low=0, high=7, dtype="int64")],
        ),
        case("aten.index_select.default", randn(3, 5, 2), 1, integers(4, low=0, high=5, dtype="int64")),
        case("aten.embedding.default", randn(11, 5), integers(2, 3, low=0, high=11, dtype="int64")),
    ]


def products() -> list[Case]:
    rows = [
        case("aten.mm.default", randn(m, k), randn(k, n, seed=1))
        for m, k, n in ((1, 1, 1), (3, 5, 7), (64, 16, 64), (65, 17, 66), (1, 300, 2))
    ]
    rows += [
        case("aten.bmm.default", randn(b, m, k), randn(b, k, n, seed=1))
        for b, m, k, n in ((1, 2, 3, 4), (3, 5, 7, 2), (2, 33, 17, 35), (5, 1, 64, 1), (2, 64, 32, 64))
    ]
    rows += [
        case("aten.linear.default", randn(2, 3, 5), randn(7, 5, seed=1), randn(7, seed=2)),
        case("aten.linear.default", randn(70, 33), randn(65, 33, seed=1), None),
        case("aten.linear.default", randn(5), randn(7, 5, seed=1), None),
        Case("alpha beta row", "aten.addmm.default", (randn(7), randn(3, 5), randn(5, 7), 0.5, 2.0), torch_args=3,
             torch_kwargs=(("beta", 0.5), ("alpha", 2.0))),
        Case("matrix bias", "aten.addmm.default", (randn(3, 7), randn(3, 5), randn(5, 7), 1.0, 1.0), torch_args=3),
        Case("column bias", "aten.addmm.default", (randn(3, 1), randn(3, 5), randn(5, 7), 2, 1), torch_args=3,
             torch_kwargs=(("beta", 2),)),
    ]  # fmt: skip
    return rows


def rows_and_reductions() -> list[Case]:
    large = randn(4, 129) + np.float32(10000)
    rows = []
    for op in ("aten._softmax.default", "aten._log_softmax.default"):
        rows += [
            case(op, randn(*shape), dim, False)
            for shape, dim in (((5,), 0), ((3, 37), 1), ((3, 37), 0), ((2, 3, 4, 5), 2), ((2, 1), -1))
        ]
        rows.append(case(op, randn(3, 9) * 100, 1, False, name="large"))
    for op in ("aten.sum.dim_IntList", "aten.mean.dim"):
        rows += [
            case(op, randn(*shape), dims, keep)
            for shape, dims, keep in (
                ((5,), [0], False),
                ((3, 37), [1], True),
                ((2, 3, 4), [0, 2], False),
                ((2, 3, 4), [-1, -2], True),
                ((2, 3, 4, 5), [0, 1, 2, 3], False),
            )
        ]
    rows += [case("aten.sum.dim_IntList", integers(4, 6), [1], False)]
    hundreds = randn(2, 1000) + np.float32(200)  # whose sum is past what f16 holds
    rows += [
        case("aten.mean.dim", hundreds, [1], False, name="sum past f16"),
        case("aten.avg_pool2d.default", hundreds.reshape(1, 2, 20, 50), [20, 50], name="sum past f16"),
        case("et_vk.rms_norm.default", hundreds, positive(1000), 1e-6, name="sum past f16"),
    ]
    for op in ("aten.amax.default", "aten.amin.default"):
        rows += [
            case(op, randn(2, 3, 4), [0, 2], False),
            case(op, special(4, 5), [1], True, name="special"),
            case(op, integers(4, 6), [0], False),
        ]
    for op in ("aten.argmax.default", "aten.argmin.default"):
        rows += [
            case(op, randn(3, 37), 1, False),
            case(op, randn(3, 4, 5), None, False),
            case(op, np.ones((3, 4), np.float32), 1, True, name="equals"),
        ]
    norm = "aten.native_layer_norm.default"
    rows += [
        case(norm, randn(4, 37), [37], randn(37, seed=1), randn(37, seed=2), 1e-5),
        case(norm, randn(2, 3, 5, 7), [5, 7], None, None, 1e-3),
        case(norm, large, [129], None, None, 1e-5, name="large mean, small variance", rtol=1e-3, atol=2e-3),
        case(norm, randn(1, 1), [1], randn(1), None, 1e-5),
        case("et_vk.rms_norm.default", randn(3, 130), randn(130, seed=1), 1e-6),
        case(
            "aten.native_group_norm.default", randn(2, 6, 5, 3), randn(6, seed=1), randn(6, seed=2), 2, 6, 15, 3, 1e-5
        ),
        case("aten.native_group_norm.default", randn(1, 4, 7), None, None, 1, 4, 7, 4, 1e-5),
    ]
    batch = "aten._native_batch_norm_legit_no_training.default"
    rows += [
        case(batch, randn(2, 3, 4, 5), randn(3, seed=1), randn(3, seed=2), randn(3, seed=3), positive(3), 0.1, 1e-5),
        case(batch, randn(2, 3, 4, 5), None, None, randn(3, seed=3), positive(3), 0.1, 1e-3),
        case(batch, randn(4, 3), randn(3, seed=1), None, randn(3, seed=3), positive(3), 0.1, 1e-5),
    ]
    return rows


def moves() -> list[Case]:
    x = randn(2, 3, 4, 5)
    huge = 2**63 - 1
    return [
        case("aten.permute_copy.default", randn(2, 3, 4, 5, 6), [4, 0, 3, 1, 2]),
        case("aten.permute_copy.default", randn(1, 2, 1, 3, 1, 2, 1, 2), [7, 6, 5, 4, 3, 2, 1, 0]),
        case("aten.slice_copy.Tensor", x, 1, 1, huge, 1),
        case("aten.slice_copy.Tensor", x, -1, -4, -1, 2),
        case("aten.slice_copy.Tensor", x, 2, None, None, 3),
        Case(
            "doubles",
            "aten.slice_copy.Tensor",
            (x, 3, 1.0, 4.0, 1),
            torch_args=2,
            torch_kwargs=(("start", 1), ("end", 4)),
        ),
        case("aten.select_copy.int", x, 1, -1),
        case("aten.select_copy.int", x, -1, 2),
        *(
            case("aten.split_with_sizes_copy.default", randn(4, 6, 8), sizes, dim)
            for sizes, dim in (([1, 3], 0), ([1, 2, 3], 1), ([5, 3], 2), ([8], -1))
        ),
        *(case("aten.cat.default", [randn(2, 3, 4), randn(2, 3, 4, seed=1)], dim) for dim in (0, 1, 2, -1)),
        case("aten.cat.default", [randn(1, n, seed=n) for n in range(1, 21)], 1, name="20 parts"),
        case("aten.cat.default", [randn(1, n, seed=n) for n in range(1, 21)], -1, name="20 parts again"),
        case("aten.expand_copy.default", randn(3, 1), [2, 3, 4]),
        case("aten.expand_copy.default", randn(1, 5), [-1, -1]),
        case("aten.repeat.default", randn(2, 3), [2, 1, 3]),
        case("aten.flip.default", randn(2, 3, 4), [0, -1]),
        case("aten.unsqueeze_copy.default", randn(2, 3), 1),
        case("aten.squeeze_copy.dims", randn(2, 1, 3, 1), [1, 3]),
        case("aten.view_copy.default", randn(2, 3, 4), [4, -1]),
        case("aten.t_copy.default", randn(3, 5)),
        case("aten.unfold_copy.default", randn(2, 9), 1, 4, 2),
        case("aten.unfold_copy.default", randn(5, 6, 2), 0, 3, 1),
        case("aten.pixel_shuffle.default", randn(2, 12, 3, 5), 2),
        case("aten.constant_pad_nd.default", randn(2, 3, 4), [1, 2], 0.5),
        case("aten.constant_pad_nd.default", randn(2, 3, 4), [-1, 2, 1, -1], 0),
        case("aten.constant_pad_nd.default", randn(2, 3, 4), [0, -2, 0, 0, 3, 0], -1.0),
        case("aten.constant_pad_nd.default", integers(3, 4), [1, 1, 2, 0], 7),
        case("aten.copy.default", randn(3, 4), randn(4, seed=1)),
    ]


def made() -> list[Case]:
    def full(op: str, *args: object, like: bool = False) -> Case:
        return case(op, *args)

    rows = [
        full("aten.full.default", shape, value)
        for shape, value in (([3, 4], 1.5), ([1], -2.0), ([2, 3, 1, 2], math.inf), ([5], -math.inf), ([2, 2], math.nan))
    ]
    for op in ("aten.zeros.default", "aten.ones.default"):
        rows += [full(op, shape) for shape in ([3, 4], [1], [2, 3, 1, 2], [67], [1, 1, 1])]
    for op in ("aten.zeros_like.default", "aten.ones_like.default"):
        rows += [case(op, x) for x in (randn(3, 4), randn(1), integers(5), randn(2, 1, 3), booleans(4))]
    rows += [
        case("aten.full_like.default", x, value)
        for x, value in (
            (randn(3, 4), 2.5),
            (integers(5), 7),
            (randn(1), math.inf),
            (randn(2, 2), -0.5),
            (booleans(3), True),
        )
    ]
    rows += [
        case("aten.arange.start_step", *args)
        for args in ((0, 10, 1), (3, 11, 2), (5, -5, -3), (0.5, 4.0, 0.25), (2, 3, 1))
    ]
    rows += [case("aten.scalar_tensor.default", value) for value in (1.5, 0.0, -3.25, math.inf, 1e-20)]
    return rows


def arithmetic() -> list[Case]:
    div = "aten.div.Tensor"
    return [
        case(div, randn(3, 5), positive(3, 5)),
        case(div, randn(3, 5), positive(5)),
        case(div, randn(2, 1, 4), positive(3, 1)),
        case(div, special(4, 5), special(4, 5)[::-1].copy(), name="special"),
        case(div, randn(), positive()),
        Case(
            "alpha, middle broadcast",
            "aten.sub.Tensor",
            (randn(2, 3, 4), randn(2, 1, 4), 0.5),
            torch_args=2,
            torch_kwargs=(("alpha", 0.5),),
        ),
        Case(
            "integer alpha",
            "aten.add.Tensor",
            (integers(3, 4), integers(4), 3),
            torch_args=2,
            torch_kwargs=(("alpha", 3),),
        ),
        case("aten.mul.Tensor", integers(3, 4), integers(3, 1)),
        case("aten.mul.Tensor", randn(1, 2, 1, 3, 1, 2, 1, 2), randn(2, 1, 3, 1, 2, 1, 2, 1), name="rank 8"),
        case("aten.minimum.default", special(4, 5), randn(4, 5), name="special"),
        case("aten.pow.Tensor_Tensor", randn(3, 5), integers(3, 5, low=-3, high=4).astype(np.float32)),
        case("aten.pow.Tensor_Scalar", positive(3, 5), 2.5),
        case("aten.pow.Tensor_Scalar", randn(3, 5), 3),
        Case(
            "floor",
            "aten.div.Tensor_mode",
            (integers(4, 6), integers(4, 6, low=1, high=5), "floor"),
            torch_args=2,
            torch_kwargs=(("rounding_mode", "floor"),),
        ),
        Case(
            "trunc",
            "aten.div.Tensor_mode",
            (integers(4, 6), integers(4, 6, low=1, high=5), "trunc"),
            torch_args=2,
            torch_kwargs=(("rounding_mode", "trunc"),),
        ),
        *(
            case("aten.logical_not.default", x)
            for x in (booleans(3, 5), randn(7), integers(4, low=-1, high=2), booleans(1), special(4, 5))
        ),
        case("aten.logical_and.default", randn(5), integers(5, low=0, high=2)),
        case("aten.bitwise_and.Tensor", integers(3, 4), integers(3, 4, seed=1)),
        case("aten.bitwise_not.default", integers(7)),
        case("aten.clamp.default", special(4, 5), -0.5, 0.5),
        case("aten.clamp.default", integers(5, 7), None, 3),
        case("aten.hardtanh.default", randn(3, 37), -0.25, 0.5),
        case("aten.leaky_relu.default", special(4, 5), 0.2),
    ]


def empty() -> list[Case]:
    """Tensors without elements, and without dimensions."""
    none = np.zeros((0, 3), np.float32)
    return [
        case("aten.add.Tensor", none, none),
        case("aten.relu.default", none),
        case("aten.cat.default", [none, randn(2, 3)], 0),
        case("aten.permute_copy.default", none, [1, 0]),
        case("aten.mm.default", none, randn(3, 4)),
        case("aten.mm.default", np.zeros((2, 0), np.float32), np.zeros((0, 4), np.float32), name="no depth"),
        case("aten.sum.dim_IntList", none, [0], False),
        case("aten.slice_copy.Tensor", randn(4, 3), 0, 2, 2, 1),
        case("aten.linear.default", none, randn(5, 3), randn(5)),
        case("aten._softmax.default", none, 1, False),
        case("aten.relu.default", randn()),
        case("aten.mul.Tensor", randn(), randn(2, 3)),
        case("aten.view_copy.default", randn(1, 1), []),
        case("aten.sum.dim_IntList", randn(), [], False),
    ]


def windows() -> list[Case]:
    pool, near, linear = (
        "aten.max_pool2d_with_indices.default",
        "aten.upsample_nearest2d.vec",
        "aten.upsample_bilinear2d.vec",
    )
    conv = "aten.convolution.default"
    return [
        case(pool, randn(1, 2, 7, 9), [3, 2], [2, 1], [1, 1], [1, 1], False),
        case(pool, randn(2, 3, 8, 8), [2, 2], [2, 2], [0, 0], [2, 2], False),
        case(pool, randn(1, 1, 7, 7), [3, 3], [2, 2], [1, 1], [1, 1], True),
        case(pool, special(1, 1, 4, 5), [2, 2], [1, 1], [0, 0], [1, 1], False, name="special"),
        case("aten.avg_pool2d.default", randn(1, 2, 7, 9), [3, 2], [2, 1], [1, 1], False, True),
        case("aten.avg_pool2d.default", randn(1, 2, 7, 7), [3, 3], [2, 2], [1, 1], True, False),
        case(near, randn(1, 2, 5, 5), [8, 8], None),
        case(near, randn(2, 1, 3, 4), None, [2.0, 2.5]),
        *(case(linear, randn(1, 2, 5, 4), [8, 9], align, None) for align in (False, True)),
        *(case(linear, randn(1, 2, 8, 8), None, align, [0.5, 1.7]) for align in (False, True)),
        case(conv, randn(1, 4, 6, 7), randn(6, 4, 3, 3), randn(6), [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
        case(conv, randn(2, 4, 9, 9), randn(8, 2, 3, 5), None, [2, 1], [2, 0], [1, 2], False, [0, 0], 2),
        case(conv, randn(1, 6, 8, 8), randn(6, 1, 3, 3), randn(6), [2, 2], [1, 1], [1, 1], False, [0, 0], 6),
        case(conv, randn(1, 4, 5, 6), randn(4, 3, 3, 3), randn(6), [2, 2], [1, 1], [1, 1], True, [1, 1], 2),
        case(conv, randn(1, 5, 17), randn(7, 5, 4), randn(7), [3], [2], [2], False, [0], 1),
        case(conv, randn(2, 3, 11), randn(3, 2, 3), None, [2], [1], [1], True, [1], 1),
        case("et_vk.sdpa.default", randn(1, 2, 5, 6), randn(1, 2, 7, 6), randn(1, 2, 7, 6, seed=2), None, None),
        case(
            "et_vk.sdpa.default",
            randn(2, 3, 32, 5),
            randn(2, 3, 32, 5, seed=1),
            randn(2, 3, 32, 5, seed=2),
            randn(2, 1, 32, 32),
            0.3,
        ),
        case(
            "et_vk.sdpa.default",
            randn(1, 1, 70, 33),
            randn(1, 1, 65, 33, seed=1),
            randn(1, 1, 65, 33, seed=2),
            randn(70, 65),
            None,
        ),
    ]


FAMILIES = (
    float_unary, empty, comparisons, selection, products, rows_and_reductions, moves, made, arithmetic, windows
)  # fmt: skip

ROWS: list[Case] = [*(row for family in FAMILIES for row in family()), *QUANTIZED, *WRITING, *SELDOM, *RANKS]
HALF_ROWS: list[Case] = [half for row in ROWS if (half := half_of(row)) is not None]
