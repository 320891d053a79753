"""Rows of operators that the exporter seldom leaves in a graph, in every form that their schemas allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .cases import Case, booleans, case, integers, positive, randn, special

PER = "quantized_decomposed"


def moves() -> list[Case]:
    arrays = (randn(3, 4), integers(5), randn(1, 2, 1, 3, 1, 2, 1, 2), booleans(2, 3), np.zeros((0, 3), np.float32))
    rows = []
    for op in ("aten.alias_copy.default", "dim_order_ops._clone_dim_order.default"):
        rows += [case(op, x) for x in arrays]
    rows += [
        case("aten.copy.default", randn(2, 3, 4), source)
        for source in (randn(4, seed=1), randn(3, 1, seed=1), randn(2, 1, 1, seed=1), randn(2, 3, 4, seed=1))
    ]
    rows += [case("aten.t_copy.default", x) for x in (randn(7), randn(), integers(4, 1), randn(65, 33))]
    rows += [
        case("aten.unfold_copy.default", *args)
        for args in ((randn(7), 0, 7, 1), (randn(2, 3, 8), -1, 2, 3), (integers(9, 2), 0, 4, 5))
    ]
    rows += [
        case("aten.permute.default", x, dims)
        for x, dims in (
            (randn(2, 3), [1, 0]),
            (randn(2, 3, 4), [-1, 0, 1]),
            (integers(2, 1, 3), [1, 2, 0]),
            (booleans(3, 2), [0, 1]),
            (randn(), []),
        )
    ]
    rows += [
        case("aten.squeeze_copy.dim", x, dim)
        for x, dim in (
            (randn(2, 1, 3), 1),
            (randn(2, 1, 3), 0),
            (randn(1, 3), -2),
            (integers(1, 1), 0),
            (randn(1), 0),
        )
    ]
    return rows


def casts() -> list[Case]:
    """Numbers are converted, not bits."""
    rows = []
    for x, dtype in (
        (integers(3, 4), torch.float32),
        (randn(3, 4) * np.float32(9), torch.int32),
        (booleans(7), torch.float32),
        (integers(5, low=-1, high=2), torch.bool),
        (integers(6, low=0, high=256, dtype="uint8"), torch.float32),
        (integers(6, low=-128, high=128, dtype="int8"), torch.int32),
        (np.array([2147483000, -2147483000, 16777217], np.int32), torch.float32),
    ):
        args = (x, None, None, None, None, False, None)
        kwargs = (("dtype", dtype),)
        name = f"{x.dtype.name} to {str(dtype).removeprefix('torch.')} {x.shape}"
        rows.append(Case(name, "aten._to_copy.default", args, torch_args=1, torch_kwargs=kwargs, single=True))
    return rows


def elementwise() -> list[Case]:
    rows = [
        case("aten.hardshrink.default", x, bound)
        for x, bound in ((randn(3, 7), 0.25), (randn(65), 0.0), (special(4, 5), 1.0), (randn(), 0.5))
    ]
    rows += [
        case("aten.log10.default", x)
        for x in (positive(65), positive(), np.array([0, -1, np.inf, np.nan, 2e-38], np.float32), positive(2, 3, 4))
    ]
    for op in ("aten.maximum.default", "aten.ne.Tensor"):
        rows += [
            case(op, randn(3, 5), randn(3, 5, seed=1)),
            case(op, randn(3, 1), randn(5, seed=1)),
            case(op, integers(7), integers(7, seed=1)),
            case(op, special(4, 5), special(4, 5)[::-1].copy(), name="special"),
            case(op, randn(), randn(2, 3)),
        ]
    return rows


def pools() -> list[Case]:
    return [
        case("aten.max_pool2d.default", x, *rest)
        for x, *rest in (
            (randn(1, 2, 7, 9), [3, 2], [2, 1], [1, 1], [1, 1], False),
            (randn(2, 3, 8, 8), [2, 2], [2, 2], [0, 0], [2, 2], False),
            (randn(1, 1, 7, 7), [3, 3], [2, 2], [1, 1], [1, 1], True),
            (randn(3, 6, 6), [2, 2], [2, 2], [0, 0], [1, 1], False),
            (special(1, 1, 4, 5), [2, 2], [1, 1], [0, 0], [1, 1], False),
        )
    ]


def quantized(op: str, *args: Any, name: str, torch_args: int, rtol: float = 1e-4, **kwargs: Any) -> Case:
    return Case(
        name, op, args, torch_args=torch_args, torch_kwargs=tuple(kwargs.items()), single=True, rtol=rtol, atol=1e-6
    )


def choices() -> list[Case]:
    rows = []
    for i, x in enumerate(
        (randn(4, 6), randn(3, 65) * 30, positive(2, 3, 5), -positive(7, 3), np.zeros((2, 4), np.float32))
    ):
        for low, high, dtype in ((-128, 127, torch.int8), (0, 255, torch.uint8))[: 1 + i % 2]:
            args = (x, low, high, 1e-6, None)
            name = f"{i} {low} {high}"
            rows.append(quantized(f"{PER}.choose_qparams.tensor", *args, name=name, torch_args=4, dtype=dtype))
        op = f"{PER}.choose_qparams_per_token_asymmetric.default"
        rows.append(quantized(op, x, None, name=str(i), torch_args=1, dtype=torch.int8))
    return rows


def by_tensor() -> list[Case]:
    """Scales and zero points that are tensors: one, one a channel, one a row."""
    rows = []
    int8, uint8 = torch.int8, torch.uint8
    ranges = ((-128, 127, int8), (0, 255, uint8), (-8, 7, int8), (-100, 99, int8), (0, 15, uint8))
    for i, (low, high, dtype) in enumerate(ranges):
        stored = str(dtype).removeprefix("torch.")
        x, codes = randn(4, 3 + i) * 20, integers(4, 3 + i, low=low, high=high + 1, dtype=stored)
        for form, count, rest in (
            ("per_tensor.tensor", (), ()),
            ("per_channel.default", (3 + i,), (1,)),
            ("per_token.default", (4, 1), ()),
        ):
            scale = positive(*count, seed=i) if count else np.array(0.5 + i, np.float32)
            zero = integers(*count, low=low // 4, high=high // 4, dtype="int64", seed=i) if count else np.array(i)
            args = (scale, zero, *rest, low, high, None)
            positional = 5 + len(rest)
            name = f"{stored} {low} {high} {3 + i}"
            rows.append(quantized(f"{PER}.quantize_{form}", x, *args, name=name, torch_args=positional, dtype=dtype))
            kwargs = {"dtype": dtype} | ({"output_dtype": torch.float32} if "token" in form else {})
            rows.append(quantized(f"{PER}.dequantize_{form}", codes, *args, name=name, torch_args=positional, **kwargs))
    return rows


def affine() -> list[Case]:
    rows = []
    for shape, block in (((4, 6), [1, 3]), ((4, 6), [4, 6]), ((4, 6), [1, 6]), ((2, 4, 5), [1, 2, 5]), ((7,), [1])):
        counts = [size // b for size, b in zip(shape, block, strict=True)]
        scale, zero = positive(*counts), integers(*counts, low=-4, high=5)
        x, codes = randn(*shape) * 9, integers(*shape, low=-8, high=8, dtype="int8")
        name = f"{shape} in {block}"
        args = (block, scale, zero, None, -8, 7)
        rows.append(
            Case(
                name,
                "torchao.quantize_affine.default",
                (x, *args),
                reference=lambda x, block, scale, zero, _, low, high: torch.ops.torchao.quantize_affine(
                    x, block, scale, zero, torch.int8, low, high
                ),
                single=True,
            )
        )
        rows.append(
            Case(
                name,
                "torchao.dequantize_affine.default",
                (codes, *args, None),
                reference=lambda x, block, scale, zero, _, low, high, __: torch.ops.torchao.dequantize_affine(
                    x, block, scale, zero, torch.int8, low, high
                ),
                single=True,
            )
        )
    return rows


ROWS = [row for family in (moves, casts, elementwise, pools, choices, by_tensor, affine) for row in family()]
