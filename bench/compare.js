// Pteron and onnxruntime-web side by side in one page: same weights, same input, turn by turn.
//
// Reads models.json, posts { adapter, rows } to /results, or { error }.

import * as ort from "./ort/ort.webgpu.bundle.min.mjs";
import { Runtime, Tensor } from "../pteron.js";

const WARM_UP = 2;

const post = (path, body) => fetch(path, { method: "POST", body: JSON.stringify(body) });

async function say(text) {
  document.getElementById("log").textContent += `${text}\n`;
  await post("/progress", text);
}

const bytes = async (url) => (await fetch(url)).arrayBuffer();

const sorted = (values) => [...values].sort((a, b) => a - b);
const quantile = (values, q) => sorted(values)[Math.min(values.length - 1, Math.floor(q * values.length))];

async function timed(work) {
  const start = performance.now();
  const result = await work();
  return [performance.now() - start, result];
}

/** { load_ms, run() } for Pteron; run resolves to the outputs' data. */
async function loadPteron(runtime, { pte, input }, data) {
  const [load_ms, { program, method }] = await timed(async () => {
    const program = await runtime.loadProgram(new URL(pte, location.href));
    return { program, method: await program.loadMethod("forward") };
  });
  const tensor = new Tensor("float32", data, input.dims);
  const run = async () => (await method.execute([tensor])).map((output) => output.data);
  return { load_ms, run, report: () => method.report(), close: () => program.close() };
}

async function loadOrt({ onnx, input, outputs }, data) {
  const [load_ms, session] = await timed(async () =>
    ort.InferenceSession.create(new Uint8Array(await bytes(onnx)), { executionProviders: ["webgpu"] }),
  );
  const feeds = { [input.name]: new ort.Tensor("float32", data, input.dims) };
  const run = async () => {
    const results = await session.run(feeds);
    return outputs.map((name) => results[name].data);
  };
  return { load_ms, run, close: () => session.release() };
}

function largestDifference(ours, theirs) {
  let worst = 0;
  ours.forEach((array, i) => {
    let [low, high, difference] = [Infinity, -Infinity, 0];
    array.forEach((value, k) => {
      low = Math.min(low, theirs[i][k]);
      high = Math.max(high, theirs[i][k]);
      difference = Math.max(difference, Math.abs(value - theirs[i][k]));
    });
    worst = Math.max(worst, difference / (high - low));
  });
  return worst;
}

async function measure(runtime, model) {
  const data = new Float32Array(await bytes(model.input.file));
  const pteron = await loadPteron(runtime, model, data);
  const peer = await loadOrt(model, data);
  const sides = [
    { runtime: "pteron", times: [], ...pteron },
    { runtime: "onnxruntime-web", times: [], ...peer },
  ];
  for (const side of sides) {
    [side.first_ms, side.outputs] = await timed(side.run);
  }
  const difference = largestDifference(sides[0].outputs, sides[1].outputs);
  for (let round = -WARM_UP; round < model.rounds; round++) {
    for (const side of sides) {
      const [time] = await timed(side.run);
      if (round >= 0) {
        side.times.push(time);
      }
    }
  }
  const { total_ms, timer } = await pteron.report();
  const rows = sides.map(({ runtime: name, load_ms, first_ms, times }) => ({
    model: model.name,
    runtime: name,
    dtype: "float32",
    load_ms,
    first_ms,
    median_ms: quantile(times, 0.5),
    p95_ms: quantile(times, 0.95),
    runs: times.length,
    gpu_ms: name === "pteron" && timer === "timestamp-query" ? total_ms : null,
    difference,
  }));
  await pteron.close();
  await peer.close();
  const [ours, theirs] = rows;
  await say(
    `${model.name}: pteron ${ours.median_ms.toFixed(2)} ms, onnxruntime-web ${theirs.median_ms.toFixed(2)} ms, ` +
      `ratio ${(theirs.median_ms / ours.median_ms).toFixed(2)}, outputs differ by ${difference.toExponential(1)} of the spread`,
  );
  return rows;
}

async function main() {
  ort.env.wasm.wasmPaths = new URL("ort/", location.href).href;
  ort.env.wasm.numThreads = 1; // no COOP/COEP here; the WebGPU provider does its work on the GPU
  ort.env.webgpu.powerPreference = "high-performance";
  ort.env.logLevel = "error";
  const models = await (await fetch("models.json")).json();
  const runtime = await Runtime.create();
  await runtime.started();
  const rows = [];
  for (const model of models) {
    rows.push(...(await measure(runtime, model)));
  }
  const { vendor, architecture, description, software, features } = runtime.info;
  await post("/results", {
    adapter: { vendor, architecture, description, software, features },
    browser: navigator.userAgent,
    peer: `onnxruntime-web ${ort.env.versions.web}`,
    rows,
  });
}

main().catch((error) => post("/results", { error: `${error.name}: ${error.message}\n${error.stack}` }));
