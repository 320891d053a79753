"""All that a program needs and Pteron or the device lacks, found before any weight is fetched."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from .container import AGAIN
from .errors import LimitError, MissingOperatorError, ProgramError, PteronError, UnsupportedError
from .graph import BACKEND, Graph
from .kernels import Target
from .merge import GpuStep, Located
from .method import metadata_of
from .passes.bounds import number_bounds
from .passes.specialize import specialize
from .plan import Plan, make_plan, missing_operators, node_problems
from .program import DelegateCall, KernelCall, MethodPlan
from .steps import CpuStep, KernelTraits, MethodSteps, make_steps

GPU_ADVICE = "Rewrite the model without it, or add a kernel (docs/adding-an-operator.md)."
CPU_ADVICE = "Rewrite the model without it, or add a NumPy function (docs/adding-an-operator.md)."
BACKEND_ADVICE = (
    f"Pteron runs {BACKEND} delegates. Export again with executorch.backends.webgpu's WebGPUPartitioner, "
    "or `python -m export`."
)


@dataclass(frozen=True)
class Problem:
    """One thing that keeps a method from running: what, how often, and what to do about it."""

    method: str
    error: type[PteronError]
    what: str
    count: int = 1
    advice: str = ""

    def __str__(self) -> str:
        uses = f" ({self.count} use{'s' * (self.count > 1)} in {self.method})"
        return f"{self.what}{uses}{'. ' * bool(self.advice)}{self.advice}"


@dataclass(frozen=True)
class Prepared:
    """A method ready to be bound: its steps, and the plan of each graph for its largest shapes, by position."""

    method: MethodPlan
    steps: MethodSteps
    plans: dict[int, Plan]

    def graph_step(self, position: int) -> GpuStep:
        """The step at a position of `plans`."""
        step = self.steps.steps[position]
        assert isinstance(step, GpuStep)
        return step


def _foreign(method: MethodPlan) -> Iterator[Problem]:
    """Delegates for other backends: their data can't be read."""
    names = [d.backend for d in method.delegates if d.backend != BACKEND]
    for name in sorted(set(names)):
        yield Problem(method.name, UnsupportedError, f"a delegate for {name}", names.count(name), BACKEND_ADVICE)


def prepare_method(
    method: MethodPlan,
    graphs: Mapping[int, Graph],
    data: Mapping[str, Located],
    kernels: Mapping[str, KernelTraits],
    target: Target,
) -> tuple[Prepared | None, list[Problem]]:
    """Plan a method for a device; what keeps it from running is told in full instead: see `raise_problems`.

    graphs: of its delegates for the GPU. data: where each named datum is. kernels: the CPU operators.
    """
    foreign = list(_foreign(method))
    problems = [*foreign, *_missing(method, graphs, kernels)]
    if foreign:
        return None, problems
    try:
        metadata_of(method)
        steps = make_steps(method, graphs, data, kernels)
    except PteronError as error:
        return None, [*problems, Problem(method.name, type(error), str(error))]
    plans: dict[int, Plan] = {}
    for position, step in enumerate(steps.steps):
        if not isinstance(step, GpuStep):
            continue
        found = _plan(step, target)
        if isinstance(found, Plan):
            plans[position] = found
        else:
            problems.extend(Problem(method.name, type(error), str(error)) for error in found)
    return (None, problems) if problems else (Prepared(method, steps, plans), [])


def _missing(method: MethodPlan, graphs: Mapping[int, Graph], kernels: Container[str]) -> Iterator[Problem]:
    gpu: dict[str, int] = {}
    cpu: dict[str, int] = {}
    for chain in method.chains:
        for step in chain:
            if isinstance(step, DelegateCall):
                if step.delegate in graphs:
                    for operator, count in missing_operators(graphs[step.delegate]).items():
                        gpu[operator] = gpu.get(operator, 0) + count
            elif isinstance(step, KernelCall) and step.operator not in kernels:
                cpu[step.operator] = cpu.get(step.operator, 0) + 1
    for operator, count in sorted(gpu.items()):
        yield Problem(method.name, MissingOperatorError, f"the operator {operator}", count, GPU_ADVICE)
    for operator, count in sorted(cpu.items()):
        yield Problem(method.name, MissingOperatorError, f"the operator {operator} on the CPU", count, CPU_ADVICE)


def _plan(step: GpuStep, target: Target) -> Plan | list[PteronError]:
    """The plan of a graph for its largest shapes, or all that speaks against it but missing operators."""
    graph = step.joined.graph
    try:
        special = specialize(graph, {}, number_bounds(graph, step.symbols))
        _check_sizes(step, special)
    except PteronError as error:
        return [error]
    if missing_operators(special):
        return node_problems(special, target)
    try:
        return make_plan(special, target, step.joined.inputs, step.joined.outputs)
    except PteronError as error:
        return node_problems(special, target) or [error]


def _check_sizes(step: GpuStep, graph: Graph) -> None:
    """ProgramError if a fixed output of the method has not as many elements as its operators give it."""
    for tensor, kind in zip(graph.outputs, step.joined.outputs, strict=True):
        shape = graph.tensors[tensor].shape
        if not kind.dynamic and math.prod(kind.shape) != math.prod(shape):
            raise ProgramError(
                f"an output is {list(kind.shape)} for the method and {list(shape)} for its operators. {AGAIN}"
            )


def raise_problems(problems: list[Problem]) -> None:
    """Raise one error that tells all problems; its class is that of the gravest."""
    if not problems:
        return
    order = (MissingOperatorError, UnsupportedError, LimitError, ProgramError)
    kinds = {problem.error for problem in problems}
    kind = next((k for k in order if k in kinds), problems[0].error)
    if len(problems) == 1 and kind is not MissingOperatorError and not problems[0].advice:
        raise kind(problems[0].what)
    missing = sum(problem.error is MissingOperatorError for problem in problems)
    lines = "; ".join(map(str, problems))
    things = f"{missing} operator{'s' * (missing > 1)} that Pteron does not have" if missing else ""
    others = len(problems) - missing
    more = f"{others} thing{'s' * (others > 1)} that Pteron or this device does not do" if others else ""
    raise kind(f"this program needs {' and '.join(filter(None, (things, more)))}: {lines}")


def cpu_operators(steps: MethodSteps) -> tuple[str, ...]:
    return tuple(step.operator for step in steps.steps if isinstance(step, CpuStep))
