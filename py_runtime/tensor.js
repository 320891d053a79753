// A tensor that a run left on the GPU: given to another run as it is, or read back later.

import { fromStorage } from "./convert.js";
import { failure, guarded } from "./failure.js";

const roundUp = (size) => Math.ceil(size / 4) * 4;

export class GpuTensor {
  /** port: the output it was (plan.py): dtype, shape, storage, bytes. Its memory is its own. */
  constructor(device, queue, { dtype, shape, storage, range }) {
    this.device = device;
    this.queue = queue;
    this.dtype = dtype;
    this.shape = shape;
    this.storage = storage;
    this.size = range.size;
    this.destroyed = false;
    const usage = GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    this.buffer = device.createBuffer({ label: "kept output", size: Math.max(4, roundUp(range.size)), usage });
  }

  /** Take its elements from a buffer. */
  fill(encoder, buffer, offset) {
    if (this.size) {
      encoder.copyBufferToBuffer(buffer, offset, this.buffer, 0, roundUp(this.size));
    }
  }

  /** Bring its elements to a buffer. */
  copyTo(encoder, buffer, offset) {
    if (this.size) {
      encoder.copyBufferToBuffer(this.buffer, 0, buffer, offset, roundUp(this.size));
    }
  }

  /** Its elements as a typed array of its dtype. */
  read() {
    return this.queue.add(() => this.readNow());
  }

  async readNow() {
    if (this.destroyed) {
      throw failure("ClosedError", "a tensor is read that was given back, as its program was closed; load it again");
    }
    const { device, dtype, shape, storage } = this;
    const size = Math.max(4, roundUp(this.size));
    const mapped = device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
    try {
      await guarded(device, "reading a tensor back", () => {
        const encoder = device.createCommandEncoder();
        this.copyTo(encoder, mapped, 0);
        device.queue.submit([encoder.finish()]);
        return mapped.mapAsync(GPUMapMode.READ);
      });
      const bytes = mapped.getMappedRange().slice(0, this.size);
      return fromStorage(bytes, dtype, storage, shape.reduce((a, b) => a * b, 1));
    } finally {
      mapped.destroy();
    }
  }

  destroy() {
    this.destroyed = true;
    this.buffer.destroy();
  }
}
