"""A method as its caller sees it: names, dtypes and shapes of what goes in and comes out."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import UnsupportedError
from .program import DelegateCall, Instruction, JumpFalseCall, KernelCall, MethodPlan, MoveCall, TensorValue


@dataclass(frozen=True)
class TensorInfo:
    """An input or output: dtype by name, shape; upper bounds of it where it is dynamic.

    A number is a tensor without dimensions: int64, float64 or bool.
    """

    dtype: str
    shape: tuple[int, ...]
    dynamic: bool = False


@dataclass(frozen=True)
class MethodMetadata:
    """A method's name, inputs and outputs, in the order of `execute`."""

    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


#: numbers of a program by their Python type, as dtypes
NUMBERS = {bool: "bool", int: "int64", float: "float64"}


def given_values(method: MethodPlan) -> tuple[int, ...]:
    """The inputs that a caller gives: all but None and strings, which the export has fixed.

    The exporter writes None for a symbolic integer too; that one is read by an instruction.
    """
    read = {value for chain in method.chains for step in chain for value in _read(step)}
    return tuple(
        v
        for v in method.inputs
        if not isinstance(method.values[v], str | None) or (method.values[v] is None and v in read)
    )


def _read(step: Instruction) -> tuple[int, ...]:
    """The values that an instruction names, but for those that it only writes or frees."""
    if isinstance(step, KernelCall | DelegateCall):
        return step.args
    if isinstance(step, MoveCall):
        return (step.source,)
    return (step.condition,) if isinstance(step, JumpFalseCall) else ()


def metadata_of(method: MethodPlan) -> MethodMetadata:
    """What the caller sees of a method. Raises UnsupportedError for lists."""

    def info(value: int) -> TensorInfo:
        kind = method.values[value]
        if isinstance(kind, TensorValue):
            return TensorInfo(kind.dtype.name, kind.shape, kind.dynamic)
        if type(kind) in NUMBERS:
            return TensorInfo(NUMBERS[type(kind)], ())
        raise UnsupportedError(
            f"{method.name} takes or gives {kind!r}; tensors and single numbers can be passed. Export the model "
            "with those."
        )

    number = TensorInfo(NUMBERS[int], ())
    inputs = tuple(number if method.values[v] is None else info(v) for v in given_values(method))
    return MethodMetadata(method.name, inputs, tuple(map(info, method.outputs)))
