"""PyTorch's type promotion, where NumPy's differs.

Categories are bool < integer < float < complex. Among tensors with dimensions, then among
tensors without, then among plain numbers, a lower rank takes part in the result only with
a higher category (https://docs.pytorch.org/docs/stable/tensor_attributes.html).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .registry import Array

CATEGORIES = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
DEFAULTS = {bool: np.bool_, int: np.int64, float: np.float32, complex: np.complex64}


def _dtype(value: Any) -> Any:
    return value.dtype if isinstance(value, np.ndarray | np.generic) else np.dtype(DEFAULTS[type(value)])


def _rank(value: Any) -> int:
    """0: with dimensions; 1: without; 2: a plain number."""
    if isinstance(value, np.ndarray):
        return 0 if value.ndim else 1
    return 1 if isinstance(value, np.generic) else 2


def _merge(a: Any, b: Any) -> Any:
    """The result of two tensors of one rank: integers never widen a float."""
    kinds = CATEGORIES[a.kind], CATEGORIES[b.kind]
    if kinds[0] != kinds[1]:
        return a if kinds[0] > kinds[1] else b
    return np.promote_types(a, b)


def result_dtype(*values: Any) -> Any:
    """The dtype in which an operator on these tensors and numbers gives its result."""
    result: Any = None
    for rank in (0, 1, 2):
        own: Any = None
        for value in values:
            if _rank(value) == rank:
                own = _dtype(value) if own is None else _merge(own, _dtype(value))
        if own is not None and (result is None or CATEGORIES[own.kind] > CATEGORIES[result.kind]):
            result = own
    return result


def cast(value: Any, dtype: Any) -> Array:
    """A tensor or number as an array of a dtype; integers that do not fit wrap."""
    return np.asarray(value).astype(dtype, copy=False)


def common(*values: Any) -> list[Array]:
    """The values in their common dtype."""
    dtype = result_dtype(*values)
    return [cast(value, dtype) for value in values]


def floats(*values: Any) -> list[Array]:
    """The values in their common dtype, float32 where that is no float."""
    dtype = result_dtype(*values)
    return [cast(value, dtype if dtype.kind in "fc" else np.float32) for value in values]
