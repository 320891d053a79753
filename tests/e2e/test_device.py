"""The life of a device: it is lost under a run, its memory is full, its compiler refuses a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import FLAGS
from tests.e2e.test_programs import runs
from tests.site import TOOLS, described, watch

# Told to the worker by name: things that go wrong, once.
ACCIDENTS = """
const live = new Set();
const createBuffer = GPUDevice.prototype.createBuffer;
const destroyBuffer = GPUBuffer.prototype.destroy;
let largest = Infinity; // bytes of a buffer that there is memory for
let full = false;
GPUDevice.prototype.createBuffer = function (descriptor) {
  full = descriptor.size > largest;
  const buffer = createBuffer.call(this, descriptor);
  live.add(buffer);
  return buffer;
};
GPUBuffer.prototype.destroy = function () {
  live.delete(this);
  return destroyBuffer.call(this);
};
const popErrorScope = GPUDevice.prototype.popErrorScope;
GPUDevice.prototype.popErrorScope = function () {
  const failed = full;
  full = false;
  const popped = popErrorScope.call(this);
  return failed ? popped.then(() => new GPUOutOfMemoryError("no memory left")) : popped;
};
CALLS.accident = async ({ what, argument }) => {
  const { device: gpu } = await device();
  return ACCIDENTS[what](gpu, argument);
};
const ACCIDENTS = {
  /** Lose the device when the next run waits for its outputs. */
  lose(gpu) {
    const { mapAsync } = GPUBuffer.prototype;
    GPUBuffer.prototype.mapAsync = function (...given) {
      GPUBuffer.prototype.mapAsync = mapAsync;
      const mapped = mapAsync.apply(this, given);
      gpu.destroy();
      return mapped;
    };
  },
  /** Let buffers of more bytes than this find no memory. */
  fill(gpu, bytes) {
    largest = bytes ?? Infinity;
  },
  /** Break the kernels that have this text in them. */
  breakKernels(gpu, text) {
    const create = GPUDevice.prototype.createShaderModule;
    GPUDevice.prototype.createShaderModule = function ({ code }) {
      const broken = code.includes(text) ? code.replace("fn main(", "fn main(nonsense ") : code;
      GPUDevice.prototype.createShaderModule = code.includes(text) ? create : GPUDevice.prototype.createShaderModule;
      return create.call(this, { code: broken });
    };
  },
  count() {
    return live.size;
  },
};
"""

REPORTS = """
() => {
  window.accident = (what, argument) => window.runtime.channel.call("accident", { what, argument });
  window.outcome = (promise) => promise.then(() => ({ name: "none" }), ({ name, message }) => ({ name, message }));
}
"""


def prepare(page: Any, site: Any) -> Any:
    def worker(route: Any) -> None:
        body = route.fetch().text().replace("self.onmessage =", ACCIDENTS + "self.onmessage =")
        route.fulfill(body=body, content_type="text/javascript")

    page.context.route("**/worker.js", worker)
    page.goto(site.url + "test-data/blank.html")
    page.evaluate(TOOLS)
    page.evaluate(REPORTS)
    return page


@pytest.fixture
def worker_page(page: Any, site: Any) -> Any:
    """A page whose worker has accidents: `window.accident(what, argument)`."""
    return prepare(page, site)


def all_runs(path: Path) -> list[list[list[object]]]:
    """The inputs of each run of a golden, as the page takes them."""
    return [described(given) for given in runs(path)[0]]


LOST = """
async ([given, fewer]) => {
  const { method } = window.first;
  const second = window.second;
  const expected = [];
  for (const inputs of given) {
    expected.push(await window.values(method, inputs));
  }
  const others = await window.values(second.method, fewer);
  await window.accident("lose");
  const under = await window.outcome(window.values(method, given[0]));
  // both programs at once, and one of them from the start
  const [first, ...rest] = await Promise.all([
    window.values(second.method, fewer),
    ...given.map((inputs) => window.values(method, inputs)),
  ]);
  return { under, same: JSON.stringify([others, expected]) === JSON.stringify([first, rest]) };
}
"""


@pytest.mark.parametrize(("name", "other"), [("convolutions", "cached_decoder"), ("cached_decoder", "convolutions")])
def test_a_run_on_a_lost_device(worker_page: Any, goldens: Path, name: str, other: str) -> None:
    """It rejects by name; the next runs, of both programs at once, are right, and states start over."""
    fetched: list[str] = []
    given = [all_runs(goldens / f"{name}.npz"), all_runs(goldens / f"{other}.npz")[0]]
    for place, program in (("first", name), ("second", other)):
        worker_page.evaluate("async ([place, name]) => { window[place] = await window.load(name); }", [place, program])
    worker_page.context.on("request", lambda request: fetched.append(request.url))
    result = worker_page.evaluate(LOST, given)
    assert result["under"]["name"] == "DeviceLostError" and "Run again" in result["under"]["message"]
    assert result["same"]
    assert not [url for url in fetched if url.endswith(".pte")]  # from memory and the browser's cache


@pytest.fixture
def own_page(browser: Any, chromium_path: str, site: Any) -> Iterator[Any]:
    """A page in a browser of its own, whose GPU process may end."""
    own = browser.browser_type.launch(executable_path=chromium_path, args=list(FLAGS))
    page = own.new_page()
    page.set_default_timeout(120_000)
    problems = watch(page)
    page.allowed.append("A valid external Instance reference no longer exists")
    yield prepare(page, site)
    own.close()
    assert not problems(), problems()


def test_the_gpu_process_ends_under_a_run(own_page: Any, goldens: Path) -> None:
    """Of many runs at once, those that were done are right; the rest reject by name; the next one is right."""
    (given,) = all_runs(goldens / "convolutions.npz")
    own_page.evaluate("async () => { Object.assign(window, await window.load('convolutions')); }")
    expected = own_page.evaluate("(given) => window.values(window.method, given)", given)
    own_page.evaluate(
        """(given) => {
          const run = () => window.values(window.method, given).catch(({ name }) => name);
          window.pending = Promise.all(Array.from({ length: 300 }, run));
        }""",
        given,
    )
    session = own_page.context.browser.new_browser_cdp_session()
    session.send("Browser.crashGpuProcess")
    outcomes = own_page.evaluate("() => window.pending")
    assert outcomes.count("DeviceLostError") > 0
    assert all(outcome in ("DeviceLostError", expected) for outcome in outcomes)
    assert own_page.evaluate("(given) => window.values(window.method, given)", given) == expected


def test_too_little_memory_is_told_and_given_back(worker_page: Any, goldens: Path) -> None:
    """For a weight at load, for activations at loadMethod; after that there is room, and the program runs."""
    (given,) = all_runs(goldens / "nanodet.npz")
    result = worker_page.evaluate(
        """async (given) => {
          const { runtime, accident, outcome, values } = window;
          const load = () => runtime.loadProgram("/test-data/goldens/nanodet.pte");
          await accident("fill", 100_000);
          const weights = await outcome(load());
          const left = await accident("count");
          await accident("fill");
          const program = await load();
          await accident("fill", 2_000_000);
          const activations = await outcome(program.loadMethod("forward"));
          await accident("fill");
          const method = await program.loadMethod("forward");
          const outputs = await values(method, given);
          await program.close();
          return { weights, left, activations, count: outputs.length, closed: await accident("count") };
        }""",
        given,
    )
    for kind, words in (
        ("weights", ("weights of", "from byte", "nanodet.pte", "bytes of GPU memory")),
        ("activations", ("activations", "bytes")),
    ):
        assert result[kind]["name"] == "LimitError"
        assert all(word in result[kind]["message"] for word in words), result[kind]
    assert (result["left"], result["closed"]) == (0, 0)
    assert result["count"] > 0


def test_a_kernel_that_does_not_compile(worker_page: Any, goldens: Path) -> None:
    """The error names operator, kernel and line; nothing is left, and the program can be loaded again."""
    worker_page.allowed.append("Error while parsing WGSL")
    worker_page.allowed.append("Invalid ShaderModule")
    result = worker_page.evaluate(
        """async () => {
          const { runtime, accident, outcome } = window;
          await accident("breakKernels", "conv");
          const program = await runtime.loadProgram("/test-data/goldens/convolutions.pte");
          const failed = await outcome(program.loadMethod("forward"));
          const again = await outcome(program.loadMethod("forward"));
          await program.close();
          return { failed, again, left: await accident("count") };
        }"""
    )
    assert result["failed"]["name"] == "GPUError"
    for word in ("convolution", "conv_", "line "):
        assert word in result["failed"]["message"], result["failed"]
    assert result["again"]["name"] == "none" and result["left"] == 0
