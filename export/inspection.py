"""`python -m export check FILE` and `python -m export inspect FILE`: a `.pte` in words, without a browser or torch."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from py_runtime.errors import PteronError
from py_runtime.kernels import Target

from .offline import description, open_files, summary


def main(command: str, given: Sequence[str]) -> int:
    """Run one of the two commands. Exit codes: 0, 1 for a program that can't run, 2 for files that can't be read."""
    options = _arguments(command, given)
    try:
        opened = open_files([options.file, *options.data], Target(f16=options.f16))
    except (OSError, PteronError) as error:
        print(f"{options.file}: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    found = description(opened) if command == "inspect" else summary(opened)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print("\n".join(inspect_lines(found) if command == "inspect" else check_lines(options.file.name, found)))
    return 1 if found["problem"] and command == "check" else 0


def _arguments(command: str, given: Sequence[str]) -> argparse.Namespace:
    texts = {
        "check": "Say whether a .pte runs on any WebGPU device, what keeps it from that, and what it takes.",
        "inspect": "Show the methods, steps, graphs and sizes of a .pte.",
    }
    parser = argparse.ArgumentParser(prog=f"python -m export {command}", description=texts[command])
    parser.add_argument("file", type=Path, help="a .pte")
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="its .ptd files")
    parser.add_argument("--f16", action="store_true", help="for a device with shader-f16; else halves are widened")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return parser.parse_args(given)


def check_lines(name: str, found: dict[str, Any]) -> list[str]:
    """The text of `check`."""
    lines = [f"{name}: {found['problem'] or 'runs'}", f"  download {found['download_bytes']:,} bytes"]
    for method, estimate in found["methods"].items():
        lines.append(f"  {method}: {estimate_text(estimate)}")
    return lines


def estimate_text(estimate: dict[str, Any]) -> str:
    uses = estimate["gpu_bytes"]
    parts = ", ".join(f"{size:,} {use}" for use, size in uses.items() if size)
    return (
        f"{estimate['graphs']} graphs with {estimate['dispatches']} dispatches, {estimate['cpu_operators']} operators "
        f"on the CPU, {estimate['crossing_bytes']:,} bytes cross between them in a run; GPU memory "
        f"{sum(uses.values()):,} bytes ({parts})"
    )


def inspect_lines(found: dict[str, Any]) -> list[str]:
    """The text of `inspect`."""
    lines = [f"{name}: {size:,} bytes" for name, size in found["files"].items()]
    if found["problem"]:
        lines.append(found["problem"])
    segments = found["segments"]
    lines.append(f"{len(segments)} segments, {len(found['named_data'])} named data")
    for name, method in found["methods"].items():
        lines += ["", f"method {name}, {method['arena_bytes']:,} bytes planned for the CPU"]
        if "steps" not in method:
            lines.append(f"  can't run; delegates for {', '.join(method['delegates']) or 'nothing'}")
            continue
        lines += [f"  {port}: {_infos(method[port])}" for port in ("inputs", "outputs")]
        if method["states"]:
            lines.append(f"  states: {'; '.join(method['states'])}")
        lines.append(f"  {estimate_text(method['estimate'])}")
        for at, step in enumerate(method["steps"]):
            lines.extend(_step_lines(at, step))
    return lines


def _infos(infos: list[dict[str, Any]]) -> str:
    return "; ".join(f"{info['dtype']}[{'≤ ' * info['dynamic']}{', '.join(map(str, info['shape']))}]" for info in infos)


def _step_lines(at: int, step: dict[str, Any]) -> list[str]:
    if "cpu" in step:
        return [f"  {at:4} CPU {step['cpu']}({'; '.join(step['arguments'])})"]
    if "move" in step:
        return [f"  {at:4} move {step['move']} to {step['to']}"]
    if "if_not" in step:
        return [f"  {at:4} if not {step['if_not']}: go to {step['go_to']}"]
    size = f"{step['constants']} constants of {step['constant_bytes']:,} bytes"
    lines = [f"  {at:4} GPU {'; '.join(step['inputs'])} to {'; '.join(step['outputs'])}, {size}"]
    lines += [f"         {count:4} {operator}" for operator, count in step["graph"].items()]
    return [*lines, *(f"         dispatch {number}: {text}" for number, text in enumerate(step["dispatches"]))]
