"""Operators that write into their arguments become versions of a tensor (passes/mutations.py)."""

from __future__ import annotations

from py_runtime.graph import Graph, Node, Ref, Tensor
from py_runtime.passes.mutations import roots_written, version_mutations
from py_runtime.passes.views import place_views

from .test_plan import constant, tensor

UPDATE = "update_cache.default"
RELU = "aten.relu.default"


def update(value: int, cache: int, output: int) -> Node:
    return Node(UPDATE, (Ref(value), Ref(cache), 0), (output,))


def graph(tensors: dict[int, Tensor], nodes: list[Node], outputs: tuple[int, ...], inputs: tuple[int, ...]) -> Graph:
    return Graph(tensors, tuple(nodes), inputs, outputs)


def test_a_graph_that_writes_nothing_is_left_alone() -> None:
    plain = graph({0: tensor(4), 1: tensor(4)}, [Node(RELU, (Ref(0),), (1,))], (1,), (0,))
    assert version_mutations(plain) is plain


def test_a_constant_that_is_written_is_a_state() -> None:
    tensors = {0: tensor(1, 1, 2, 4), 1: constant(1, 8, 2, 4), 2: tensor(1, 8, 2, 4), 3: tensor(1, 8, 2, 4)}
    before = graph(tensors, [update(0, 1, 2), Node(RELU, (Ref(2),), (3,))], (3,), (0,))
    after = version_mutations(before)
    ((state, start),) = after.states.items()
    assert start == 1 and after.tensors[1].constant is not None and after.tensors[state].constant is None
    write, read = after.nodes
    assert write.args[1] == Ref(state)  # the state is written, the constant that it starts as is not
    assert write.outputs == read.tensors()
    assert after.older == {write.outputs[0]: state}
    assert place_views(after).place(write.outputs[0]).root == state


def test_what_reads_between_two_writes_reads_the_first() -> None:
    cache = (1, 8, 2, 4)
    tensors = {0: tensor(1, 1, 2, 4), 1: tensor(*cache), 2: tensor(*cache), 3: tensor(*cache), 4: tensor(*cache)}
    nodes = [update(0, 1, 2), Node(RELU, (Ref(1),), (3,)), update(0, 1, 4)]
    after = version_mutations(graph(tensors, nodes, (3, 1), (0, 1)))
    first, read, second = after.nodes
    assert first.args[1] == Ref(1) and read.args[0] == Ref(first.outputs[0])
    assert second.args[1] == Ref(first.outputs[0])
    assert after.older == {first.outputs[0]: 1, second.outputs[0]: first.outputs[0]}
    assert after.outputs == (3, second.outputs[0]) and not after.states
    assert roots_written(after) == {1: 2}


def test_a_view_of_what_is_written_later_is_a_copy() -> None:
    cache, flat = (1, 8, 2, 4), (8, 8)
    tensors = {0: tensor(1, 1, 2, 4), 1: tensor(*cache), 2: tensor(*flat), 3: tensor(*cache), 4: tensor(*flat)}
    view = Node("aten.view_copy.default", (Ref(1), flat), (2,))
    nodes = [view, update(0, 1, 3), Node(RELU, (Ref(2),), (4,))]
    placed = place_views(version_mutations(graph(tensors, nodes, (4,), (0, 1))))
    assert placed.place(2).root == 2
    assert [node.op for node in placed.graph.nodes] == [view.op, UPDATE, RELU]
    unwritten = place_views(graph(tensors, [view, Node(RELU, (Ref(2),), (4,))], (4,), (0, 1)))
    assert unwritten.place(2).root == 1
