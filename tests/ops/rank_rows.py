"""Every rank that an operator allows, and every dtype that can reach it: one row for each rank from 0 or 1 to 8."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .cases import Case, booleans, case, integers, randn

SIZES = (2, 3, 1, 2, 3, 1, 2, 2)
MOVED = ("float32", "int32", "bool", "uint8", "int8")


def shape(rank: int, start: int = 0) -> tuple[int, ...]:
    return tuple(SIZES[(start + i) % len(SIZES)] for i in range(rank))


def array(dtype: str, *sizes: int, seed: int = 0) -> np.ndarray:
    if dtype == "float32":
        return randn(*sizes, seed=seed)
    if dtype == "bool":
        return booleans(*sizes, seed=seed)
    return integers(*sizes, low=0 if dtype == "uint8" else -9, dtype=dtype, seed=seed)


def last(x: np.ndarray) -> int:
    return x.ndim - 1


Arguments = Callable[[np.ndarray], tuple[Any, ...]]

# operator: (lowest rank, arguments after x, or in place of it)
MOVES: dict[str, tuple[int, Arguments]] = {
    "aten.cat.default": (1, lambda x: ([x, x[..., :1], x], last(x))),
    "aten.clone.default": (0, lambda x: (x,)),
    "aten.expand_copy.default": (0, lambda x: (x[..., :1], list(x.shape)) if x.ndim else (x, [])),
    "aten.flip.default": (1, lambda x: (x, [0, last(x)] if x.ndim > 1 else [0])),
    "aten.permute_copy.default": (0, lambda x: (x, list(range(x.ndim))[::-1])),
    "aten.repeat.default": (0, lambda x: (x, [2, *[1] * max(0, x.ndim - 1)])),
    "aten.select_copy.int": (1, lambda x: (x, last(x), -1)),
    "aten.slice_copy.Tensor": (1, lambda x: (x, last(x), 1, None, 1)),
    "aten.split_with_sizes_copy.default": (1, lambda x: (x, [1, x.shape[-1] - 1], last(x))),
    "aten.squeeze_copy.dims": (1, lambda x: (x, [d for d, n in enumerate(x.shape) if n == 1])),
    "aten.unsqueeze_copy.default": (0, lambda x: (x, x.ndim)),
    "aten.view_copy.default": (0, lambda x: (x, [-1])),
    "aten.constant_pad_nd.default": (1, lambda x: (x, [1, 2], 1)),
    "aten.index_select.default": (1, lambda x: (x, last(x), np.array([0, 0], np.int64))),
    "aten.gather.default": (1, lambda x: (x, last(x), np.zeros_like(x, np.int64))),
}
ARITHMETIC = ("add", "mul", "sub")
FLOATS: dict[str, tuple[int, Arguments]] = {
    "aten._softmax.default": (1, lambda x: (x, x.ndim // 2, False)),
    "aten._log_softmax.default": (1, lambda x: (x, last(x), False)),
    "aten.mean.dim": (1, lambda x: (x, [0, last(x)] if x.ndim > 1 else [0], x.ndim % 2 == 0)),
    "aten.native_layer_norm.default": (1, lambda x: (x, [x.shape[-1]], randn(x.shape[-1], seed=5), None, 1e-5)),
    "aten.gelu.default": (0, lambda x: (x,)),
    "aten.div.Tensor": (0, lambda x: (x, np.asarray(np.abs(x) + np.float32(1)))),
    "aten.clamp.default": (0, lambda x: (x, -0.5, 0.5)),
}
ORDERED: dict[str, tuple[int, Arguments]] = {
    "aten.sum.dim_IntList": (1, lambda x: (x, [x.ndim // 2], x.ndim % 2 == 1)),
    "aten.amax.default": (1, lambda x: (x, [0, last(x)] if x.ndim > 1 else [0], False)),
    "aten.amin.default": (1, lambda x: (x, [last(x)], True)),
    "aten.argmax.default": (1, lambda x: (x, x.ndim // 2, False)),
    "aten.minimum.default": (0, lambda x: (x, x[::-1].copy() if x.ndim else x)),
    "aten.gt.Scalar": (0, lambda x: (x, 1)),
    "aten.eq.Tensor": (0, lambda x: (x, x[:1] if x.ndim else x)),
}


def over_ranks(table: dict[str, tuple[int, Arguments]], dtypes: tuple[str, ...]) -> Iterator[Case]:
    """One row for each operator and rank; the dtypes take turns, so that each meets several ranks."""
    for op, (lowest, arguments) in table.items():
        for rank in range(lowest, 9):
            dtype = dtypes[rank % len(dtypes)]
            x = array(dtype, *shape(rank))
            if x.ndim and x.shape[-1] < 2:
                x = array(dtype, *x.shape[:-1], 4)
            yield case(op, *arguments(x), name=f"rank {rank} {dtype}")


def broadcasts() -> Iterator[Case]:
    """Both operands of every rank, one of them with fewer dimensions or with ones."""
    for rank in range(9):
        full = shape(rank)
        ones = tuple(1 if i % 2 else n for i, n in enumerate(full))
        for name in ARITHMETIC:
            for dtype in ("float32", "int32"):
                args = (array(dtype, *full), array(dtype, *ones[rank // 2 :], seed=1))
                yield case(f"aten.{name}.Tensor", *args, name=f"rank {rank} {dtype}")
        condition = booleans(*ones)
        yield case("aten.where.self", condition, randn(*full), randn(*full[rank // 2 :], seed=1), name=f"rank {rank}")


def aliased() -> Iterator[Case]:
    """One tensor as both operands is two inputs here; test_models runs `x * x` of one (small program "square")."""
    for dtype in ("float32", "int32"):
        x = array(dtype, 5, 7)
        for name in ARITHMETIC:
            yield case(f"aten.{name}.Tensor", x, x, name=f"equal operands {dtype}")


ROWS = [
    *over_ranks(MOVES, MOVED),
    *over_ranks(FLOATS, ("float32",)),
    *over_ranks(ORDERED, ("float32", "int32")),
    *broadcasts(),
    *aliased(),
]
