// One adapter, one device: asked for once, with all that kernels may use.

import { failure, watchDevice } from "./failure.js";

const WANTED_FEATURES = ["shader-f16", "subgroups", "timestamp-query"];

// Raised to what the adapter has; everything else keeps WebGPU's defaults.
const WANTED_LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
];

const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render|software/i;

// A browser that has just started may have no adapter yet: ask again before giving up.
const ATTEMPTS = 8;
const PAUSE_MS = 250;

async function requestAdapter(gpu) {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
    if (adapter) {
      return adapter;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  throw failure(
    "WebGPUUnavailableError",
    "this browser has WebGPU but found no graphics adapter. Update the graphics driver, or turn hardware " +
      "acceleration on in the browser's settings.",
  );
}

/**
 * { device, info } of the best adapter; info is plain data: vendor, architecture, description,
 * software, features, limits. Throws WebGPUUnavailableError.
 */
export async function requestDevice() {
  const gpu = globalThis.navigator?.gpu;
  if (!gpu) {
    throw failure(
      "WebGPUUnavailableError",
      "this browser has no WebGPU here. Use a recent Chrome, Edge, Safari or Firefox, over https or on " +
        "localhost (navigator.gpu is missing elsewhere).",
    );
  }
  const adapter = await requestAdapter(gpu);
  const requiredLimits = {};
  for (const name of WANTED_LIMITS) {
    requiredLimits[name] = adapter.limits[name];
  }
  const requiredFeatures = WANTED_FEATURES.filter((name) => adapter.features.has(name));
  let device;
  try {
    device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
  } catch (error) {
    throw failure("WebGPUUnavailableError", `the graphics adapter gives no device: ${error.message}`);
  }
  watchDevice(device);
  const { vendor, architecture, description } = adapter.info;
  const limits = {};
  for (const name of [...WANTED_LIMITS, "maxComputeWorkgroupsPerDimension", "minStorageBufferOffsetAlignment"]) {
    limits[name] = device.limits[name];
  }
  const software =
    adapter.info.isFallbackAdapter === true || SOFTWARE.test(`${vendor} ${architecture} ${description}`);
  const info = { vendor, architecture, description, software, features: [...device.features].sort(), limits };
  return { device, info };
}
