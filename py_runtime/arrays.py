"""NumPy arrays to the typed arrays that JavaScript takes, and back.

NumPy has no bfloat16: the caller gives and gets its bits as uint16, the interpreter computes
with float32 arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .device import GpuTensor, to_javascript_list
from .inputs import check_inputs
from .method import MethodMetadata

Array = npt.NDArray[Any]

#: dtypes that no buffer format of Python names, by the one their bits travel as
BITS = {"float16": np.uint16, "bool": np.uint8}


def numpy_dtype(name: str) -> Any:
    """The dtype in which the interpreter computes with a dtype of the program."""
    return np.dtype(np.float32 if name == "bfloat16" else name)


def from_storage(raw: Array, name: str) -> Array:
    """Bytes (uint8) of a dtype as an array that can be computed with, flat."""
    if name == "bfloat16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return raw.view(name)


def to_storage(array: Array, name: str) -> Array:
    """The reverse: an array in the dtype that the caller and JavaScript have for it; bfloat16 rounds to even."""
    if name != "bfloat16":
        return array
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded)


def checked(inputs: Sequence[npt.ArrayLike], metadata: MethodMetadata) -> list[Array]:
    """What a caller gives as arrays, checked against the method's inputs.

    Raises InputCountError, InputDtypeError, InputShapeError.
    """
    arrays = [np.asarray(array) for array in inputs]
    names = [array.dtype.name for array in arrays]
    for i, spec in enumerate(metadata.inputs[: len(names)]):
        if spec.dtype == "bfloat16" and names[i] == "uint16":
            names[i] = "bfloat16"
    check_inputs(names, [array.shape for array in arrays], metadata.inputs)
    return arrays


def from_javascript(arrays: Any, dtypes: Sequence[str], shapes: Sequence[Sequence[int]]) -> list[Array]:
    """JavaScript typed arrays as NumPy arrays (copies); bfloat16 as its bits."""
    raw = (np.frombuffer(array.to_bytes(), np.uint8) for array in arrays)
    named = (np.uint16 if dtype == "bfloat16" else dtype for dtype in dtypes)
    return [r.view(dtype).reshape(tuple(shape)) for r, dtype, shape in zip(raw, named, shapes, strict=True)]


def to_javascript(arrays: Sequence[Array | GpuTensor]) -> Any:
    """NumPy arrays as a JavaScript array of typed arrays, float16 as its bits; tensors on the GPU as they are."""
    return to_javascript_list([item if isinstance(item, GpuTensor) else _flat(item) for item in arrays])


def _flat(array: Array) -> memoryview:
    array = np.ascontiguousarray(array)
    return array.reshape(-1).view(BITS.get(array.dtype.name, array.dtype)).data


def from_typed_arrays(outputs: Any, dtypes: Sequence[str], shapes: Sequence[Sequence[int]]) -> list[Array]:
    """JavaScript typed arrays that are nobody else's as NumPy arrays; bfloat16 as its bits."""
    return [
        byte_array(output).view(np.uint16 if dtype == "bfloat16" else dtype).reshape(tuple(shape))
        for output, dtype, shape in zip(outputs, dtypes, shapes, strict=True)
    ]


def byte_array(typed: Any) -> Array:
    """The bytes of a typed array that has its buffer for itself, as uint8."""
    return np.frombuffer(typed.buffer.to_bytes(), np.uint8)
