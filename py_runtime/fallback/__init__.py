"""Operators that a program leaves on the CPU, in NumPy.

Names are those of ExecuTorch's portable kernels, the out-variants of ATen operators. A
kernel gets its schema's arguments without the outputs and gives back one array for each
output; what it gives is stored in the output's dtype and shape.
"""

from __future__ import annotations

from . import convolution, elementwise, images, indexing, layers, moves, numbers, reductions
from .registry import KERNELS, Kernel, call_kernel

__all__ = [
    "KERNELS",
    "Kernel",
    "call_kernel",
    "convolution",
    "elementwise",
    "images",
    "indexing",
    "layers",
    "moves",
    "numbers",
    "reductions",
]
