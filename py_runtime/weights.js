// A program's file on its way to the GPU.
//
// First only its head is fetched, and the delegates: what Python needs to say whether the
// program can run. Then each weight goes chunk by chunk into a GPU buffer as it arrives, so that no
// whole weight is ever in the JS heap, and none in Python's. What is asked for later and
// is not there is read again from the source or the browser's cache.

import { sha256 } from "./cache.js";
import { ChunkReader } from "./chunks.js";
import { allocate, failure, release } from "./failure.js";
import { readHead, readSegments } from "./segments.js";
import { concatenate, FIRST_BYTES, Source } from "./source.js";

const ALIGNMENT = 256; // of a weight in its buffer: the largest offset alignment WebGPU allows
// Small weights share buffers of about 1 MiB. Others have one each: a weight that is packed into
// another form at load is then given back, whatever its neighbours are used for.
const BUFFER_BYTES = 1 << 20;
const SMALL_BYTES = 32 << 10;
const DELEGATE_BYTES = 64 << 20; // of delegates that are fetched in one piece with the head
const KEPT_BYTES = 64 << 20; // of a segment that the CPU reads: longer ones are read by parts, when needed
const PART_BYTES = 4 << 20;
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

/** Fills an array in JS memory. */
class MemoryWriter {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  write(part) {
    this.bytes.set(part, this.at);
    this.at += part.length;
  }

  end() {}
}

/** One open `.pte` or `.ptd`. */
class OpenFile {
  constructor(device, source) {
    this.device = device;
    this.source = source;
    this.size = 0;
    this.head = new Uint8Array(0); // the program's flatbuffer
    this.segments = [];
    this.reader = null;
    this.kept = []; // { offset, bytes } in JS memory
    this.resident = new Map(); // file offset -> { buffer, offset, size }
    this.buffers = new Set();
  }

