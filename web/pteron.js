// Pteron on a page: the runtime's face over its worker.
//
//   const runtime = await Runtime.create({ onProgress });
//   const program = await runtime.loadProgram("models/yolox.pte");
//   const method = await program.loadMethod("forward");
//   const [output] = await method.execute([new Tensor("float32", data, [1, 3, 416, 416])]);

/** Every failure; `name` says which (docs/errors.md), `message` what to do. */
export class PteronError extends Error {
  constructor(name, message, stack) {
    super(message);
    this.name = name;
    this.workerStack = stack;
  }
}

const HALF = globalThis.Float16Array;

const ARRAYS = {
  bool: Uint8Array,
  uint8: Uint8Array,
  int8: Int8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float16: HALF ?? Uint16Array,
  bfloat16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
};

/** A typed array with a dtype and a shape. */
export class Tensor {
  /**
   * dtype: "float32", "float16", "int64", "bool", … ; data: the typed array of that dtype (or a
   * plain array of numbers); dims: the shape. float16 takes a Float16Array or raw bits in a
   * Uint16Array, bfloat16 raw bits, bool bytes. Throws InputDtypeError, InputShapeError.
   */
  constructor(dtype, data, dims) {
    const kind = ARRAYS[dtype];
    if (!kind) {
      const known = Object.keys(ARRAYS).join(", ");
      throw new PteronError("InputDtypeError", `there is no dtype "${dtype}"; there are ${known}`);
    }
    const array = Array.isArray(data) ? kind.from(data) : data;
    const isBits = dtype === "float16" && array instanceof Uint16Array;
    if (!(array instanceof kind) && !isBits) {
      const given = data?.constructor?.name ?? typeof data;
      throw new PteronError("InputDtypeError", `a ${dtype} tensor holds a ${kind.name}; ${given} is given`);
    }
    const count = dims.reduce((a, b) => a * b, 1);
    if (count !== array.length) {
      throw new PteronError(
        "InputShapeError",
        `dims [${dims}] mean ${count} elements; the data has ${array.length}`,
      );
    }
    this.dtype = dtype;
    this.data = array;
    this.dims = [...dims];
  }
}

/** A tensor as the worker takes it: float16 as its bits. */
function toWorker({ dtype, data, dims }) {
  const isHalf = HALF && data instanceof HALF;
  return { dtype, dims, data: isHalf ? new Uint16Array(data.buffer, data.byteOffset, data.length) : data };
}

function fromWorker(dtype, data, dims) {
  return new Tensor(dtype, HALF && dtype === "float16" ? new HALF(data.buffer) : data, dims);
}

/** Calls to the worker as promises, with their progress. */
class Channel {
  constructor(worker) {
    this.worker = worker;
    this.waiting = new Map();
    this.listeners = new Map(); // of calls whose work goes on after they have answered
    this.next = 1;
    this.failure = null;
    worker.onmessage = ({ data }) => this.receive(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.fail(new PteronError("FetchError", `the worker does not start: ${event.message ?? "is worker.js there?"}`));
    };
  }

  receive({ id, result, error, progress }) {
    const call = this.waiting.get(id);
    if (progress) {
      (call?.onProgress ?? this.listeners.get(id))?.(progress);
      return;
    }
    if (!call) {
      return;
    }
    this.waiting.delete(id);
    if (error) {
      call.reject(new PteronError(error.name, error.message, error.stack));
    } else {
      call.resolve(result);
    }
  }

  fail(error) {
    this.failure = error;
    for (const { reject } of this.waiting.values()) {
      reject(error);
    }
    this.waiting.clear();
  }

  /** lasting: go on listening to progress after the answer. signal: an AbortSignal that gives the call up. */
  call(call, args, { onProgress, transfer = [], lasting = false, signal } = {}) {
    if (this.failure) {
      return Promise.reject(this.failure);
    }
    if (signal?.aborted) {
      return Promise.reject(new PteronError("AbortError", "it was aborted before it began"));
    }
    return new Promise((resolve, reject) => {
      const id = this.next++;
      signal?.addEventListener("abort", () => this.waiting.has(id) && this.call("abort", { call: id }), { once: true });
      this.waiting.set(id, { resolve, reject, onProgress });
      if (lasting && onProgress) {
        this.listeners.set(id, onProgress);
      }
      this.worker.postMessage({ id, call, args }, transfer);
    });
  }

