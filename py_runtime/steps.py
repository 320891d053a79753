"""What a method does, in order: graphs on the GPU, operators on the CPU, moves and jumps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .container import Region
from .graph import BACKEND, Graph, parse_delegate
from .merge import GpuStep, Located, Merge, Slot, slot_of, split_arguments
from .program import (
    DelegateCall,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    ListValue,
    MethodPlan,
    MoveCall,
    TensorValue,
)

ReadRegion = Callable[[Region], Awaitable[bytes]]


class KernelTraits(Protocol):
    """What is asked of a CPU kernel (fallback/registry.py) to know what it reads and writes."""

    @property
    def inputs(self) -> int: ...

    @property
    def writes(self) -> tuple[int, ...]: ...

    @property
    def shape_only(self) -> bool: ...


@dataclass(frozen=True)
class CpuStep:
    """One operator on the CPU, by the name of its out-variant, on the method's values.

    reads: the values whose elements it needs. writes: those that it changes.
    """

    operator: str
    args: tuple[int, ...]
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()


@dataclass(frozen=True)
class MoveStep:
    """What is at one value of the method, at another."""

    source: int
    target: int


@dataclass(frozen=True)
class JumpStep:
    """Go on at the step numbered target if the condition is false."""

    condition: int
    target: int


Step = GpuStep | CpuStep | MoveStep | JumpStep


@dataclass(frozen=True)
class Effects:
    """The values of the method whose elements an instruction reads, whose shapes only, and which it writes."""

    reads: tuple[int, ...] = ()
    shapes: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()


@dataclass(frozen=True)
class MethodSteps:
    """The steps of a method.

    states: values that are read before a run writes them: what they were left as, first
    what the program starts them as.
    whole: the method is one graph, whose ports are those of the caller.
    """

    steps: tuple[Step, ...]
    states: tuple[int, ...]
    whole: bool


async def method_graphs(method: MethodPlan, read: ReadRegion) -> dict[int, Graph]:
    """The graph of each delegate that the method calls, by number; those for other backends are left out."""
    graphs: dict[int, Graph] = {}
    for chain in method.chains:
        for step in chain:
            if isinstance(step, DelegateCall) and step.delegate not in graphs:
                delegate = method.delegates[step.delegate]
                if delegate.backend != BACKEND:
                    continue
                if delegate.inline is not None:
                    graphs[step.delegate] = parse_delegate(delegate.inline)
                else:
                    assert delegate.region is not None
                    blob = await read(delegate.region)
                    graphs[step.delegate] = parse_delegate(blob, delegate.region.offset)
    return graphs


def make_steps(
    method: MethodPlan, graphs: Mapping[int, Graph], data: Mapping[str, Located], kernels: Mapping[str, KernelTraits]
) -> MethodSteps:
    """The steps of a method; delegates that follow each other become one graph.

    graphs: of its delegates. data: where each named datum is. kernels: the CPU operators;
    of those that are missing every argument counts as read.
    Raises ProgramError and UnsupportedError.
    """
    flat = _in_one_row(method)
    effects = [_effects(step, method, graphs, kernels) for step in flat]
    whole = all(isinstance(step, DelegateCall | FreeCall) for step in flat) and _only_tensors(method, graphs)
    if whole:
        merge = Merge(method, data, method.inputs)
        for step in flat:
            if isinstance(step, DelegateCall):
                merge.add(graphs[step.delegate], step.args)
        only = merge.finish(method.outputs)
        if not only.elements:
            return MethodSteps((only,), (), True)
    states = _states(method, effects)
    targets = {step.target for step in flat if isinstance(step, JumpFalseCall)}
    steps: list[Step] = []
    places: dict[int, int] = {}  # of instructions among the steps
    at = 0
    while at < len(flat):
        places[at] = len(steps)
        step = flat[at]
        at += 1
        if isinstance(step, DelegateCall):
            merge = Merge(method, data)
            merge.add(graphs[step.delegate], step.args)
            while at < len(flat) and at not in targets and isinstance(flat[at], DelegateCall | FreeCall):
                following = flat[at]
                if isinstance(following, DelegateCall):
                    merge.add(graphs[following.delegate], following.args)
                at += 1
            steps.append(_with_outputs(merge, _Liveness(method, flat, effects, states), at))
        elif isinstance(step, KernelCall):
            own = effects[at - 1]
            steps.append(_moved(step, method) or CpuStep(step.operator, step.args, own.reads, own.writes))
        elif isinstance(step, MoveCall):
            steps.append(MoveStep(step.source, step.target))
        elif isinstance(step, JumpFalseCall):
            steps.append(JumpStep(step.condition, step.target))
    places[len(flat)] = len(steps)
    placed = tuple(replace(s, target=places[s.target]) if isinstance(s, JumpStep) else s for s in steps)
    return MethodSteps(placed, states, False)


def _in_one_row(method: MethodPlan) -> list[Instruction]:
    """The chains one after another; a jump counts from the start of its own."""
    flat: list[Instruction] = []
    for chain in method.chains:
        start = len(flat)
        flat.extend(replace(s, target=s.target + start) if isinstance(s, JumpFalseCall) else s for s in chain)
    return flat


def _only_tensors(method: MethodPlan, graphs: Mapping[int, Graph]) -> bool:
    """Whether no numbers go into or come out of the method or its delegates, and it makes all that it gives."""
    made = set(method.inputs)
    for chain in method.chains:
        for step in chain:
            if isinstance(step, DelegateCall):
                if any(not isinstance(method.values[v], TensorValue) for v in step.args):
                    return False
                made.update(step.args[len(graphs[step.delegate].inputs) :])
    return all(
        isinstance(method.values[v], TensorValue) for v in (*method.inputs, *method.outputs)
    ) and made.issuperset(method.outputs)


def _moved(call: KernelCall, method: MethodPlan) -> MoveStep | None:
    """Writing all of a tensor to another of the same kind, which is how buffers get their new value."""
    if call.operator != "aten::copy_" or len(call.args) < 2:
        return None
    target, source = (method.values[v] for v in call.args[:2])
    if (
        isinstance(target, TensorValue)
        and isinstance(source, TensorValue)
        and (target.dtype, target.shape, target.dynamic) == (source.dtype, source.shape, False)
        and all(slot_of(method, v) == slot_of(method, call.args[0]) for v in call.args[3:])
    ):
        return MoveStep(call.args[1], call.args[0])
    return None


def _spread(method: MethodPlan, values: Sequence[int]) -> list[int]:
    """Values, and those that lists among them hold."""
    found: list[int] = []
    for value in values:
        if value == -1:
            continue
        found.append(value)
        kind = method.values[value]
        if isinstance(kind, ListValue):
            found.extend(item for item in kind.items if item != -1)
    return found


def _effects(
    step: Instruction, method: MethodPlan, graphs: Mapping[int, Graph], kernels: Mapping[str, KernelTraits]
) -> Effects:
    if isinstance(step, DelegateCall):
        given, results = split_arguments(method, graphs[step.delegate], step.args)
        return Effects(reads=given, writes=results)
    if isinstance(step, MoveCall):
        return Effects(reads=(step.source,), writes=(step.target,))
    if isinstance(step, JumpFalseCall):
        return Effects(reads=(step.condition,))
    if isinstance(step, FreeCall):
        return Effects()
    kernel = kernels.get(step.operator)
    count = len(step.args) if kernel is None else kernel.inputs
    given = tuple(_spread(method, step.args[:count]))
    writes = _spread(method, step.args[count:])
    if kernel is not None:
        writes.extend(step.args[i] for i in kernel.writes if i < len(step.args))
    if kernel is not None and kernel.shape_only:
        return Effects(shapes=given[:1], reads=given[1:], writes=tuple(writes))
    return Effects(reads=given, writes=tuple(writes))


def _states(method: MethodPlan, effects: Sequence[Effects]) -> tuple[int, ...]:
    """Planned tensors that are read, in order of the instructions, before anything has written their place."""
    written = {slot_of(method, value) for value in method.inputs}
    found: dict[Slot, int] = {}
    for effect in effects:
        for value in (*effect.reads, *effect.shapes):
            kind = method.values[value]
            slot = slot_of(method, value)
            if isinstance(kind, TensorValue) and isinstance(slot, tuple) and slot not in written:
                found.setdefault(slot, value)
        written.update(slot_of(method, value) for value in effect.writes)
    return tuple(found.values())


@dataclass(frozen=True)
class _Liveness:
    """Who reads what a step has written."""

    method: MethodPlan
    flat: Sequence[Instruction]
    effects: Sequence[Effects]
    states: Sequence[int]

    def readers(self, slot: Slot, after: int) -> tuple[bool, bool]:
        """Whether the CPU or the caller, and whether a delegate, reads the place before it is written again.

        after: the instruction that comes next. With jumps, whatever reads it anywhere counts.
        """
        jumps = any(isinstance(step, JumpFalseCall) for step in self.flat)
        cpu = gpu = False
        for step, effect in list(zip(self.flat, self.effects, strict=True))[0 if jumps else after :]:
            if any(slot_of(self.method, v) == slot for v in effect.reads):
                if isinstance(step, KernelCall | JumpFalseCall):
                    cpu = True
                else:
                    gpu = True  # a move keeps it where it is
            if any(slot_of(self.method, v) == slot for v in effect.shapes):
                gpu = True
            if not jumps and any(slot_of(self.method, v) == slot for v in effect.writes):
                return cpu, gpu
        cpu = cpu or any(slot_of(self.method, v) == slot for v in self.method.outputs)
        return cpu, gpu or any(slot_of(self.method, v) == slot for v in self.states)


def _with_outputs(merge: Merge, live: _Liveness, after: int) -> GpuStep:
    """The step, with what it writes and anyone reads later as outputs."""
    needs = {value: live.readers(slot, after) for slot, value in merge.written.items()}
    step = merge.finish([value for value, who in needs.items() if any(who)])
    read = tuple(needs[value][0] for value in step.outputs)
    return replace(step, read=read, keep=tuple(needs[value][1] for value in step.outputs))
