"""A placed graph to a `Plan`: the flat list of dispatches, plain data without a device.

What depends on constants alone is split off and runs once, at load (`prepare`): packed
and widened weights, folded subgraphs. All else runs in `run`, in order. What a run leaves for
the next one, a key-value cache say, is a state; `reset` sets the states to what they start as.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from .constants import needs_widening, raw_storage, start_state, widen
from .container import broken_file
from .dtypes import STORAGE_SIZE, DType
from .errors import LimitError, MissingOperatorError, PteronError
from .graph import Constant, Graph, Tensor
from .kernels import Binding, Dispatch, Target, assemble
from .memory import Arena, Lifetime, plan_memory
from .ops import OPERATORS
from .ops.registry import Call, Lowering
from .passes.dead import drop_dead
from .passes.fuse import fuse_elementwise
from .passes.mutations import roots_written, version_mutations
from .passes.views import Place, Placed, place_views


@dataclass(frozen=True)
class BoundRange:
    """Bytes of a buffer. buffer: >= 0 counts the plan's buffers, < 0 its constants from -1 down."""

    buffer: int
    offset: int
    size: int


@dataclass(frozen=True)
class Pipeline:
    """What a pipeline is compiled from: WGSL text, its override constants, its bindings.

    access: one letter a binding, "r" for read-only storage, "w" for read-write.
    """

    shader: int
    constants: dict[str, int | float]
    access: str
    label: str


@dataclass(frozen=True)
class Step:
    """One dispatch: pipeline by index, what is bound in order, workgroups."""

    pipeline: int
    bindings: tuple[BoundRange, ...]
    grid: tuple[int, int, int]
    label: str


@dataclass(frozen=True)
class Port:
    """An input or output: the caller's dtype and shape, and where it lies on the GPU.

    storage: the WGSL type of its elements there.
    """

    dtype: str
    shape: tuple[int, ...]
    storage: str
    range: BoundRange


