"""Delegates that run one after another, joined to one graph at the method's values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .container import AGAIN, Region
from .errors import ProgramError, UnsupportedError
from .graph import Constant, Graph, Node, Ref, Tensor, rename_tensors
from .passes.elements import InputElement, elements_to_read
from .plan import PortType
from .program import MethodPlan, TensorValue

#: Where a value lies: a planned tensor in the arena, at (memory id, offset), any other by its number.
#: The exporter leaves views of planned tensors out, so that two values can be one place in the arena.
Slot = int | tuple[int, int]


def slot_of(method: MethodPlan, value: int) -> Slot:
    """Where a value of the method lies; tensors without elements share no place."""
    kind = method.values[value]
    if isinstance(kind, TensorValue) and kind.arena is not None and 0 not in kind.shape:
        return kind.arena
    return value


@dataclass(frozen=True)
class Located:
    """A datum of a program by key: which file it is in and where."""

    file: int
    region: Region


@dataclass(frozen=True)
class MethodGraph:
    """Delegates of a method as one graph, and its ports."""

    graph: Graph
    inputs: tuple[PortType, ...]
    outputs: tuple[PortType, ...]


@dataclass(frozen=True)
class GpuStep:
    """Delegates in a row, as one graph: the method's values that go in and come out.

    numbers, results: the graph's symbols that a value of the method gives, and that give
    one. elements: those that the CPU reads from an input before the run. read, keep: for each
    output, whether the CPU or the caller needs it, and whether a later step on the GPU does.
    """

    joined: MethodGraph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    numbers: tuple[tuple[int, int], ...] = ()
    results: tuple[tuple[int, int], ...] = ()
    elements: tuple[InputElement, ...] = ()
    read: tuple[bool, ...] = ()
    keep: tuple[bool, ...] = ()

    @property
    def symbols(self) -> tuple[int, ...]:
        """The graph's symbols that are known before it runs."""
        return (*(symbol for symbol, _ in self.numbers), *(element.symbol for element in self.elements))


