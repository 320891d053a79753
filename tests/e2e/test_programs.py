"""Programs with more than one graph: control flow, states, methods, operators for the CPU, external weights."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from export.flow_programs import FLOW
from export.offline import open_files
from export.plain_models import PLAIN
from py_runtime.crossings import crossings
from py_runtime.kernels import Target
from tests.e2e.test_models import arrays
from tests.site import Failure, RuntimePage

#: Of an output's spread. Sums in another order differ by 1e-6 or so a layer, and these have up to 50 layers.
TOLERANCE = 1e-3
STATEFUL = ("running_sum", "started_sum", "cached_decoder")


def compare(got: list[np.ndarray], expected: list[np.ndarray], what: str) -> None:
    """Integers are equal; of floats the largest error is small beside their spread, or beside 1 where all are equal."""
    assert len(got) == len(expected), what
    for i, (result, want) in enumerate(zip(got, expected, strict=True)):
        assert result.shape == want.shape and result.dtype == want.dtype, f"{what}, output {i}"
        if want.dtype.kind == "f":
            assert np.isfinite(want).all() and np.isfinite(result).all()
            spread = np.ptp(want) or 1.0
            error = np.abs(result - want).max() / spread
            assert error <= TOLERANCE, f"{what}, output {i}: error {error:.2e} of the spread"
        else:
            np.testing.assert_array_equal(result, want, f"{what}, output {i}")


def runs(path: Path) -> tuple[list[list[np.ndarray]], list[list[np.ndarray]]]:
    """Inputs and outputs of each run of a golden."""
    with np.load(path) as stored:
        count = sum(name.endswith("out0") for name in stored.files)
    prefixes = ["", *(f"{run}_" for run in range(1, count))]
    inputs, outputs = ([arrays(path, f"{prefix}{kind}") for prefix in prefixes] for kind in ("in", "out"))
    return inputs, outputs


@pytest.mark.parametrize("name", [*FLOW, *PLAIN])
def test_program_equals_pytorch(runtime_page: RuntimePage, goldens: Path, name: str) -> None:
    """All runs of a program in order; a program with states gives the same again after a reset."""
    inputs, expected = runs(goldens / f"{name}.npz")
    repeats = 2 if name in STATEFUL else 1
    given = [*inputs, None, *inputs] if repeats == 2 else inputs
    outputs = runtime_page.run_all(f"/test-data/goldens/{name}.pte", given)
    assert not isinstance(outputs, Failure), outputs
    for run, (got, want) in enumerate(zip(outputs, expected * repeats, strict=True)):
        compare(got, want, f"{name}, run {run}")


@pytest.mark.parametrize("name", STATEFUL)
def test_states_matter(runtime_page: RuntimePage, goldens: Path, name: str) -> None:
    """The second step without the first one gives something else."""
    inputs, expected = runs(goldens / f"{name}.npz")
    alone = runtime_page.run(f"/test-data/goldens/{name}.pte", inputs[1])
    assert not isinstance(alone, Failure), alone
    assert np.abs(alone[0] - expected[1][0]).max() > 1e-3


def test_external_weights_of_the_cpu(runtime_page: RuntimePage, goldens: Path) -> None:
    """An embedding for the CPU and a layer for the GPU, both with their weights in `.ptd` files."""
    shards = sorted(path.name for path in goldens.glob("words-*.ptd"))
    assert len(shards) > 1
    inputs, expected = runs(goldens / "words.npz")
    url = "/test-data/goldens/words.pte"
    outputs = runtime_page.run(url, inputs[0], data=[f"/test-data/goldens/{name}" for name in shards])
    assert not isinstance(outputs, Failure), outputs
    compare(outputs, expected[0], "words")
    alone = runtime_page.run(url, inputs[0], data=[f"/test-data/goldens/{shards[0]}"])
    assert isinstance(alone, Failure) and alone.name == "ProgramError" and ".ptd" in alone.message


@pytest.mark.parametrize("method", ["encode", "decode"])
def test_each_method(runtime_page: RuntimePage, goldens: Path, method: str) -> None:
    inputs, expected = runs(goldens / f"methods-{method}.npz")
    outputs = runtime_page.run("/test-data/goldens/methods.pte", inputs[0], method=method)
    assert not isinstance(outputs, Failure), outputs
    compare(outputs, expected[0], method)


CROSSINGS = """
async ([url, runs]) => {
  const { Tensor } = await import("/pteron.js");
  const program = await window.runtime.loadProgram(url);
  const method = await program.loadMethod("forward");
  try {
    await method.execute(runs.map(([dims, data]) => new Tensor("float32", Float32Array.from(data), dims)));
    return (await method.report()).crossings;
  } finally {
    await program.close();
  }
}
"""


def test_the_report_lists_crossings(runtime_page: RuntimePage, goldens: Path) -> None:
    """The same as `python -m export inspect` finds in the file (tests/unit/test_check.py)."""
    inputs, _ = runs(goldens / "shaped.npz")
    given = [[list(array.shape), array.ravel().tolist()] for array in inputs[0]]
    found = runtime_page.page.evaluate(CROSSINGS, ["/test-data/goldens/shaped.pte", given])
    (prepared,) = open_files([goldens / "shaped.pte"], Target()).prepared.values()
    expected = [asdict(crossing) for crossing in crossings(prepared.steps, prepared.method)]
    assert [{**crossing, "shape": tuple(crossing["shape"])} for crossing in found] == expected