  /** Make buffers for groups of weights, each [{ offset, size, at }] with `at` its place in the buffer. */
  async makeBuffers(groups) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    const limit = this.device.limits.maxBufferSize;
    const wanted = groups.map((group) => {
      const [{ offset }, last] = [group[0], group.at(-1)];
      const size = roundUp(Math.max(last.at + last.size, 4), ALIGNMENT);
      const what = `${group.length > 1 ? "a group of weights" : "a weight"} of ${this.source.name}, from byte ${offset},`;
      if (size > limit) {
        throw failure("LimitError", `${what} has ${size} bytes; a buffer of this device holds ${limit}`);
      }
      return { what, size, usage };
    });
    const buffers = await allocate(this.device, wanted);
    buffers.forEach((buffer, i) => {
      this.buffers.add(buffer);
      groups[i].forEach(({ offset, size, at }) => this.resident.set(offset, { buffer, offset: at, size }));
    });
  }

  /** Give each weight its place. */
  layOut(weights) {
    const groups = [];
    let shared = [];
    let total = 0;
    for (const { offset, size } of weights) {
      const padded = roundUp(size, ALIGNMENT);
      if (size > SMALL_BYTES) {
        groups.push([{ offset, size, at: 0 }]);
        continue;
      }
      if (!shared.length || total + padded > BUFFER_BYTES) {
        shared = [];
        total = 0;
        groups.push(shared);
      }
      shared.push({ offset, size, at: total });
      total += padded;
    }
    return this.makeBuffers(groups);
  }

  /** Fetch the head and the delegates. */
  async open() {
    const stream = this.source.start();
    let bytes = await stream.exactly(FIRST_BYTES);
    const header = readHead(bytes);
    const more = async (end) => {
      if (end > bytes.length) {
        bytes = concatenate([bytes, await stream.exactly(end - bytes.length)]);
      }
    };
    await more(header ? header.size : Number.MAX_SAFE_INTEGER);
    this.head = bytes.subarray(0, header?.size);
    // a size that the server does not tell stands in the head
    this.size = (header ? this.source.size || header.end : 0) || bytes.length;
    if (header && this.head.length === header.size) {
      this.segments = readSegments(this.head, header);
      const delegates = this.segments.filter((segment) => segment.kind === "delegate");
      const first = Math.min(...delegates.map(({ offset }) => offset));
      const end = Math.max(0, ...delegates.map(({ offset, size }) => offset + size));
      if (end > bytes.length && end - first <= DELEGATE_BYTES) {
        if (first <= bytes.length || !this.source.ranges) {
          await more(end);
        } else {
          this.kept.push({ offset: first, bytes: await this.source.read(first, end - first) });
        }
      }
    } // else cut short, or without segments: program.py says so
    this.reader = new ChunkReader(this.source, stream, bytes, this.size, await sha256(this.head));
  }

  /** Send the weights to the GPU. onProgress(bytes of the file that are done with). */
  async load(onProgress) {
    const weights = this.segments.filter((segment) => segment.kind === "weight");
    await this.layOut(weights);
    const wanted = this.segments
      .filter(({ kind, size }) => kind === "weight" || (kind === "constants" && size <= KEPT_BYTES))
      .map((segment) => ({ ...segment, writer: this.writerOf(segment) }));
    await this.reader.open();
    let whole = false;
    try {
      await this.send(wanted, onProgress);
      whole = true;
    } finally {
      await this.reader.close(whole);
    }
    onProgress(this.size);
  }

  /** Where a segment's bytes go: to the GPU, or to JS memory for operators on the CPU. */
  writerOf({ kind, offset, size }) {
    if (kind === "weight") {
      const place = this.resident.get(offset);
      return new BufferWriter(this.device, place.buffer, place.offset);
    }
    const bytes = new Uint8Array(size);
    this.kept.push({ offset, bytes, constants: true });
    return new MemoryWriter(bytes);
  }

  /** Hand the pieces of the file to the segments that they are of, in order. */
  async send(segments, onProgress) {
    const overlap = ({ offset, size }, first, end) => offset < end && first < offset + size;
    const needed = (first, end) => segments.some((segment) => overlap(segment, first, end));
    let unwaited = 0;
    for await (const { offset, bytes } of this.reader.pieces(needed)) {
      const end = offset + bytes.length;
      for (const segment of segments.filter((one) => overlap(one, offset, end))) {
        const last = segment.offset + segment.size;
        const part = bytes.subarray(Math.max(segment.offset - offset, 0), last - offset);
        segment.writer.write(part);
        unwaited += part.length;
        if (last <= end) {
          segment.writer.end();
        }
      }
      onProgress(end);
      if (unwaited > IN_FLIGHT_BYTES) {
        await this.device.queue.onSubmittedWorkDone();
        unwaited = 0;
      }
    }
  }

  /** `size` bytes at `offset` in JS memory. */
  async read(offset, size) {
    for (const piece of this.kept) {
      if (piece.offset <= offset && offset + size <= piece.offset + piece.bytes.length) {
        return piece.bytes.subarray(offset - piece.offset, offset - piece.offset + size);
      }
    }
    const bytes = await this.reader.read(offset, size);
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
      await this.makeBuffers([[{ offset, size, at: 0 }]]);
      place = this.resident.get(offset);
      const writer = new BufferWriter(this.device, place.buffer, 0);
      try {
        for (let at = 0; at < size; at += PART_BYTES) {
          writer.write(await this.read(offset + at, Math.min(PART_BYTES, size - at)));
        }
      } catch (error) {
        this.resident.delete(offset);
        throw error;
      }
      writer.end();
    }
    return place;
  }

  /** Give back the buffers that no bound plan reads. */
  drop(used) {
    const unused = [...this.buffers].filter((buffer) => !used.has(buffer));
    unused.forEach((buffer) => this.buffers.delete(buffer));
    release(this.device, unused);
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

  /**
   * Send the weights of all files to the GPU. onProgress(done, total) in bytes of the files; done
   * only grows, total stays. Throws FetchError, TruncatedProgramError, LimitError, AbortError.
   */
  async load(onProgress) {
    const total = this.files.reduce((sum, file) => sum + file.size, 0);
    const done = this.files.map(() => 0);
    await Promise.all(
      this.files.map((file, i) =>
        file.load((bytes) => {
          done[i] = bytes;
          onProgress?.(done.reduce((sum, count) => sum + count, 0), total);
        }),
      ),
    );
  }

  /** Load everything again on another device; the plans that were bound are gone. */
  async reload(device) {
    this.users.clear();
    for (const file of this.files) {
      file.device = device;
      file.resident.clear();
      file.buffers.clear();
      file.kept = file.kept.filter(({ constants }) => !constants);
    }
    await this.load();
  }

  /** Where the weights came from and whether they stay: { cache, fetched, cached } (chunks.js), of all files. */
  get origin() {
    const readers = this.files.map((file) => file.reader);
    const sum = (name) => readers.reduce((total, { counts }) => total + counts[name], 0);
    const worst = ["full", "none", "kept", "memory"].find((state) => readers.some(({ cache }) => cache === state));
    return { cache: worst, fetched: sum("fetched"), cached: sum("cached") };
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
 * Open a program and its data files: their heads, and the delegates.
 *
 * sources: URLs, Blobs or ArrayBuffers, the `.pte` first. signal: an AbortSignal. Throws
 * FetchError, ProgramError, AbortError. Weights are fetched by `load`.
 */
export async function openFiles(device, sources, signal) {
  const files = sources.map((source) => new OpenFile(device, new Source(source, signal)));
  await Promise.all(files.map((file) => file.open()));
  return new ProgramFiles(files);
}
