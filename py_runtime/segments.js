// The places of a file's segments, read from its head.
//
// Just enough of the formats to start sending weights to the GPU while Python is still
// booting; program.py reads the same head again, in full and with all checks. Formats:
// ExecuTorch schema/program.fbs and flat_tensor.fbs; a flatbuffer table starts with the
// distance back to its vtable: u16 sizes, then a u16 offset for each field, 0 for absent.

import { failure } from "./failure.js";

const HEAD_BYTES = 64;

// magic at byte 4 of the file; where the header puts sizes; fields of the root table
const KINDS = {
  ET12: {
    name: "program (.pte)",
    header: "eh00",
    size: (view) => Number(view.getBigUint64(16, true)),
    base: (view) => Number(view.getBigUint64(24, true)),
    dataSize: (view) => (view.getUint32(12, true) >= 32 ? Number(view.getBigUint64(32, true)) : 0),
    segments: 4,
    constants: 5,
    mutable: 6,
    named: 7,
  },
  FT01: {
    name: "tensor file (.ptd)",
    header: "FH01",
    size: (view) => Number(view.getBigUint64(16, true)) + Number(view.getBigUint64(24, true)),
    base: (view) => Number(view.getBigUint64(32, true)),
    dataSize: (view) => (view.getUint32(12, true) >= 40 ? Number(view.getBigUint64(40, true)) : 0),
    segments: 1,
    named: 2,
  },
};

const ascii = (view, at) => String.fromCharCode(...[0, 1, 2, 3].map((i) => view.getUint8(at + i)));

/**
 * { kind, size, base, end } of a file's first 64 bytes: its head is `size` bytes, segments count from
 * `base`, the file ends at `end` (0 if that is not said).
 */
export function readHead(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const kind = bytes.byteLength >= 12 ? KINDS[ascii(view, 4)] : undefined;
  if (!kind || bytes.byteLength < HEAD_BYTES || ascii(view, 8) !== kind.header) {
    return null; // another kind of file, or one without segments: program.py says what is wrong
  }
  const [base, dataSize] = [kind.base(view), kind.dataSize(view)];
  return { kind, size: kind.size(view), base, end: dataSize ? base + dataSize : 0 };
}

class Table {
  constructor(view, at) {
    this.view = view;
    this.at = at;
    this.vtable = at - view.getInt32(at, true);
  }

  /** Where a field's value is, or 0; also for a field that this kind of file does not have. */
  field(index) {
    if (index === undefined) {
      return 0;
    }
    const slot = 4 + 2 * index;
    if (slot >= this.view.getUint16(this.vtable, true)) {
      return 0;
    }
    const offset = this.view.getUint16(this.vtable + slot, true);
    return offset ? this.at + offset : 0;
  }

  number(index, method, fallback) {
    const at = this.field(index);
    return at ? this.view[method](at, true) : fallback;
  }

  /** The table of a field, or null. */
  table(index) {
    const at = this.field(index);
    return at ? new Table(this.view, at + this.view.getUint32(at, true)) : null;
  }

  /** The tables of a vector field. */
  tables(index) {
    const at = this.field(index);
    if (!at) {
      return [];
    }
    const vector = at + this.view.getUint32(at, true);
    const count = this.view.getUint32(vector, true);
    if (vector + 4 + 4 * count > this.view.byteLength) {
      throw new RangeError("a list reaches behind the end");
    }
    return Array.from({ length: count }, (_, i) => {
      const slot = vector + 4 + 4 * i;
      return new Table(this.view, slot + this.view.getUint32(slot, true));
    });
  }
}

/**
 * The segments of a file: [{ offset, size, kind }], offsets from the file's start, in order.
 * kind: "weight" (a datum of its own), "constants" (those that the CPU reads), "delegate".
 */
export function readSegments(head, { kind, base }) {
  try {
    const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
    // the flatbuffer starts at 0 in a .pte; in a .ptd too, its header lies inside the first bytes
    const root = new Table(view, view.getUint32(0, true));
    const kinds = new Map(root.tables(kind.named).map((entry) => [entry.number(1, "getUint32", 0), "weight"]));
    for (const table of [...root.tables(kind.mutable), root.table(kind.constants)]) {
      if (table) {
        kinds.set(table.number(0, "getUint32", 0), "constants");
      }
    }
    return root
      .tables(kind.segments)
      .map((segment, index) => ({
        offset: base + Number(segment.number(0, "getBigUint64", 0n)),
        size: Number(segment.number(1, "getBigUint64", 0n)),
        kind: kinds.get(index) ?? "delegate",
      }))
      .filter((segment) => segment.size > 0)
      .sort((a, b) => a.offset - b.offset);
  } catch (error) {
    if (error instanceof RangeError) {
      throw failure("ProgramError", `the ${kind.name}'s head is damaged: ${error.message}. Fetch the file again.`);
    }
    throw error;
  }
}
