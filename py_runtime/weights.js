// A program's file on its way to the GPU.
//
// The file is read once, front to back, as a stream. Its head stays in JS memory for
// Python; each weight goes chunk by chunk into a GPU buffer as it arrives, so that no
// whole weight is ever in the JS heap, and none in Python's. What is asked for later and
// is not there is read again from the source.

import { failure } from "./failure.js";
import { readHead, readSegments } from "./segments.js";
import { concatenate, Source, StreamReader } from "./source.js";

const HEAD_BYTES = 64;
const ALIGNMENT = 256; // of a weight in its buffer: the largest offset alignment WebGPU allows
// Small weights share buffers of about 1 MiB. Others have one each: a weight that is packed into
// another form at load is then given back, whatever its neighbours are used for.
const BUFFER_BYTES = 1 << 20;
const SMALL_BYTES = 32 << 10;
const IN_FLIGHT_BYTES = 32 << 20; // bytes written to the queue before it is waited for

const roundUp = (value, step) => Math.ceil(value / step) * step;

/** Writes a stream of bytes into a buffer at 4-byte steps, as `writeBuffer` wants. */
class BufferWriter {
  constructor(device, buffer, offset) {
    this.device = device;
    this.buffer = buffer;
    this.offset = offset;
    this.rest = new Uint8Array(0);
  }

  write(part) {
    const bytes = this.rest.length ? concatenate([this.rest, part]) : part;
    const whole = bytes.length & ~3;
    if (whole) {
      this.device.queue.writeBuffer(this.buffer, this.offset, bytes, 0, whole);
      this.offset += whole;
    }
    this.rest = bytes.slice(whole);
  }

  end() {
    if (this.rest.length) {
      this.write(new Uint8Array(4 - this.rest.length));
    }
  }
}

/** One open `.pte` or `.ptd`. */
class OpenFile {
  constructor(device, source) {
    this.device = device;
    this.source = source;
    this.size = 0;
    this.head = new Uint8Array(0);
    this.kept = []; // { offset, bytes } in JS memory
    this.resident = new Map(); // file offset -> { buffer, offset, size }
    this.buffers = new Set();
  }

  newBuffer(size) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    const limit = this.device.limits.maxBufferSize;
    if (size > limit) {
      throw failure(
        "LimitError",
        `a weight of ${this.source.name} has ${size} bytes; a buffer of this device holds ${limit}`,
      );
    }
    const buffer = this.device.createBuffer({ size, usage });
    this.buffers.add(buffer);
    return buffer;
  }

  /** Give each weight its place. */
  layOut(weights) {
    let group = [];
    let total = 0;
    const flush = () => {
      if (group.length) {
        const buffer = this.newBuffer(total);
        for (const { offset, size, at } of group) {
          this.resident.set(offset, { buffer, offset: at, size });
        }
      }
      group = [];
      total = 0;
    };
    for (const { offset, size } of weights) {
      const padded = roundUp(size, ALIGNMENT);
      if (size > SMALL_BYTES) {
        this.resident.set(offset, { buffer: this.newBuffer(padded), offset: 0, size });
        continue;
      }
      if (total && total + padded > BUFFER_BYTES) {
        flush();
      }
      group.push({ offset, size, at: total });
      total += padded;
    }
    flush();
  }

  async load(onProgress) {
    const { stream, size } = await this.source.open();
    let loaded = 0;
    const reader = new StreamReader(stream, (count) => {
      loaded += count;
      onProgress?.(loaded, size);
    });
    const first = await reader.exactly(HEAD_BYTES);
    const header = readHead(first);
    if (!header) {
      this.head = concatenate([first, await reader.exactly(Number.MAX_SAFE_INTEGER)]);
      this.size = this.head.length;
      this.kept.push({ offset: 0, bytes: this.head });
      return;
    }
    const known = size || Number.MAX_SAFE_INTEGER;
    this.head = concatenate([first, await reader.exactly(Math.min(header.size, known) - first.length)]);
    this.kept.push({ offset: 0, bytes: this.head });
    if (this.head.length < header.size) {
      this.size = this.head.length;
      return; // cut short: program.py says so
    }
    const segments = readSegments(this.head, header);
    this.layOut(segments.filter((segment) => segment.named));
    await this.stream(reader, segments);
    await reader.skip(Number.MAX_SAFE_INTEGER);
    this.size = reader.position;
  }

  async stream(reader, segments) {
    let unwaited = 0;
    for (const segment of segments) {
      if (segment.offset < reader.position) {
        continue; // shares bytes with one before: read again if it is ever asked for
      }
      await reader.skip(segment.offset - reader.position);
      if (!segment.named) {
        this.kept.push({ offset: segment.offset, bytes: await reader.exactly(segment.size) });
        continue;
      }
      const { buffer, offset } = this.resident.get(segment.offset);
      const writer = new BufferWriter(this.device, buffer, offset);
      let left = segment.size;
      while (left > 0) {
        const part = await reader.some(left);
        if (!part) {
          return;
        }
        writer.write(part);
        left -= part.length;
        unwaited += part.length;
        if (unwaited > IN_FLIGHT_BYTES) {
          await this.device.queue.onSubmittedWorkDone();
          unwaited = 0;
        }
      }
      writer.end();
    }
  }

  /** `size` bytes at `offset` in JS memory. */
  async read(offset, size) {
    for (const piece of this.kept) {
      if (piece.offset <= offset && offset + size <= piece.offset + piece.bytes.length) {
        return piece.bytes.subarray(offset - piece.offset, offset - piece.offset + size);
      }
    }
    const bytes = await this.source.read(offset, size);
    if (bytes.length !== size) {
      throw failure(
        "TruncatedProgramError",
        `${this.source.name} gives ${bytes.length} of ${size} bytes at ${offset}. Fetch the file again.`,
      );
    }
    return bytes;
  }

  /** { buffer, offset } of `size` bytes at `offset` of the file; uploads them if they are not there. */
  async locate(offset, size) {
    let place = this.resident.get(offset);
    if (!place || place.size < size) {
      const bytes = await this.read(offset, size);
      const buffer = this.newBuffer(roundUp(Math.max(size, 4), ALIGNMENT));
      const writer = new BufferWriter(this.device, buffer, 0);
      writer.write(bytes);
      writer.end();
      place = { buffer, offset: 0, size };
      this.resident.set(offset, place);
    }
    return place;
  }

  /** Give back the buffers that no bound plan reads. */
  drop(used) {
    for (const buffer of this.buffers) {
      if (!used.has(buffer)) {
        buffer.destroy();
        this.buffers.delete(buffer);
      }
    }
    for (const [offset, { buffer }] of this.resident) {
      if (!this.buffers.has(buffer)) {
        this.resident.delete(offset);
      }
    }
  }
}

