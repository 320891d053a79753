"""Pictures as arrays: resizing, and a manifest's preprocessing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputDtypeError, InputShapeError, ProgramError, UnsupportedError

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Preprocessing:
    """How a picture becomes a model's input: x = (pixel * scale - mean) / std, by channel.

    resize: "stretch" to the size, or "letterbox" (aspect kept, at the top left, the rest
    filled with pad). size: (height, width). channels: "RGB" or "BGR"; mean and std are in
    that order.
    """

    resize: str
    size: tuple[int, int]
    channels: str
    pad: float
    scale: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Preprocessing:
        """Read a manifest's "preprocessing". Raises ProgramError, UnsupportedError."""
        try:
            raw = manifest["preprocessing"]
            found = cls(
                raw.get("resize", "stretch"),
                (int(raw["size"][0]), int(raw["size"][1])),
                raw.get("channels", "RGB"),
                float(raw.get("pad", 0)),
                float(raw.get("scale", 1.0)),
                tuple(map(float, raw["mean"])),  # type: ignore[arg-type]
                tuple(map(float, raw["std"])),  # type: ignore[arg-type]
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ProgramError(f"the manifest's preprocessing can't be read: {error!r} is missing or wrong") from None
        if found.resize not in ("stretch", "letterbox") or found.channels not in ("RGB", "BGR"):
            raise UnsupportedError(
                f'preprocessing has resize "{found.resize}" and channels "{found.channels}"; there are stretch and '
                "letterbox, RGB and BGR"
            )
        return found


@dataclass(frozen=True)
class Placement:
    """Where a picture lies in a model's input: input = picture * scale, by axis (y, x)."""

    picture: tuple[int, int]
    scale: tuple[float, float]


def check_picture(pixels: npt.NDArray[Any]) -> Bytes:
    """RGBA bytes [height, width, 4]; InputShapeError or InputDtypeError for anything else."""
    if pixels.dtype != np.uint8:
        raise InputDtypeError(f"a picture is uint8; {pixels.dtype} is given")
    if pixels.ndim != 3 or pixels.shape[2] != 4 or 0 in pixels.shape:
        raise InputShapeError(f"a picture is [height, width, 4] (RGBA); {list(pixels.shape)} is given")
    return pixels


def resize_bilinear(picture: Floats, size: tuple[int, int]) -> Floats:
    """[h, w, c] to [size, c], bilinear between pixel centres, without antialiasing.

    The convention of OpenCV's INTER_LINEAR, with which most detectors were trained.
    """
    for axis in (0, 1):
        have, want = picture.shape[axis], size[axis]
        at = np.clip((np.arange(want, dtype=np.float32) + 0.5) * (have / want) - 0.5, 0, have - 1)
        low = np.floor(at).astype(np.intp)
        high = np.minimum(low + 1, have - 1)
        shape = [-1 if a == axis else 1 for a in range(3)]
        part = (at - low).astype(np.float32).reshape(shape)
        blended = picture.take(low, axis) * (1 - part) + picture.take(high, axis) * part
        picture = blended.astype(np.float32, copy=False)
    return picture


def to_rgb(pixels: npt.NDArray[Any]) -> Floats:
    """RGBA bytes to RGB floats from 0 to 255; what is transparent shows white."""
    rgba = check_picture(pixels).astype(np.float32)
    rgb = rgba[..., :3]
    if (pixels[..., 3] != 255).any():
        alpha = rgba[..., 3:] / 255
        rgb = (rgb * alpha + 255 * (1 - alpha)).astype(np.float32)
    return rgb


def preprocess(pixels: npt.NDArray[Any], spec: Preprocessing) -> tuple[Floats, Placement]:
    """RGBA bytes [H, W, 4] to a model's input, float32 [1, 3, height, width], and its placement."""
    rgb = to_rgb(pixels)
    picture = (rgb.shape[0], rgb.shape[1])
    height, width = spec.size
    if spec.resize == "stretch":
        scale = (height / picture[0], width / picture[1])
        fitted = resize_bilinear(rgb, spec.size)
    else:
        factor = min(height / picture[0], width / picture[1])
        scale = (factor, factor)
        inner = (max(1, round(picture[0] * factor)), max(1, round(picture[1] * factor)))
        fitted = np.full((height, width, 3), spec.pad, np.float32)
        fitted[: inner[0], : inner[1]] = resize_bilinear(rgb, inner)
    return normalise(fitted, spec)[None], Placement(picture, scale)


def normalise(rgb: Floats, spec: Preprocessing) -> Floats:
    """RGB floats [h, w, 3] to [3, h, w] in the model's channel order and range."""
    ordered = rgb[..., ::-1] if spec.channels == "BGR" else rgb
    mean, std = np.array(spec.mean, np.float32), np.array(spec.std, np.float32)
    scaled = (ordered * np.float32(spec.scale) - mean) / std
    return np.ascontiguousarray(scaled.transpose(2, 0, 1), dtype=np.float32)
