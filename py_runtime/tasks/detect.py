"""Object detection: boxes and scores of a model to named boxes on the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputShapeError, ProgramError, UnsupportedError
from .picture import Floats, Placement

MAX_DETECTIONS = 300


@dataclass(frozen=True)
class Box:
    """Edges in pixels of the picture."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float


@dataclass(frozen=True)
class Detection:
    label: str
    score: float
    box: Box


@dataclass(frozen=True)
class Postprocessing:
    """How a detector's output is read. boxes: "xyxy" or "cxcywh", in pixels of the input."""

    boxes: str
    score_threshold: float
    iou_threshold: float
    labels: tuple[str, ...]

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Postprocessing:
        """Read a manifest. Raises ProgramError, UnsupportedError."""
        try:
            raw = manifest["postprocessing"]
            found = cls(
                raw["boxes"],
                float(raw.get("score_threshold", 0.5)),
                float(raw.get("iou_threshold", 0.5)),
                tuple(manifest["labels"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ProgramError(f"the manifest's postprocessing can't be read: {error!r} is missing or wrong") from None
        if found.boxes not in ("xyxy", "cxcywh"):
            raise UnsupportedError(f'boxes are "{found.boxes}"; there are xyxy and cxcywh')
        return found


def postprocess(
    boxes: Floats,
    scores: Floats,
    placement: Placement,
    spec: Postprocessing,
    threshold: float | None = None,
) -> list[Detection]:
    """Detections above the threshold, the best first.

    boxes [1, P, 4], scores [1, P, classes] from 0 to 1. Each position counts for its best
    class; of boxes of one class that overlap by more than iou_threshold, the best stays.
    Raises InputShapeError when the shapes do not fit.
    """
    count = len(spec.labels)
    if boxes.ndim != 3 or boxes.shape[2] != 4 or scores.shape != (*boxes.shape[:2], count):
        raise InputShapeError(
            f"boxes {list(boxes.shape)} and scores {list(scores.shape)} should be [1, P, 4] and [1, P, {count}]"
        )
    classes = scores[0].argmax(1)
    best = scores[0].max(1)
    chosen = np.flatnonzero(best >= (spec.score_threshold if threshold is None else threshold))
    edges = on_picture(boxes[0, chosen], placement, spec.boxes)
    kept = suppress(edges, best[chosen], classes[chosen], spec.iou_threshold)[:MAX_DETECTIONS]
    return [
        Detection(spec.labels[int(classes[chosen[i]])], float(best[chosen[i]]), Box(*(float(v) for v in edges[i])))
        for i in kept
    ]


def on_picture(boxes: Floats, placement: Placement, kind: str) -> Floats:
    """Boxes of the model's input as xyxy on the picture, cut at its edges."""
    edges = boxes
    if kind == "cxcywh":
        half = boxes[:, 2:] / 2
        edges = np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], 1)
    (height, width), (scale_y, scale_x) = placement.picture, placement.scale
    scaled = edges / np.array([scale_x, scale_y, scale_x, scale_y], np.float32)
    return np.clip(scaled, 0, np.array([width, height, width, height], np.float32)).astype(np.float32)


def suppress(edges: Floats, scores: Floats, classes: npt.NDArray[Any], limit: float) -> Sequence[int]:
    """Non-maximum suppression within each class: indices that stay, the best first."""
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while order.size:
        first, rest = int(order[0]), order[1:]
        kept.append(first)
        same = classes[rest] == classes[first]
        order = rest[~(same & (overlap(edges[first], edges[rest]) > limit))]
    return kept


def overlap(box: Floats, others: Floats) -> Floats:
    """Intersection over union of one box with others, all xyxy."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    inner = np.prod(np.clip(high - low, 0, None), axis=1)
    area = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], axis=1) - inner
    return np.asarray(inner / np.maximum(area, np.finfo(np.float32).tiny), np.float32)
