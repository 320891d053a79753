"""What a `.pte` holds and needs, from the file alone: `python -m export check` and `inspect`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from py_runtime.check import Prepared, Problem, cpu_operators, raise_problems
from py_runtime.container import Region, parse_header
from py_runtime.crossings import crossings
from py_runtime.errors import PteronError
from py_runtime.kernels import Target
from py_runtime.merge import GpuStep
from py_runtime.method import metadata_of
from py_runtime.plan import Plan, total_bytes
from py_runtime.preparation import Parsed, parse_files, prepare_methods
from py_runtime.program import ListValue, MethodPlan, TensorValue
from py_runtime.steps import CpuStep, KernelTraits, MoveStep, Step
from py_runtime.tensor_file import head_size

FIRST_BYTES = 64

T = TypeVar("T")


@dataclass(frozen=True)
class Opened:
    """Files on disk, parsed and planned: `.pte` first, then its `.ptd`s."""

    paths: tuple[Path, ...]
    parsed: Parsed
    prepared: dict[str, Prepared]
    problems: tuple[Problem, ...]


def open_files(paths: Sequence[Path], target: Target) -> Opened:
    """Plan a program for a device with these limits.

    Raises ProgramError or TruncatedProgramError where the files can't be read, OSError.
    """

    async def read(region: Region) -> bytes:
        return _bytes(paths[0], region.offset, region.size)

    async def kernels() -> Mapping[str, KernelTraits]:
        from py_runtime.fallback import KERNELS

        return KERNELS

    parsed = parse_files([_head(path, at == 0) for at, path in enumerate(paths)])
    prepared, problems = finished(prepare_methods(parsed, read, kernels, target))
    return Opened(tuple(paths), parsed, prepared, tuple(problems))


def finished(coroutine: Coroutine[object, None, T]) -> T:
    """What a coroutine returns which has nothing to wait for, as files on disk answer at once.

    No event loop is started: where one runs already, as in a notebook, a second one is refused.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("reading a file on disk waited for an event loop")


def _bytes(path: Path, offset: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(size)


def _head(path: Path, program: bool) -> tuple[bytes, int]:
    """The head of a file, which may be far larger than memory, and the whole file's size."""
    size = path.stat().st_size
    start = _bytes(path, 0, FIRST_BYTES)
    length = parse_header(start, size).program_size if program else head_size(start)
    return _bytes(path, 0, min(max(length, FIRST_BYTES), size)), size


def problem_text(opened: Opened) -> str | None:
    """What loading the program in a browser would say; None if it runs."""
    try:
        raise_problems(list(opened.problems))
    except PteronError as error:
        return f"{type(error).__name__}: {error}"
    return None


def summary(opened: Opened) -> dict[str, object]:
    """The estimates of `check`: bytes to download, and for each method dispatches and bytes of GPU memory.

    Bytes of weights are those that a run reads as they are in the file; while a program loads all of
    its weights are on the GPU.
    """
    return {
        "download_bytes": sum(path.stat().st_size for path in opened.paths),
        "problem": problem_text(opened),
        "methods": {name: _estimate(prepared) for name, prepared in opened.prepared.items()},
    }


def _estimate(prepared: Prepared) -> dict[str, object]:
    plans = prepared.plans.values()
    moved = crossings(prepared.steps, prepared.method)
    return {
        "graphs": len(prepared.plans),
        "dispatches": sum(len(plan.run) for plan in plans),
        "cpu_operators": len(cpu_operators(prepared.steps)),
        "gpu_bytes": {"weights": weight_bytes(plans)} | total_bytes(plans),
        "crossing_bytes": sum(crossing.bytes for crossing in moved),
    }


def weight_bytes(plans: Iterable[Plan]) -> int:
    """Bytes of the constants that runs read as they are in the file."""
    weights: dict[tuple[int, int], int] = {}
    for plan in plans:
        read = {-1 - bound.buffer for step in plan.run for bound in step.bindings if bound.buffer < 0}
        for constant in (plan.constants[index] for index in read):
            assert constant.region is not None
            at = constant.file, constant.region.offset
            weights[at] = max(weights.get(at, 0), constant.size)
    return sum(weights.values())


def description(opened: Opened) -> dict[str, object]:
    """All that `inspect` shows, as plain data."""
    program = opened.parsed.program
    return {
        "files": {path.name: path.stat().st_size for path in opened.paths},
        "segments": [asdict(region) for region in program.segments],
        "named_data": {key: asdict(found) for key, found in opened.parsed.data.items()},
        "problem": problem_text(opened),
        "methods": {name: _method(method, opened.prepared.get(name)) for name, method in program.methods.items()},
    }


def _method(method: MethodPlan, prepared: Prepared | None) -> dict[str, object]:
    arena = sum(method.arena_sizes)
    if prepared is None:
        return {"arena_bytes": arena, "delegates": [delegate.backend for delegate in method.delegates]}
    metadata = metadata_of(method)
    steps = [_step(method, prepared, at, step) for at, step in enumerate(prepared.steps.steps)]
    return {
        "arena_bytes": arena,
        "inputs": [asdict(info) for info in metadata.inputs],
        "outputs": [asdict(info) for info in metadata.outputs],
        "states": [_value(method, value) for value in prepared.steps.states],
        "steps": steps,
        "estimate": _estimate(prepared),
    }


def _step(method: MethodPlan, prepared: Prepared, at: int, step: Step) -> dict[str, object]:
    if isinstance(step, GpuStep):
        graph, plan = step.joined.graph, prepared.plans[at]
        return {
            "graph": dict(Counter(node.op for node in graph.nodes).most_common()),
            "inputs": [_value(method, v) for v in step.inputs],
            "outputs": [_value(method, v) for v in step.outputs],
            "constants": sum(tensor.constant is not None for tensor in graph.tensors.values()),
            "constant_bytes": sum(tensor.constant.size for tensor in graph.tensors.values() if tensor.constant),
            "dispatches": [f"{operator} ({route})" for operator, route in plan.routes],
        }
    if isinstance(step, CpuStep):
        return {"cpu": step.operator, "arguments": [_value(method, v) for v in step.args]}
    if isinstance(step, MoveStep):
        return {"move": _value(method, step.source), "to": _value(method, step.target)}
    return {"if_not": _value(method, step.condition), "go_to": step.target}


def _value(method: MethodPlan, value: int) -> str:
    """A value of a method in a few words: its number, and what it is."""
    if value == -1:
        return "None"
    kind = method.values[value]
    if isinstance(kind, ListValue):
        return f"[{', '.join(_value(method, item) for item in kind.items)}]"
    if not isinstance(kind, TensorValue):
        return f"%{value} = {kind!r}"
    shape = ", ".join(map(str, kind.shape))
    return f"%{value} {kind.dtype.name}[{'≤ ' * kind.dynamic}{shape}]"
