// The worker: boots Pyodide, loads the runtime into it, and answers the page's calls.
//
// Downloads start at once, while Pyodide boots: the device and the weights' way to it need
// no Python. Messages are { id, call, args }; answers { id, result } or { id, error }, and
// { id, progress } in between.

import { requestDevice } from "./py_runtime/adapter.js";
import { failure, lostDevice } from "./py_runtime/failure.js";
import { bind, Queue } from "./py_runtime/replay.js";
import { openFiles } from "./py_runtime/weights.js";

const RUNTIME_FOLDER = "/pteron";

const timings = {};
let deviceRequest = null;
let boot = null;

/** The device that is in use; another one when that has gone away. */
async function device() {
  const current = deviceRequest;
  const usable = await current?.then(({ device }) => !lostDevice(device), () => false);
  if (!usable && deviceRequest === current) {
    deviceRequest = requestDevice();
  }
  return deviceRequest;
}

async function fetchOrFail(url) {
  let response;
  try {
    response = await fetch(url);
  } catch (error) {
    throw failure("FetchError", `${url} can't be reached (${error.message}). Is the server up?`);
  }
  if (!response.ok) {
    throw failure("FetchError", `${url} answers ${response.status} ${response.statusText}`);
  }
  return response;
}

/** Pyodide with the runtime on its path; numpy stays out until Python code asks for it. */
async function startPython(base, onProgress) {
  const start = performance.now();
  const assets = await (await fetchOrFail(new URL("assets.json", base))).json();
  const home = new URL(assets.pyodide, base).href;
  onProgress("boot", 0, 3, "fetching Python");
  const [{ loadPyodide }, archive] = await Promise.all([
    import(`${home}pyodide.mjs`),
    fetchOrFail(new URL(assets.runtime, base)).then((response) => response.arrayBuffer()),
  ]);
  onProgress("boot", 1, 3, "starting Python");
  const pyodide = await loadPyodide({ indexURL: home });
  onProgress("boot", 2, 3, "loading the runtime");
  const newQueue = { new: () => new Queue() };
  pyodide.registerJsModule("pteron_js", { requestDevice: device, lostDevice, Queue: newQueue, openFiles, bind });
  pyodide.unpackArchive(archive, "zip", { extractDir: RUNTIME_FOLDER });
  const sys = pyodide.pyimport("sys");
  sys.path.insert(0, RUNTIME_FOLDER);
  sys.destroy();
  const { Bridge } = pyodide.pyimport("py_runtime.bridge");
  const bridge = await Bridge.create();
  onProgress("boot", 3, 3, "Python is up");
  timings.boot_ms = performance.now() - start;
  return { pyodide, bridge };
}

function startBoot(base, onProgress) {
  boot ??= startPython(base, onProgress);
  return boot;
}

async function ready() {
  if (!boot) {
    throw failure("ClosedError", "the runtime is not started; call Runtime.create() first");
  }
  return boot;
}

/** numpy and the task code; once, when a task is first made. */
let tasks = null;
async function taskModule() {
  const { pyodide } = await ready();
  tasks ??= pyodide
    .loadPackage("numpy", { messageCallback: () => {}, errorCallback: () => {} })
    .then(() => pyodide.pyimport("py_runtime.tasks.bridge"));
  return tasks;
}

const CALLS = {
  async create({ base }, onProgress) {
    const { info } = await device();
    startBoot(base, onProgress).catch(() => {}); // told to whoever waits for it
    return { ...info, limits: { ...info.limits } };
  },

  async started() {
    await ready();
    return { ...timings };
  },

  async loadProgram({ source, data }, onProgress, signal) {
    const { device: gpu } = await device();
    const start = performance.now();
    const files = await openFiles(gpu, [source, ...data], signal);
    const { bridge } = await ready();
    const report = (stage, done, total) => onProgress(stage, done, total, STAGES[stage]);
    const answer = JSON.parse(await bridge.adopt(files, report));
    return { ...answer, timings: { download_ms: performance.now() - start } };
  },

  async abort({ call }) {
    running.get(call)?.abort();
  },

  async loadMethod({ program, name }, onProgress) {
    const { bridge } = await ready();
    const start = performance.now();
    const report = (stage, done, total) => onProgress(stage, done, total, STAGES[stage]);
    const result = JSON.parse(await bridge.load_method(program, name, report));
    return { ...result, timings: { compile_ms: performance.now() - start } };
  },

  async execute({ method, tensors }) {
    const { bridge } = await ready();
    const specs = JSON.stringify(tensors.map(({ dtype, dims }) => [dtype, dims]));
    const answer = await bridge.execute(method, specs, tensors.map(({ data }) => data));
    const [outputs, shapes] = answer.toJs();
    answer.destroy();
    return { outputs: [...outputs], shapes: JSON.parse(shapes) };
  },

  async reset({ method }) {
    await (await ready()).bridge.reset(method);
  },

  async report({ method, rounds }) {
    const { bridge } = await ready();
    return JSON.parse(await bridge.report(method, rounds));
  },

  async prepareTask() {
    await taskModule();
  },

  async runTask({ task, method, manifest, pixels, width, height, options }) {
    const [{ bridge }, module] = [await ready(), await taskModule()];
    const given = [JSON.stringify(manifest), new Uint8Array(pixels), width, height, JSON.stringify(options)];
    const target = bridge.objects.get(method);
    const answer = await module.run(task, target, ...given).finally(() => target.destroy());
    const [text, bytes] = answer.toJs();
    answer.destroy();
    return bytes ? { ...JSON.parse(text), pixels: new Uint8ClampedArray(bytes) } : JSON.parse(text);
  },

  async close({ number }) {
    (await ready()).bridge.close(number);
  },

  async closeAll() {
    (await ready()).bridge.close_all();
  },
};

const STAGES = { download: "fetching the model", plan: "planning", compile: "compiling kernels" };

/** What gives a call up, by the call's id, while it goes on. */
const running = new Map();

/** An error as plain data; of Python's, the traceback stays in `stack`. */
function describe(error) {
  if (error?.name === "PythonError") {
    const mark = `${error.type}: `;
    const at = error.message.lastIndexOf(mark);
    const message = at < 0 ? "" : error.message.slice(at + mark.length).trim();
    return { name: error.type, message, stack: error.message };
  }
  return { name: error?.name ?? "Error", message: String(error?.message ?? error), stack: error?.stack };
}

self.onmessage = async ({ data: { id, call, args } }) => {
  const onProgress = (stage, loaded, total, message) =>
    self.postMessage({ id, progress: { stage, loaded, total, message } });
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const result = await CALLS[call](args, onProgress, controller.signal);
    self.postMessage({ id, result }, result?.outputs?.map((array) => array.buffer) ?? []);
  } catch (error) {
    self.postMessage({ id, error: describe(error) });
  } finally {
    running.delete(id);
  }
};
