// Tasks: a model with what stands around it, from a picture to an answer.
//
//   const detect = await pipeline("detect", "models/nanodet", { runtime });
//   const found = await detect(image, { threshold: 0.5 });

import { PteronError, Runtime } from "./pteron.js";

const TASKS = ["detect", "upscale"];

/** A picture's pixels: { pixels (RGBA bytes), width, height }. Takes what a page has. */
async function readPixels(image) {
  let source = image;
  if (typeof source === "string" || source instanceof URL) {
    const response = await fetch(source);
    if (!response.ok) {
      throw new PteronError("FetchError", `the picture ${source} answers ${response.status}`);
    }
    source = await response.blob();
  }
  if (source instanceof Blob) {
    try {
      source = await createImageBitmap(source);
    } catch {
      throw new PteronError("FetchError", "this file is no picture that the browser can read; give a PNG, JPEG or WebP");
    }
  }
  const width = source.videoWidth || source.naturalWidth || source.width;
  const height = source.videoHeight || source.naturalHeight || source.height;
  if (!width || !height) {
    throw new PteronError("InputShapeError", "the picture has no size yet; wait until it is loaded");
  }
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.drawImage(source, 0, 0);
  return { pixels: context.getImageData(0, 0, width, height).data.buffer, width, height };
}

async function fetchManifest(path) {
  const url = new URL(path.endsWith(".json") ? path : `${path}.json`, document.baseURI);
  const response = await fetch(url).catch((error) => {
    throw new PteronError("FetchError", `${url} can't be reached: ${error.message}`);
  });
  if (!response.ok) {
    throw new PteronError("FetchError", `${url} answers ${response.status}; is there a manifest beside the model?`);
  }
  try {
    return { url, manifest: await response.json() };
  } catch {
    throw new PteronError("ProgramError", `${url} is no manifest: it is not JSON`);
  }
}

/**
 * Load a model and the task around it. path: of the manifest, with or without ".json".
 * Resolves to an async function from a picture to the task's answer, with `manifest`, `method`,
 * `program`, `runtime`, `timings` and `close()` on it.
 */
export async function pipeline(task, path, { runtime: given, onProgress } = {}) {
  if (!TASKS.includes(task)) {
    throw new PteronError("UnsupportedError", `there is no task "${task}"; there are ${TASKS.join(", ")}`);
  }
  const [runtime, { url, manifest }] = await Promise.all([
    given ?? Runtime.create({ onProgress }),
    fetchManifest(path),
  ]);
  if (manifest.task !== task) {
    throw new PteronError("UnsupportedError", `${manifest.name} is a model for "${manifest.task}", not "${task}"`);
  }
  const version = manifest.sha256 ? `?v=${manifest.sha256.slice(0, 16)}` : "";
  const program = await runtime.loadProgram(new URL(manifest.program + version, url), { onProgress });
  const method = await program.loadMethod(manifest.method, { onProgress });
  await runtime.channel.call("prepareTask", {});
  const { boot_ms } = await runtime.started();

  const timings = {
    boot_ms,
    download_ms: program.timings.download_ms,
    compile_ms: method.timings.compile_ms,
    first_ms: null,
    last_ms: null,
  };
  const run = async (image, options = {}) => {
    const { pixels, width, height } = await readPixels(image);
    const start = performance.now();
    const args = { task, method: method.number, manifest, pixels, width, height, options };
    const result = await runtime.channel.call("runTask", args, { transfer: [pixels] });
    timings.last_ms = performance.now() - start;
    timings.first_ms ??= timings.last_ms;
    return result;
  };
  const close = async () => {
    await program.close();
    if (!given) {
      await runtime.close();
    }
  };
  return Object.assign(run, { manifest, method, program, runtime, timings, close });
}
