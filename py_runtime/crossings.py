"""What crosses between CPU and GPU in a run, for the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .merge import GpuStep, Slot, slot_of
from .program import MethodPlan, TensorValue
from .steps import CpuStep, JumpStep, MethodSteps, MoveStep


@dataclass(frozen=True)
class Crossing:
    """A tensor that goes "to GPU" or "to CPU", its largest size, and for whom: a step or the caller."""

    direction: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    reason: str


def crossings(steps: MethodSteps, method: MethodPlan) -> tuple[Crossing, ...]:
    """All crossings of a run but the first, in which states start on the CPU; each branch counts as taken once."""
    on_gpu: set[Slot] = set()
    for _ in _walk(steps, method, on_gpu):
        pass
    on_gpu &= {slot_of(method, value) for value in steps.states}
    return tuple(_walk(steps, method, on_gpu))


def _walk(steps: MethodSteps, method: MethodPlan, on_gpu: set[Slot]) -> Iterator[Crossing]:
    """The crossings of a run; on_gpu: what is on the GPU before, and after, the run. `here` has been read already."""
    here: set[Slot] = set()

    def read(values: Sequence[int], reason: str) -> Iterator[Crossing]:
        for value in values:
            slot = slot_of(method, value)
            if slot in on_gpu and slot not in here:
                here.add(slot)
                yield _crossing("to CPU", method, value, reason)

    for number, step in enumerate(steps.steps):
        if isinstance(step, GpuStep):
            name = f"step {number}, graph"
            yield from read([step.inputs[element.input] for element in step.elements], name)
            for value in step.inputs:
                if slot_of(method, value) not in on_gpu:
                    yield _crossing("to GPU", method, value, name)
            for i, value in enumerate(step.outputs):
                slot = slot_of(method, value)
                here.discard(slot)
                on_gpu.add(slot)
                if steps.whole or step.read[i]:
                    yield from read([value], name)
                if not steps.whole and not step.keep[i]:
                    on_gpu.discard(slot)
        elif isinstance(step, CpuStep):
            yield from read(step.reads, f"step {number}, {step.operator}")
            on_gpu.difference_update(slot_of(method, value) for value in step.writes)
        elif isinstance(step, MoveStep):
            source, target = slot_of(method, step.source), slot_of(method, step.target)
            for places in (on_gpu, here):
                places.discard(target)
                if source in places:
                    places.add(target)
        elif isinstance(step, JumpStep):
            yield from read([step.condition], f"step {number}, jump")
    yield from read(method.outputs, "the caller")


def _crossing(direction: str, method: MethodPlan, value: int, reason: str) -> Crossing:
    kind = method.values[value]
    assert isinstance(kind, TensorValue)
    return Crossing(direction, kind.dtype.name, kind.shape, math.prod(kind.shape) * kind.dtype.size, reason)
