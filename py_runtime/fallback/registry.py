"""CPU kernels by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# A NumPy array; its stubs refuse much that the arguments of ATen operators need (axes as lists).
Array = Any
Function = Callable[..., Any]


@dataclass(frozen=True)
class Kernel:
    """A NumPy function for an operator, on its schema's arguments without the outputs.

    inputs: how many arguments it takes. outputs: how many tensors it gives.
    writes: the arguments that it changes; their new values come after the outputs.
    number: it gives a number, not tensors.
    shape_only: it reads the shape of its tensor, not the elements.
    """

    function: Function
    inputs: int
    outputs: int = 1
    writes: tuple[int, ...] = ()
    number: bool = False
    shape_only: bool = False


KERNELS: dict[str, Kernel] = {}


def kernel(name: str, inputs: int, outputs: int = 1, **traits: Any) -> Callable[[Function], Function]:
    """Register a function under a name; one without a namespace is of aten."""

    def register(function: Function) -> Function:
        KERNELS[name if "::" in name else f"aten::{name}"] = Kernel(function, inputs, outputs, **traits)
        return function

    return register


def register_table(table: dict[str, Function], inputs: int, **traits: Any) -> None:
    """Register functions of one number of arguments."""
    for name, function in table.items():
        kernel(name, inputs, **traits)(function)


def call_kernel(kernel: Kernel, args: Sequence[Any]) -> list[Any]:
    """Call a kernel and give its results in a list: outputs, then what it writes.

    Halves are computed in float32, as PyTorch does; results have whatever dtype came out.
    """
    with np.errstate(all="ignore"):
        found = kernel.function(*(_widened(arg) for arg in args))
    return list(found) if isinstance(found, tuple) else [found]


def _widened(arg: Any) -> Any:
    if isinstance(arg, list):
        return [_widened(item) for item in arg]
    if isinstance(arg, np.ndarray) and arg.dtype == np.float16:
        return arg.astype(np.float32)
    return arg
