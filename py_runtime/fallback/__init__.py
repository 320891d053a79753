"""Operators that a program leaves on the CPU, in NumPy.

Names are those of ExecuTorch's portable kernels, the out-variants of ATen operators. A
kernel gets its schema's arguments without the outputs and gives back one array for each
output; what it gives is stored in the output's dtype and shape.
"""

from __future__ import annotations

from . import elementwise, layers, moves, reductions
from .registry import KERNELS, Kernel

__all__ = ["KERNELS", "Kernel", "elementwise", "layers", "moves", "reductions"]
