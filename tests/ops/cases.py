"""Operator cases as rows: an operator, its arguments, and the tolerance where it is not the usual one.

The golden is PyTorch's own operator, in fp64 where the arguments are floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from .write_program import Picked, Spec, write_program

#: f32 sums in another order and a GPU's own exp, log and division differ by less.
RTOL, ATOL = 1e-4, 1e-5


@dataclass(frozen=True)
class Case:
    """One call. call: as PyTorch takes the arguments, where the graph has them otherwise."""

    name: str
    op: str
    args: tuple[Any, ...]
    rtol: float = RTOL
    atol: float = ATOL
    torch_kwargs: tuple[tuple[str, Any], ...] = ()
    torch_args: int | None = None  # how many arguments PyTorch takes by position, when not all
    single: bool = False  # golden in f32, for operators that take nothing else
    written: tuple[int, ...] = ()  # arguments that the operator writes; outputs too, after its own
    half: bool = False  # floats are stored in f16
    reference: Callable[..., list[Any]] | None = None  # the golden, where it is not the operator itself

    def __str__(self) -> str:
        return f"{self.op.removeprefix('aten.').removeprefix('et_vk.')} {self.name}"


def case(op: str, *args: Any, name: str = "", **changes: Any) -> Case:
    shapes = " ".join("x".join(map(str, a.shape)) or "scalar" for a in _arrays(args))
    lists = [a for a in args if not isinstance(a, np.ndarray) and not _arrays([a]) and a is not None]
    rest = " ".join(str(a).replace(" ", "") for a in lists)
    return Case(name or f"{shapes} {rest}".strip(), op, args, **changes)


def _arrays(args: Sequence[Any]) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            found.append(arg)
        elif isinstance(arg, list | tuple):
            found.extend(_arrays(arg))
    return found


def randn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng([seed, *shape]).standard_normal(shape, np.float32))


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return np.asarray(np.abs(randn(*shape, seed=seed)) + np.float32(0.1))


def integers(*shape: int, low: int = -9, high: int = 9, dtype: str = "int32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(dtype)


def booleans(*shape: int, seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng([seed, *shape]).random(shape) > 0.5)


def special(*shape: int) -> np.ndarray:
    """Numbers with NaN, both infinities and both zeros among them."""
    values = randn(*shape).reshape(-1)
    values[:5] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    return values.reshape(shape)


def to_torch(arg: Any, single: bool = False) -> Any:
    """An argument for the golden: floats in fp64 or, if single, in f32; integers as they are."""
    if isinstance(arg, np.ndarray):
        tensor = torch.from_numpy(arg.copy())
        if tensor.is_floating_point():
            return tensor.float() if single else tensor.double()
        return tensor
    if isinstance(arg, Picked):
        return int(arg.values[arg.index])
    if isinstance(arg, list | tuple):
        return [to_torch(item, single) for item in arg]
    return arg


def find_operator(name: str) -> Any:
    namespace, _, rest = name.partition(".")
    operator, _, overload = rest.rpartition(".")
    return getattr(getattr(getattr(torch.ops, namespace), operator), overload)


def golden(case: Case) -> list[Any]:
    """PyTorch's outputs, then the arguments that it wrote; None for what nobody should read."""
    import executorch.backends.vulkan.custom_ops_lib
    import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401 - registers more of them
    import torch.ao.quantization.fx._decomposed  # noqa: F401 - registers quantized_decomposed

    args = [to_torch(arg, case.single) for arg in case.args[: case.torch_args]]
    result = (case.reference or find_operator(case.op))(*args, **dict(case.torch_kwargs))
    results = list(result) if isinstance(result, list | tuple) else [result]
    return [None if r is None else r.numpy() for r in [*results, *(args[i] for i in case.written)]]


def output_specs(outputs: Sequence[Any], floats: str = "float32") -> list[Spec]:
    """What the graph stores for the golden's outputs: `floats` for all floats, int32 for int64."""

    def spec(output: Any) -> Spec:
        if output is None:
            return Spec(floats, (1,))
        if output.dtype.kind == "f":
            return Spec(floats, output.shape)
        return Spec("int32" if output.dtype == np.int64 else output.dtype.name, output.shape)

    return [spec(output) for output in outputs]


@dataclass(frozen=True)
class Prepared:
    """A case ready to run: its program, inputs, and for each output the golden in the graph's dtype, or None."""

    pte: bytes
    inputs: list[np.ndarray]
    outputs: list[np.ndarray | None]


def prepare(case: Case) -> Prepared:
    """Write the case's program and compute its golden."""
    expected = golden(case)
    own = expected[: len(expected) - len(case.written)]
    floats = "float16" if case.half else "float32"
    pte, inputs = write_program(case.op, case.args, output_specs(own, floats), case.written)
    specs = output_specs(expected, floats)
    with np.errstate(over="ignore"):
        wanted = [None if e is None else e.astype(s.dtype) for e, s in zip(expected, specs, strict=True)]
    return Prepared(pte, inputs, wanted)


#: Of f16: half a unit in the last place is 2^-11 of a value; sums are in f32 and rounded once.
HALF_RTOL, HALF_ATOL = 1e-3, 1e-4


def half_of(case: Case) -> Case | None:
    """The case in f16: float arguments rounded to it, the golden in fp64 from those; None without float arguments."""

    def rounded(arg: Any) -> Any:
        if isinstance(arg, np.ndarray) and arg.dtype == np.float32:
            return arg.astype(np.float16)
        return [rounded(item) for item in arg] if isinstance(arg, list) else arg

    if not any(array.dtype == np.float32 for array in _arrays(case.args)):
        return None
    tolerance = {"rtol": max(case.rtol, HALF_RTOL), "atol": max(case.atol, HALF_ATOL)}
    return replace(case, args=tuple(rounded(arg) for arg in case.args), half=True, **tolerance)
