"""Damage for fuzzing: a `.pte` with some of its structure changed, the same for a seed each time.

What a reader follows is damaged, not the weights: the program at the file's head, the header
and graph of each delegate, and the sizes and offsets within them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from py_runtime.container import Region, parse_header
from py_runtime.program import parse_program

HUGE = (0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 0x10000000, 0x00FFFFFF, 65536)
WIDE = (-1, 1 << 62, -(1 << 63), 1 << 32, (1 << 31) - 1, 0)
COUNT_LIMIT = 4096  # a word below it may well be the length of a vector or a dimension
DELEGATE_HEADER = 30  # bytes, of which 8 to 18 say where its graph lies
TRIES = 64


@dataclass(frozen=True)
class Specimen:
    """A real file, and where its structure lies."""

    name: str
    data: bytes
    parts: tuple[Region, ...]


def read_specimen(path: Path) -> Specimen:
    data = path.read_bytes()
    program = parse_program(data, len(data))
    delegates = {d.region for m in program.methods.values() for d in m.delegates if d.region is not None}
    parts = [Region(0, parse_header(data, len(data)).program_size)]
    for region in sorted(delegates, key=lambda region: region.offset):
        offset, size = struct.unpack_from("<II", data, region.offset + 10)
        parts.append(Region(region.offset, DELEGATE_HEADER))
        parts.append(Region(region.offset + offset, size))
    return Specimen(path.stem, data, tuple(parts))


def mutate(specimen: Specimen, seed: int) -> tuple[str, bytes]:
    """One damaged file and what was done to it, for an error's text."""
    rng = random.Random(f"{specimen.name} {seed}")
    kind, damage = rng.choice(DAMAGE)
    data = bytearray(specimen.data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        if data:
            damage(rng, data, rng.choice(specimen.parts))
    return f"{specimen.name}, seed {seed}, {kind}", bytes(data)


def _word(rng: random.Random, data: bytearray, part: Region, size: int) -> int:
    """Where an aligned word of a part lies; alignment counts from the part's start, as a flatbuffer's does."""
    last = max(min(part.size, len(data) - part.offset) - size, 0)
    return min(part.offset + rng.randint(0, last) // size * size, max(len(data) - size, 0))


def _flip(rng: random.Random, data: bytearray, part: Region) -> None:
    data[_word(rng, data, part, 1)] ^= 1 << rng.randrange(8)


def _cut(rng: random.Random, data: bytearray, part: Region) -> None:
    del data[_word(rng, data, part, 1) :]


def _excise(rng: random.Random, data: bytearray, part: Region) -> None:
    """Bytes lost in the middle: all behind them has moved."""
    at = _word(rng, data, part, 1)
    del data[at : at + rng.choice((1, 4, 16, 256))]


def _splice(rng: random.Random, data: bytearray, part: Region) -> None:
    """A word, or a piece, of the structure in place of another: offsets that lead elsewhere."""
    size = rng.choice((4, 4, 8, 64))
    source, target = _word(rng, data, part, size), _word(rng, data, part, size)
    data[target : target + size] = data[source : source + size]


def _shift(rng: random.Random, data: bytearray, part: Region) -> None:
    """An offset, or a number, a little off."""
    at = _word(rng, data, part, 4)
    value = int.from_bytes(data[at : at + 4], "little") + rng.choice((-8, -4, -1, 1, 4, 8))
    data[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")


def _count(rng: random.Random, data: bytearray, part: Region) -> None:
    """A small number made huge: the length of a vector, a dimension, an index."""
    for _ in range(TRIES):
        at = _word(rng, data, part, 4)
        if 0 < int.from_bytes(data[at : at + 4], "little") < COUNT_LIMIT:
            data[at : at + 4] = rng.choice(HUGE).to_bytes(4, "little")
            return


def _wide(rng: random.Random, data: bytearray, part: Region) -> None:
    at = _word(rng, data, part, 8)
    data[at : at + 8] = rng.choice(WIDE).to_bytes(8, "little", signed=True)


def _same(rng: random.Random, data: bytearray, part: Region) -> None:
    """A piece filled with one byte."""
    at = _word(rng, data, part, 4)
    size = min(rng.choice((4, 16, 64)), len(data) - at)
    data[at : at + size] = bytes([rng.choice((0, 1, 0xFF))]) * size


Damage = Callable[[random.Random, bytearray, Region], None]
DAMAGE: tuple[tuple[str, Damage], ...] = (
    ("bits flipped", _flip),
    ("bits flipped", _flip),
    ("cut", _cut),
    ("bytes lost", _excise),
    ("offsets spliced", _splice),
    ("offsets spliced", _splice),
    ("numbers off", _shift),
    ("huge counts", _count),
    ("huge counts", _count),
    ("huge integers", _wide),
    ("overwritten", _same),
)
