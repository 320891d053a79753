// Bytes of a file, wherever it is: as a stream from its start, and any range later.

import { failure } from "./failure.js";

/** Where bytes come from: a URL, a Blob or an ArrayBuffer behind one face. */
export class Source {
  constructor(source) {
    this.blob = source instanceof Blob ? source : null;
    if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
      this.blob = new Blob([source]);
    }
    this.url = this.blob ? null : String(source);
  }

  get name() {
    return this.url ?? this.blob.name ?? "the given data";
  }

  async fetch(headers) {
    let response;
    try {
      response = await fetch(this.url, { headers });
    } catch (error) {
      throw failure("FetchError", `${this.url} can't be reached (${error.message}). Is the server up?`);
    }
    if (!response.ok) {
      throw failure("FetchError", `${this.url} answers ${response.status} ${response.statusText}`);
    }
    return response;
  }

  /** { stream, size } of the whole file; size is 0 when the server does not say. */
  async open() {
    if (this.blob) {
      return { stream: this.blob.stream(), size: this.blob.size };
    }
    const response = await this.fetch({});
    const encoded = response.headers.get("content-encoding");
    const size = encoded ? 0 : Number(response.headers.get("content-length") ?? 0);
    return { stream: response.body, size };
  }

  /** `size` bytes at `offset`. */
  async read(offset, size) {
    if (this.blob) {
      return new Uint8Array(await this.blob.slice(offset, offset + size).arrayBuffer());
    }
    const response = await this.fetch({ Range: `bytes=${offset}-${offset + size - 1}` });
    const bytes = new Uint8Array(await response.arrayBuffer());
    return response.status === 206 ? bytes : bytes.subarray(offset, offset + size);
  }
}

/** Bytes of a stream, asked for by count. */
export class StreamReader {
  constructor(stream, onBytes) {
    this.reader = stream.getReader();
    this.chunk = new Uint8Array(0);
    this.onBytes = onBytes;
    this.position = 0;
  }

  /** Between 1 and `limit` bytes, or null at the end. */
  async some(limit) {
    while (!this.chunk.length) {
      const { done, value } = await this.reader.read();
      if (done) {
        return null;
      }
      this.chunk = value;
      this.onBytes(value.length);
    }
    const part = this.chunk.subarray(0, limit);
    this.chunk = this.chunk.subarray(part.length);
    this.position += part.length;
    return part;
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
    return concatenate(parts);
  }

  async skip(count) {
    let left = count;
    while (left > 0) {
      const part = await this.some(left);
      if (!part) {
        break;
      }
      left -= part.length;
    }
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