def split_arguments(method: MethodPlan, graph: Graph, args: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The method's values that a delegate is called on, for the graph's inputs and for its outputs.

    The exporter passes numbers too that the graph has no use for and does not list among its
    inputs; those are left out. Raises ProgramError, and UnsupportedError if it can't be told which.
    """
    count = len(args) - len(graph.outputs)
    surplus = count - len(graph.inputs)
    if surplus <= 0:
        return args[: len(graph.inputs)], args[len(graph.inputs) :]
    given, results = args[:count], args[count:]
    is_number = [not isinstance(method.values[v], TensorValue) for v in given]
    numbers = [i in graph.symbols for i in graph.inputs]
    left_out = [at for at, number in enumerate(is_number) if number]
    fits = {
        tuple(v for at, v in enumerate(given) if at not in chosen)
        for chosen in itertools.islice(itertools.combinations(left_out, surplus), 10_000)
        if [number for at, number in enumerate(is_number) if at not in chosen] == numbers
    }
    if not fits:
        raise _wrong_count(graph, args)
    if len(fits) > 1:
        raise UnsupportedError(
            f"a delegate of {method.name} is called on {surplus} numbers more than it takes, and the program does not "
            "say which of them it takes; export the model with fixed sizes there"
        )
    return fits.pop(), results


def _wrong_count(graph: Graph, args: tuple[int, ...]) -> ProgramError:
    return ProgramError(
        f"a delegate with {len(graph.inputs)} inputs and {len(graph.outputs)} outputs is called on {len(args)} values"
    )


class Merge:
    """Puts delegate graphs one after another. inputs: values that come in in this order, whether read or not."""

    def __init__(self, method: MethodPlan, data: Mapping[str, Located], inputs: Sequence[int] = ()) -> None:
        self.method, self.data = method, data
        self.tensors: dict[int, Tensor] = {}
        self.symbols: dict[int, int] = {}
        self.nodes: list[Node] = []
        self.count = 0
        self.known: dict[Slot, int] = {}  # a tensor or symbol of the graph
        self.inputs: list[tuple[int, int]] = []  # (value of the method, tensor)
        self.numbers: list[tuple[int, int]] = []  # (symbol, value of the method)
        self.written: dict[Slot, int] = {}  # the value that a place was written as
        for value in inputs:
            if isinstance(method.values[value], TensorValue):
                self._take(value)

    def _tensor_of(self, value: int) -> TensorValue:
        kind = self.method.values[value]
        if not isinstance(kind, TensorValue):
            raise ProgramError(f"{self.method.name} passes {kind!r} where a delegate takes or gives a tensor")
        return kind

    def _check_size(self, value: int, inner: Tensor) -> None:
        kind = self._tensor_of(value)
        if not kind.dynamic and math.prod(kind.shape) != inner.count:
            raise ProgramError(
                f"{self.method.name} has {list(kind.shape)} where its delegate has {list(inner.shape)}. {AGAIN}"
            )

    def _take(self, value: int) -> None:
        """Let a tensor of the method come in from outside."""
        kind = self._tensor_of(value)
        made = self._new(Tensor(kind.dtype, kind.shape))
        self.known[slot_of(self.method, value)] = made
        self.inputs.append((value, made))

    def _new_id(self) -> int:
        self.count += 1
        return self.count - 1

    def _new(self, tensor: Tensor) -> int:
        index = self._new_id()
        self.tensors[index] = tensor
        return index

    def add(self, graph: Graph, args: tuple[int, ...]) -> None:
        """Append a delegate called on these method values: inputs, then outputs."""
        given, results = split_arguments(self.method, graph, args)
        if len(graph.outputs) > len(results):
            raise UnsupportedError(
                f"a delegate of {self.method.name} changes a buffer in place ({len(graph.outputs)} outputs, "
                f"{len(results)} of them values of the method). Export again through `python -m export`, or "
                "lower.alias_buffer_mutations on the exported program."
            )
        if len(given) != len(graph.inputs) or len(results) != len(graph.outputs):
            raise _wrong_count(graph, args)
        renamed: dict[int, int] = {}
        for inner, value in zip(graph.inputs, given, strict=True):
            if inner in graph.symbols:
                renamed[inner] = self._number(value, graph.symbols[inner])
            else:
                self._check_size(value, graph.tensors[inner])
                renamed[inner] = self._input(value, graph.tensors[inner])
        for index, tensor in graph.tensors.items():
            if index not in renamed:
                renamed[index] = self._new(self._located(tensor))
        for symbol, bound in graph.symbols.items():
            if symbol not in renamed:
                renamed[symbol] = self._new_id()
                self.symbols[renamed[symbol]] = bound
        self.nodes.extend(rename_tensors(node, renamed) for node in graph.nodes)
        for inner, value in zip(graph.outputs, results, strict=True):
            if inner in graph.tensors:
                self._check_size(value, graph.tensors[inner])
            slot = slot_of(self.method, value)
            self.known[slot] = renamed[inner]
            self.written[slot] = value

    def _number(self, value: int, bound: int) -> int:
        """The symbol for a number of the method."""
        slot = slot_of(self.method, value)
        if isinstance(self.method.values[value], TensorValue):
            raise ProgramError(f"{self.method.name} passes a tensor where a delegate takes a number")
        if slot not in self.known:
            self.known[slot] = self._new_id()
            self.symbols[self.known[slot]] = bound
            self.numbers.append((self.known[slot], value))
        return self.known[slot]

    def _input(self, value: int, inner: Tensor) -> int:
        """The tensor for a value of the method, in the shape that it has there."""
        kind = self._tensor_of(value)
        slot = slot_of(self.method, value)
        if slot not in self.known:
            self._take(value)
        held = self.known[slot]
        own = self.tensors[held]
        if own.dtype != inner.dtype:
            # the delegate's own view of its input (int32 for int64, f16 for f32) is what is stored
            own = self.tensors[held] = replace(own, dtype=inner.dtype)
        if own.shape != kind.shape and not kind.dynamic:
            view = self._new(replace(own, shape=kind.shape, constant=None))
            self.nodes.append(Node("aten.view_copy.default", (Ref(held), kind.shape), (view,)))
            return view
        return held

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

    def finish(self, outputs: Sequence[int]) -> GpuStep:
        """The graph, with these values of the method as outputs; numbers among them become results."""
        tensors = tuple(v for v in outputs if isinstance(self.method.values[v], TensorValue))
        known = {v: self.known.get(slot_of(self.method, v)) for v in outputs}
        lost = [v for v in outputs if known[v] is None]
        if lost:
            raise UnsupportedError(f"an output of {self.method.name} is something that no delegate makes")
        inputs = tuple(value for value, _ in self.inputs)
        graph = Graph(
            self.tensors,
            tuple(self.nodes),
            tuple(tensor for _, tensor in self.inputs),
            tuple(known[v] or 0 for v in tensors),
            self.symbols,
        )
        results = tuple((known[v] or 0, v) for v in outputs if v not in tensors)
        return GpuStep(
            MethodGraph(graph, self._ports(inputs), self._ports(tensors)),
            inputs,
            tensors,
            tuple(self.numbers),
            results,
            elements_to_read(graph, [symbol for symbol, _ in results]),
        )

    def _ports(self, values: tuple[int, ...]) -> tuple[PortType, ...]:
        kinds = [self._tensor_of(value) for value in values]
        return tuple(PortType(kind.dtype, kind.shape, kind.dynamic) for kind in kinds)
