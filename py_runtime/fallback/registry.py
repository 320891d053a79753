"""CPU kernels by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# A NumPy array; its stubs refuse much that the arguments of ATen operators need (axes as lists).
Array = Any
Function = Callable[..., Any]


@dataclass(frozen=True)
class Kernel:
    """A NumPy function, how many arguments of the schema it takes, and how many outputs it gives."""

    function: Function
    inputs: int
    outputs: int = 1


KERNELS: dict[str, Kernel] = {}


def kernel(name: str, inputs: int, outputs: int = 1) -> Callable[[Function], Function]:
    """Register a function under "aten::" + name."""

    def register(function: Function) -> Function:
        KERNELS[f"aten::{name}"] = Kernel(function, inputs, outputs)
        return function

    return register


def register_table(table: dict[str, Function], inputs: int) -> None:
    """Register functions of one number of arguments."""
    for name, function in table.items():
        kernel(name, inputs)(function)
