"""The element types of programs and graphs, in one table.

Codes: `scalar_type.fbs` (ExecuTorch's c10 numbering) for the program, `VkDataType` of
the delegate schema for graphs.
"""

from dataclasses import dataclass

from .errors import UnsupportedError


@dataclass(frozen=True)
class DType:
    """One element type.

    name: as in NumPy and in the JavaScript API ("float32").
    size: bytes an element takes in a file and in the caller's arrays.
    storage: the WGSL type of an element in GPU memory; types that WGSL cannot address
        one by one are widened to 32 bits there.
    """

    name: str
    size: int
    storage: str

    @property
    def is_float(self) -> bool:
        return self.name in ("float16", "bfloat16", "float32", "float64")

    def __repr__(self) -> str:
        return self.name


BOOL = DType("bool", 1, "u32")
UINT8 = DType("uint8", 1, "u32")
INT8 = DType("int8", 1, "i32")
INT16 = DType("int16", 2, "i32")
INT32 = DType("int32", 4, "i32")
INT64 = DType("int64", 8, "i32")
FLOAT16 = DType("float16", 2, "f16")
BFLOAT16 = DType("bfloat16", 2, "f32")
UINT16 = DType("uint16", 2, "u32")
UINT32 = DType("uint32", 4, "u32")
UINT64 = DType("uint64", 8, "u32")
FLOAT32 = DType("float32", 4, "f32")
FLOAT64 = DType("float64", 8, "f32")

SCALAR_TYPES = {
    0: UINT8,
    1: INT8,
    2: INT16,
    3: INT32,
    4: INT64,
    5: FLOAT16,
    6: FLOAT32,
    7: FLOAT64,
    11: BOOL,
    15: BFLOAT16,
    27: UINT16,
    28: UINT32,
    29: UINT64,
}
VK_TYPES = {
    0: BOOL,
    1: UINT8,
    2: INT8,
    3: INT32,
    4: FLOAT16,
    5: FLOAT32,
    6: FLOAT64,
    7: INT64,
}

#: Bytes of one element in GPU memory, by its WGSL type.
STORAGE_SIZE = {"f16": 2, "f32": 4, "i32": 4, "u32": 4}


def from_scalar_type(code: int) -> DType:
    """The dtype of a program tensor's `scalar_type`; UnsupportedError for others."""
    return _find(SCALAR_TYPES, code, "program")


def from_vk_type(code: int) -> DType:
    """The dtype of a delegate tensor's `datatype`; UnsupportedError for others."""
    return _find(VK_TYPES, code, "delegate")


def _find(table: dict[int, DType], code: int, where: str) -> DType:
    try:
        return table[code]
    except KeyError:
        known = ", ".join(dtype.name for dtype in table.values())
        raise UnsupportedError(
            f"a {where} tensor has element type code {code}, which Pteron does not know; it knows {known}"
        ) from None
