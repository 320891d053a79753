"""A method that is partly on the CPU: its steps one after another over NumPy arrays.

Only what a step reads crosses between CPU and GPU. A method that is whole on the GPU does
not come here (runtime.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .arrays import from_typed_arrays, to_javascript
from .container import Region
from .errors import ProgramError, UnsupportedError
from .fallback import KERNELS
from .fallback.registry import Array
from .method import CpuStep, GpuStep, MoveStep, Step
from .program import ListValue, MethodPlan, Program, TensorValue
from .stage import Stage

ReadRegion = Callable[[Region], Awaitable[bytes]]


async def load_constants(
    program: Program, method: MethodPlan, steps: Sequence[Step], read: ReadRegion
) -> dict[int, Array]:
    """The constants that CPU operators and delegates' inputs read, by value."""
    wanted = {value for step in steps for value in _read_values(step, method)}
    constants = {}
    for value in sorted(wanted):
        kind = method.values[value]
        if isinstance(kind, TensorValue) and kind.data_index > 0 and kind.arena is None:
            if kind.external_name is not None:
                raise UnsupportedError(
                    f"{kind.external_name} is kept in a .ptd file and read on the CPU; export it inside"
                )
            if kind.data_index >= len(program.constants):
                raise ProgramError(f"constant {kind.data_index} is read; the program has {len(program.constants)}")
            count = int(np.prod(kind.shape, dtype=np.int64))
            region = program.constants[kind.data_index]
            data = await read(Region(region.offset, count * kind.dtype.size))
            constants[value] = np.frombuffer(data, kind.dtype.name).reshape(kind.shape)
    return constants


def _read_values(step: Step, method: MethodPlan) -> set[int]:
    if isinstance(step, GpuStep):
        return set(step.inputs)
    if isinstance(step, MoveStep):
        return {step.source}
    found = set(step.args)
    for value in step.args:
        listed = method.values[value]
        if isinstance(listed, ListValue):
            found.update(listed.items)
    return found - {-1}


async def run_steps(
    steps: Sequence[Step],
    stages: Mapping[int, Stage],
    method: MethodPlan,
    constants: Mapping[int, Array],
    inputs: Sequence[Array],
) -> list[Array]:
    """Run a method on arrays. stages: the compiled graph of each GPU step, by its position."""
    known: dict[int, Any] = dict(constants)
    known.update(zip(method.inputs, inputs, strict=True))
    for position, step in enumerate(steps):
        if isinstance(step, MoveStep):
            known[step.target] = _value(step.source, method, known)
        elif isinstance(step, CpuStep):
            run_kernel(step, method, known)
        else:
            given = [np.asarray(_value(v, method, known)) for v in step.inputs]
            outputs, plan = await stages[position].run(to_javascript(given), tuple(a.shape for a in given))
            known.update(zip(step.outputs, from_typed_arrays(outputs, plan.outputs), strict=True))
    return [np.asarray(_value(v, method, known)) for v in method.outputs]


def _value(index: int, method: MethodPlan, known: Mapping[int, Any]) -> Any:
    """A value of the method as Python has it: arrays, numbers, strings, lists of them."""
    if index == -1:
        return None
    if index in known:
        return known[index]
    kind = method.values[index]
    if isinstance(kind, TensorValue):
        raise ProgramError(f"{method.name} reads tensor {index} before anything wrote it")
    if isinstance(kind, ListValue):
        return [_value(item, method, known) for item in kind.items]
    return kind


def run_kernel(step: CpuStep, method: MethodPlan, known: dict[int, Any]) -> None:
    """Call a CPU operator and store its results in the dtypes and shapes of its outputs."""
    kernel = KERNELS[step.operator]
    args = [_value(index, method, known) for index in step.args[: kernel.inputs]]
    with np.errstate(all="ignore"):
        result = kernel.function(*args)
    results = result if isinstance(result, tuple) else (result,)
    for index, array in zip(step.args[kernel.inputs :], results, strict=False):
        kind = method.values[index]
        if not isinstance(kind, TensorValue):
            raise ProgramError(f"{step.operator} writes to {kind!r}, which is no tensor")
        stored = np.asarray(array).astype(kind.dtype.name, copy=False)
        known[index] = stored if kind.dynamic else stored.reshape(kind.shape)
