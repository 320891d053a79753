"""A server of one file with the faults that networks have, which counts what it sends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from serve import HEADERS

PIECE_BYTES = 1 << 16


@dataclass
class Deliveries:
    """Serves `content`.

    ranges: whether parts can be had. length: whether the size is told. cuts: after how many bytes the first,
    second, … connection for more than a few KiB breaks. pause_s: between pieces of 64 KiB.
    asked: what was asked for, as (first byte, bytes sent).
    """

    content: bytes
    ranges: bool = True
    length: bool = True
    cuts: list[int] = field(default_factory=list)
    pause_s: float = 0.0
    asked: list[list[int]] = field(default_factory=list)

    def sent(self) -> int:
        """Bytes sent in all."""
        return sum(count for _, count in self.asked)

    async def answer(self, request: Any) -> Any:
        from starlette.responses import StreamingResponse

        found = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", "")) if self.ranges else None
        size = len(self.content)
        first = int(found[1]) if found else 0
        end = min(int(found[2]) + 1 if found and found[2] else size, size)
        headers = dict(HEADERS)
        if found:
            headers["content-range"] = f"bytes {first}-{end - 1}/{size}"
        cut = self.cuts.pop(0) if self.cuts and end - first > PIECE_BYTES else None
        if self.length:
            headers["content-length"] = str(end - first)
        parts = self._parts(first, end if cut is None else min(first + cut, end), broken=cut is not None)
        return StreamingResponse(parts, 206 if found else 200, headers, "application/octet-stream")

    async def _parts(self, first: int, end: int, broken: bool) -> AsyncIterator[bytes]:
        asked = [first, 0]
        self.asked.append(asked)
        for at in range(first, end, PIECE_BYTES):
            part = self.content[at : min(at + PIECE_BYTES, end)]
            asked[1] += len(part)
            yield part
            await asyncio.sleep(self.pause_s)
        if broken:
            raise ConnectionResetError("a test cuts this connection")
