"""Operators that write into their arguments, as operators that make a new version of them.

After this pass every tensor is written once, as all other passes expect: a cache that an
operator writes has a new id from there on, and `Graph.older` says whose memory that is. A
constant that is written is a state: it starts as the constant and keeps what a run left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..graph import Graph, Node, Ref, Tensor, rename_tensors


@dataclass(frozen=True)
class Writes:
    """Which arguments an operator writes; returned: its outputs are these arguments again."""

    arguments: tuple[int, ...]
    returned: bool


UPDATE, ATTENTION = Writes((1,), True), Writes((3, 4), False)

WRITES = {
    "update_cache.default": UPDATE,
    "llama.update_cache.default": UPDATE,
    "sdpa_with_kv_cache.default": ATTENTION,
    "llama.sdpa_with_kv_cache.default": ATTENTION,
    "et_vk.adamw_step.default": Writes((0, 1, 2), True),
}

PREPACK = "et_vk.prepack.default"
COPY = "aten.copy.default"


def version_mutations(graph: Graph) -> Graph:
    """The graph in which nothing is written twice. Outputs are the last versions."""
    written = _written_again(graph)
    if not written:
        return graph
    work = _Versions(dict(graph.tensors), frozenset(graph.inputs))
    packed = {n.outputs[0]: n.args[0].id for n in graph.nodes if n.op == PREPACK and isinstance(n.args[0], Ref)}
    for tensor in written:
        work.own(tensor, packed.get(tensor, tensor))
    for node in graph.nodes:
        if not (node.op == PREPACK and node.outputs[0] in work.current):
            work.add(node)
    return replace(
        graph,
        tensors=work.tensors,
        nodes=tuple(work.nodes),
        outputs=tuple(work.current.get(t, t) for t in graph.outputs),
        older=work.older,
        states=work.states,
    )


def _written(node: Node) -> list[int]:
    """The tensors among its arguments that a node writes."""
    writes = WRITES.get(node.op)
    return [arg.id for i in writes.arguments if isinstance(arg := node.args[i], Ref)] if writes else []


def _written_again(graph: Graph) -> list[int]:
    """Tensors that a node writes although they are there already, in the order of the first time."""
    made = {*graph.inputs, *(t for t, tensor in graph.tensors.items() if tensor.constant is not None)}
    found: dict[int, None] = {}
    for node in graph.nodes:
        found.update(dict.fromkeys([*_written(node), *(t for t in node.outputs if t in made)]))
        made.update(node.outputs)
    return list(found)


@dataclass
class _Versions:
    tensors: dict[int, Tensor]
    inputs: frozenset[int]
    current: dict[int, int] = field(default_factory=dict)  # a tensor of the graph -> its version by now
    older: dict[int, int] = field(default_factory=dict)
    states: dict[int, int] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    def new(self, like: int) -> int:
        tensor = max(self.tensors) + 1
        self.tensors[tensor] = replace(self.tensors[like], constant=None)
        return tensor

    def own(self, tensor: int, constant: int) -> None:
        """Make a constant that will be written a state; anything else is memory of its own already."""
        if self.tensors[constant].constant is None:
            self.current[tensor] = tensor
            return
        if constant not in self.current:
            self.current[constant] = self.new(constant)
            self.states[self.current[constant]] = constant
        self.current[tensor] = self.current[constant]

    def version(self, tensor: int) -> int:
        """A new version of a tensor of the graph, in the memory of the one before."""
        before = self.current[tensor]
        after = self.new(before)
        self.older[after] = before
        self.current.update({name: after for name, now in self.current.items() if now == before})
        return after

    def add(self, node: Node) -> None:
        """Append a node on the current versions of what it reads."""
        reads = rename_tensors(replace(node, outputs=()), self.current)
        written = _written(node)
        if not written:
            self._add_plain(node, reads)
            return
        versions = [self.version(tensor) for tensor in written]
        outputs = []
        for i, output in enumerate(node.outputs):
            shape = self.tensors[output].shape
            if WRITES[node.op].returned and i < len(written) and shape == self.tensors[written[i]].shape:
                self.current[output] = versions[i]
            else:
                outputs.append(output)
        self.nodes.append(replace(reads, outputs=(*versions, *outputs)))

    def _add_plain(self, node: Node, reads: Node) -> None:
        """A node that writes no argument; an output that is there already is written by a copy."""
        made_before = {t for t in node.outputs if t in self.current and self._exists(t)}
        outputs = {t: self.new(t) if t in made_before else t for t in node.outputs}
        self.nodes.append(replace(reads, outputs=tuple(outputs.values())))
        for output in made_before:
            before = self.current[output]
            self.nodes.append(Node(COPY, (Ref(before), Ref(outputs[output])), (self.version(output),)))

    def _exists(self, tensor: int) -> bool:
        """Whether a written tensor has a value by now: all have but those that a node is yet to make."""
        now = self.current[tensor]
        return now != tensor or now in self.inputs or any(now in node.outputs for node in self.nodes)


def roots_written(graph: Graph) -> dict[int, int]:
    """Tensors whose memory is written again, each with the position of the last node that does so."""
    last: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        for output in node.outputs:
            if output in graph.older:
                root = graph.older[output]
                while root in graph.older:
                    root = graph.older[root]
                last[root] = i
    return last
