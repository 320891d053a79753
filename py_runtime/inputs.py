"""Checks of what a caller gives to `execute`, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import InputCountError, InputDtypeError, InputShapeError
from .method import TensorInfo


def check_inputs(dtypes: Sequence[str], shapes: Sequence[Sequence[int]], specs: Sequence[TensorInfo]) -> None:
    """Compare inputs with what the method takes.

    Raises InputCountError, InputDtypeError or InputShapeError, each naming the input by
    its position, what it is and what is needed.
    """
    if len(dtypes) != len(specs):
        wanted = ", ".join(describe(spec) for spec in specs)
        raise InputCountError(f"{len(dtypes)} inputs are given; this method takes {len(specs)}: {wanted}")
    for i, (dtype, shape, spec) in enumerate(zip(dtypes, shapes, specs, strict=True)):
        if dtype != spec.dtype:
            raise InputDtypeError(
                f"input {i} is {dtype}; this method takes {describe(spec)}. Convert it to {spec.dtype} first."
            )
        if not fits(tuple(shape), spec):
            raise InputShapeError(
                f"input {i} has shape {list(shape)}; this method takes {describe(spec)}. Resize or reshape it, "
                "or export the model for that shape."
            )


def fits(shape: tuple[int, ...], spec: TensorInfo) -> bool:
    """Whether an input of this shape can be taken: the shape itself, or up to it where it is dynamic."""
    if not spec.dynamic:
        return shape == spec.shape
    return len(shape) == len(spec.shape) and all(
        0 <= size <= bound for size, bound in zip(shape, spec.shape, strict=True)
    )


def describe(spec: TensorInfo) -> str:
    return f"{spec.dtype}{list(spec.shape)}" + (" at most" if spec.dynamic else "")
