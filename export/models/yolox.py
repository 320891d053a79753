"""YOLOX-nano: a detector of the 80 COCO classes with depthwise convolutions.

Architecture: https://github.com/Megvii-BaseDetection/YOLOX (Ge et al., "YOLOX: Exceeding YOLO
Series in 2021"), depth 0.33, width 0.25. Weights: an ONNX file of the released model, batch
norm folded, given with --weights or found in the test data.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ..fetch import WeightsError, test_data
from ..recipe import COCO_LABELS, Recipe

SIZE = 416
STRIDES = (8, 16, 32)
CLASSES = len(COCO_LABELS)


class Conv(nn.Module):
    """Convolution and SiLU."""

    def __init__(self, channels: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.conv(x))


def separable(channels: int, out: int, stride: int = 1) -> nn.Sequential:
    """Depthwise 3x3, then pointwise."""
    return nn.Sequential(Conv(channels, channels, 3, stride, channels), Conv(channels, out))


class Bottleneck(nn.Module):
    def __init__(self, channels: int, shortcut: bool) -> None:
        super().__init__()
        self.reduce = Conv(channels, channels)
        self.conv = separable(channels, channels)
        self.shortcut = shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(self.reduce(x))
        return y + x if self.shortcut else y


class CSP(nn.Module):
    """Bottlenecks on one half, nothing on the other, joined."""

    def __init__(self, channels: int, out: int, blocks: int = 1, shortcut: bool = False) -> None:
        super().__init__()
        half = out // 2
        self.main = Conv(channels, half)
        self.side = Conv(channels, half)
        self.blocks = nn.Sequential(*(Bottleneck(half, shortcut) for _ in range(blocks)))
        self.join = Conv(out, out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        main, side = self.main(x), self.side(x)
        return self.join(torch.cat([self.blocks(main), side], 1))


class SPP(nn.Module):
    """Spatial pyramid pooling with windows of 5, 9 and 13."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.reduce = Conv(channels, channels // 2)
        self.join = Conv(2 * channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.reduce(x)
        return self.join(torch.cat([x, *(F.max_pool2d(x, k, 1, k // 2) for k in (5, 9, 13))], 1))


class Head(nn.Module):
    """One level's rows [1, 85, h, w]: box, objectness, classes."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.stem = Conv(channels, 64)
        self.class_convs = nn.Sequential(separable(64, 64), separable(64, 64))
        self.classes = nn.Conv2d(64, CLASSES, 1)
        self.box_convs = nn.Sequential(separable(64, 64), separable(64, 64))
        self.box = nn.Conv2d(64, 4, 1)
        self.objectness = nn.Conv2d(64, 1, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.stem(x)
        boxes = self.box_convs(x)
        scores = self.classes(self.class_convs(x)).sigmoid() * self.objectness(boxes).sigmoid()
        return self.box(boxes), scores


class YOLOX(nn.Module):
    """image [1, 3, 416, 416], BGR from 0 to 255, to boxes [1, 3549, 4] and scores [1, 3549, 80].

    Boxes are centre x, centre y, width, height in pixels of the input. The order of the
    modules is the order of the convolutions in the ONNX graph.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = Conv(12, 16, 3)
        self.dark2 = nn.Sequential(separable(16, 32, 2), CSP(32, 32, 1, True))
        self.dark3 = nn.Sequential(separable(32, 64, 2), CSP(64, 64, 3, True))
        self.dark4 = nn.Sequential(separable(64, 128, 2), CSP(128, 128, 3, True))
        self.dark5 = nn.Sequential(separable(128, 256, 2), SPP(256), CSP(256, 256))
        self.lateral = Conv(256, 128)
        self.up4 = CSP(256, 128)
        self.reduce = Conv(128, 64)
        self.up3 = CSP(128, 64)
        self.down4 = separable(64, 64, 2)
        self.out4 = CSP(128, 128)
        self.down5 = separable(128, 128, 2)
        self.out5 = CSP(256, 256)
        self.heads = nn.ModuleList([Head(c) for c in (64, 128, 256)])
        offsets, scales = [], []
        for stride in STRIDES:
            at = torch.arange(float(SIZE // stride))
            y, x = torch.meshgrid(at, at, indexing="ij")
            offsets.append(torch.stack([x, y], -1).reshape(-1, 2) * stride)
            scales.append(torch.full((offsets[-1].shape[0], 1), float(stride)))
        self.register_buffer("offsets", torch.cat(offsets)[None])
        self.register_buffer("scales", torch.cat(scales)[None])

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, odd = image[:, :, ::2], image[:, :, 1::2]
        x = self.stem(torch.cat([rows[..., ::2], odd[..., ::2], rows[..., 1::2], odd[..., 1::2]], 1))
        c3 = self.dark3(self.dark2(x))
        c4 = self.dark4(c3)
        p5 = self.lateral(self.dark5(c4))
        p4 = self.reduce(self.up4(torch.cat([F.interpolate(p5, scale_factor=2.0), c4], 1)))
        n3 = self.up3(torch.cat([F.interpolate(p4, scale_factor=2.0), c3], 1))
        n4 = self.out4(torch.cat([self.down4(n3), p4], 1))
        n5 = self.out5(torch.cat([self.down5(n4), p5], 1))
        levels = [head(level) for head, level in zip(self.heads, (n3, n4, n5), strict=True)]
        boxes, scores = (torch.cat([level[i].flatten(2).transpose(1, 2) for level in levels], 1) for i in (0, 1))
        centre = boxes[..., :2] * self.scales + self.offsets
        size = boxes[..., 2:].exp() * self.scales
        return torch.cat([centre, size], 2), scores


def load_weights(module: nn.Module, path: Path) -> None:
    """Fill the convolutions from the Conv nodes of an ONNX graph, in order."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    tensors = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    nodes = [node for node in graph.node if node.op_type == "Conv"]
    convs = [m for m in module.modules() if isinstance(m, nn.Conv2d)]
    if len(nodes) != len(convs):
        raise WeightsError(f"{path.name} has {len(nodes)} convolutions; YOLOX-nano has {len(convs)}")
    for conv, node in zip(convs, nodes, strict=True):
        weight, bias = (torch.tensor(tensors[name]) for name in node.input[1:3])
        conv.load_state_dict({"weight": weight, "bias": bias})


def find_weights() -> Path:
    folder = test_data()
    path = folder / "weights" / "yolox_nano.onnx" if folder else None
    if path is None or not path.is_file():
        raise WeightsError(
            "YOLOX-nano's weights are in no package: download yolox_nano.onnx from the YOLOX project's "
            "releases and give it with --weights, or set PTERON_TEST_DATA to a folder that has weights/yolox_nano.onnx"
        )
    return path


def build(weights: Path | None = None) -> Recipe:
    """The recipe; weights: the ONNX file."""
    path = weights or find_weights()
    module = YOLOX().eval()
    load_weights(module, path)
    return Recipe(
        name="yolox_nano",
        title="YOLOX-nano",
        task="detect",
        module=module,
        example_inputs=(torch.zeros(1, 3, SIZE, SIZE),),
        inputs=("image",),
        outputs=("boxes", "scores"),
        preprocessing={
            "resize": "letterbox",
            "size": [SIZE, SIZE],
            "channels": "BGR",
            "pad": 114,
            "scale": 1.0,
            "mean": [0.0, 0.0, 0.0],
            "std": [1.0, 1.0, 1.0],
        },
        postprocessing={"boxes": "cxcywh", "score_threshold": 0.4, "iou_threshold": 0.45},
        labels=COCO_LABELS,
        source={"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
        licence="Apache-2.0 (YOLOX)",
        notice="YOLOX by Megvii.",
    )
