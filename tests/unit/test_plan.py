"""Passes, memory and plans, without a GPU."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_runtime.container import Region
from py_runtime.dtypes import FLOAT32, INT32
from py_runtime.errors import LimitError, MissingOperatorError
from py_runtime.expression import broadcast_index
from py_runtime.graph import Constant, Graph, Node, Ref, Symbol, Tensor
from py_runtime.kernels import Target, linear_grid
from py_runtime.memory import Lifetime, plan_memory
from py_runtime.passes.dead import drop_dead
from py_runtime.passes.elements import InputElement, elements_to_read
from py_runtime.passes.fuse import fuse_elementwise
from py_runtime.passes.views import Place, place_views
from py_runtime.plan import Plan, make_plan

from .test_program import graph_of


def tensor(*shape: int) -> Tensor:
    return Tensor(FLOAT32, shape)


def constant(*shape: int) -> Tensor:
    size = math.prod(shape) * FLOAT32.size
    return Tensor(FLOAT32, shape, Constant(None, Region(0, size), size))


def graph(tensors: dict[int, Tensor], nodes: list[Node], outputs: tuple[int, ...]) -> Graph:
    return Graph(tensors, tuple(nodes), (0,), outputs)


def test_dead_nodes_go() -> None:
    nodes = [Node("aten.relu.default", (Ref(0),), (1,)), Node("aten.neg.default", (Ref(0),), (2,))]
    kept = drop_dead(graph({i: tensor(4) for i in range(3)}, nodes, (2,)))
    assert [node.op for node in kept.nodes] == ["aten.neg.default"]


def test_slices_of_the_outermost_dimension_are_addresses() -> None:
    nodes = [
        Node("aten.slice_copy.Tensor", (Ref(0), 1, 2, 9223372036854775807, 1), (1,)),
        Node("aten.view_copy.default", (Ref(1), (8, 2)), (2,)),
        Node("aten.relu.default", (Ref(2),), (3,)),
    ]
    placed = place_views(graph({0: tensor(1, 4, 8), 1: tensor(1, 2, 8), 2: tensor(8, 2), 3: tensor(8, 2)}, nodes, (3,)))
    assert [node.op for node in placed.graph.nodes] == ["aten.relu.default"]
    assert placed.place(2) == Place(0, 16)


def test_a_cats_parts_are_written_in_place() -> None:
    nodes = [
        Node("aten.relu.default", (Ref(0),), (1,)),
        Node("aten.neg.default", (Ref(0),), (2,)),
        Node("aten.cat.default", ((Ref(1), Ref(2)), 0), (3,)),
    ]
    placed = place_views(graph({i: tensor(2, 4) for i in range(3)} | {3: tensor(4, 4)}, nodes, (3,)))
    assert len(placed.graph.nodes) == 2
    assert (placed.place(1), placed.place(2)) == (Place(3, 0), Place(3, 8))


def test_a_part_read_by_another_part_is_copied() -> None:
    """neg reads what relu wrote: both in one buffer would be read and written at once."""
    nodes = [
        Node("aten.relu.default", (Ref(0),), (1,)),
        Node("aten._softmax.default", (Ref(1), 1, False), (2,)),
        Node("aten.cat.default", ((Ref(1), Ref(2)), 0), (3,)),
    ]
    placed = place_views(graph({i: tensor(2, 4) for i in range(3)} | {3: tensor(4, 4)}, nodes, (3,)))
    assert len(placed.graph.nodes) == 3
    assert placed.place(1).root != placed.place(2).root


def test_chains_fuse_only_when_nobody_else_reads() -> None:
    nodes = [
        Node("aten.sigmoid.default", (Ref(0),), (1,)),
        Node("aten.mul.Tensor", (Ref(0), Ref(1)), (2,)),
        Node("aten.neg.default", (Ref(2),), (3,)),
    ]
    tensors = {i: tensor(4) for i in range(4)}
    (one,) = fuse_elementwise(graph(tensors, nodes, (3,))).nodes
    assert [one.op, *(node.op for node in one.fused)] == [node.op for node in nodes]
    both = fuse_elementwise(graph(tensors, nodes, (2, 3))).nodes
    assert [len(node.fused) for node in both] == [1, 0]


def test_a_producer_that_needs_a_member_is_left_alone() -> None:
    """conv(relu(x)) + relu(x): relu can't be computed after the convolution that reads it."""
    conv = (Ref(1), Ref(4), None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    nodes = [
        Node("aten.relu.default", (Ref(0),), (1,)),
        Node("aten.convolution.default", conv, (2,)),
        Node("aten.add.Tensor", (Ref(1), Ref(2)), (3,)),
    ]
    tensors = {i: tensor(1, 2, 3, 3) for i in range(4)} | {4: tensor(2, 2, 1, 1)}
    fused = fuse_elementwise(graph(tensors, nodes, (3,))).nodes
    assert [(node.op, len(node.fused)) for node in fused] == [
        ("aten.relu.default", 0),
        ("aten.convolution.default", 1),
    ]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 5)), min_size=1, max_size=12),
    st.integers(0, 2**32),
)
@settings(max_examples=200, derandomize=True, deadline=None)
def test_memory_never_overlaps(sizes: list[tuple[int, int, int]], seed: int) -> None:
    """Tensors alive together share no byte, and no dispatch reads and writes one bank."""
    lives = [Lifetime(i, size * 64, first, first + length) for i, (size, first, length) in enumerate(sizes)]
    steps = []
    for at in range(16):
        writes = frozenset(life.tensor for life in lives if life.first == at)
        reads = frozenset(life.tensor for life in lives if life.first < at <= life.last)
        steps.append((reads, writes))
    arena = plan_memory(lives, steps, 256, 1 << 20)
    for a in lives:
        slot = arena.slots[a.tensor]
        assert slot.offset % 256 == 0 and slot.offset + a.size <= arena.banks[slot.bank]
        for b in lives:
            other = arena.slots[b.tensor]
            if a.tensor < b.tensor and slot.bank == other.bank and a.first <= b.last and b.first <= a.last:
                assert slot.offset + a.size <= other.offset or other.offset + b.size <= slot.offset
    for reads, writes in steps:
        banks = {arena.slots[t].bank for t in reads}
        assert banks.isdisjoint(arena.slots[t].bank for t in writes)


