"""Where tensors live on the GPU: lifetimes to a few arenas.

WebGPU lets one dispatch not write a buffer that it also reads, so one arena for all
would not do: tensors go to banks, each one buffer, such that no dispatch reads and
writes the same bank. Within a bank, tensors whose lifetimes do not meet share memory
(greedy by size, first fit, as in Pisarchyk and Lee, "Efficient Memory Management for
Deep Neural Net Inference", 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import LimitError


@dataclass(frozen=True)
class Lifetime:
    """A root tensor: its bytes, and the first and last dispatch that needs it."""

    tensor: int
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class Slot:
    """Where a root tensor lies: which bank, and the byte offset in it."""

    bank: int
    offset: int
    size: int


@dataclass(frozen=True)
class Arena:
    """The banks' sizes in bytes, and the slot of each root tensor."""

    banks: tuple[int, ...]
    slots: dict[int, Slot]

    @property
    def size(self) -> int:
        return sum(self.banks)


def plan_memory(
    lifetimes: Sequence[Lifetime],
    steps: Sequence[tuple[frozenset[int], frozenset[int]]],
    alignment: int,
    bank_limit: int,
) -> Arena:
    """Give every lifetime a slot.

    steps: for each dispatch the root tensors that it reads and that it writes.
    alignment: bytes, of slot offsets. bank_limit: bytes a bank may have.
    Raises LimitError for a tensor larger than a bank may be.
    """
    rivals: dict[int, set[int]] = {life.tensor: set() for life in lifetimes}
    for reads, writes in steps:
        for written in writes & rivals.keys():
            for other in reads & rivals.keys():
                rivals[written].add(other)
                rivals[other].add(written)
    taken: list[list[tuple[Lifetime, Slot]]] = []
    sizes: list[int] = []
    slots: dict[int, Slot] = {}
    for life in sorted(lifetimes, key=lambda x: (-x.size, x.first, x.tensor)):
        if life.size > bank_limit:
            raise LimitError(
                f"one tensor needs {life.size:,} bytes; a buffer of this device holds {bank_limit:,}. "
                "Export the model for smaller inputs."
            )
        banned = {slots[r].bank for r in rivals[life.tensor] if r in slots}
        best: tuple[int, int, int] | None = None  # growth, bank, offset
        for bank in range(len(taken)):
            if bank in banned:
                continue
            offset = _first_fit(life, taken[bank], alignment)
            end = offset + life.size
            growth = max(0, end - sizes[bank])
            if end <= bank_limit and (best is None or growth < best[0]):
                best = (growth, bank, offset)
        if best is None:
            taken.append([])
            sizes.append(0)
            best = (life.size, len(taken) - 1, 0)
        _, bank, offset = best
        slot = Slot(bank, offset, life.size)
        slots[life.tensor] = slot
        taken[bank].append((life, slot))
        sizes[bank] = max(sizes[bank], offset + life.size)
    return Arena(tuple(sizes), slots)


def _first_fit(life: Lifetime, taken: list[tuple[Lifetime, Slot]], alignment: int) -> int:
    """The lowest aligned offset free for the whole lifetime."""
    busy = sorted(
        (slot.offset, slot.offset + slot.size)
        for other, slot in taken
        if other.first <= life.last and life.first <= other.last
    )
    offset = 0
    for start, end in busy:
        if offset + life.size <= start:
            break
        offset = max(offset, -(-end // alignment) * alignment)
    return offset
