// A plan bound to a device: compiled once, replayed with one call a run.
//
// The plan is plain data (py_runtime/plan.py). Binding makes buffers, pipelines and bind
// groups; a run writes the inputs, encodes the flat list into one compute pass, submits
// once and reads back the outputs.

import { compile } from "./compile.js";
import { fromStorage, toStorage } from "./convert.js";
import { allocate, failure, guarded, lostDevice, release } from "./failure.js";
import { GpuTensor } from "./tensor.js";

/** A plan on a device. Make one with `bind`. */
class BoundPlan {
  constructor(device, plan, queue) {
    this.device = device;
    this.plan = plan;
    this.queue = queue;
    this.owned = []; // all buffers but the states
    this.buffers = [];
    this.steps = [];
    this.resetSteps = [];
    this.closed = false;
    this.calls = { run: 0, submit: 0, bytesRead: 0 };
  }

  /** { buffer, offset } of a range; constants are where the file's bytes lie. */
  place(range) {
    if (range.buffer >= 0) {
      return { buffer: this.buffers[range.buffer], offset: range.offset };
    }
    const constant = this.constants[-1 - range.buffer];
    return { buffer: constant.buffer, offset: constant.offset + range.offset };
  }

  step({ pipeline, bindings, grid, label }, compiled) {
    const entries = bindings.map((range, binding) => {
      const { buffer, offset } = this.place(range);
      return { binding, resource: { buffer, offset, size: range.size } };
    });
    const group = this.device.createBindGroup({ label, layout: compiled[pipeline].group, entries });
    return { pipeline: compiled[pipeline].pipeline, group, grid, label };
  }

  /** Encode steps into one pass, submit it and wait. */
  async finish(steps) {
    const encoder = this.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    this.encode(pass, steps);
    pass.end();
    this.device.queue.submit([encoder.finish()]);
    await this.device.queue.onSubmittedWorkDone();
  }

  /** Set the states to what they start as. */
  reset() {
    return this.queue.add(async () => {
      this.check();
      await guarded(this.device, "the reset", () => this.finish(this.resetSteps));
    });
  }

  encode(pass, steps) {
    let current = null;
    for (const { pipeline, group, grid } of steps) {
      if (pipeline !== current) {
        pass.setPipeline(pipeline);
        current = pipeline;
      }
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(grid[0], grid[1], grid[2]);
    }
  }

  write(inputs, encoder) {
    this.plan.inputs.forEach((port, i) => {
      if (inputs[i] instanceof GpuTensor) {
        const { buffer, offset } = this.place(port.range);
        inputs[i].copyTo(encoder, buffer, offset);
        return;
      }
      let data = toStorage(inputs[i], port.dtype, port.storage);
      if (data.byteLength % 4) {
        const padded = new Uint8Array(Math.ceil(data.byteLength / 4) * 4);
        padded.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
        data = padded;
      }
      if (data.byteLength) {
        const { buffer, offset } = this.place(port.range);
        this.device.queue.writeBuffer(buffer, offset, data.buffer, data.byteOffset, data.byteLength);
      }
    });
  }

  /** Copy the outputs that are wanted here to where they can be mapped; their bytes. */
  copyOutputs(encoder, read) {
    let at = 0;
    for (const [i, { range }] of this.plan.outputs.entries()) {
      const size = read[i] ? Math.ceil(range.size / 4) * 4 : 0;
      if (size) {
        const { buffer, offset } = this.place(range);
        encoder.copyBufferToBuffer(buffer, offset, this.readback, at, size);
      }
      at += size;
    }
    return at;
  }

  /** Copies of the outputs that stay on the GPU, null for the others. */
  keepOutputs(encoder, keep) {
    return this.plan.outputs.map((port, i) => {
      if (!keep[i]) {
        return null;
      }
      const tensor = new GpuTensor(this.device, this.queue, port);
      const { buffer, offset } = this.place(port.range);
      tensor.fill(encoder, buffer, offset);
      return tensor;
    });
  }

