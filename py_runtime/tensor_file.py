"""`.ptd` files: named tensors outside a program.

Format (ExecuTorch `flat_tensor.fbs`), little endian: u32 root offset; "FT01" at 4; at 8 the
header "FH01", u32 its length (40), u64 flatbuffer offset, u64 flatbuffer size, u64 segment
base, u64 segment bytes.
"""

from __future__ import annotations

import struct

from .container import Region, broken_file, text
from .errors import ProgramError, TruncatedProgramError
from .schema import flat_tensor as fb

MAGIC = b"FT01"
HEADER_MAGIC = b"FH01"


def parse_tensor_file(head: bytes, file_size: int) -> dict[str, Region]:
    """Where each named tensor of a `.ptd` lies, in bytes from the file's start.

    head: the file's start, through the flatbuffer. Raises ProgramError or
    TruncatedProgramError.
    """
    if len(head) < 48 or head[4:8] != MAGIC or head[8:12] != HEADER_MAGIC:
        raise ProgramError(f"this is not a tensor file (.ptd): it should have {MAGIC!r} at byte 4, not {head[4:8]!r}")
    offset, size, base, data_size = struct.unpack_from("<QQQQ", head, 16)
    if max(offset + size, base + data_size) > file_size or offset + size > len(head):
        raise TruncatedProgramError(
            f"the tensor file has {file_size:,} bytes; its header announces {base + data_size:,}. Fetch it again."
        )
    with broken_file("tensor file"):
        root = fb.FlatTensor.GetRootAs(head, 0)
        segments = [root.Segments(i) for i in range(_checked(root.SegmentsLength(), head))]
        regions = [Region(base + s.Offset(), s.Size()) for s in segments]
        found = {}
        for i in range(_checked(root.NamedDataLength(), head)):
            entry = root.NamedData(i)
            if entry.SegmentIndex() >= len(regions):
                raise ProgramError(f"a tensor is in segment {entry.SegmentIndex()}; the file has {len(regions)}")
            region = regions[entry.SegmentIndex()]
            if region.offset + region.size > file_size:
                raise TruncatedProgramError(f"a segment of the tensor file ends behind its {file_size:,} bytes")
            found[text(entry.Key())] = region
    return found


def head_size(start: bytes) -> int:
    """How long the head of a tensor file is, from its first 48 bytes or more; 0 if it is none."""
    if len(start) < 48 or start[4:8] != MAGIC:
        return 0
    offset, size = struct.unpack_from("<QQ", start, 16)
    return int(offset + size)


def _checked(count: int, data: bytes) -> int:
    if count > len(data):
        raise ProgramError(f"a list of {count:,} items can't be in {len(data):,} bytes")
    return count
