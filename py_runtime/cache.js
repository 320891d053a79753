// Files kept in the browser (Origin Private File System), in chunks that are checked when they are read.
//
// An entry is two files: KEY.data, the file's bytes, and KEY.json, which says how long it is, which
// chunks are there and the SHA-256 of each, and when it was last used. The key is the SHA-256 of the
// file's head, which names every weight by its own hash: another file has another key.

const FOLDER = "pteron-files";
export const CHUNK_BYTES = 4 << 20;
const SAVE_EVERY = 32; // chunks, after which the index is written
const ANSWER_MS = 5000; // that the browser's storage has for an answer

const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** SHA-256 as hexadecimal digits. */
export async function sha256(bytes) {
  return hex(await crypto.subtle.digest("SHA-256", bytes));
}

/**
 * An answer of the browser's storage. Some never come (seen in Chromium, of two programs loaded at once);
 * the cache is a help, and no load may wait for it for ever.
 */
function answered(promise) {
  let timer = 0;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new DOMException("the browser's storage does not answer", "TimeoutError")), ANSWER_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function folder() {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(FOLDER, { create: true });
}

async function readIndex(directory, key) {
  try {
    const file = await (await directory.getFileHandle(`${key}.json`)).getFile();
    return JSON.parse(await file.text());
  } catch {
    return null; // not there, or not written to its end
  }
}

async function writeText(directory, name, text) {
  const handle = await (await directory.getFileHandle(name, { create: true })).createSyncAccessHandle();
  try {
    handle.truncate(0);
    handle.write(new TextEncoder().encode(text));
    handle.flush();
  } finally {
    handle.close();
  }
}

/** Remove the entry that was not used for longest, but for `key`; false if there is none. */
async function evict(directory, key) {
  let oldest = null;
  for await (const name of directory.keys()) {
    const other = name.replace(/\.(json|data)$/, "");
    if (other !== key) {
      const used = (await readIndex(directory, other))?.used ?? 0;
      oldest = !oldest || used < oldest.used ? { other, used } : oldest;
    }
  }
  if (!oldest) {
    return false;
  }
  for (const suffix of ["json", "data"]) {
    await directory.removeEntry(`${oldest.other}.${suffix}`).catch(() => {}); // open in another tab
  }
  return true;
}

/** A file's place in the cache. `state`: "open", or why it takes no chunks: "whole", "full". */
export class CacheEntry {
  constructor(directory, key, index, handle) {
    this.directory = directory;
    this.key = key;
    this.index = index;
    this.handle = handle;
    this.state = "open";
    this.unsaved = 0;
    this.evictions = 0;
  }

  /**
   * The entry for a file of `size` bytes, or null where the browser keeps no files or another program is
   * writing this one. A whole entry is opened for reading, so that several can.
   */
  static async open(key, size) {
    try {
      const directory = await answered(folder());
      const found = await answered(readIndex(directory, key));
      const index = found?.size === size && found.chunk === CHUNK_BYTES ? found : { size, chunk: CHUNK_BYTES, digests: {} };
      const file = await answered(directory.getFileHandle(`${key}.data`, { create: true }));
      const mode = index.whole ? "read-only" : "readwrite";
      const entry = new CacheEntry(directory, key, index, await answered(file.createSyncAccessHandle({ mode })));
      entry.state = index.whole ? "whole" : "open";
      return entry;
    } catch {
      return null;
    }
  }

  /** Chunk `i` if it is there and what was stored, else null. */
  async read(i) {
    const digest = this.index.digests[i];
    if (!digest) {
      return null;
    }
    const bytes = new Uint8Array(Math.min(CHUNK_BYTES, this.index.size - i * CHUNK_BYTES));
    const count = this.handle.read(bytes, { at: i * CHUNK_BYTES });
    if (count === bytes.length && (await sha256(bytes)) === digest) {
      return bytes;
    }
    delete this.index.digests[i]; // stored again by the next load that can write
    this.index.whole = false;
    return null;
  }

  /** Store chunk `i`. A full disk makes room by what was not used for longest; then the entry is "full". */
  async write(i, bytes) {
    while (this.state === "open") {
      try {
        if (this.handle.write(bytes, { at: i * CHUNK_BYTES }) === bytes.length) {
          this.index.digests[i] = await sha256(bytes);
          this.unsaved++;
          break;
        }
        throw new DOMException("the disk is full", "QuotaExceededError");
      } catch (error) {
        if (error.name !== "QuotaExceededError" || !(await evict(this.directory, this.key)) || ++this.evictions > 64) {
          this.state = "full";
        }
      }
    }
    if (this.unsaved >= SAVE_EVERY) {
      await this.save();
    }
  }

  async save() {
    this.unsaved = 0;
    this.index.used = Date.now();
    try {
      if (this.state !== "whole") {
        this.handle.flush();
      }
      await answered(writeText(this.directory, `${this.key}.json`, JSON.stringify(this.index)));
    } catch {
      this.state = "full"; // chunks without an index are fetched again
    }
  }

  /** whole: every chunk that a load needs is there. */
  async close(whole) {
    this.index.whole = Boolean(whole && this.index.whole !== false && this.state !== "full");
    await this.save();
    this.handle.close();
  }
}
