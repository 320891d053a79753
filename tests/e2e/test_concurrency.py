"""Many at once: runs of one method and of two programs, a run during a load, a close during a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.test_programs import runs
from tests.site import TOOLS, described


@pytest.fixture
def busy_page(page: Any, site: Any) -> Any:
    page.goto(site.url + "test-data/blank.html")
    page.evaluate(TOOLS)
    return page


def same(got: list[list[float]], expected: list[np.ndarray]) -> None:
    for result, want in zip(got, expected, strict=True):
        assert np.abs(np.array(result) - want.ravel()).max() <= 1e-4 * (np.ptp(want) or 1.0)


@pytest.mark.parametrize("name", ["dynamic_upscale", "branch"])
def test_five_runs_of_one_method(busy_page: Any, goldens: Path, name: str) -> None:
    """Each with another input (and of another size, where sizes are dynamic) gets its own result."""
    inputs, outputs = runs(goldens / f"{name}.npz")
    order = [at % len(inputs) for at in range(5)]
    got = busy_page.evaluate(
        """async ([name, given]) => {
          const { program, method } = await window.load(name);
          const results = await Promise.all(given.map((inputs) => window.values(method, inputs)));
          await program.close();
          return results;
        }""",
        [name, [described(inputs[at]) for at in order]],
    )
    for at, result in zip(order, got, strict=True):
        same(result, outputs[at])


def test_runs_of_two_programs_and_a_load_between(busy_page: Any, goldens: Path) -> None:
    names = ["convolutions", "branch"]
    stored = [runs(goldens / f"{name}.npz") for name in names]
    got = busy_page.evaluate(
        """async ([names, given]) => {
          const [first, second] = await Promise.all(names.map(window.load));
          const of = (at) => window.values([first, second][at].method, given[at]);
          const work = [of(0), of(1), window.load("wide"), of(0), of(1), of(0)];
          const [a, b, wide, c, d, e] = await Promise.all(work);
          const dims = wide.method.metadata.inputs[0].dims;
          const input = Array.from({ length: dims[0] * dims[1] }, (_, i) => Math.sin(i));
          const third = await window.values(wide.method, [["float32", dims, input]]);
          await Promise.all([first, second, wide].map(({ program }) => program.close()));
          return { results: [[a, c, e], [b, d]], third };
        }""",
        [names, [described(inputs[0]) for inputs, _ in stored]],
    )
    for results, (_, outputs) in zip(got["results"], stored, strict=True):
        for result in results:
            same(result, outputs[0])
    same(got["third"], runs(goldens / "wide.npz")[1][0])


@pytest.mark.parametrize("name", ["convolutions", "branch"])
def test_a_close_under_runs(busy_page: Any, goldens: Path, name: str) -> None:
    """Runs that were done are right, the others reject with ClosedError; so does the next."""
    inputs, outputs = runs(goldens / f"{name}.npz")
    got = busy_page.evaluate(
        """async ([name, given]) => {
          const { program, method } = await window.load(name);
          const run = () => window.values(method, given).catch(({ name }) => name);
          const under = Array.from({ length: 8 }, run);
          await under[0];
          await program.close();
          return [...(await Promise.all(under)), await run()];
        }""",
        [name, described(inputs[0])],
    )
    assert got[-1] == "ClosedError"
    for result in got[:-1]:
        if result != "ClosedError":
            same(result, outputs[0])
    assert got[0] != "ClosedError"


def test_load_and_close_three_times(busy_page: Any, goldens: Path) -> None:
    inputs, outputs = runs(goldens / "convolutions.npz")
    got = busy_page.evaluate(
        """async (given) => {
          const results = [];
          for (let time = 0; time < 3; time++) {
            const { program, method } = await window.load("convolutions");
            results.push(await window.values(method, given));
            await program.close();
          }
          return results;
        }""",
        described(inputs[0]),
    )
    for result in got:
        same(result, outputs[0])
