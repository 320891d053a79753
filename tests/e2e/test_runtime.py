"""What a run costs: calls, submissions, bytes read back, and GPU memory over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

# Counts live buffers and what crosses to the GPU, in the worker, before anything else runs there.
COUNTERS = """
const live = new Map();
const create = GPUDevice.prototype.createBuffer;
GPUDevice.prototype.createBuffer = function (descriptor) {
  const buffer = create.call(this, descriptor);
  live.set(buffer, descriptor.size);
  return buffer;
};
const destroy = GPUBuffer.prototype.destroy;
GPUBuffer.prototype.destroy = function () {
  live.delete(this);
  return destroy.call(this);
};
const counts = { submits: 0, dispatches: 0, mapped: 0, pipelines: 0 };
const compile = GPUDevice.prototype.createComputePipelineAsync;
GPUDevice.prototype.createComputePipelineAsync = function (descriptor) {
  counts.pipelines++;
  return compile.call(this, descriptor);
};
const submit = GPUQueue.prototype.submit;
GPUQueue.prototype.submit = function (buffers) {
  counts.submits++;
  return submit.call(this, buffers);
};
const dispatch = GPUComputePassEncoder.prototype.dispatchWorkgroups;
GPUComputePassEncoder.prototype.dispatchWorkgroups = function (...grid) {
  counts.dispatches++;
  return dispatch.apply(this, grid);
};
const range = GPUBuffer.prototype.getMappedRange;
GPUBuffer.prototype.getMappedRange = function (offset, size) {
  counts.mapped += size ?? this.size;
  return range.call(this, offset, size);
};
const gpu = () => ({ ...counts, buffers: live.size, bytes: [...live.values()].reduce((a, b) => a + b, 0) });
"""

# Every call from Python into the bound plan goes through this wrapper.
CALLS = """
globalThis.pythonCalls = [];
export function bind(...given) {
  return realBind(...given).then((bound) => new Proxy(bound, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== "function") {
        return value;
      }
      return (...args) => {
        globalThis.pythonCalls.push(String(name));
        return value.apply(target, args);
      };
    },
  }));
}
"""


@pytest.fixture
def counted(page: Any, site: Any) -> Any:
    """A page whose worker counts; `page.gpu()` gives the counts, `calls` those from Python."""

    def replay(route: Any) -> None:
        text = route.fetch().text().replace("export function bind(", "function realBind(")
        route.fulfill(body=text + CALLS, content_type="text/javascript")

    def worker(route: Any) -> None:
        tail = (
            'self.addEventListener("message", (event) => { if (event.data === "count") {'
            " event.stopImmediatePropagation();"
            " self.postMessage({ counted: { ...gpu(), calls: [...(globalThis.pythonCalls ?? [])] } }); } });\n"
        )
        destroy = "CALLS.destroy = async () => { (await device()).device.destroy(); };\n"
        body = route.fetch().text().replace("self.onmessage =", destroy + "self.onmessage =")
        imports, rest = body[: body.index("const RUNTIME_FOLDER")], body[body.index("const RUNTIME_FOLDER") :]
        route.fulfill(body=imports + COUNTERS + tail + rest, content_type="text/javascript")

    page.context.route("**/py_runtime/replay.js", replay)
    page.context.route("**/worker.js", worker)
    page.goto(site.url + "test-data/blank.html")
    page.evaluate(
        """async () => {
          const { Runtime, Tensor } = await import("/pteron.js");
          window.Tensor = Tensor;
          window.runtime = await Runtime.create();
          await window.runtime.started();
          window.counts = () => new Promise((resolve) => {
            const { worker } = window.runtime.channel;
            const listen = ({ data }) => {
              if (data.counted) {
                worker.removeEventListener("message", listen);
                resolve(data.counted);
              }
            };
            worker.addEventListener("message", listen);
            worker.postMessage("count");
          });
          window.load = async (name) => {
            const program = await window.runtime.loadProgram(`/test-data/goldens/${name}.pte`);
            const method = await program.loadMethod("forward");
            const inputs = method.metadata.inputs.map(({ dims }) =>
              new Tensor("float32", new Float32Array(dims.reduce((a, b) => a * b, 1)).fill(0.25), dims));
            return { program, method, inputs };
          };
        }"""
    )
    return page


def test_one_call_one_submit(counted: Any, goldens: Path) -> None:
    result = counted.evaluate(
        """async () => {
          const { program, method, inputs } = await window.load("convolutions");
          await method.execute(inputs);
          const before = await window.counts();
          const outputs = await method.execute(inputs);
          const after = await window.counts();
          const report = await method.report({ rounds: 1 });
          await program.close();
          const size = outputs.reduce((sum, { data }) => sum + data.byteLength, 0);
          return { before, after, dispatches: report.dispatches, size };
        }"""
    )
    before, after = result["before"], result["after"]
    assert after["calls"][len(before["calls"]) :] == ["run"]
    assert after["submits"] - before["submits"] == 1
    assert after["dispatches"] - before["dispatches"] == result["dispatches"] > 5
    assert after["mapped"] - before["mapped"] == result["size"]
    assert after["buffers"] == before["buffers"]


def test_memory_is_flat_and_given_back(counted: Any, goldens: Path) -> None:
    result = counted.evaluate(
        """async () => {
          const empty = await window.counts();
          const { program, method, inputs } = await window.load("convolutions");
          await method.execute(inputs);
          const loaded = await window.counts();
          for (let i = 0; i < 100; i++) {
            await method.execute(inputs);
          }
          const ran = await window.counts();
          await method.report({ rounds: 2 });
          const reported = await window.counts();
          await program.close();
          return { empty, loaded, ran, reported, closed: await window.counts() };
        }"""
    )
    assert result["empty"]["buffers"] == 0
    assert result["loaded"]["bytes"] > 0
    for later in ("ran", "reported"):
        assert result[later]["bytes"] == result["loaded"]["bytes"]
        assert result[later]["buffers"] == result["loaded"]["buffers"]
    assert result["closed"]["buffers"] == 0


def test_a_failed_load_leaves_nothing(counted: Any, goldens: Path, site: Any) -> None:
    whole = (goldens / "nanodet.pte").read_bytes()
    url = site.put("cut.pte", whole[: len(whole) // 2])
    result = counted.evaluate(
        """async (url) => {
          let name = "";
          await window.runtime.loadProgram(url).catch((error) => (name = error.name));
          return { name, counts: await window.counts() };
        }""",
        url,
    )
    assert result["name"] == "TruncatedProgramError"
    assert result["counts"]["buffers"] == 0


def test_report(counted: Any, goldens: Path) -> None:
    """The report's kernels are the run's dispatches, and their shares make a whole."""
    report = counted.evaluate(
        """async () => {
          const { program, method, inputs } = await window.load("convolutions");
          await method.execute(inputs);
          const report = await method.report();
          await program.close();
          return report;
        }"""
    )
    assert report["dispatches"] == len(report["kernels"])
    assert abs(sum(kernel["share"] for kernel in report["kernels"]) - 1) < 1e-6
    assert abs(sum(kernel["milliseconds"] for kernel in report["kernels"]) - report["total_ms"]) < 1e-6
    assert report["timer"] in ("timestamp-query", "wall")
    assert report["operators"]["aten.convolution.default"] == 4
    assert report["bytes"]["activations"] > 0
    assert report["routes"]["conv_depthwise"] == 1
    assert report["routes"]["conv_transposed"] == 1


def test_no_numpy_for_a_run_from_javascript(counted: Any, goldens: Path) -> None:
    """Programs load and run without numpy ever being fetched."""
    fetched: list[str] = []
    counted.context.on("request", lambda request: fetched.append(request.url))
    counted.evaluate(
        """async () => {
          const { program, method, inputs } = await window.load("convolutions");
          await method.execute(inputs);
          await program.close();
        }"""
    )
    assert any(url.endswith("convolutions.pte") for url in fetched)
    assert not any("numpy" in url for url in fetched)


def test_a_size_seen_before_compiles_nothing(counted: Any, goldens: Path) -> None:
    result = counted.evaluate(
        """async () => {
          const { program, method } = await window.load("dynamic_attention");
          const run = (length) => method.execute([
            new Tensor("float32", new Float32Array(length * 32).fill(0.5), [1, length, 32]),
          ]);
          const seen = [];
          for (const length of [5, 9, 5, 48, 9]) {
            const [output] = await run(length);
            seen.push([output.dims, (await window.counts()).pipelines]);
          }
          await program.close();
          return { seen, left: (await window.counts()).buffers };
        }"""
    )
    dims, pipelines = zip(*result["seen"], strict=True)
    assert [d[1] for d in dims] == [5, 9, 5, 48, 9]
    assert pipelines[0] < pipelines[1] == pipelines[2]  # 5 again: nothing new
    assert pipelines[3] == pipelines[2]  # 48 is the bound, compiled at load
    assert pipelines[4] == pipelines[3]
    assert result["left"] == 0


def test_a_lost_device_is_replaced(counted: Any, goldens: Path) -> None:
    """A run under way when the device goes rejects by name; the next one is right, on another device."""
    result = counted.evaluate(
        """async () => {
          const { method, inputs } = await window.load("convolutions");
          const name = (promise) => promise.then(() => "none", (error) => error.name);
          const values = async (method) => (await method.execute(inputs)).map(({ data }) => [...data]);
          const before = await name(method.execute(inputs));
          const first = JSON.stringify(await values(method));
          const under = name(method.execute(inputs));
          const destroyed = window.runtime.channel.call("destroy", {});
          const during = await under;
          await destroyed;
          return { before, during, same: JSON.stringify(await values(method)) === first };
        }"""
    )
    assert result["during"] in ("none", "DeviceLostError")  # it may have been done before
    assert result["before"] == "none" and result["same"]


def test_progress(page: Any, site: Any, goldens: Path) -> None:
    """Every stage is told, in order, and each ends at its total."""
    page.goto(site.url + "test-data/blank.html")
    steps = page.evaluate(
        """async () => {
          const { Runtime } = await import("/pteron.js");
          const steps = [];
          const onProgress = (step) => steps.push(step);
          const runtime = await Runtime.create({ onProgress });
          const program = await runtime.loadProgram("/test-data/goldens/nanodet.pte");
          await program.loadMethod("forward");
          await runtime.close();
          return steps;
        }"""
    )
    size = (goldens / "nanodet.pte").stat().st_size
    for stage, total in (("boot", 3), ("download", size), ("compile", None)):
        told = [step for step in steps if step["stage"] == stage]
        assert told and all(step["message"] for step in told)
        done = [step["loaded"] for step in told]
        assert done == sorted(done)
        assert done[-1] == told[-1]["total"] == (total or done[-1]) > 1
