// Somebody's own `.pte`: what it takes and gives, one run on noise, and its profile.

import { Tensor } from "../pteron.js";

const SEED = 7;

/** Uniform numbers in [0, 1), the same for the same seed (mulberry32, by Tommy Ettinger). */
function* noise(seed) {
  let state = seed;
  for (;;) {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    yield ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }
}

const FILL = {
  int64: (value) => BigInt(Math.floor(value * 2)),
  bool: (value) => (value < 0.5 ? 0 : 1),
  float16: (value) => (globalThis.Float16Array ? value : Math.floor(value * 0x3c00)),
};

function randomTensor({ dtype, dims }, numbers) {
  const count = dims.reduce((a, b) => a * b, 1);
  const fill = FILL[dtype] ?? (dtype.startsWith("float") ? (value) => value : (value) => Math.floor(value * 2));
  return new Tensor(dtype, Array.from({ length: count }, () => fill(numbers.next().value)), dims);
}

function statistics({ data }) {
  let [low, high, sum] = [Infinity, -Infinity, 0];
  for (const item of data) {
    const value = Number(item);
    low = Math.min(low, value);
    high = Math.max(high, value);
    sum += value;
  }
  return `from ${low.toPrecision(4)} to ${high.toPrecision(4)}, mean ${(sum / data.length).toPrecision(4)}`;
}

const describe = ({ dtype, dims }) => `${dtype}[${dims.join(", ")}]`;

/** Opens a program file and shows what came of it. */
export class ProgramView {
  constructor(place, runtime, profile) {
    this.place = place;
    this.runtime = runtime;
    this.profile = profile;
  }

  async open(file, onProgress) {
    this.place.hidden = true;
    const program = await this.runtime().loadProgram(file, { onProgress });
    try {
      const method = await program.loadMethod(program.methods[0], { onProgress });
      const numbers = noise(SEED);
      const inputs = method.metadata.inputs.map((port) => randomTensor(port, numbers));
      const outputs = await method.execute(inputs);
      const report = await method.report();
      this.show(file.name, method, outputs, report);
      this.profile.show(report);
    } finally {
      await program.close();
    }
  }

  show(name, method, outputs, report) {
    const operators = Object.entries(report.operators).map(([operator, count]) => `${count} ${operator}`);
    const lines = [
      `${name}, method ${method.metadata.name}`,
      ...method.metadata.inputs.map((port, i) => `input ${i}: ${describe(port)}, noise of seed ${SEED}`),
      ...outputs.map((tensor, i) => `output ${i}: ${describe(tensor)}, ${statistics(tensor)}`),
      `operators: ${operators.join(", ")}`,
    ];
    this.place.replaceChildren(
      ...lines.map((line) => {
        const item = document.createElement("p");
        item.textContent = line;
        return item;
      }),
    );
    this.place.hidden = false;
  }
}
