"""What the worker calls for tasks: a picture's pixels in, an answer as JSON or pixels out."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..runtime import Method
from . import detect, upscale
from .picture import Bytes, Preprocessing, preprocess

Run = Callable[[Method, Mapping[str, Any], Bytes, Mapping[str, Any]], Awaitable[Any]]


async def run_detect(
    method: Method, manifest: Mapping[str, Any], pixels: Bytes, options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Detections as [{ label, score, box: { xmin, ymin, xmax, ymax } }]; option: threshold."""
    spec = Preprocessing.from_manifest(manifest)
    reading = detect.Postprocessing.from_manifest(manifest)
    image, placement = preprocess(pixels, spec)
    boxes, scores = await method.execute([image])
    found = detect.postprocess(boxes, scores, placement, reading, options.get("threshold"))
    return [asdict(detection) for detection in found]


async def run_upscale(
    method: Method, manifest: Mapping[str, Any], pixels: Bytes, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The picture, larger: { width, height, pixels }."""
    spec = Preprocessing.from_manifest(manifest)
    canvas = upscale.Canvas((pixels.shape[0], pixels.shape[1]), int(manifest["postprocessing"]["factor"]))
    for at, tile in upscale.tiles(pixels, spec):
        canvas.add(at, (await method.execute([tile]))[0])
    result = canvas.pixels()
    return {"width": result.shape[1], "height": result.shape[0], "pixels": result.tobytes()}


TASKS: dict[str, Run] = {"detect": run_detect, "upscale": run_upscale}


async def run(task: str, method: Method, manifest: str, pixels: Any, width: int, height: int, options: str) -> Any:
    """Run a task on RGBA pixels (a JavaScript Uint8Array).

    Gives JSON text; a result with pixels comes as (JSON text, bytes). Raises
    UnsupportedError for a task that is not there, and what the task raises.
    """
    if task not in TASKS:
        raise UnsupportedError(f'there is no task "{task}"; there are {", ".join(TASKS)}')
    picture = np.frombuffer(pixels.to_bytes(), np.uint8).reshape(height, width, 4)
    answer = await TASKS[task](method, json.loads(manifest), picture, json.loads(options))
    if isinstance(answer, dict) and "pixels" in answer:
        return json.dumps({**answer, "pixels": None}), answer["pixels"]
    return json.dumps(answer), None