def test_a_tensor_larger_than_a_buffer_is_named() -> None:
    with pytest.raises(LimitError, match="2,000"):
        plan_memory([Lifetime(0, 2000, 0, 1)], [], 256, 1000)


@given(st.integers(1, 2**26), st.sampled_from([1, 64, 256]))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_grids_cover_and_fit(count: int, workgroup: int) -> None:
    target = Target()
    x, y, z = linear_grid(count, workgroup, target)
    assert max(x, y, z) <= target.max_workgroups
    assert x * y * z * workgroup >= count
    assert (x * y * z - x) * workgroup < count  # no whole row of workgroups too many


@pytest.mark.parametrize(
    ("shape", "out"),
    [((3, 1, 5), (3, 4, 5)), ((5,), (3, 4, 5)), ((1, 4, 1), (3, 4, 5)), ((2, 3, 1, 1), (2, 3, 4, 5)), ((), (3, 2))],
)
def test_broadcast_index(shape: tuple[int, ...], out: tuple[int, ...]) -> None:
    """The WGSL index is the element that NumPy's broadcasting picks, for every element."""
    np = pytest.importorskip("numpy")
    text = broadcast_index(shape, out, "i").replace("u", "").replace("/", "//")
    want = np.broadcast_to(np.arange(int(np.prod(shape))).reshape(shape), out).reshape(-1)
    assert [eval(text, {"i": i}) for i in range(want.size)] == want.tolist()


