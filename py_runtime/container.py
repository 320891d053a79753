"""The outside of a `.pte`: its header, and where in the file its parts are.

Format (ExecuTorch `extended_header.h`), little endian:
    0   u32  offset of the flatbuffer's root table
    4   4 B  "ET12"
    8   4 B  "eh00", when the extended header is there
    12  u32  length of that header (32; longer ones may follow)
    16  u64  bytes of the flatbuffer, which starts at 0 of the file
    24  u64  where the segments start; segment offsets count from there
    32  u64  bytes of all segments together (0 in older files)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .errors import ProgramError, TruncatedProgramError

MAGIC = b"ET12"
HEADER_MAGIC = b"eh00"
HEAD_BYTES = 40


@dataclass(frozen=True)
class Header:
    """Where the parts of the file are, in bytes from its start."""

    program_size: int
    segment_base: int
    extended: bool


@dataclass(frozen=True)
class Region:
    """`size` bytes at `offset` of the file."""

    offset: int
    size: int


def parse_header(head: bytes, file_size: int) -> Header:
    """The header of a `.pte` of `file_size` bytes; `head` is its first 40 bytes or more.

    Raises ProgramError for another kind of file, TruncatedProgramError when the file
    is shorter than the header says.
    """
    if len(head) < 8:
        raise TruncatedProgramError(
            f"the file has {file_size} bytes; a .pte has at least 8. Was the download complete?"
        )
    if head[4:8] != MAGIC:
        raise ProgramError(
            f"this is not an ExecuTorch program: bytes 4 to 8 are {head[4:8]!r}, a .pte has {MAGIC!r} there"
            f"{_guess_kind(head)}. Give the .pte that `python -m export` or to_executorch() wrote."
        )
    if head[8:12] == HEADER_MAGIC[: len(head[8:12])] and len(head) < HEAD_BYTES:
        raise TruncatedProgramError(
            f"the file has {file_size:,} bytes and ends inside its header of {HEAD_BYTES}. Fetch it again."
        )
    if head[8:12] != HEADER_MAGIC:
        return Header(program_size=file_size, segment_base=0, extended=False)
    length, program_size, segment_base, segment_size = struct.unpack_from("<IQQQ", head, 12)
    if length < 24:
        raise ProgramError(f"the extended header says it has {length} bytes; it needs at least 24")
    if length < 32:
        segment_size = 0
    needed = max(program_size, segment_base + segment_size)
    if needed > file_size:
        raise TruncatedProgramError(
            f"the file has {file_size:,} bytes but its header announces {needed:,}: the download was cut. "
            "Fetch it again."
        )
    return Header(program_size, segment_base, extended=True)


def _guess_kind(head: bytes) -> str:
    for magic, kind in KINDS:
        if head.lstrip()[: len(magic)].lower() == magic:
            return f" (it looks like {kind})"
    return ""


KINDS = (
    (b"<", "an HTML page: is the address right?"),
    (b"pk\x03\x04", "a zip archive, as torch.save writes"),
    (b"\x08", "an ONNX model"),
    (b"{", "JSON"),
    (b"gguf", "GGUF"),
    (b"version https://git-lfs", "a Git LFS pointer: fetch the real file"),
)


@contextmanager
def broken_file(what: str) -> Iterator[None]:
    """Turn what a reader raises on nonsense bytes into ProgramError."""
    try:
        yield
    except NONSENSE as error:
        raise ProgramError(f"the {what} is damaged: {error or 'its parts do not fit'}. {AGAIN}") from error


AGAIN = "Export or fetch the file again."
NONSENSE = (struct.error, LookupError, TypeError, ValueError, ArithmeticError, RecursionError, AssertionError)


class Items:
    """Counts the items of all lists of a flatbuffer of `size` bytes: it can't have more items than bytes.

    Without that, a list that many others are made to overlap would take minutes to read.
    """

    def __init__(self, size: int) -> None:
        self.size = self.left = size

    def checked(self, count: int) -> int:
        """The length of one more list; raises ProgramError where it can't be true."""
        self.left -= count
        if self.left < 0:
            raise ProgramError(f"lists of {self.size - self.left:,} items can't be in {self.size:,} bytes. {AGAIN}")
        return count


def filled(table: Any, union: Any) -> Any:
    """A flatbuffer union's table as the kind that it is; raises ValueError where it is missing."""
    if union is None:
        raise ValueError("a value's kind is given, the value is missing")
    table.Init(union.Bytes, union.Pos)
    return table


def text(raw: bytes | None) -> str:
    """A flatbuffer string; raises ValueError where a required one is missing or no text."""
    if raw is None:
        raise ValueError("a name is missing")
    return raw.decode()
