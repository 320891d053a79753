"""A method of a program as one graph, with the shapes and dtypes its caller sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace

from .container import Region
from .errors import ProgramError, UnsupportedError
from .graph import BACKEND, Constant, Graph, Node, Tensor, parse_delegate, rename_tensors
from .plan import PortType, missing_operators, raise_missing
from .program import (
    DelegateCall,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    ListValue,
    MethodPlan,
    MoveCall,
    Program,
    TensorValue,
)

ReadRegion = Callable[[Region], Awaitable[bytes]]


@dataclass(frozen=True)
class TensorInfo:
    """An input or output: dtype by name, shape; upper bounds of it where it is dynamic."""

    dtype: str
    shape: tuple[int, ...]
    dynamic: bool = False


@dataclass(frozen=True)
class MethodMetadata:
    """A method's name, inputs and outputs, in the order of `execute`."""

    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


@dataclass(frozen=True)
class MethodGraph:
    """All delegates of a method as one graph, and its ports."""

    graph: Graph
    inputs: tuple[PortType, ...]
    outputs: tuple[PortType, ...]


def metadata_of(method: MethodPlan) -> MethodMetadata:
    """What the caller sees of a method. Raises UnsupportedError for inputs or outputs that are no tensors."""

    def info(value: int) -> TensorInfo:
        kind = method.values[value]
        if not isinstance(kind, TensorValue):
            raise UnsupportedError(f"{method.name} takes or gives {kind!r}; tensors can be passed")
        return TensorInfo(kind.dtype.name, kind.shape, kind.dynamic)

    return MethodMetadata(method.name, tuple(map(info, method.inputs)), tuple(map(info, method.outputs)))


@dataclass(frozen=True)
class Located:
    """A datum of a program by key: which file it is in and where."""

    file: int
    region: Region


@dataclass(frozen=True)
class GpuStep:
    """Delegates in a row, as one graph: the method's values that go in and come out."""

    joined: MethodGraph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class CpuStep:
    """One operator on the CPU, by the name of its out-variant, on the method's values."""

    operator: str
    args: tuple[int, ...]


@dataclass(frozen=True)
class MoveStep:
    """One value of the method under another number."""

    source: int
    target: int


Step = GpuStep | CpuStep | MoveStep


async def method_steps(
    program: Program, method: MethodPlan, data: Mapping[str, Located], read: ReadRegion
) -> tuple[Step, ...]:
    """What a method does, in order; delegates that follow each other become one graph.

    data: where each named datum is. read: bytes of a region of the program's file.
    Raises UnsupportedError for other backends and control flow. Which operators are
    missing is for `check_steps` to say.
    """
    check_backends(method)
    instructions = [step for chain in method.chains for step in chain]
    alone = all(isinstance(step, DelegateCall | FreeCall) for step in instructions)
    steps: list[Step] = []
    merge: _Merge | None = None
    for at, step in enumerate(instructions):
        if isinstance(step, FreeCall):
            continue
        if isinstance(step, DelegateCall):
            merge = merge or _Merge(method, data, method.inputs if alone else ())
            merge.add(await _delegate_graph(method, step.delegate, read), step.args)
            continue
        if isinstance(step, JumpFalseCall):
            raise UnsupportedError(f"{method.name} has a branch (JumpFalseCall); Pteron does not run control flow yet")
        if merge is not None:
            steps.append(merge.finish(_read_later(method, instructions[at:])))
            merge = None
        steps.append(
            CpuStep(step.operator, step.args) if isinstance(step, KernelCall) else MoveStep(step.source, step.target)
        )
    if merge is not None:
        steps.append(merge.finish(method.outputs if alone else _read_later(method, [])))
    return tuple(steps)


def _read_later(method: MethodPlan, rest: Sequence[Instruction]) -> tuple[int, ...]:
    """Values that later instructions or the caller may read."""
    used = list(method.outputs)
    for step in rest:
        if isinstance(step, KernelCall | DelegateCall):
            used.extend(step.args)
            used.extend(
                item
                for value in step.args
                if isinstance(listed := method.values[value], ListValue)
                for item in listed.items
            )
        elif isinstance(step, MoveCall):
            used.append(step.source)
    return tuple(dict.fromkeys(used))


def check_steps(steps: Sequence[Step], method: str, cpu_operators: Container[str]) -> None:
    """Raise one MissingOperatorError that names all that Pteron lacks, on the GPU and the CPU."""
    missing: dict[str, int] = {}
    for step in steps:
        if isinstance(step, GpuStep):
            for operator, count in missing_operators(step.joined.graph).items():
                missing[operator] = missing.get(operator, 0) + count
        elif isinstance(step, CpuStep) and step.operator not in cpu_operators:
            name = f"{step.operator} on the CPU"
            missing[name] = missing.get(name, 0) + 1
    raise_missing(missing, method)


