"""Programs that the tests run, with inputs and what PyTorch makes of them.

    python -m export.goldens

Written to `.cache/goldens/`: NAME.pte, NAME.json and NAME.npz (in0 …, out0 …), and index.json.
A program is made again only when something it comes from has changed.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from py_runtime.tasks.picture import Preprocessing, preprocess

from .fetch import ROOT, WeightsError, cache_folder
from .flow_programs import FLOW, Words, two_methods
from .lower import Lowered, describe, lower
from .manifest import make_manifest
from .models import RECIPES
from .plain_models import PLAIN
from .small_programs import SMALL

EXPORTED = SMALL | FLOW | PLAIN
SAMPLE = ROOT / "web" / "samples" / "astronaut.png"
EXTERNAL_BYTES = 4000  # more than the largest weight of the small network, less than all
UPSCALER_TILE = 40  # pixels; the upscaler's own 128 take minutes on a software adapter


def sources() -> str:
    """A hash of all that an export depends on, apart from weights (they are pinned in the sources)."""
    state = hashlib.sha256()
    for path in sorted([*(ROOT / "export").rglob("*.py"), ROOT / "py_runtime" / "tasks" / "picture.py", SAMPLE]):
        state.update(path.read_bytes())
    for package in ("torch", "executorch"):
        state.update(importlib.metadata.version(package).encode())
    return state.hexdigest()


def sample_pixels() -> np.ndarray[Any, Any]:
    """The astronaut, RGBA bytes [512, 512, 4]."""
    from PIL import Image

    return np.asarray(Image.open(SAMPLE).convert("RGBA"))


def detector(name: str, fp16: bool) -> Callable[[Path], Lowered]:
    def make(folder: Path) -> Lowered:
        recipe = RECIPES[name](None)
        spec = Preprocessing.from_manifest({"preprocessing": recipe.preprocessing})
        image, _ = preprocess(sample_pixels(), spec)
        lowered = lower(recipe.module, recipe.example_inputs, force_fp16=fp16)
        write_manifest(folder / f"{name}.json", make_manifest(recipe, lowered.pte))
        write_golden(folder / f"{name}.npz", recipe.module, (torch.from_numpy(image),))
        return lowered

    return make


def upscaler(folder: Path) -> Lowered:
    size = (1, 3, UPSCALER_TILE, UPSCALER_TILE)
    recipe = replace(RECIPES["srvgg"](None), example_inputs=(torch.zeros(size),))
    pixels = sample_pixels()[80 : 80 + UPSCALER_TILE, 200 : 200 + UPSCALER_TILE, :3]
    image = torch.from_numpy(pixels.transpose(2, 0, 1)[None].astype(np.float32) / 255)
    lowered = lower(recipe.module, recipe.example_inputs)
    write_manifest(folder / "srvgg.json", make_manifest(recipe, lowered.pte))
    write_golden(folder / "srvgg.npz", recipe.module, (image,))
    return lowered


def small(name: str) -> Callable[[Path], Lowered]:
    def make(folder: Path) -> Lowered:
        program = EXPORTED[name]()
        write_golden(folder / f"{name}.npz", program.module, program.inputs, *program.others)
        shapes = program.dynamic_shapes
        return lower(program.module, program.inputs, dynamic_shapes=shapes, plain=program.plain, on_cpu=program.on_cpu)

    return make


def external(folder: Path) -> Lowered:
    """The convolutions with their weights in `.ptd` files."""
    program = SMALL["convolutions"]()
    write_golden(folder / "external.npz", program.module, program.inputs)
    lowered = lower(program.module, program.inputs, shard_bytes=EXTERNAL_BYTES)
    shards = {f"external-{i}.ptd": data for i, data in enumerate(lowered.data.values())}
    return replace(lowered, data=shards)


def words(folder: Path) -> Lowered:
    """An embedding on the CPU and a layer on the GPU, the weights of both in `.ptd` files."""
    module, tokens = Words().eval(), torch.tensor([[3, 0, 49, 7]])
    write_golden(folder / "words.npz", module, (tokens,))
    lowered = lower(module, (tokens,), on_cpu=("aten.embedding.default",), shard_bytes=EXTERNAL_BYTES)
    return replace(lowered, data={f"words-{i}.ptd": data for i, data in enumerate(lowered.data.values())})


def methods(folder: Path) -> Lowered:
    """Two methods in one program, with executorch's defaults."""
    from executorch.backends.webgpu.partitioner import WebGPUPartitioner
    from executorch.exir import to_edge_transform_and_lower

    programs = two_methods()
    for name, program in programs.items():
        write_golden(folder / f"methods-{name}.npz", program.module, program.inputs)
    exported = {name: torch.export.export(p.module, p.inputs, strict=False) for name, p in programs.items()}
    partitioners: Any = {name: [WebGPUPartitioner()] for name in exported}
    edge = to_edge_transform_and_lower(exported, partitioner=partitioners)
    return describe(bytes(edge.to_executorch().buffer))


PROGRAMS: dict[str, Callable[[Path], Lowered]] = {
    "nanodet": detector("nanodet", fp16=True),
    "yolox_nano": detector("yolox_nano", fp16=False),
    "srvgg": upscaler,
    "external": external,
    "words": words,
    "methods": methods,
    **{name: small(name) for name in EXPORTED},
}


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    path.write_text(json.dumps(manifest))


def write_golden(path: Path, module: nn.Module, *runs: tuple[Any, ...]) -> None:
    """Inputs and PyTorch's outputs of each run, in the module's own precision; "1_in0" is of the second run."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    module = copy.deepcopy(module)  # runs may leave something in its buffers
    for run, inputs in enumerate(runs):
        with torch.no_grad():
            outputs = module(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        prefix = f"{run}_" if run else ""
        for kind, values in (("in", inputs), ("out", outputs)):  # numbers become arrays of no dimensions
            arrays |= {f"{prefix}{kind}{i}": np.asarray(value) for i, value in enumerate(values)}
    np.savez(path, **arrays)  # type: ignore[arg-type]


def prepare(folder: Path) -> dict[str, str]:
    """Make what is missing or old; "made", "kept" or why it was left out, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    index_path = folder / "index.json"
    index: dict[str, str] = json.loads(index_path.read_text()) if index_path.exists() else {}
    state, result = sources(), {}
    for name, make in PROGRAMS.items():
        if index.get(name) == state and (folder / f"{name}.pte").exists():
            result[name] = "kept"
            continue
        try:
            lowered = make(folder)
        except WeightsError as error:
            result[name] = f"left out: {error}"
            index.pop(name, None)
            (folder / f"{name}.pte").unlink(missing_ok=True)
            continue
        (folder / f"{name}.pte").write_bytes(lowered.pte)
        for file, data in lowered.data.items():
            (folder / file).write_bytes(data)
        index[name] = state
        result[name] = "made"
        index_path.write_text(json.dumps(index))
    index_path.write_text(json.dumps(index))
    return result


def main() -> int:
    for name, what in prepare(cache_folder() / "goldens").items():
        print(f"{name}: {what}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