  /**
   * Run on typed arrays or GpuTensors, one an input; runs queue up. Resolves to typed arrays, one an
   * output; with `read` and `keep` (booleans, one an output) to { array, tensor }, null where not asked for.
   */
  async run(inputs, read = null, keep = null) {
    if (keep === null) {
      const outputs = await this.queue.add(() => this.runNow(inputs, this.plan.outputs.map(() => true), []));
      return outputs.map(({ array }) => array);
    }
    return this.queue.add(() => this.runNow(inputs, read, keep));
  }

  async runNow(inputs, read, keep) {
    this.check();
    this.calls.run++;
    const fits = (input, i) => !(input instanceof GpuTensor) || input.storage === this.plan.inputs[i].storage;
    const given = await Promise.all(inputs.map((input, i) => (fits(input, i) ? input : input.readNow())));
    let size = 0;
    let kept = [];
    try {
      await guarded(this.device, "the run", () => {
        const encoder = this.device.createCommandEncoder();
        this.write(given, encoder);
        const pass = encoder.beginComputePass();
        this.encode(pass, this.steps);
        pass.end();
        size = this.copyOutputs(encoder, read);
        kept = this.keepOutputs(encoder, keep);
        this.device.queue.submit([encoder.finish()]);
        this.calls.submit++;
        return size ? this.readback.mapAsync(GPUMapMode.READ, 0, size) : undefined;
      });
    } catch (error) {
      kept.forEach((tensor) => tensor?.destroy());
      this.check(); // closed or lost under the run: WebGPU's own error would not say so
      throw error;
    }
    return this.readOutputs(size, read).map((array, i) => ({ array, tensor: kept[i] ?? null }));
  }

  readOutputs(size, read) {
    let at = 0;
    const mapped = size ? this.readback.getMappedRange(0, size) : new ArrayBuffer(0);
    const outputs = this.plan.outputs.map(({ dtype, shape, storage, range }, i) => {
      if (!read[i]) {
        return null;
      }
      const count = shape.reduce((a, b) => a * b, 1);
      const bytes = mapped.slice(at, at + range.size);
      at += Math.ceil(range.size / 4) * 4;
      return fromStorage(bytes, dtype, storage, count);
    });
    if (size) {
      this.readback.unmap();
    }
    this.calls.bytesRead += size;
    return outputs;
  }

  /**
   * Milliseconds of each step, the median of `rounds` runs over the inputs that are there.
   * { timer: "timestamp-query" | "wall", milliseconds: [...] }
   */
  profile(rounds) {
    return this.queue.add(() => this.profileNow(rounds));
  }

  async profileNow(rounds) {
    this.check();
    const stamps = this.device.features.has("timestamp-query") && this.steps.length <= 2048;
    const times = [];
    for (let round = 0; round < rounds; round++) {
      times.push(await (stamps ? this.stampedRound() : this.wallRound()));
    }
    const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
    return {
      timer: stamps ? "timestamp-query" : "wall",
      milliseconds: this.steps.map((_, i) => median(times.map((round) => round[i]))),
    };
  }

  async stampedRound() {
    const { device, steps } = this;
    const count = 2 * steps.length;
    if (!count) {
      return [];
    }
    const querySet = device.createQuerySet({ type: "timestamp", count });
    const resolved = device.createBuffer({
      size: count * 8,
      usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
    });
    const mapped = device.createBuffer({
      size: count * 8,
      usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ,
    });
    try {
      return await guarded(device, "the profile", async () => {
        const encoder = device.createCommandEncoder();
        steps.forEach((step, i) => {
          const timestampWrites = {
            querySet,
            beginningOfPassWriteIndex: 2 * i,
            endOfPassWriteIndex: 2 * i + 1,
          };
          const pass = encoder.beginComputePass({ timestampWrites });
          this.encode(pass, [step]);
          pass.end();
        });
        encoder.resolveQuerySet(querySet, 0, count, resolved, 0);
        encoder.copyBufferToBuffer(resolved, 0, mapped, 0, count * 8);
        device.queue.submit([encoder.finish()]);
        await mapped.mapAsync(GPUMapMode.READ);
        const stamps = new BigUint64Array(mapped.getMappedRange());
        return steps.map((_, i) => Math.max(0, Number(stamps[2 * i + 1] - stamps[2 * i]) / 1e6));
      });
    } finally {
      querySet.destroy();
      resolved.destroy();
      mapped.destroy();
    }
  }

