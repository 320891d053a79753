"""The site under test, and a page that runs programs on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serve import HEADERS, Site, make_app

from .deliveries import Deliveries

#: A page of the site with nothing on it, to run scripts in.
BLANK = b'<!doctype html><title>test</title><link rel="icon" href="data:,">'


class RunningSite:
    """The real application in a thread, with a test's files under /test-data/."""

    def __init__(self, site: Site) -> None:
        import uvicorn
        from starlette.routing import Route

        self.given: dict[str, bytes] = {"blank.html": BLANK}
        self.folders: dict[str, Path] = {}
        self.received: dict[str, bytes] = {}
        self.deliveries: dict[str, Deliveries] = {}
        routes = [
            Route("/test-data/{path:path}", self._serve, methods=["GET"]),
            Route("/test-data/{path:path}", self._receive, methods=["POST"]),
        ]
        app = make_app(site, {"127.0.0.1", "localhost"}, routes)
        self.server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self) -> RunningSite:
        self.thread.start()
        deadline = time.monotonic() + 20
        while not self.server.started:
            if time.monotonic() > deadline:
                raise RuntimeError("the site did not start in 20 s")
            time.sleep(0.02)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/"
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join(10)

    def put(self, name: str, data: bytes) -> str:
        """Serve these bytes; their URL, relative to the site."""
        self.given[name] = data
        return f"/test-data/{name}"

    def deliver(self, name: str, delivery: Deliveries) -> str:
        """Serve a file with faults; its URL, relative to the site."""
        self.deliveries[name] = delivery
        return f"/test-data/{name}"

    async def _serve(self, request: Any) -> Any:
        from starlette.responses import FileResponse, Response

        path = request.path_params["path"]
        if path in self.deliveries:
            return await self.deliveries[path].answer(request)
        if path in self.given:
            kind = "text/html" if path.endswith(".html") else "application/octet-stream"
            return Response(self.given[path], media_type=kind, headers=HEADERS)
        folder, _, name = path.partition("/")
        file = self.folders.get(folder, Path("/nonexistent")) / name
        if not file.is_file():
            return Response(status_code=404)
        return FileResponse(file, headers=HEADERS)

    async def _receive(self, request: Any) -> Any:
        from starlette.responses import Response

        self.received[request.path_params["path"]] = await request.body()
        return Response(status_code=204)


def hide_gpu(context: Any) -> None:
    """Make the worker of this context's pages find no `navigator.gpu`."""

    def without_gpu(route: Any) -> None:
        body = 'Object.defineProperty(navigator, "gpu", { value: undefined });\n'
        route.fulfill(body=body + route.fetch().text(), content_type="text/javascript")

    context.route("**/py_runtime/adapter.js", without_gpu)


def watch(page: Any) -> Callable[[], list[str]]:
    """Collect a page's warnings and errors; gives a function that lists those not allowed."""
    seen: list[str] = []
    page.allowed = []

    def on_console(message: Any) -> None:
        if message.type in ("warning", "error"):
            seen.append(f"{message.type}: {message.text}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: seen.append(f"page error: {error}"))
    return lambda: [text for text in seen if not any(part in text for part in page.allowed)]


#: What scripts in a page use to load goldens and run them; described() makes what `tensors` takes.
TOOLS = """
async () => {
  const { Runtime, Tensor } = await import("/pteron.js");
  const typed = { float32: [Float32Array, Number], int64: [BigInt64Array, BigInt] };
  window.runtime = await Runtime.create();
  window.tensors = (given) =>
    given.map(([dtype, dims, data]) => new Tensor(dtype, typed[dtype][0].from(data.map(typed[dtype][1])), dims));
  window.load = async (name) => {
    const program = await window.runtime.loadProgram(`/test-data/goldens/${name}.pte`);
    return { program, method: await program.loadMethod("forward") };
  };
  window.values = async (method, given) =>
    (await method.execute(window.tensors(given))).map(({ data }) => [...data].map(Number));
}
"""


def described(arrays: Sequence[np.ndarray]) -> list[list[object]]:
    """The inputs of a run, as TOOLS takes them."""
    return [[array.dtype.name, list(array.shape), array.ravel().tolist()] for array in arrays]


@dataclass(frozen=True)
class Failure:
    """An error that reached the page: its name and message."""

    name: str
    message: str


RUN = """
async ([url, data, method, runs]) => {
  const { Tensor } = await import("/pteron.js");
  const arrays = {
    bool: Uint8Array, uint8: Uint8Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
    float16: Uint16Array, bfloat16: Uint16Array, float32: Float32Array, float64: Float64Array,
  };
  const bytes = async (path) => (await fetch(path)).arrayBuffer();
  let program = null;
  try {
    program = await window.runtime.loadProgram(url, { data });
    const loaded = await program.loadMethod(method);
    const results = [];
    for (const [run, inputs] of runs.entries()) {
      if (inputs === null) {
        await loaded.reset();
        continue;
      }
      const tensors = [];
      for (const { dtype, dims, path } of inputs) {
        tensors.push(new Tensor(dtype, new arrays[dtype](await bytes(path)), dims));
      }
      const outputs = await loaded.execute(tensors);
      const described = [];
      for (const [i, { dtype, dims, data }] of outputs.entries()) {
        const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
        await fetch(`/test-data/output-${run}-${i}`, { method: "POST", body: raw });
        described.push({ dtype, dims, path: `output-${run}-${i}` });
      }
      results.push(described);
    }
    return { runs: results };
  } catch (error) {
    return { error: { name: error.name, message: error.message, stack: error.workerStack ?? error.stack } };
  } finally {
    await program?.close();
  }
}
"""


class RuntimePage:
    """A page whose `window.runtime` is a running Runtime."""

    def __init__(self, page: Any, site: RunningSite) -> None:
        self.page, self.site = page, site
        page.goto(site.url + "test-data/blank.html")
        page.evaluate(
            """async () => {
              const { Runtime } = await import("/pteron.js");
              window.runtime = await Runtime.create();
              await window.runtime.started();
            }"""
        )

    def evaluate(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)

    def run(
        self, url: str, inputs: Sequence[np.ndarray], method: str = "forward", data: Sequence[str] = ()
    ) -> list[np.ndarray] | Failure:
        """Load a program, run it on arrays, close it; its outputs, or the error it gave."""
        outputs = self.run_all(url, [inputs], method, data)
        return outputs if isinstance(outputs, Failure) else outputs[0]

    def run_all(
        self, url: str, runs: Sequence[Sequence[np.ndarray] | None], method: str = "forward", data: Sequence[str] = ()
    ) -> list[list[np.ndarray]] | Failure:
        """Load a program once and run it several times; None among the runs is a reset."""
        given = [None if inputs is None else self._described(i, inputs) for i, inputs in enumerate(runs)]
        result = self.evaluate(RUN, [url, list(data), method, given])
        if "error" in result:
            return Failure(result["error"]["name"], result["error"]["message"])
        return [
            [np.frombuffer(self.site.received[o["path"]], o["dtype"]).reshape(o["dims"]) for o in outputs]
            for outputs in result["runs"]
        ]

    def _described(self, run: int, inputs: Sequence[np.ndarray]) -> list[dict[str, Any]]:
        """Put a run's inputs on the site; what the page needs to know of them."""
        described = []
        for i, array in enumerate(inputs):
            path = self.site.put(f"input-{run}-{i}", np.ascontiguousarray(array).tobytes())
            described.append({"dtype": array.dtype.name, "dims": list(array.shape), "path": path})
        return described
