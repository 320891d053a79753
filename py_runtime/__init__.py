"""Pteron: PyTorch models in the browser, driven by Python.

Read the modules in the order of the data: `program` (the file), `graph` (a delegate's
operators), `passes` (graph to graph), `ops` (operators to kernels), `memory` and `plan`
(the flat dispatch list), `device` (the one module that touches JavaScript), `runtime`
(the public face).
"""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`py_runtime.Runtime`, without loading it for those who only parse or plan."""
    if name == "Runtime":
        from .runtime import Runtime

        return Runtime
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
