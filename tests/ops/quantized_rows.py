"""Rows of quantized layers, rotary embeddings and training steps; goldens in f32, as their references are."""

from __future__ import annotations

import numpy as np
import torch

from .cases import Case, case, integers, positive, randn

DTYPE = (("dtype", torch.int8),)


def codes(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Two 4-bit halves a byte."""
    return integers(rows, columns // 2, low=0, high=256, dtype="uint8", seed=seed)


def four_bits() -> list[Case]:
    rows = []
    for group, k, n in ((32, 64, 16), (64, 128, 8), (128, 256, 24), (32, 32, 8), (64, 64, 40)):
        scales = positive(k // group, n) * np.float32(0.1)
        x, weight = randn(3, k), codes(n, k)
        rows.append(
            case("et_vk.linear_q4gsw.default", x, weight, scales, group, None, single=True, rtol=1e-3, atol=1e-4)
        )
        bias = randn(n, seed=4)
        rows.append(
            case("et_vk.linear_q4gsw.default", x, weight, scales, group, bias, single=True, rtol=1e-3, atol=1e-4)
        )
        rows.append(
            case(
                "et_vk.linear_q4gsw_backward.default",
                randn(3, n),
                weight,
                scales,
                group,
                single=True,
                rtol=1e-3,
                atol=1e-4,
            )
        )
        rows.append(case("et_vk.q4gsw_requant.default", randn(n, k), scales, group, single=True))
        table, by_row = codes(9, k), positive(9, k // group)
        indices = integers(2, 3, low=0, high=9, dtype="int64")
        for low_first in (False, True):
            rows.append(case("et_vk.embedding_q4gsw.default", table, by_row, group, indices, low_first, single=True))
    return rows


def four_bit_tables() -> list[Case]:
    """Tables that the exporter leaves as they are: of odd widths, or with zero points."""
    rows = []
    for depth, groups, zeros in ((6, 1, False), (10, 5, False), (12, 2, True), (32, 1, True), (8, 0, False)):
        table = codes(9, depth)
        scales = positive(9, groups) if groups else positive(9)
        points = integers(9, groups, low=-3, high=4).astype(np.float32) if zeros else None
        indices = integers(2, 3, low=0, high=9, dtype="int64")
        rows.append(
            Case(
                f"depth {depth}, {groups} groups{', zero points' * zeros}",
                "quantized_decomposed.embedding_4bit.dtype",
                (table, scales, points, -8, 7, indices, None),
                torch_args=6,
                torch_kwargs=(("dtype", torch.float32),),
                single=True,
            )
        )
    return rows


def eight_bits() -> list[Case]:
    rows = []
    for m, k, n in ((1, 8, 4), (3, 16, 8), (5, 33, 7), (2, 64, 64), (7, 1, 3)):
        weight = integers(n, k, low=-127, high=128, dtype="int8")
        rows.append(
            case(
                "aten._weight_int8pack_mm.default", randn(m, k), weight, positive(n), single=True, rtol=1e-3, atol=1e-3
            )
        )
    per = "quantized_decomposed"
    x, q = randn(4, 6) * 20, integers(4, 6, low=-128, high=128, dtype="int8")
    for axis in (0, 1, -1):
        scales, zeros = positive(x.shape[axis]), integers(x.shape[axis], low=-5, high=5, dtype="int64")
        args = (x, scales, zeros, axis, -128, 127)
        rows.append(
            Case(
                f"axis {axis}",
                f"{per}.quantize_per_channel.default",
                (*args, None),
                torch_args=6,
                torch_kwargs=DTYPE,
                single=True,
            )
        )
        args = (q, scales, zeros, axis, -128, 127)
        rows.append(
            Case(
                f"axis {axis}",
                f"{per}.dequantize_per_channel.default",
                (*args, None),
                torch_args=6,
                torch_kwargs=DTYPE,
                single=True,
            )
        )
    for scale, zero in ((0.5, 0), (0.1, -7), (2.0, 100)):
        args = (x, scale, zero, -128, 127)
        rows.append(
            Case(
                f"{scale} {zero}",
                f"{per}.quantize_per_tensor.default",
                (*args, None),
                torch_args=5,
                torch_kwargs=DTYPE,
                single=True,
            )
        )
        args = (q, scale, zero, -128, 127)
        rows.append(
            Case(
                f"{scale} {zero}",
                f"{per}.dequantize_per_tensor.default",
                (*args, None),
                torch_args=5,
                torch_kwargs=DTYPE,
                single=True,
            )
        )
    scales, zeros = positive(4, 1), integers(4, 1, low=-5, high=5, dtype="int32").astype(np.float32)
    rows.append(
        Case(
            "rows",
            f"{per}.quantize_per_token.default",
            (x, scales, zeros, -128, 127, None),
            torch_args=5,
            torch_kwargs=DTYPE,
            single=True,
        )
    )
    return rows


def rotary() -> list[Case]:
    rows = []
    for batch, length, heads, depth in ((1, 3, 2, 8), (2, 5, 1, 4), (1, 1, 4, 16), (1, 7, 3, 2), (2, 2, 2, 32)):
        q, k = randn(batch, length, heads, depth), randn(batch, length, heads, depth, seed=1)
        cos, sin = randn(length, depth // 2, seed=2), randn(length, depth // 2, seed=3)
        rows.append(case("et_vk.apply_rotary_emb.default", q, k, cos, sin, single=True))
        cos, sin = randn(length + 4, depth, seed=2), randn(length + 4, depth, seed=3)
        for start in (0, 2):
            rows.append(case("et_vk.apply_rotary_emb_hf.default", q, k, cos, sin, start, single=True))
        rows.append(
            case(
                "et_vk.apply_rotary_emb_interleaved.default",
                randn(batch, length, depth),
                randn(length, depth),
                single=True,
            )
        )
    return rows


def training() -> list[Case]:
    rows = []
    for m, classes in ((1, 3), (4, 7), (9, 33), (5, 2), (64, 10)):
        labels = integers(m, low=-1, high=classes, dtype="int64")
        rows.append(case("et_vk.fused_ce.default", randn(m, classes), labels, float(max(m - 1, 1)), single=True))
        rows.append(case("et_vk.linear_dW.default", randn(2, m, 5), randn(2, m, classes, seed=1), single=True))
    return rows


ROWS = [row for family in (four_bits, four_bit_tables, eight_bits, rotary, training) for row in family()]