@dataclass(frozen=True)
class Plan:
    """All that a run needs, as plain data; `to_dict` is what JavaScript gets.

    buffers: bytes of each buffer to make; those before `prepared` are arena banks, the
    last `states` are states, the rest hold what `prepare` writes. constants: bytes of the
    file bound as they are.
    """

    buffers: tuple[int, ...]
    prepared: int
    states: int
    constants: tuple[Constant, ...]
    shaders: tuple[str, ...]
    pipelines: tuple[Pipeline, ...]
    prepare: tuple[Step, ...]
    reset: tuple[Step, ...]
    run: tuple[Step, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    routes: tuple[tuple[str, str], ...]  # (operator, route) of each step of run

    def to_dict(self) -> dict[str, object]:
        return asdict(self)

    @property
    def bytes(self) -> dict[str, int]:
        """Bytes of GPU memory by use, but for weights bound as the file has them."""
        states = len(self.buffers) - self.states
        return {
            "prepared": sum(self.buffers[self.prepared : states]),
            "states": sum(self.buffers[states:]),
            "activations": sum(self.buffers[: self.prepared]),
        }


def total_bytes(plans: Iterable[Plan]) -> dict[str, int]:
    """`Plan.bytes` of several plans together."""
    total = {"prepared": 0, "states": 0, "activations": 0}
    for plan in plans:
        total = {use: size + plan.bytes[use] for use, size in total.items()}
    return total


@dataclass(frozen=True)
class PortType:
    """What the method says of an input or output, beside the graph's own tensor.

    shape is the upper bound where `dynamic`.
    """

    dtype: DType
    shape: tuple[int, ...]
    dynamic: bool = False


def missing_operators(graph: Graph) -> dict[str, int]:
    """Operators of the graph that Pteron does not have, with how often they occur.

    Integer arithmetic on sizes is not among them: specializing resolves it, or says why not.
    """
    missing: dict[str, int] = {}
    for node in graph.nodes:
        if node.op not in OPERATORS and node.outputs[0] not in graph.symbols:
            missing[node.op] = missing.get(node.op, 0) + 1
    return missing


def node_problems(graph: Graph, target: Target) -> list[PteronError]:
    """What speaks against planning each node of a graph by itself: forms that a kernel does not take, limits."""
    with broken_file("graph"):
        lowering = Lowering(place_views(version_mutations(graph)), target)
    found: list[PteronError] = []
    for node in lowering.graph.nodes:
        if node.op in OPERATORS:
            try:
                with broken_file("graph"):
                    OPERATORS[node.op](Call(node, lowering))
            except PteronError as error:
                found.append(error)
    return found


def make_plan(graph: Graph, target: Target, inputs: Sequence[PortType] = (), outputs: Sequence[PortType] = ()) -> Plan:
    """Plan a graph for a device.

    inputs, outputs: the caller's dtypes and shapes where they differ from the graph's
    (an int64 of the method is an int32 of the delegate).
    Raises MissingOperatorError, UnsupportedError, LimitError, and ProgramError for
    arguments that do not fit together.
    """
    missing = missing_operators(graph)
    if missing:
        raise MissingOperatorError(f"this graph has operators that Pteron does not have: {', '.join(sorted(missing))}")
    with broken_file("graph"):
        return _make_plan(graph, target, inputs, outputs)


def _make_plan(graph: Graph, target: Target, inputs: Sequence[PortType], outputs: Sequence[PortType]) -> Plan:
    graph = fuse_elementwise(drop_dead(version_mutations(graph)))
    placed = place_views(graph)
    lowering = Lowering(placed, target, storages=_port_storages(placed, inputs, outputs))
    for node in placed.graph.nodes:
        OPERATORS[node.op](Call(node, lowering))
    return _Builder(lowering, target).plan(inputs, outputs)


def _port_storages(placed: Placed, inputs: Sequence[PortType], outputs: Sequence[PortType]) -> dict[int, str]:
    """Inputs and outputs that the caller sees as float32 stay so in memory, also in an f16 graph."""
    storages = {}
    for tensors, types in ((placed.graph.inputs, inputs), (placed.graph.outputs, outputs)):
        for tensor, kind in zip(tensors, types, strict=False):
            own = placed.graph.tensors[placed.place(tensor).root]
            if kind.dtype.name == "float32" and own.dtype.is_float and own.constant is None:
                storages[placed.place(tensor).root] = "f32"
    return storages


class _Builder:
    """Collects what a plan is made of while dispatches become steps."""

    def __init__(self, lowering: Lowering, target: Target) -> None:
        self.lowering, self.target = lowering, target
        self.constants: dict[Constant, int] = {}
        self.shaders: dict[str, int] = {}
        self.pipelines: dict[str, tuple[int, Pipeline]] = {}

    @property
    def tensors(self) -> dict[int, Tensor]:
        return self.lowering.tensors

    def root(self, tensor: int) -> int:
        return self.lowering.place(tensor).root

    def bytes_of(self, root: int) -> int:
        """Bytes of a root tensor on the GPU; at least one word, in whole words."""
        size = self.tensors[root].count * STORAGE_SIZE[self.lowering.elem(root)]
        return max(4, -(-size // 4) * 4)

    def plan(self, inputs: Sequence[PortType], outputs: Sequence[PortType]) -> Plan:
        graph = self.lowering.graph
        self.widened: dict[int, int] = {}
        dispatches = [d for d in self._with_widening() if 0 not in d.grid]
        fixed = {t for t, tensor in self.tensors.items() if tensor.constant is not None}
        changing = {*roots_written(graph), *graph.states, *(self.root(t) for t in graph.inputs)}
        reset = [start_state(state, constant, self.lowering) for state, constant in graph.states.items()]
        prepare, run = self._split(dispatches, fixed, changing)
        fixed |= {self.root(t) for dispatch in prepare for t in dispatch.writes}
        arena = self._arena(run, fixed | graph.states.keys())
        self.places, buffers = self._places(arena, [*prepare, *reset], fixed)
        run_steps = tuple(self.step(d) for d in run)
        prepare_steps = tuple(self.step(d) for d in prepare)
        reset_steps = tuple(self.step(d) for d in reset)
        return Plan(
            buffers=tuple(buffers),
            prepared=len(arena.banks),
            states=len(reset),
            constants=tuple(self.constants),
            shaders=tuple(self.shaders),
            pipelines=tuple(pipeline for _, pipeline in self.pipelines.values()),
            prepare=prepare_steps,
            reset=reset_steps,
            run=run_steps,
            inputs=self._ports(graph.inputs, inputs),
            outputs=self._ports(graph.outputs, outputs),
            routes=tuple((d.op, d.route) for d in run),
        )

    def _split(
        self, dispatches: list[Dispatch], constants: set[int], changing: set[int]
    ) -> tuple[list[Dispatch], list[Dispatch]]:
        """What depends on constants alone, and the rest.

        A tensor with several writers (a cat's parts) is constant only if all of them are, so this
        goes over the dispatches until no more of them turn out to be of the rest.
        """
        changing = set(changing)
        while True:
            fixed, before = set(constants), len(changing)
            prepare: list[Dispatch] = []
            run: list[Dispatch] = []
            for dispatch in dispatches:
                roots = {self.root(t) for t in dispatch.reads}
                written = {self.root(t) for t in dispatch.writes}
                shared = any(self.root(w) != w for w in dispatch.writes)
                if roots <= fixed and not written & changing and not shared:
                    prepare.append(dispatch)
                    fixed |= written
                else:
                    run.append(dispatch)
                    changing |= written
            if len(changing) == before:
                return prepare, run

    def _with_widening(self) -> list[Dispatch]:
        """The dispatches, after ones that bring constants into the form kernels read."""
        result: list[Dispatch] = []
        for dispatch in self.lowering.dispatches:
            bindings = []
            for binding in dispatch.bindings:
                source = self.root(binding.tensor)
                if needs_widening(self.tensors[source], self.target):
                    if source not in self.widened:
                        self.widened[source] = self.lowering.new_tensor(
                            self.tensors[source].dtype, self.tensors[source].shape
                        )
                        result.append(widen(source, self.widened[source], self.lowering))
                    offset = self.lowering.place(binding.tensor).offset
                    binding = self._moved(binding, self.widened[source], offset)
                bindings.append(binding)
            result.append(replace(dispatch, bindings=tuple(bindings)))
        return result

    def _moved(self, binding: Binding, root: int, offset: int) -> Binding:
        if offset == 0:
            return replace(binding, tensor=root)
        view = self.lowering.new_tensor(self.tensors[root].dtype, self.tensors[binding.tensor].shape)
        self.lowering.placed.places[view] = Place(root, offset)
        return replace(binding, tensor=view)

    def _arena(self, run: list[Dispatch], fixed: set[int]) -> Arena:
        graph = self.lowering.graph
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        steps = []
        for tensor in graph.inputs:
            first[self.root(tensor)] = last[self.root(tensor)] = -1
        for i, dispatch in enumerate(run):
            reads = frozenset(self.root(t) for t in dispatch.reads)
            writes = frozenset(self.root(t) for t in dispatch.writes)
            steps.append((reads, writes))
            for root in reads | writes:
                first.setdefault(root, i)
                last[root] = i
        for tensor in graph.outputs:
            first.setdefault(self.root(tensor), -1)
            last[self.root(tensor)] = len(run)
        lifetimes = [
            Lifetime(root, self.bytes_of(root), first[root], last[root]) for root in first if root not in fixed
        ]
        limit = min(self.target.max_buffer_size, self.target.max_binding_size)
        return plan_memory(lifetimes, steps, self.target.offset_alignment, limit)

    def _places(
        self, arena: Arena, prepare: list[Dispatch], fixed: set[int]
    ) -> tuple[dict[int, BoundRange], list[int]]:
        """The range of each root tensor, and all buffers' sizes."""
        places = {root: BoundRange(s.bank, s.offset, s.size) for root, s in arena.slots.items()}
        buffers = list(arena.banks)
        for dispatch in prepare:
            for tensor in dispatch.writes:
                if tensor not in places:
                    size = self.bytes_of(tensor)
                    if size > min(self.target.max_buffer_size, self.target.max_binding_size):
                        raise LimitError(
                            f"a prepared weight of {dispatch.op} needs {size:,} bytes in one buffer; "
                            f"this device allows {self.target.max_binding_size:,}"
                        )
                    places[tensor] = BoundRange(len(buffers), 0, size)
                    buffers.append(size)
        for tensor in fixed:
            constant = self.tensors[tensor].constant
            if constant is not None and tensor not in places:
                places[tensor] = BoundRange(0, 0, 0)  # replaced by `range_of`, when it is used
        return places, buffers

    def range_of(self, tensor: int, part: tuple[int, int] | None = None) -> tuple[BoundRange, int]:
        """The bytes to bind for a tensor or a part of it (first, count), and the first element of it in them."""
        place = self.lowering.place(tensor)
        root = self.tensors[place.root]
        elem = STORAGE_SIZE[self.lowering.elem(tensor)]
        if root.constant is not None:
            index = self.constants.setdefault(root.constant, len(self.constants))
            base = BoundRange(-1 - index, 0, -(-root.constant.size // 4) * 4)
        else:
            base = self.places[place.root]
        first, count = part or (0, None)
        start = base.offset + (place.offset + first) * elem
        aligned = start // self.target.offset_alignment * self.target.offset_alignment
        end = base.offset + base.size
        if count is not None:
            end = min(end, -(-(start + count * elem) // 4) * 4)
        return BoundRange(base.buffer, aligned, end - aligned), (start - aligned) // elem

    def step(self, dispatch: Dispatch) -> Step:
        ranges, offsets = [], []
        for binding in dispatch.bindings:
            bound, offset = self.range_of(binding.tensor, binding.part)
            if bound.size > self.target.max_binding_size:
                raise LimitError(
                    f"{dispatch.op} binds {bound.size:,} bytes at once; "
                    f"this device allows {self.target.max_binding_size:,}"
                )
            ranges.append(bound)
            offsets.append(offset)
        shader = self.shaders.setdefault(assemble(dispatch, tuple(offsets)), len(self.shaders))
        access = "".join("w" if binding.write else "r" for binding in dispatch.bindings)
        label = f"{dispatch.op} · {dispatch.route}"
        pipeline = Pipeline(shader, dict(dispatch.constants), access, label)
        key = f"{shader} {pipeline.constants} {access}"
        index, _ = self.pipelines.setdefault(key, (len(self.pipelines), pipeline))
        return Step(index, tuple(ranges), dispatch.grid, label)

    def _ports(self, tensors: tuple[int, ...], types: Sequence[PortType]) -> tuple[Port, ...]:
        ports = []
        for i, tensor in enumerate(tensors):
            own = self.tensors[tensor]
            kind = types[i] if i < len(types) else PortType(own.dtype, own.shape)
            storage = self.lowering.elem(tensor)
            place = self.lowering.place(tensor)
            size = STORAGE_SIZE[storage]
            bound, first = self.range_of(tensor)
            if self.tensors[place.root].constant is not None:
                storage = raw_storage(own.dtype)
            ports.append(
                Port(
                    kind.dtype.name,
                    own.shape if kind.dynamic else kind.shape,
                    storage,
                    BoundRange(bound.buffer, bound.offset + first * size, own.count * size),
                )
            )
        return tuple(ports)
