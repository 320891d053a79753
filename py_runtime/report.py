"""What a run consists of, as data: operators, routes, bytes, and time by kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from .crossings import Crossing
from .device import DeviceInfo
from .graph import Graph
from .plan import Plan, total_bytes


@dataclass(frozen=True)
class KernelTime:
    """One dispatch of a run, in order. share: of the run's kernel time, 0 to 1."""

    label: str
    operator: str
    kernel: str
    milliseconds: float
    share: float
    workgroups: int


@dataclass(frozen=True)
class Report:
    """A method on a device; milliseconds are medians of a few runs.

    timer: "timestamp-query" (measured on the GPU) or "wall" (each kernel submitted on its
    own and waited for, which adds the cost of a submission to each).
    bytes: weights as stored, prepared weights, states, activations. crossings: what goes
    between CPU and GPU in a run.
    """

    method: str
    adapter: dict[str, object]
    dispatches: int
    bytes: dict[str, int]
    operators: dict[str, int]
    routes: dict[str, int]
    kernels: tuple[KernelTime, ...]
    total_ms: float
    timer: str
    cpu_operators: tuple[str, ...] = ()
    crossings: tuple[Crossing, ...] = ()

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class StageReport:
    """One graph of a method, its plan, and the milliseconds of the plan's steps by a timer."""

    graph: Graph
    plan: Plan
    timer: str
    milliseconds: Sequence[float]


def make_report(
    method: str,
    info: DeviceInfo,
    stages: Sequence[StageReport],
    *,
    weight_bytes: int,
    cpu_operators: tuple[str, ...] = (),
    crossings: tuple[Crossing, ...] = (),
) -> Report:
    """Join plans with the measured milliseconds of their steps."""
    steps = [step for stage in stages for step in stage.plan.run]
    routes = [route for stage in stages for route in stage.plan.routes]
    milliseconds = [time for stage in stages for time in stage.milliseconds]
    total = sum(milliseconds)
    kernels = tuple(
        KernelTime(
            label=f"{index} {operator}",
            operator=operator,
            kernel=route,
            milliseconds=time,
            share=time / total if total else 0.0,
            workgroups=step.grid[0] * step.grid[1] * step.grid[2],
        )
        for index, (step, (operator, route), time) in enumerate(zip(steps, routes, milliseconds, strict=True))
    )
    return Report(
        method=method,
        adapter=asdict(info),
        dispatches=len(steps),
        bytes={"weights": weight_bytes} | total_bytes(stage.plan for stage in stages),
        operators=dict(Counter(node.op for stage in stages for node in stage.graph.nodes).most_common()),
        routes=dict(Counter(route for _, route in routes).most_common()),
        kernels=kernels,
        total_ms=total,
        timer=stages[0].timer if stages else "wall",
        cpu_operators=cpu_operators,
        crossings=crossings,
    )
