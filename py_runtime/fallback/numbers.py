"""Kernels on plain numbers: sizes, and what a program computes from them."""

from __future__ import annotations

import math
import operator
from typing import Any

from .registry import Array, Function, kernel, register_table

PRIM = "executorch_prim::"

UNARY: dict[str, Function] = {
    f"{PRIM}neg.Scalar": operator.neg,
    f"{PRIM}ceil.Scalar": math.ceil,
    f"{PRIM}round.Scalar": round,
    f"{PRIM}trunc.Scalar": math.trunc,
    f"{PRIM}sym_float.Scalar": float,
    f"{PRIM}sym_int.Scalar": int,
    f"{PRIM}sym_not.Scalar": operator.not_,
}

_BY_NAME: dict[str, Function] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "eq": operator.eq, "ge": operator.ge,
    "gt": operator.gt, "le": operator.le, "lt": operator.lt, "sym_max": max, "sym_min": min,
}  # fmt: skip

BINARY: dict[str, Function] = {
    **{f"{PRIM}{name}.Scalar": function for name, function in _BY_NAME.items()},
    f"{PRIM}floordiv.int": operator.floordiv,
    f"{PRIM}mod.int": operator.mod,
}

register_table(UNARY, 1, number=True)
register_table(BINARY, 2, number=True)


@kernel(f"{PRIM}sym_ite.Scalar", 3, number=True)
def sym_ite(condition: bool, yes: Any, no: Any) -> Any:
    return yes if condition else no


@kernel("sym_size.int", 2, number=True, shape_only=True)
def sym_size(shape: tuple[int, ...], dim: int) -> int:
    return shape[dim]


@kernel("sym_numel", 1, number=True, shape_only=True)
def sym_numel(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


@kernel("_local_scalar_dense", 1, number=True)
def local_scalar_dense(x: Array) -> Any:
    return x.item()
