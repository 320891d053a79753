"""CPU kernels beside PyTorch's operators, called as a program calls them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from py_runtime.fallback import KERNELS, call_kernel


def functional(operator: str, arguments: list[Any]) -> Any:
    """The overload that takes the same arguments and gives new tensors."""
    packet = getattr(torch.ops.aten, operator)
    wanted = [(a.name, str(a.type)) for a in arguments]
    for overload in packet.overloads():
        if [(a.name, str(a.type)) for a in getattr(packet, overload)._schema.arguments] == wanted:
            return getattr(packet, overload)
    return packet


def to_torch(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy()).view(value.shape)
    return [to_torch(v) for v in value] if isinstance(value, list) else value


def golden(name: str, *args: Any) -> list[torch.Tensor]:
    """What PyTorch's operator of this out-variant gives."""
    operator, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, operator)
    positional = [a for a in getattr(packet, overload or "default")._schema.arguments if not a.is_out]
    assert KERNELS[f"aten::{name}"].inputs == len(positional), f"{name} takes {len(positional)} arguments"
    given = [to_torch(a) for a in args]
    kept = {a.name: v for a, v in zip(positional, given, strict=True) if a.kwarg_only}
    plain = [v for a, v in zip(positional, given, strict=True) if not a.kwarg_only]
    found = functional(operator, positional)(*plain, **kept)
    return list(found) if isinstance(found, list | tuple) else [found]


def flat(results: list[Any]) -> list[Any]:
    """The outputs one by one, those in a list too."""
    return [item for result in results for item in (result if isinstance(result, list) else [result])]


def stored(array: Any, like: np.ndarray) -> np.ndarray:
    """A kernel's result as the interpreter stores it in an output of this dtype and shape."""
    return np.asarray(array).astype(like.dtype).reshape(like.shape)


def compare(name: str, *args: Any, rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Call a kernel and PyTorch's operator of the same out-variant, and compare all outputs."""
    results = flat(call_kernel(KERNELS[f"aten::{name}"], args))
    for result, want in zip(results, golden(name, *args), strict=True):
        array = want.resolve_conj().numpy()
        if want.dtype == torch.float16:
            rtol, atol = max(rtol, 1e-3), max(atol, 1e-3)  # both round once to half
        if array.dtype.kind in "fc":
            np.testing.assert_allclose(stored(result, array), array, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(stored(result, array), array)
