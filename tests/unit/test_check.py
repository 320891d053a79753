"""What keeps a program from running is told in full, in the browser and on the command line."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from export.inspection import main
from export.lower import delegate_graphs
from export.offline import open_files
from py_runtime.check import prepare_method, raise_problems
from py_runtime.crossings import Crossing, crossings
from py_runtime.errors import MissingOperatorError, PteronError, UnsupportedError
from py_runtime.fallback import KERNELS
from py_runtime.graph import Graph, Node
from py_runtime.kernels import Target
from py_runtime.program import Delegate, DelegateCall, KernelCall, MethodPlan, parse_program


def opened_method(path: Path) -> tuple[MethodPlan, dict[int, Graph]]:
    """The method `forward` of a file and the graphs of its delegates."""
    data = path.read_bytes()
    method = parse_program(data, len(data)).methods["forward"]
    return method, dict(enumerate(delegate_graphs(data)))


def told(method: MethodPlan, graphs: dict[int, Graph]) -> PteronError:
    prepared, problems = prepare_method(method, graphs, {}, KERNELS, Target())
    assert prepared is None
    with pytest.raises(PteronError) as raised:
        raise_problems(problems)
    return raised.value


def test_one_error_tells_all_operators_and_how_often(goldens: Path) -> None:
    method, graphs = opened_method(goldens / "branch.pte")
    unknown = {
        number: graph.with_nodes([*graph.nodes, *[Node("aten.nothing.default", (), graph.outputs)] * 2])
        for number, graph in graphs.items()
    }
    (chain,) = method.chains
    calls = tuple(
        replace(step, operator="aten::nowhere.out")
        if isinstance(step, KernelCall) and "cumsum" in step.operator
        else step
        for step in chain
    )
    error = told(replace(method, chains=(calls,)), unknown)
    assert isinstance(error, MissingOperatorError)
    assert "2 operators that Pteron does not have" in str(error)
    times = 2 * len({step.delegate for step in calls if isinstance(step, DelegateCall)})
    assert f"aten.nothing.default ({times} uses in forward)" in str(error)
    assert "aten::nowhere.out on the CPU (1 use in forward)" in str(error)
    assert "docs/adding-an-operator.md" in str(error)


def test_other_backends_are_told_with_missing_operators(goldens: Path) -> None:
    method, graphs = opened_method(goldens / "branch.pte")
    (chain,) = method.chains
    foreign = replace(
        method,
        delegates=(Delegate("XnnpackBackend", None, b""), *method.delegates[1:]),
        chains=((*chain, KernelCall("aten::nowhere.out", ())),),
    )
    del graphs[0]
    text = str(told(foreign, graphs))
    assert "a delegate for XnnpackBackend (1 use in forward)" in text and "WebGPUPartitioner" in text
    assert "aten::nowhere.out" in text
    only = told(replace(foreign, chains=(chain,)), graphs)
    assert isinstance(only, UnsupportedError)


def crossings_of(path: Path) -> tuple[Crossing, ...]:
    (prepared,) = open_files([path], Target()).prepared.values()
    return crossings(prepared.steps, prepared.method)


def test_only_what_the_other_side_needs_crosses(goldens: Path) -> None:
    """x to the GPU, its relu back for cumsum, the sums and a number to the GPU, the result back.

    The shapes are computed from x's: nothing is read back for them.
    """
    found = [(crossing.direction, crossing.bytes) for crossing in crossings_of(goldens / "shaped.pte")]
    tensor = 3 * 16 * 2 * 4
    assert found == [("to GPU", tensor), ("to CPU", tensor), ("to GPU", tensor), ("to GPU", 4), ("to CPU", tensor)]


def test_operators_of_the_cpu_share_arrays(goldens: Path) -> None:
    """cumsum and then sort: nothing goes to the GPU between them."""
    assert crossings_of(goldens / "on_the_cpu.pte") == ()


def test_check_says_what_a_program_takes(goldens: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = goldens / "nanodet.pte"
    assert main("check", [str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["problem"] is None and found["download_bytes"] == path.stat().st_size
    forward = found["methods"]["forward"]
    assert (forward["graphs"], forward["cpu_operators"]) == (1, 0)
    assert forward["dispatches"] > 50 and forward["gpu_bytes"]["activations"] > 1 << 20
    assert main("check", [str(path)]) == 0
    assert "nanodet.pte: runs" in capsys.readouterr().out


def test_check_says_what_is_missing(goldens: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("check", [str(goldens / "words.pte")]) == 1
    assert ".ptd" in capsys.readouterr().out
    shards = [str(shard) for shard in sorted(goldens.glob("words-*.ptd"))]
    assert main("check", [str(goldens / "words.pte"), "--data", *shards]) == 0
    broken = tmp_path / "cut.pte"
    broken.write_bytes((goldens / "nanodet.pte").read_bytes()[:9000])
    capsys.readouterr()
    assert main("check", [str(broken)]) == 2
    assert "TruncatedProgramError" in capsys.readouterr().err


def test_files_open_where_an_event_loop_runs(goldens: Path) -> None:
    """As in a notebook; in a thread of its own, since a page of other tests has its loop in this one."""

    async def methods() -> list[str]:
        return list(open_files([goldens / "relu.pte"], Target()).prepared)

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, methods()).result() == ["forward"]


def test_inspect_shows_steps_and_graphs(goldens: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("inspect", [str(goldens / "branch.pte")]) == 0
    text = capsys.readouterr().out
    assert "if not %" in text and "CPU aten::cumsum.out" in text and "1 aten.mul.Tensor" in text
    assert main("inspect", [str(goldens / "branch.pte"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    kinds = [next(iter(step)) for step in found["methods"]["forward"]["steps"]]
    assert {"graph", "cpu", "if_not"} <= set(kinds)
    assert found["methods"]["forward"]["inputs"][0]["shape"] == [3, 6]
