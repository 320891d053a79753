"""NumPy arrays to the buffers that a run takes, and back. The only NumPy in the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .device import typed_arrays
from .inputs import check_inputs
from .method import MethodMetadata
from .plan import Port

#: dtypes that no buffer format of Python names, by the one their bits travel as
BITS = {"float16": np.uint16, "bool": np.uint8}


def to_buffers(
    inputs: Sequence[npt.ArrayLike], metadata: MethodMetadata
) -> tuple[list[memoryview], tuple[tuple[int, ...], ...]]:
    """Arrays as flat C-ordered buffers, checked against the method's inputs; and their shapes.

    Raises InputCountError, InputDtypeError, InputShapeError.
    """
    arrays = [np.asarray(array) for array in inputs]
    check_inputs([a.dtype.name for a in arrays], [a.shape for a in arrays], metadata.inputs)
    return [_flat(np.ascontiguousarray(a)) for a in arrays], tuple(a.shape for a in arrays)


def from_javascript(arrays: Any, dtypes: Sequence[str], shapes: Sequence[Sequence[int]]) -> list[npt.NDArray[Any]]:
    """JavaScript typed arrays as NumPy arrays (copies)."""
    raw = (np.frombuffer(array.to_bytes(), np.uint8) for array in arrays)
    return [r.view(dtype).reshape(tuple(shape)) for r, dtype, shape in zip(raw, dtypes, shapes, strict=True)]


def to_javascript(arrays: Sequence[npt.NDArray[Any]]) -> Any:
    """NumPy arrays as a JavaScript array of typed arrays; float16 as its bits."""
    return typed_arrays([_flat(np.ascontiguousarray(array)) for array in arrays])


def _flat(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(BITS.get(array.dtype.name, array.dtype)).data


def from_typed_arrays(outputs: Any, ports: Sequence[Port]) -> list[npt.NDArray[Any]]:
    """JavaScript typed arrays as NumPy arrays of the outputs' shapes and dtypes."""
    arrays = []
    for output, spec in zip(outputs, ports, strict=True):
        raw = np.frombuffer(output.buffer.to_bytes(), np.uint8)
        # bfloat16 has no NumPy dtype: its bits come as uint16
        dtype = np.dtype(np.uint16 if spec.dtype == "bfloat16" else spec.dtype)
        arrays.append(raw.view(dtype).reshape(spec.shape))
    return arrays
