"""A graph on the device: a plan for each set of input shapes that was run, kept bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .device import BoundPlan, Device, Files, StateBuffers
from .method import MethodGraph
from .passes.specialize import specialize
from .plan import Plan, make_plan

Shapes = tuple[tuple[int, ...], ...]
Progress = Callable[[str, int, int], None]

#: Plans of a graph with dynamic shapes that stay bound.
KEPT_PLANS = 8


class Stage:
    """The delegates of a method that run one after another, as one graph."""

    def __init__(self, device: Device, files: Files, joined: MethodGraph) -> None:
        self._device, self._files, self.joined = device, files, joined
        self._bound: dict[Shapes, tuple[Plan, BoundPlan]] = {}
        self._states = StateBuffers()
        self.last: tuple[Plan, BoundPlan] | None = None

    async def prepare(self, shapes: Shapes, progress: Progress | None = None) -> tuple[Plan, BoundPlan]:
        """The plan for these input shapes, planned and compiled if it is not there."""
        found = self._bound.pop(shapes, None)
        if found is None:
            graph = self.joined.graph
            special = specialize(graph, dict(zip(graph.inputs, shapes, strict=True)))
            plan = make_plan(special, self._device.target(), self.joined.inputs, self.joined.outputs)
            report = None if progress is None else lambda done, total: progress("compile", done, total)
            found = plan, await BoundPlan.bind(self._device, plan, self._files, self._states, report)
            if len(self._bound) >= KEPT_PLANS:
                _, oldest = self._bound.pop(next(iter(self._bound)))
                oldest.close()
        self._bound[shapes] = self.last = found
        return found

    async def prepare_bounds(self, progress: Progress | None) -> None:
        """Compile for the upper bounds of all shapes, which for static ones is all there is."""
        await self.prepare(tuple(port.shape for port in self.joined.inputs), progress)

    async def run(self, arrays: Any, shapes: Shapes) -> tuple[Any, Plan]:
        """Typed arrays in (a JavaScript array of them), typed arrays out, and the plan that ran."""
        plan, bound = await self.prepare(shapes)
        return await bound.run(arrays), plan

    async def reset(self) -> None:
        """Set what runs keep to what it starts as."""
        if self.last is not None and self.last[0].states:
            await self.last[1].reset()

    def close(self) -> None:
        for _, bound in self._bound.values():
            bound.close()
        self._bound.clear()
        self._states.close()
