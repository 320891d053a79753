"""A method of a program as one graph, with the shapes and dtypes its caller sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from .container import Region
from .errors import MissingOperatorError, ProgramError, UnsupportedError
from .graph import BACKEND, Arg, Constant, Graph, Node, Ref, Symbol, Tensor, parse_delegate
from .plan import PortType, check_operators
from .program import DelegateCall, KernelCall, MethodPlan, Program, TensorValue

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

    def metadata(self, name: str) -> MethodMetadata:
        def info(port: PortType) -> TensorInfo:
            return TensorInfo(port.dtype.name, port.shape, port.dynamic)

        return MethodMetadata(name, tuple(map(info, self.inputs)), tuple(map(info, self.outputs)))


@dataclass(frozen=True)
class Located:
    """A datum of a program by key: which file it is in and where."""

    file: int
    region: Region


async def method_graph(
    program: Program, method: MethodPlan, data: Mapping[str, Located], read: ReadRegion
) -> MethodGraph:
    """Join a method's delegates to one graph.

    data: where each named datum is. read: bytes of a region of the program's file.
    Raises UnsupportedError for other backends and MissingOperatorError with every
    operator, of the GPU or the CPU, that the method needs and Pteron lacks.
    """
    steps = [step for chain in method.chains for step in chain]
    check_backends(method)
    cpu: dict[str, int] = {}
    for step in steps:
        if isinstance(step, KernelCall):
            cpu[step.operator] = cpu.get(step.operator, 0) + 1
        elif not isinstance(step, DelegateCall):
            raise UnsupportedError(f"{method.name} has a {type(step).__name__}; Pteron does not run control flow yet")
    if cpu:
        names = ", ".join(f"{op} ({n} use{'s' * (n > 1)} in {method.name}, CPU)" for op, n in sorted(cpu.items()))
        raise MissingOperatorError(
            f"this program needs {len(cpu)} operator{'s' * (len(cpu) > 1)} that Pteron does not have: {names}. "
            "Export with `python -m export`, whose rewrites keep the whole model on the GPU."
        )
    merge = _Merge(method, data)
    for step in steps:
        if isinstance(step, DelegateCall):
            merge.add(await _delegate_graph(method, step.delegate, read), step.args)
    joined = merge.finish()
    check_operators(joined.graph, method.name)
    return joined


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

    def __init__(self, method: MethodPlan, data: Mapping[str, Located]) -> None:
        self.method, self.data = method, data
        self.tensors: dict[int, Tensor] = {}
        self.symbols: dict[int, int] = {}
        self.nodes: list[Node] = []
        self.count = 0
        self.known: dict[int, int] = {}  # method value -> tensor
        self.inputs: list[int] = []
        for value in method.inputs:
            kind = method.values[value]
            if not isinstance(kind, TensorValue):
                raise UnsupportedError(f"input {len(self.inputs)} of {method.name} is no tensor: {kind!r}")
            self.known[value] = self._new(Tensor(kind.dtype, kind.shape))
            self.inputs.append(self.known[value])

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
                raise ProgramError(f"{self.method.name} reads value {value} before anything wrote it")
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
        self.nodes.extend(_rename(node, renamed) for node in graph.nodes)
        for inner, value in zip(graph.outputs, args[len(graph.inputs) :], strict=True):
            self.known[value] = renamed[inner]

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

    def finish(self) -> MethodGraph:
        method = self.method
        outputs = []
        for value in method.outputs:
            if value not in self.known:
                raise UnsupportedError(
                    f"an output of {method.name} is {method.values[value]!r}, which no delegate makes"
                )
            outputs.append(self.known[value])
        graph = Graph(self.tensors, tuple(self.nodes), tuple(self.inputs), tuple(outputs), self.symbols)
        return MethodGraph(graph, self._ports(method.inputs), self._ports(method.outputs))

    def _ports(self, values: tuple[int, ...]) -> tuple[PortType, ...]:
        ports = []
        for value in values:
            kind = self.method.values[value]
            if not isinstance(kind, TensorValue):
                raise UnsupportedError(f"{self.method.name} passes {kind!r}; tensors can be passed")
            ports.append(PortType(kind.dtype, kind.shape, kind.dynamic))
        return tuple(ports)


def _rename(node: Node, names: dict[int, int]) -> Node:
    def rename(arg: Arg) -> Arg:
        if isinstance(arg, Ref):
            return Ref(names[arg.id])
        if isinstance(arg, Symbol):
            return Symbol(names[arg.id], arg.value)
        if isinstance(arg, tuple):
            return tuple(rename(item) for item in arg)
        return arg

    return Node(node.op, tuple(rename(a) for a in node.args), tuple(names[o] for o in node.outputs))