def check_backends(method: MethodPlan) -> None:
    others = sorted({d.backend for d in method.delegates if d.backend != BACKEND})
    if others:
        raise UnsupportedError(
            f"{method.name} was lowered for {', '.join(others)}; Pteron runs {BACKEND} delegates. Export again "
            "with executorch.backends.webgpu's WebGPUPartitioner, or `python -m export`."
        )


async def _delegate_graph(method: MethodPlan, index: int, read: ReadRegion) -> Graph:
    delegate = method.delegates[index]
    if delegate.inline is not None:
        return parse_delegate(delegate.inline)
    assert delegate.region is not None
    return parse_delegate(await read(delegate.region), delegate.region.offset)


class _Merge:
    """Puts delegate graphs one after another, joined at the method's values."""

    def __init__(self, method: MethodPlan, data: Mapping[str, Located], inputs: Sequence[int]) -> None:
        self.method, self.data = method, data
        self.tensors: dict[int, Tensor] = {}
        self.symbols: dict[int, int] = {}
        self.nodes: list[Node] = []
        self.count = 0
        self.known: dict[int, int] = {}  # method value -> tensor
        self.inputs: list[int] = []  # values of the method
        self.made: list[int] = []
        self.taken: dict[int, int] = {}  # what came in, should a delegate write the value again
        for value in inputs:
            self._take(value)

    def _take(self, value: int) -> None:
        """Let a value of the method come in from outside."""
        kind = self.method.values[value]
        if not isinstance(kind, TensorValue):
            raise UnsupportedError(f"{self.method.name} passes {kind!r} to a delegate; tensors can be passed")
        self.known[value] = self.taken[value] = self._new(Tensor(kind.dtype, kind.shape))
        self.inputs.append(value)

    def _new_id(self) -> int:
        self.count += 1
        return self.count - 1

    def _new(self, tensor: Tensor) -> int:
        index = self._new_id()
        self.tensors[index] = tensor
        return index

    def add(self, graph: Graph, args: tuple[int, ...]) -> None:
        """Append a delegate called on these method values: inputs, then outputs."""
        if len(args) != len(graph.inputs) + len(graph.outputs):
            raise ProgramError(
                f"a delegate with {len(graph.inputs)} inputs and {len(graph.outputs)} outputs is called on "
                f"{len(args)} values"
            )
        renamed: dict[int, int] = {}
        for inner, value in zip(graph.inputs, args, strict=False):
            if value not in self.known:
                self._take(value)
            renamed[inner] = self.known[value]
            outer = self.tensors[self.known[value]]
            if inner in graph.tensors and outer.dtype != graph.tensors[inner].dtype:
                # the delegate's own view of its input (int32 for int64, f16 for f32) is what is stored
                self.tensors[self.known[value]] = replace(outer, dtype=graph.tensors[inner].dtype)
        for index, tensor in graph.tensors.items():
            if index not in renamed:
                renamed[index] = self._new(self._located(tensor))
        for symbol, value in graph.symbols.items():
            renamed[symbol] = self._new_id()
            self.symbols[renamed[symbol]] = value
        self.nodes.extend(rename_tensors(node, renamed) for node in graph.nodes)
        for inner, value in zip(graph.outputs, args[len(graph.inputs) :], strict=True):
            self.known[value] = renamed[inner]
            self.made.append(value)

    def _located(self, tensor: Tensor) -> Tensor:
        constant = tensor.constant
        if constant is None or constant.key is None:
            return tensor
        if constant.key not in self.data:
            raise ProgramError(
                f"the weights {constant.key[:16]}… are not in this file. If the export wrote .ptd files, "
                "give them too: loadProgram(url, { data: [...] })."
            )
        found = self.data[constant.key]
        if found.region.size < constant.size:
            raise ProgramError(f"a weight of {constant.size:,} bytes lies in a segment of {found.region.size:,}")
        region = Region(found.region.offset, constant.size)
        return replace(tensor, constant=Constant(None, region, constant.size, found.file))

    def finish(self, wanted: Sequence[int]) -> GpuStep:
        """The graph, with those of the wanted values as outputs that it makes or passes on."""
        values = tuple(
            value for value in wanted if value in self.made or (value in self.known and wanted is self.method.outputs)
        )
        if wanted is self.method.outputs and len(values) != len(wanted):
            raise UnsupportedError(f"an output of {self.method.name} is something that no delegate makes")
        inputs = tuple(self.inputs)
        outputs = tuple(self.known[value] for value in values)
        graph = Graph(self.tensors, tuple(self.nodes), tuple(self.known_inputs()), outputs, self.symbols)
        return GpuStep(MethodGraph(graph, self._ports(inputs), self._ports(values)), inputs, values)

    def known_inputs(self) -> list[int]:
        return [self.taken[value] for value in self.inputs]

    def _ports(self, values: tuple[int, ...]) -> tuple[PortType, ...]:
        ports = []
        for value in values:
            kind = self.method.values[value]
            if not isinstance(kind, TensorValue):
                raise UnsupportedError(f"{self.method.name} passes {kind!r}; tensors can be passed")
            ports.append(PortType(kind.dtype, kind.shape, kind.dynamic))
        return tuple(ports)