/** A program's file and its `.ptd` files, in the order in which plans number them. */
class ProgramFiles {
  constructor(files) {
    this.files = files;
    this.users = new Map(); // bound plan -> the buffers it reads, null while it is being bound
  }

  get(index) {
    return this.files[index];
  }

  locate({ file, region }) {
    return this.files[file].locate(region.offset, region.size);
  }

  /** Give nothing back until this plan says what it reads. */
  hold(plan) {
    this.users.set(plan, null);
  }

  /** Say which buffers a bound plan goes on reading; what nobody reads is given back. */
  keep(plan, buffers) {
    this.users.set(plan, buffers);
    this.drop();
  }

  release(plan) {
    if (this.users.delete(plan)) {
      this.drop();
    }
  }

  drop() {
    if ([...this.users.values()].includes(null)) {
      return;
    }
    const used = new Set([...this.users.values()].flatMap((buffers) => [...buffers]));
    for (const file of this.files) {
      file.drop(used);
    }
  }

  /** Bytes of GPU memory that weights hold as they are in the file. */
  get bytes() {
    return this.files.flatMap((file) => [...file.buffers]).reduce((sum, buffer) => sum + buffer.size, 0);
  }

  close() {
    this.users.clear();
    this.drop();
  }
}

/**
 * Open a program and its data files and send their weights to the GPU.
 *
 * sources: URLs, Blobs or ArrayBuffers, the `.pte` first. onProgress(loaded, total) in
 * bytes over all files; total is 0 while a size is not known. Throws FetchError,
 * ProgramError, LimitError; nothing stays on the GPU then.
 */
export async function openFiles(device, sources, onProgress) {
  const files = sources.map((source) => new OpenFile(device, new Source(source)));
  const loaded = new Map();
  const report = (file) => (bytes, total) => {
    loaded.set(file, [bytes, total]);
    const all = [...loaded.values()];
    const whole = all.length === files.length && all.every(([, size]) => size > 0);
    onProgress?.(
      all.reduce((sum, [count]) => sum + count, 0),
      whole ? all.reduce((sum, [, size]) => sum + size, 0) : 0,
    );
  };
  try {
    await Promise.all(files.map((file) => file.load(report(file))));
  } catch (error) {
    new ProgramFiles(files).close();
    throw error;
  }
  return new ProgramFiles(files);
}
