"""Operators to kernel calls, one module a family. Importing this fills the registry."""

from . import (  # noqa: F401 - each registers its operators
    cache,
    convolution,
    copies,
    elementwise,
    generated,
    lookup,
    matmul,
    norms,
    pool,
    quantize,
    quantized,
    reductions,
    resample,
    rotary,
    rows,
    training,
)
from .registry import OPERATORS

__all__ = ["OPERATORS"]
