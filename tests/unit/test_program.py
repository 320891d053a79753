"""The container and the graphs in it, on programs that the exporter wrote."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from py_runtime.container import parse_header
from py_runtime.errors import ProgramError, PteronError, TruncatedProgramError
from py_runtime.graph import Graph, parse_delegate
from py_runtime.kernels import Target
from py_runtime.plan import make_plan
from py_runtime.program import DelegateCall, TensorValue, parse_program


def graph_of(data: bytes) -> Graph:
    program = parse_program(data, len(data))
    (delegate,) = program.methods["forward"].delegates
    assert delegate.region is not None
    start = delegate.region.offset
    return parse_delegate(data[start : start + delegate.region.size], start)


def plan_all(data: bytes) -> None:
    """Plan every delegate that the file has."""
    for method in parse_program(data, len(data)).methods.values():
        for delegate in method.delegates:
            region = delegate.region
            assert region is not None
            make_plan(parse_delegate(data[region.offset : region.offset + region.size], region.offset), Target())


@pytest.fixture
def convolutions(goldens: Path) -> bytes:
    return (goldens / "convolutions.pte").read_bytes()


def test_program(convolutions: bytes) -> None:
    program = parse_program(convolutions, len(convolutions))
    method = program.methods["forward"]
    (chain,) = method.chains
    assert [type(step) for step in chain] == [DelegateCall]
    (value,) = (method.values[i] for i in method.inputs)
    assert isinstance(value, TensorValue)
    assert (value.dtype.name, value.shape) == ("float32", (1, 4, 14, 18))
    assert all(region.offset + region.size <= len(convolutions) for region in program.segments)
    assert len(program.named_data) == 8  # four convolutions, each with a weight and a bias


def test_header_positions(convolutions: bytes) -> None:
    """The header's fields are where the format says, read here by hand."""
    header = parse_header(convolutions[:64], len(convolutions))
    assert convolutions[8:12] == b"eh00"
    assert (header.program_size, header.segment_base) == struct.unpack_from("<QQ", convolutions, 16)
    assert header.extended


def test_graph(convolutions: bytes) -> None:
    graph = graph_of(convolutions)
    assert [node.op for node in graph.nodes].count("aten.convolution.default") == 4
    assert graph.tensors[graph.inputs[0]].shape == (1, 4, 14, 18)
    weights = [t for t in graph.tensors.values() if t.constant is not None]
    assert all(t.constant is not None and t.constant.size == t.count * 4 for t in weights)


@pytest.mark.parametrize("kept", [0, 3, 7, 20, 39, 100, 5000])
def test_cut_files(convolutions: bytes, kept: int) -> None:
    with pytest.raises(TruncatedProgramError):
        parse_program(convolutions[:kept], kept)


@pytest.mark.parametrize("data", [b"<html>" * 20, b"PK\x03\x04" + bytes(80), bytes(100)])
def test_other_files(data: bytes) -> None:
    with pytest.raises(ProgramError, match="not an ExecuTorch program"):
        parse_program(data, len(data))


def test_damaged_files_end_in_a_named_error_or_a_plan(goldens: Path) -> None:
    """300 files with flipped bytes in their head or their delegate, from a fixed seed."""
    rng = random.Random(5)
    outcomes = {"named error": 0, "plan": 0}
    for name in ("relu", "two_inputs", "convolutions"):
        good = (goldens / f"{name}.pte").read_bytes()
        head = parse_header(good[:64], len(good))
        end = min(len(good), head.segment_base + 3000)
        for _ in range(100):
            data = bytearray(good)
            for _ in range(rng.choice((1, 2, 8))):
                data[rng.randrange(8, end)] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            try:
                plan_all(bytes(data))
                outcomes["plan"] += 1
            except PteronError:
                outcomes["named error"] += 1
    assert outcomes["named error"] > 20 and outcomes["plan"] > 20
