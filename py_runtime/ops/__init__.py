"""Operators to kernel calls, one module a family. Importing this fills the registry."""

from . import convolution, copies, elementwise, pool, resample, rows
from .registry import OPERATORS

__all__ = ["OPERATORS", "convolution", "copies", "elementwise", "pool", "resample", "rows"]