  async wallRound() {
    const times = [];
    for (const step of this.steps) {
      const start = performance.now();
      await guarded(this.device, `the profile of ${step.label}`, () => this.finish([step]));
      times.push(performance.now() - start);
    }
    return times;
  }

  check() {
    const gone = lostDevice(this.device);
    if (gone) {
      throw gone;
    }
    if (this.closed) {
      throw failure("ClosedError", "this method's program was closed; load it again to run it");
    }
  }

  /** Bytes of GPU memory that this plan made for itself, states not counted. */
  get bytes() {
    return [...this.owned, this.readback].reduce((sum, buffer) => sum + (buffer?.size ?? 0), 0);
  }

  close() {
    this.closed = true;
    release(this.device, [...this.owned, this.readback].filter(Boolean));
    this.owned = [];
    this.buffers = [];
    this.steps = [];
    this.readback = null;
    this.files?.release(this);
  }
}

/** Work on a device, one piece after another; a failed piece does not stop the next. */
export class Queue {
  constructor() {
    this.last = Promise.resolve();
  }

  add(work) {
    const result = this.last.then(work);
    this.last = result.catch(() => {});
    return result;
  }
}

/**
 * Bind a plan (JSON text) to a device.
 *
 * files: the open program (weights.js), which has the constants. states: the buffers of states
 * that plans of one graph share, filled by the first of them. Compiles, runs `prepare` once
 * and gives back the file's buffers that no run needs. Throws GPUError, LimitError.
 */
export function bind(device, queue, text, files, states, onProgress) {
  return queue.add(() => bindNow(device, queue, text, files, states, onProgress));
}

async function bindNow(device, queue, text, files, states, onProgress) {
  const plan = JSON.parse(text);
  const fresh = states.length === 0;
  const bound = new BoundPlan(device, plan, queue);
  bound.files = files;
  files.hold(bound);
  try {
    const compiled = await compile(device, plan, onProgress);
    bound.constants = await Promise.all(plan.constants.map((constant) => files.locate(constant)));
    await guarded(device, "making the buffers", async () => {
      const own = plan.buffers.length - plan.states;
      const wanted = bufferDescriptors(plan);
      const [readback, ...buffers] = await allocate(device, fresh ? wanted : wanted.slice(0, own + 1));
      bound.readback = readback;
      bound.owned = buffers.slice(0, own);
      states.push(...buffers.slice(own));
      bound.buffers = [...bound.owned, ...states];
    });
    await guarded(device, "preparing the weights", async () => {
      bound.steps = plan.run.map((step) => bound.step(step, compiled));
      bound.resetSteps = plan.reset.map((step) => bound.step(step, compiled));
      const first = plan.prepare.map((step) => bound.step(step, compiled));
      if (fresh) {
        first.push(...bound.resetSteps);
      }
      if (first.length) {
        await bound.finish(first);
      }
    });
    files.keep(bound, usedConstants(bound));
  } catch (error) {
    bound.close();
    if (fresh) {
      release(device, states.splice(0));
    }
    throw error;
  }
  return bound;
}

/** What a plan needs for itself, for `allocate`: the memory that outputs are read through, then its buffers. */
function bufferDescriptors(plan) {
  const size = plan.outputs.reduce((sum, { range }) => sum + Math.ceil(range.size / 4) * 4, 0);
  const readback = {
    what: "the copy of the outputs",
    size: Math.max(size, 4),
    usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
  };
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const user = (steps, i) => steps.find(({ bindings }) => bindings.some(({ buffer }) => buffer === i))?.label;
  const use = (i) => {
    if (i < plan.prepared) {
      return `memory for activations (first used by ${user(plan.run, i)})`;
    }
    return i < plan.buffers.length - plan.states ? `a weight prepared by ${user(plan.prepare, i)}` : "a state";
  };
  return [readback, ...plan.buffers.map((bytes, i) => ({ what: use(i), size: bytes, usage }))];
}

/** The file's buffers that a run or an output reads. */
function usedConstants(bound) {
  const steps = [...bound.plan.run, ...bound.plan.reset];
  const ranges = [...steps.flatMap((step) => step.bindings), ...bound.plan.outputs.map((p) => p.range)];
  return new Set(ranges.filter((range) => range.buffer < 0).map((range) => bound.place(range).buffer));
}
