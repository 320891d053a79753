// Bytes of a file, wherever it is: any range of them, or all as a stream that goes on after a cut.

import { failure } from "./failure.js";

// What the first request asks for: the head of most programs, and no more than a little of their weights.
export const FIRST_BYTES = 256 << 10;
const SKIP_BYTES = 1 << 20;

// A cut connection is taken up again where it broke; each time bytes arrive the count starts anew.
const ATTEMPTS = 5;
const PAUSE_MS = 200;

/** Where bytes come from: a URL, a Blob or an ArrayBuffer behind one face. */
export class Source {
  /** signal: an AbortSignal, after which everything throws AbortError. */
  constructor(source, signal) {
    this.blob = source instanceof Blob ? source : null;
    if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
      this.blob = new Blob([source]);
    }
    this.url = this.blob ? null : String(source);
    this.signal = signal;
    this.size = this.blob?.size ?? 0; // 0 while it is not known
    this.ranges = true; // whether the server gives parts of the file
    this.version = null;
  }

  get name() {
    return this.url ?? this.blob.name ?? "the given data";
  }

  /** Throw AbortError once the load was given up. */
  check() {
    if (this.signal?.aborted) {
      throw failure("AbortError", `loading ${this.name} was aborted`);
    }
  }

  async fetch(first, last) {
    this.check();
    const headers = this.ranges ? { Range: `bytes=${first}-${last ?? ""}` } : {};
    let response;
    try {
      response = await fetch(this.url, { headers, signal: this.signal });
    } catch (error) {
      this.check();
      throw failure("FetchError", `${this.url} can't be reached (${error.message}). Is the server up?`);
    }
    if (!response.ok && response.status !== 416) {
      throw failure("FetchError", `${this.url} answers ${response.status} ${response.statusText}`);
    }
    this.learn(response);
    return response;
  }

  /** What an answer tells of the file: its size, its version, whether parts can be had. */
  learn({ status, headers }) {
    const total = Number(/\/(\d+)$/.exec(headers.get("content-range") ?? "")?.[1] ?? 0);
    this.ranges = status !== 200;
    if (status === 206) {
      this.size ||= total;
    } else if (status === 200 && !headers.get("content-encoding")) {
      this.size ||= Number(headers.get("content-length") ?? 0);
    }
    const version = headers.get("etag") ?? headers.get("last-modified");
    if (this.version && version && version !== this.version) {
      throw failure("FetchError", `${this.url} has changed while it was being fetched; load it again`);
    }
    this.version ??= version;
  }

  /** { stream, offset } of the file from `first` (0 where the server gives no parts), up to `last` if given. */
  async open(first, last) {
    if (this.blob) {
      return { stream: this.blob.slice(first, last === undefined ? undefined : last + 1).stream(), offset: first };
    }
    const response = await this.fetch(first, last);
    if (response.status === 416) {
      return { stream: new Blob([]).stream(), offset: first };
    }
    return { stream: response.body, offset: response.status === 206 ? first : 0 };
  }

  /** `size` bytes at `offset`, fewer where the file ends. */
  async read(offset, size) {
    if (this.blob) {
      this.check();
      return new Uint8Array(await this.blob.slice(offset, offset + size).arrayBuffer());
    }
    const reader = new ByteStream(this, offset, offset + size - 1);
    try {
      return await reader.exactly(size);
    } finally {
      reader.cancel();
    }
  }

  /** The file's beginning, as a stream that goes on behind it. */
  start() {
    return new ByteStream(this, 0, this.blob ? undefined : FIRST_BYTES - 1);
  }
}

/** Bytes of a source in order, asked for by count. What was pushed back comes first. */
export class ByteStream {
  constructor(source, position = 0, last = undefined) {
    this.source = source;
    this.position = position;
    this.last = last; // of the request that comes next; later ones ask for all the rest
    this.reader = null;
    this.chunk = new Uint8Array(0);
    this.ended = false;
  }

  /** Between 1 and `limit` bytes, or null at the end. */
  async some(limit) {
    if (!this.chunk.length && !(await this.fill())) {
      return null;
    }
    const part = this.chunk.subarray(0, limit);
    this.chunk = this.chunk.subarray(part.length);
    this.position += part.length;
    return part;
  }

  /** Get the next bytes, over a new connection where one breaks; false at the file's end. */
  async fill() {
    let broken = null;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (attempt) {
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * 2 ** (attempt - 1)));
      }
      try {
        if (!this.reader) {
          await this.connect();
        }
        while (!this.chunk.length) {
          const { done, value } = await this.reader.read();
          if (done) {
            break;
          }
          this.chunk = value;
        }
        if (this.chunk.length) {
          return true;
        }
        this.cancel();
        const { size } = this.source;
        if (size ? this.position >= size : this.last === undefined) {
          return false;
        }
        if (this.position > this.last) {
          attempt = -1; // not cut: the part that was asked for is over, and the rest follows
        }
        this.last = undefined;
      } catch (error) {
        this.cancel();
        this.source.check();
        if (error.name === "FetchError" && !this.position) {
          throw error; // never got anything: no use in asking again
        }
        broken = error;
      }
    }
    if (broken) {
      const where = `the connection breaks at byte ${this.position.toLocaleString("en")} again and again`;
      throw failure("FetchError", `${this.source.name}: ${where} (${broken.message}). Load it again.`);
    }
    return false; // the server ends early again and again: whoever counts bytes says so
  }

  async connect() {
    const { stream, offset } = await this.source.open(this.position, this.last);
    this.reader = stream.getReader();
    for (let behind = this.position - offset; behind > 0; ) {
      const { done, value } = await this.reader.read();
      if (done) {
        break;
      }
      this.chunk = value.subarray(Math.min(behind, value.length));
      behind -= value.length;
    }
  }

  /** `count` bytes, fewer at the file's end. */
  async exactly(count) {
    const parts = [];
    let left = count;
    while (left > 0) {
      const part = await this.some(left);
      if (!part) {
        break;
      }
      parts.push(part);
      left -= part.length;
    }
    return parts.length === 1 ? parts[0] : concatenate(parts);
  }

  /** Go on at another place: over a gap by reading it, where that is nearer than a new request. */
  async seek(position) {
    const ahead = position - this.position;
    if (ahead < 0 || (ahead > SKIP_BYTES && this.source.ranges)) {
      this.cancel();
      this.chunk = new Uint8Array(0);
      this.position = position;
      this.last = undefined;
    }
    while (this.position < position && (await this.some(position - this.position))) {
      // what lies between is not needed
    }
  }

  cancel() {
    this.reader?.cancel().catch(() => {});
    this.reader = null;
  }
}

/** Several byte arrays as one. */
export function concatenate(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
