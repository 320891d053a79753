// The operator suites on this machine's adapter: reads cases.json, posts { adapter, rows } to /results.

import { Runtime, Tensor } from "../pteron.js";

const ARRAYS = {
  bool: Uint8Array,
  uint8: Uint8Array,
  int8: Int8Array,
  int32: Int32Array,
  int64: BigInt64Array,
  float16: globalThis.Float16Array ?? Uint16Array,
  float32: Float32Array,
};

const post = (path, body) => fetch(path, { method: "POST", body: JSON.stringify(body) });
const decode = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
const toTensor = ({ dtype, dims, data }) => new Tensor(dtype, new ARRAYS[dtype](decode(data)), dims);

/** "" when an output is the golden within its tolerance, else what differs. */
function compare(output, { dtype, dims, data, rtol, atol }) {
  if (output.dtype !== dtype || String(output.dims) !== String(dims)) {
    return `is ${output.dtype}[${output.dims}], should be ${dtype}[${dims}]`;
  }
  const golden = new ARRAYS[dtype](decode(data));
  let wrong = 0;
  golden.forEach((want, i) => {
    const [a, b] = [Number(output.data[i]), Number(want)];
    const same = a === b || (Number.isNaN(a) && Number.isNaN(b));
    wrong += same || Math.abs(a - b) <= atol + rtol * Math.abs(b) ? 0 : 1;
  });
  return wrong ? `${wrong} of ${golden.length} elements differ` : "";
}

async function run(runtime, { suite, name, pte, inputs, outputs }) {
  let program = null;
  let problem = "";
  try {
    program = await runtime.loadProgram(decode(pte));
    const method = await program.loadMethod("forward");
    const results = await method.execute(inputs.map(toTensor));
    problem = outputs
      .map((golden) => compare(results[golden.index], golden))
      .filter(Boolean)
      .join("; ");
  } catch (error) {
    problem = `${error.name}: ${error.message}`;
  }
  await program?.close();
  return { suite, name, problem };
}

async function main() {
  const cases = await (await fetch("cases.json")).json();
  const runtime = await Runtime.create();
  await runtime.started();
  const rows = [];
  for (const item of cases) {
    rows.push(await run(runtime, item));
  }
  const { vendor, architecture, description, software, features } = runtime.info;
  const adapter = { vendor, architecture, description, software, features };
  await post("/results", { adapter, browser: navigator.userAgent, rows });
}

main().catch((error) => post("/results", { error: `${error.name}: ${error.message}\n${error.stack}` }));
