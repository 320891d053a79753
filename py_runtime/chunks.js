// The bytes of an open file from where they are nearest: memory, this browser's cache, else the network.

import { CacheEntry, CHUNK_BYTES, sha256 } from "./cache.js";
import { failure } from "./failure.js";
import { concatenate } from "./source.js";

const REMEMBERED = 4; // chunks, of reads after the load

/** Reads a file by chunks and keeps in the browser what it fetched. */
export class ChunkReader {
  /** head: the bytes that `stream` has given so far; it goes on behind them. key: tells this file from others. */
  constructor(source, stream, head, size, key) {
    this.source = source;
    this.stream = stream;
    this.head = head;
    this.size = size;
    this.key = key;
    this.entry = null;
    this.recent = new Map(); // chunks by number
    this.turn = Promise.resolve(); // of reads after the load, one at a time
    this.counts = { fetched: 0, cached: 0 };
    this.cache = source.blob ? "memory" : "none";
  }

  /** Use the browser's cache until `close`. */
  async open() {
    if (!this.source.blob) {
      this.entry = await CacheEntry.open(this.key, this.size);
    }
  }

  /** whole: all that a load needs has passed through. */
  async close(whole) {
    this.stream.cancel();
    if (this.entry) {
      await this.entry.close(whole);
      this.cache = this.entry.state === "full" ? "full" : "kept";
      this.entry = null;
    }
  }

  /** The file piece by piece, without those that `needed(first, end)` refuses: an async iterator of { offset, bytes }. */
  async *pieces(needed) {
    for (let i = 0; i * CHUNK_BYTES < this.size; i++) {
      this.source.check();
      const offset = i * CHUNK_BYTES;
      if (!needed(offset, offset + CHUNK_BYTES)) {
        continue;
      }
      const bytes = await this.chunk(i);
      yield { offset, bytes };
      if (bytes.length < Math.min(CHUNK_BYTES, this.size - offset)) {
        const [at, size] = [offset + bytes.length, this.size].map((count) => count.toLocaleString("en"));
        throw failure(
          "TruncatedProgramError",
          `${this.source.name} ends at byte ${at}; it should have ${size}. Fetch it again.`,
        );
      }
    }
  }

  async chunk(i) {
    const start = i * CHUNK_BYTES;
    const length = Math.min(CHUNK_BYTES, this.size - start);
    if (start + length <= this.head.length) {
      return this.head.subarray(start, start + length);
    }
    const cached = await this.entry?.read(i);
    if (cached) {
      this.counts.cached += length;
      return cached;
    }
    const known = this.head.subarray(Math.min(start, this.head.length));
    await this.stream.seek(start + known.length);
    const rest = await this.stream.exactly(length - known.length);
    const bytes = known.length ? concatenate([known, rest]) : rest;
    this.counts.fetched += rest.length;
    if (bytes.length === length) {
      await this.entry?.write(i, bytes);
    }
    return bytes;
  }

  /** `size` bytes at `offset`, some time after the load. */
  async read(offset, size) {
    if (offset + size <= this.head.length) {
      return this.head.subarray(offset, offset + size);
    }
    if (this.source.blob || this.cache !== "kept") {
      return this.source.read(offset, size);
    }
    const bytes = this.turn.then(() => this.readChunks(offset, size));
    this.turn = bytes.catch(() => {});
    return bytes;
  }

  async readChunks(offset, size) {
    await this.open();
    try {
      const parts = [];
      for (let at = offset; at < offset + size; ) {
        const i = Math.floor(at / CHUNK_BYTES);
        const bytes = await this.remembered(i);
        const part = bytes.subarray(at - i * CHUNK_BYTES, offset + size - i * CHUNK_BYTES);
        if (!part.length) {
          break;
        }
        parts.push(part);
        at += part.length;
      }
      return concatenate(parts);
    } finally {
      await this.close(true);
    }
  }

  async remembered(i) {
    const bytes = this.recent.get(i) ?? (await this.chunk(i));
    this.recent.delete(i);
    this.recent.set(i, bytes);
    if (this.recent.size > REMEMBERED) {
      this.recent.delete(this.recent.keys().next().value);
    }
    return bytes;
  }
}
