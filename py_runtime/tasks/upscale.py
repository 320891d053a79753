"""Upscaling with a model of fixed input size: tiles that overlap, blended at their seams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .picture import Bytes, Floats, Preprocessing, normalise, to_rgb

OVERLAP = 16  # pixels of the input that neighbouring tiles share


def starts(length: int, tile: int) -> list[int]:
    """Where tiles of one axis start, so that they cover it and neighbours overlap."""
    if length <= tile:
        return [0]
    step = tile - OVERLAP
    count = -(-(length - OVERLAP) // step)
    return [min(i * step, length - tile) for i in range(count)]


def tiles(pixels: npt.NDArray[Any], spec: Preprocessing) -> Iterator[tuple[tuple[int, int], Floats]]:
    """((y, x), input [1, 3, h, w]) of each tile; small pictures are padded by their edges."""
    rgb = to_rgb(pixels)
    height, width = spec.size
    short = (max(0, height - rgb.shape[0]), max(0, width - rgb.shape[1]))
    padded = np.pad(rgb, ((0, short[0]), (0, short[1]), (0, 0)), mode="edge")
    for y in starts(rgb.shape[0], height):
        for x in starts(rgb.shape[1], width):
            yield (y, x), normalise(padded[y : y + height, x : x + width], spec)[None]


class Canvas:
    """Collects upscaled tiles; weights fall off towards a tile's edges, so seams do not show."""

    def __init__(self, picture: tuple[int, int], factor: int) -> None:
        self.size = (picture[0] * factor, picture[1] * factor)
        self.factor = factor
        self.sum = np.zeros((*self.size, 3), np.float32)
        self.weight = np.zeros((*self.size, 1), np.float32)

    def add(self, at: tuple[int, int], tile: Floats) -> None:
        """tile [1, 3, h, w] from 0 to 1, at a place of the input."""
        rows = tile[0].transpose(1, 2, 0)
        y, x = at[0] * self.factor, at[1] * self.factor
        height = min(rows.shape[0], self.size[0] - y)
        width = min(rows.shape[1], self.size[1] - x)
        ramp = [self.ramp(n) for n in rows.shape[:2]]
        weight = (ramp[0][:, None] * ramp[1][None, :])[:height, :width, None]
        self.sum[y : y + height, x : x + width] += rows[:height, :width] * weight
        self.weight[y : y + height, x : x + width] += weight

    def ramp(self, length: int) -> Floats:
        edge = OVERLAP * self.factor
        distance = np.minimum(np.arange(length), np.arange(length)[::-1]) + 1
        return np.minimum(distance / edge, 1.0).astype(np.float32)

    def pixels(self) -> Bytes:
        """The picture so far, RGBA bytes."""
        rgb = np.clip(self.sum / np.maximum(self.weight, 1e-9) * 255 + 0.5, 0, 255).astype(np.uint8)
        return np.concatenate([rgb, np.full((*self.size, 1), 255, np.uint8)], 2)