def plan_of(goldens: Path, name: str, target: Target) -> Plan:
    return make_plan(graph_of((goldens / f"{name}.pte").read_bytes()), target)


def test_plans_are_plain_data_and_the_same_each_time(goldens: Path) -> None:
    once, again = (plan_of(goldens, "convolutions", Target()) for _ in range(2))
    assert once == again
    assert once.to_dict() == again.to_dict()


def test_routes_follow_the_adapter(goldens: Path) -> None:
    software = [route for _, route in plan_of(goldens, "convolutions", Target(software=True)).routes]
    hardware = [route for _, route in plan_of(goldens, "convolutions", Target()).routes]
    assert "conv_register" in software and "conv_tile" not in software
    assert "conv_tile" in hardware and "conv_register" not in hardware
    assert {"conv_depthwise", "conv_direct", "conv_transposed"} <= set(software) & set(hardware)


def test_halves_are_widened_only_where_they_must_be(goldens: Path) -> None:
    plain = plan_of(goldens, "nanodet", Target(software=True))
    halves = plan_of(goldens, "nanodet", Target(software=True, f16=True))
    assert any("widen" in step.label for step in plain.prepare)
    assert not any("widen" in step.label for step in halves.prepare)
    assert not any("enable f16" in shader for shader in plain.shaders)


def test_only_constants_are_prepared() -> None:
    """A token before what comes in, plus positions: of the cat's two parts only one is constant."""
    nodes = [
        Node("aten.expand_copy.default", (Ref(1), (2, 1, 3)), (2,)),
        Node("aten.cat.default", ((Ref(2), Ref(0)), 1), (3,)),
        Node("aten.add.Tensor", (Ref(3), Ref(4), 1), (5,)),
    ]
    tensors = {0: tensor(2, 4, 3), 1: constant(1, 1, 3), 2: tensor(2, 1, 3), 3: tensor(2, 5, 3), 4: constant(1, 5, 3)}
    plan = make_plan(graph(tensors | {5: tensor(2, 5, 3)}, nodes, (5,)), Target())
    assert not any("add" in step.label for step in plan.prepare)
    assert sum("add" in step.label for step in plan.run) == 1


def test_numbers_out_of_inputs_are_read_where_kernels_need_them() -> None:
    """A slice's start is read on the GPU; a fill value, and what comes out of the graph, on the CPU."""
    tensors = {0: Tensor(INT32, (3,)), 1: tensor(8, 2), 2: tensor(2), 3: tensor(1, 2)}
    starts = Node("et_vk.select_as_symint.default", (Ref(0), 0, -1), (9,))
    more = Node("aten.add.default", (Symbol(9, 0), 1), (10,))
    part = Node("aten.slice_copy.Tensor", (Ref(1), 0, Symbol(9, 0), Symbol(10, 0), 1), (3,))
    full = Node("aten.full.default", ((2,), Symbol(10, 0)), (2,))

    def read(nodes: tuple[Node, ...], results: tuple[int, ...] = ()) -> tuple[InputElement, ...]:
        return elements_to_read(Graph(tensors, (starts, more, *nodes), (0, 1), (3,), {9: 0, 10: 0}), results)

    assert read((part,)) == ()
    assert read((part, full)) == (InputElement(9, 0, -1),)
    assert read((part,), (10,)) == (InputElement(9, 0, -1),)


def test_missing_operators_are_told_at_once() -> None:
    nodes = [
        Node("aten.foo.default", (Ref(0),), (1,)),
        Node("aten.bar.default", (Ref(1),), (2,)),
        Node("aten.foo.default", (Ref(2),), (3,)),
    ]
    with pytest.raises(MissingOperatorError) as raised:
        make_plan(graph({i: tensor(4) for i in range(4)}, nodes, (3,)), Target())
    assert str(raised.value).endswith("aten.bar.default, aten.foo.default")
