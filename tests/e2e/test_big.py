"""2.5 GB of weights over HTTP, in little memory: `python -m tests tests/e2e/test_big.py --big -s`.

Prints what it measures; docs/compatibility.md has the figures of a run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from environment import ROOT
from export.fetch import cache_folder
from tests.chromium import FLAGS
from tests.conftest import let_run_python
from tests.heaps import HeapProbe, Heaps, resident_bytes
from tests.site import watch

MB = 10**6
GROWTH = 300 * MB  # allowed of the JS and Wasm heaps
SIZE = 2_500 * MB
LEFT = 400 * MB  # in the GPU process after a close: what it has without any program, and some
RTOL, ATOL = 1e-3, 1e-4

START = """async () => {
  const { Runtime } = await import("/pteron.js");
  window.runtime = await Runtime.create();
  await window.runtime.started();
}"""

# Goes on after it returns, so that heaps can be asked for meanwhile.
RUN = """([url, input]) => {
  window.result = null;
  window.steps = [];
  const run = async () => {
    const { Tensor } = await import("/pteron.js");
    const onProgress = ({ stage, loaded, total }) => stage === "download" && window.steps.push([loaded, total]);
    const start = performance.now();
    const program = await window.runtime.loadProgram(url, { onProgress });
    const method = await program.loadMethod("forward");
    const loaded = performance.now();
    const { dims } = method.metadata.inputs[0];
    const data = new Float32Array(await (await fetch(input)).arrayBuffer());
    const outputs = await method.execute([new Tensor("float32", data, dims)]);
    const ran = performance.now();
    await program.close();
    return {
      origin: program.origin,
      loadS: (loaded - start) / 1000,
      runS: (ran - loaded) / 1000,
      outputs: outputs.map(({ data }) => [...data]),
    };
  };
  run().then(
    (result) => (window.result = result),
    ({ name, message }) => (window.result = { error: `${name}: ${message}` }),
  );
}"""


@pytest.fixture(scope="module")
def linears(request: pytest.FixtureRequest) -> Path:
    """The program, made if it is not there: 4 minutes at most, 11 GB of memory."""
    if not request.config.getoption("--big"):
        pytest.skip("2.5 GB of weights: run with --big")
    path = cache_folder() / "big" / "linears.pte"
    if not path.exists():
        subprocess.run([sys.executable, "-m", "tests.big_program", str(path.parent)], cwd=ROOT, check=True)
    return path


@pytest.fixture
def lasting_page(linears: Path, playwright: Any, chromium_path: str, tmp_path: Path) -> Iterator[Any]:
    """A page of a profile on disk: a private one would keep its storage in memory."""
    context = playwright.chromium.launch_persistent_context(tmp_path, executable_path=chromium_path, args=[*FLAGS])
    page = context.pages[0]
    page.set_default_timeout(300_000)
    problems = watch(page)
    yield page
    context.close()
    assert not problems(), problems()


def wasm_bytes(page: Any) -> int:
    """Bytes of the Wasm memory that Python lives in; it only grows."""
    code = "import pyodide_js; pyodide_js._module.HEAPU8.length"
    size: int = page.evaluate("(code) => window.runtime.channel.call('python', { code })", code)
    return size


def test_big_files_pass_through_little_memory(linears: Path, lasting_page: Any, site: Any, tmp_path: Path) -> None:
    size = linears.stat().st_size
    assert size > SIZE
    golden = np.load(linears.with_suffix(".npz"))
    site.folders["big"] = linears.parent
    given = site.put("big-input", golden["in0"].tobytes())
    page = lasting_page
    let_run_python(page.context)
    page.goto(site.url + "test-data/blank.html")
    probe = HeapProbe(page)
    page.evaluate(START)
    assert len(probe.workers) == 1
    for turn, (fetched, cached) in enumerate(((0.99 * size, 0), (0, 0.99 * size))):
        before, wasm_before = probe.heaps(), wasm_bytes(page)
        assert wasm_before > 10 * MB
        page.evaluate(RUN, ["/test-data/big/linears.pte", given])
        seen, on_gpu = [before], 0
        while page.evaluate("window.result === null"):
            seen.append(probe.heaps())
            on_gpu = max(on_gpu, resident_bytes("gpu-process", tmp_path))
            page.wait_for_timeout(100)
        result = page.evaluate("window.result")
        assert "error" not in result, result["error"]
        most = Heaps(max(heaps.script for heaps in seen), max(heaps.buffers for heaps in seen))
        script, buffers = most.script - before.script, most.buffers - before.buffers
        wasm = wasm_bytes(page) - wasm_before
        print(
            f"\n{'second' if turn else 'first'} load: {size / MB:,.0f} MB in {result['loadS']:.1f} s, "
            f"run {result['runS']:.1f} s; JS heap +{script / MB:.1f} MB, "
            f"its buffers +{buffers / MB:.0f} MB ({len(seen)} samples), Wasm heap +{wasm / MB:.1f} of "
            f"{wasm_before / MB:.0f} MB, GPU process {on_gpu / MB:,.0f} MB"
        )
        assert len(seen) > 20
        assert script + buffers + wasm < GROWTH
        assert result["origin"]["cache"] == "kept"
        assert result["origin"]["fetched"] >= fetched and result["origin"]["cached"] >= cached
        assert cached == 0 or result["origin"]["fetched"] == 0
        steps = page.evaluate("window.steps")
        assert steps == sorted(steps) and {total for _, total in steps} == {steps[-1][0]}
        for i, output in enumerate(result["outputs"]):
            np.testing.assert_allclose(np.float32(output), golden[f"out{i}"][0], rtol=RTOL, atol=ATOL)
        page.wait_for_timeout(1000)
        left = resident_bytes("gpu-process", tmp_path)
        assert SIZE < on_gpu < 1.2 * SIZE and left < LEFT, (on_gpu, left)
