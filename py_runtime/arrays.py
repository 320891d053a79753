"""NumPy arrays to the buffers that a run takes, and back. The only NumPy in the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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
    flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
    return [a.view(BITS.get(a.dtype.name, a.dtype)).data for a in flat], tuple(a.shape for a in arrays)


def from_typed_arrays(outputs: Any, ports: Sequence[Port]) -> list[npt.NDArray[Any]]:
    """JavaScript typed arrays as NumPy arrays of the outputs' shapes and dtypes."""
    arrays = []
    for output, spec in zip(outputs, ports, strict=True):
        raw = np.frombuffer(output.buffer.to_bytes(), np.uint8)
        # bfloat16 has no NumPy dtype: its bits come as uint16
        dtype = np.dtype(np.uint16 if spec.dtype == "bfloat16" else spec.dtype)
        arrays.append(raw.view(dtype).reshape(spec.shape))
    return arrays