  close() {
    this.fail(new PteronError("ClosedError", "this runtime was closed; create another one"));
    this.worker.terminate();
  }
}

/** A GPU device with Python beside it, in a worker of its own. */
export class Runtime {
  /**
   * onProgress: called with { stage, loaded, total, message }. base: where pteron.js's site is, when
   * it is not beside this file. Throws WebGPUUnavailableError, FetchError.
   * Python goes on booting after this resolves; what needs it waits for it.
   */
  static async create({ onProgress, base = new URL(".", import.meta.url) } = {}) {
    const home = new URL(base, location.href);
    const channel = new Channel(new Worker(new URL("worker.js", home), { type: "module", name: "pteron" }));
    try {
      const info = await channel.call("create", { base: home.href }, { onProgress, lasting: true });
      return new Runtime(channel, info, onProgress);
    } catch (error) {
      channel.close();
      throw error;
    }
  }

  constructor(channel, info, onProgress) {
    this.channel = channel;
    this.info = info;
    this.onProgress = onProgress;
  }

  /** Waits for Python; { boot_ms }. */
  started() {
    return this.channel.call("started", {});
  }

  /**
   * Load a `.pte` from a URL, Blob or ArrayBuffer; data: its `.ptd` files, likewise; signal: an
   * AbortSignal. What keeps the program from running is told, all at once, before weights are fetched.
   * Throws FetchError, ProgramError, TruncatedProgramError, MissingOperatorError, UnsupportedError,
   * LimitError, AbortError.
   */
  async loadProgram(source, { data = [], onProgress = this.onProgress, signal } = {}) {
    const resolve = (item) =>
      item instanceof Blob || item instanceof ArrayBuffer || ArrayBuffer.isView(item)
        ? item
        : new URL(item, document.baseURI).href;
    const args = { source: resolve(source), data: data.map(resolve) };
    const answer = await this.channel.call("loadProgram", args, { onProgress, signal });
    return new Program(this, answer);
  }

  /** Close all programs and end the worker. */
  async close() {
    await this.channel.call("closeAll", {}).catch(() => {});
    this.channel.close();
  }
}

/** A loaded `.pte`. */
export class Program {
  /** origin: where the weights came from and whether the browser keeps them: { cache, fetched, cached }. */
  constructor(runtime, { program, methods, timings, origin }) {
    this.runtime = runtime;
    this.number = program;
    this.methods = methods;
    this.timings = timings;
    this.origin = origin;
  }

  /** Plan and compile a method. Throws ProgramError, MissingOperatorError, UnsupportedError, … */
  async loadMethod(name = "forward", { onProgress = this.runtime.onProgress } = {}) {
    const args = { program: this.number, name };
    const { method, metadata, timings } = await this.runtime.channel.call("loadMethod", args, { onProgress });
    return new Method(this.runtime, method, metadata, timings);
  }

  /** Give back all GPU memory of this program. */
  close() {
    return this.runtime.channel.call("close", { number: this.number });
  }
}

/** A compiled entry point. */
export class Method {
  constructor(runtime, number, metadata, timings) {
    this.runtime = runtime;
    this.number = number;
    const port = ({ dtype, shape, dynamic }) => ({ dtype, dims: shape, dynamic }); // dims at most, where dynamic
    this.metadata = {
      name: metadata.name,
      inputs: metadata.inputs.map(port),
      outputs: metadata.outputs.map(port),
    };
    this.timings = timings;
  }

  /**
   * Run on tensors; resolves to the output tensors.
   * Throws InputCountError, InputShapeError, InputDtypeError, GPUError, ClosedError.
   */
  async execute(tensors) {
    const args = { method: this.number, tensors: tensors.map(toWorker) };
    const { outputs, shapes } = await this.runtime.channel.call("execute", args);
    return outputs.map((data, i) => fromWorker(this.metadata.outputs[i].dtype, data, shapes[i]));
  }

  /** Set mutable buffers (a key-value cache, say) back to what the program starts them as. */
  async reset() {
    await this.runtime.channel.call("reset", { method: this.number });
  }

  /** What a run consists of and how long each kernel takes (py_runtime/report.py). */
  report({ rounds = 5 } = {}) {
    return this.runtime.channel.call("report", { method: this.number, rounds });
  }
}

export { pipeline } from "./pipeline.js";
