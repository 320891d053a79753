"""A graph on the device: a plan for each set of input shapes that was run, kept bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .device import BoundPlan, Device, Files, GpuTensor, StateBuffers
from .errors import ClosedError
from .merge import GpuStep
from .passes.bounds import number_bounds
from .passes.specialize import specialize
from .plan import Plan, make_plan

Shapes = tuple[tuple[int, ...], ...]
Numbers = Mapping[int, int]
Progress = Callable[[str, int, int], None]

#: Plans of a graph with dynamic shapes that stay bound.
KEPT_PLANS = 8


@dataclass(frozen=True)
class Output:
    """An output of a run: its elements as a JavaScript typed array, and the tensor on the GPU, where asked for."""

    shape: tuple[int, ...]
    typed: Any | None
    tensor: GpuTensor | None


class Stage:
    """The delegates of a method that run one after another, as one graph."""

    def __init__(self, device: Device, files: Files, step: GpuStep, largest: Plan) -> None:
        """largest: the plan for the upper bounds of all shapes, which for static ones is the only one."""
        self._device, self._files, self.joined, self._largest = device, files, step.joined, largest
        self._bounds = number_bounds(step.joined.graph, step.symbols)
        self._bound: dict[Any, tuple[Plan, BoundPlan, Numbers]] = {}
        self._states = StateBuffers()
        self._closed = False
        self.last: tuple[Plan, BoundPlan] | None = None

    async def prepare_bounds(self, progress: Progress | None) -> None:
        """Compile the plan for the largest shapes."""
        graph = self.joined.graph
        shapes = tuple(port.shape for port in self.joined.inputs)
        symbols = specialize(graph, {}, self._bounds).symbols if graph.symbols else {}
        await self._keep(shapes, self._largest, symbols, progress, self._bounds)

    async def _prepare(self, shapes: Shapes, numbers: Numbers) -> tuple[Plan, BoundPlan, Numbers]:
        """The plan for these input shapes and numbers, planned and compiled if it is not there."""
        if self._closed:
            raise ClosedError("this program was closed; load it again to run it")
        key = _key(shapes, numbers)
        found = self._bound.pop(key, None)
        if found is None:
            graph = self.joined.graph
            special = specialize(graph, dict(zip(graph.inputs, shapes, strict=True)), numbers)
            plan = make_plan(special, self._device.target(), self.joined.inputs, self.joined.outputs)
            return await self._keep(shapes, plan, special.symbols, None, numbers)
        self._bound[key] = found
        self.last = found[:2]
        return found

    async def _keep(
        self, shapes: Shapes, plan: Plan, symbols: Numbers, progress: Progress | None, numbers: Numbers | None = None
    ) -> tuple[Plan, BoundPlan, Numbers]:
        report = None if progress is None else lambda done, total: progress("compile", done, total)
        found = plan, await BoundPlan.bind(self._device, plan, self._files, self._states, report), symbols
        if len(self._bound) >= KEPT_PLANS:
            _, oldest, _ = self._bound.pop(next(iter(self._bound)))
            oldest.close()
        self._bound[_key(shapes, numbers or {})] = found
        self.last = found[:2]
        return found

    async def run(self, arrays: Any, shapes: Shapes) -> tuple[Any, Plan]:
        """Typed arrays in (a JavaScript array of them), typed arrays out, and the plan that ran."""
        plan, bound, _ = await self._prepare(shapes, {})
        return await bound.run(arrays), plan

    async def run_keeping(
        self, arrays: Any, shapes: Shapes, numbers: Numbers, read: Sequence[bool], keep: Sequence[bool]
    ) -> tuple[list[Output], Numbers]:
        """Run with numbers for symbols; what is kept stays on the GPU.

        read, keep: for each output. Gives the outputs, and the numbers of all symbols that the
        shapes give.
        """
        plan, bound, symbols = await self._prepare(shapes, numbers)
        outputs = await bound.run_keeping(arrays, read, keep)
        found = [
            Output(port.shape, array, None if tensor is None else GpuTensor(tensor, port.dtype, port.shape))
            for (array, tensor), port in zip(outputs, plan.outputs, strict=True)
        ]
        return found, symbols

    async def reset(self) -> None:
        """Set what runs keep to what it starts as."""
        if self.last is not None and self.last[0].states:
            await self.last[1].reset()

    def close(self) -> None:
        """Give back all that is bound, and what runs keep. A run under way binds nothing any more."""
        self._closed = True
        self._states.close()
        for _, bound, _ in self._bound.values():
            bound.close()
        self._bound.clear()


def _key(shapes: Shapes, numbers: Numbers) -> Any:
    return shapes, tuple(sorted(numbers.items()))
